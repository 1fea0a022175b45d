//! The recording that is running, for those who have no handle: fork and exit handlers,
//! events of categories that are not known yet.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::control_block::Shared;

/// Owned (one strong count) by this pointer while it is not null.
static ACTIVE: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
/// How many are between finding `ACTIVE` and owning a count of it.
static READERS: AtomicU64 = AtomicU64::new(0);

/// How long a reader may be at it; longer, and the recording stays in memory.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The running recording of this process.
pub fn active() -> Option<Arc<Shared>> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let shared = ACTIVE.load(Ordering::SeqCst);
    let shared = (!shared.is_null()).then(|| {
        // SAFETY: `ACTIVE` owns a count, which `deactivate` gives up only when no reader is
        // between these two additions.
        unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        }
    });
    READERS.fetch_sub(1, Ordering::SeqCst);
    shared
}

/// The recording is over: it is not found any more.
pub fn deactivate() {
    let shared = ACTIVE.swap(ptr::null_mut(), Ordering::SeqCst);
    if shared.is_null() {
        return;
    }
    let since = Instant::now();
    while READERS.load(Ordering::SeqCst) != 0 {
        if since.elapsed() > TIMEOUT {
            // One of them was left by a jump out of a signal handler.
            return;
        }
        std::thread::yield_now();
    }
    // SAFETY: the count that `ACTIVE` owned; who found the pointer has counts of their own.
    drop(unsafe { Arc::from_raw(shared) });
}

/// Whether there is one.
pub fn is_active() -> bool {
    !ACTIVE.load(Ordering::Acquire).is_null()
}

/// From here on everybody finds `shared`.
pub fn activate(shared: Arc<Shared>) {
    ACTIVE.store(Arc::into_raw(shared).cast_mut(), Ordering::Release);
}

/// In a forked child, on its only thread: the recording is the parent's, and stays in
/// memory for ever. Takes no lock.
pub fn detach() -> Option<&'static Shared> {
    let shared = ACTIVE.swap(ptr::null_mut(), Ordering::AcqRel);
    READERS.store(0, Ordering::Release);
    // SAFETY: null, or the pointer owned a count, which is never given up in this process.
    unsafe { shared.as_ref() }
}
