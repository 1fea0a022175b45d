//! The one way in for foreign callers: nothing unwinds into the host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics that were stopped at the border. Always zero, unless Kymograph has a bug.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Runs `body` for a foreign caller; `otherwise` is what that gets if it panics.
///
/// The panic hook of the process still runs: it is the host's.
#[inline(always)]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(_) => {
            CAUGHT.fetch_add(1, Ordering::Relaxed);
            otherwise
        }
    }
}
