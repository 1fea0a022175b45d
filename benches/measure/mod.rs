//! How the benchmarks measure: threads on cores of their own, batches of all cases in
//! turns, and tables of what came out.

#![allow(dead_code, reason = "each benchmark uses a part of this")]

pub mod burst;
pub mod cores;
pub mod drain;
pub mod floor;
pub mod gate;
pub mod table;
pub mod turns;

use std::time::{Duration, Instant};

/// The value that follows `--NAME` on the command line, else `default`.
pub fn option<T: std::str::FromStr>(name: &str, default: T) -> T {
    let mut args = std::env::args().skip_while(|arg| arg.strip_prefix("--") != Some(name));
    args.nth(1).and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Waits for as long as `scopes` take at two million per second.
pub fn pace(scopes: u64) {
    let start = Instant::now();
    let time = Duration::from_nanos(scopes * 500);
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
