//! Scopes of a program that records at full speed or at a rate, and what is said of them: a
//! measured value, a target, and whether it is met.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kymograph::scope;

/// A row of a table of four columns.
pub fn row(what: &str, measured: &str, target: &str, met: bool) {
    let verdict = match (target, met) {
        ("", _) => "",
        (_, true) => "met",
        (_, false) => "**missed**",
    };
    println!("| {what} | {measured} | {target} | {verdict} |");
}

/// Scopes at full speed. Returns how long they took.
pub fn scopes(count: u64) -> Duration {
    let start = Instant::now();
    for n in 0..count {
        let _scope = scope!("burst", n = black_box(n));
    }
    start.elapsed()
}

/// Those that are due since `start` at so many per second, of which `done` were. Returns how
/// many are done now, and how long they took.
pub fn due(start: Instant, rate: u64, done: u64) -> (u64, Duration) {
    let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
    // Who was kept from running does not catch up at once: that would be a burst.
    let due = due.min(done + rate / 100);
    (due.max(done), scopes(due.saturating_sub(done)))
}
