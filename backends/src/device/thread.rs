//! Threads of our own in the program's process, and waits for them.

use std::time::{Duration, Instant};

/// Upper bound on the wait, as a multiple of `timeout`, while there is progress.
const MAX_TIMEOUTS: u32 = 10;

/// As [`wait`], and goes on for as long as `moved` changes within `timeout`, ten times as
/// long at most: a slow machine is no reason to lose anything.
pub(crate) fn wait_while_it_moves(
    timeout: Duration,
    moved: impl Fn() -> u32,
    done: impl Fn() -> bool,
) -> bool {
    let end = Instant::now() + timeout * MAX_TIMEOUTS;
    loop {
        let before = moved();
        if wait(timeout.min(end.saturating_duration_since(Instant::now())), &done) {
            return true;
        }
        if moved() == before || Instant::now() >= end {
            return false;
        }
    }
}

/// Waits until `done`, or for `timeout`; returns whether it is done. Takes no lock: it may
/// run in a signal handler.
pub(crate) fn wait(timeout: Duration, done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    let mut pause = Duration::from_micros(50);
    while !done() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
    true
}
