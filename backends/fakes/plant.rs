//! Faults that a self-test must find: what profilers are told differs from what was done.
//! `FAKE_PLANT` names one, which befalls every 40th piece of work.
//!
//! | fault | makes |
//! |---|---|
//! | `lost-kernel` | a kernel not be told of |
//! | `wrong-stream` | work be that of another stream |
//! | `swapped-arrow` | work be that of the call before |
//! | `shifted-clock` | all work be told of 20 ms late |
// Each fake uses some of it.
#![allow(dead_code)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::seam::{Task, Work};

const EVERY: u32 = 40;
const SHIFT: u64 = 20_000_000;

fn planted() -> &'static str {
    static PLANTED: OnceLock<String> = OnceLock::new();
    PLANTED.get_or_init(|| std::env::var("FAKE_PLANT").unwrap_or_default())
}

fn hit() -> bool {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    (COUNT.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EVERY)
}

/// What is told of work; none if nothing is.
pub(crate) fn work(mut work: Work) -> Option<Work> {
    match planted() {
        "lost-kernel" if matches!(work.task, Task::Kernel(_)) && hit() => return None,
        "wrong-stream" if hit() => work.place.stream = 99,
        "swapped-arrow" if hit() => work.correlation -= 1,
        "shifted-clock" => {
            work.start += SHIFT;
            work.end += SHIFT;
        }
        _ => {}
    }
    Some(work)
}

/// The stream that a call is told to be of, where that is not told with the work.
pub(crate) fn stream(handle: u64) -> u64 {
    if planted() == "wrong-stream" && hit() { 0x7fff_0000_0040 } else { handle }
}
