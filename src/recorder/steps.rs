//! The iteration that the program is in: its number, and the range that shows it.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many iterations have begun: the number of the one that runs.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The range of the iteration that runs, 0 if it was not recorded from its beginning.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// An iteration begins; returns its number.
pub(crate) fn advance() -> u64 {
    STEPS.fetch_add(1, Ordering::Relaxed) + 1
}

/// The number of the iteration that runs.
pub(crate) fn count() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// The range `id` shows the iteration that runs.
pub(crate) fn open(id: u64) {
    OPEN.store(id, Ordering::Relaxed);
}

/// The range of the iteration that ends now; 0 if there is none.
pub(crate) fn close() -> u64 {
    OPEN.swap(0, Ordering::Relaxed)
}

/// The recording of the iteration that runs is over: its range does not end in another one.
pub(crate) fn forget() {
    OPEN.store(0, Ordering::Relaxed);
}
