//! Queues: how records get from the threads that make them to the one that writes them.
//!
//! ```text
//!  thread ──Producer──► chunk ─next─► chunk ─next─► chunk ◄──Reader── engine
//!                         ▲                            │
//!                         └────────── Pool ◄───────────┘
//! ```
//! A push allocates nothing, takes no lock, makes no system call and never waits, unless
//! the policy lets it wait for room. When there is no room it is counted, and the next
//! record that finds room is preceded by a `Lost` record.

mod chunk;
mod lane;
mod left;
mod pool;
mod producer;
mod reader;
mod tail;
#[cfg(test)]
mod tests;

pub use chunk::CAPACITY;
pub use pool::Pool;
pub use producer::Producer;
pub use reader::{Drained, Losses, Reader};

use std::sync::atomic::{AtomicU32, Ordering};

/// The pool of this process.
pub static POOL: Pool = Pool::new();

thread_local! {
    /// The one thread-local of the pipeline. Constant and without a destructor, so that
    /// access is a plain address computation, also while a thread shuts down.
    pub static PRODUCER: Producer = const { Producer::new() };
}

/// Calls `body` with this thread's [`PRODUCER`]. Only the address is asked for inside of
/// `LocalKey::with`, which is not inlined with more in it, and then is two calls.
#[inline(always)]
pub fn with_producer<R>(body: impl FnOnce(&Producer) -> R) -> R {
    let producer = PRODUCER.with(std::ptr::from_ref);
    // SAFETY: the calling thread's, which has no destructor.
    body(unsafe { &*producer })
}

/// The `pthread` key whose destructor retires a thread's lane; `u32::MAX` before
/// [`watch_threads`]. Key destructors run after those of C++ and Rust thread-locals, so
/// what these record while a thread ends is still seen.
static EXIT_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Makes lanes come back when threads end. Called once, before the first recording.
pub fn watch_threads() {
    if EXIT_KEY.load(Ordering::Acquire) != u32::MAX {
        return;
    }
    let mut key = 0;
    // SAFETY: `key` is writable, and `retire` takes what pthread passes.
    if unsafe { libc::pthread_key_create(&mut key, Some(retire)) } == 0 {
        EXIT_KEY.store(key, Ordering::Release);
    }
}

extern "C" fn retire(_: *mut libc::c_void) {
    PRODUCER.with(|p| p.retire(&POOL));
}

/// Arms the destructor for the calling thread.
fn on_thread_exit() {
    let key = EXIT_KEY.load(Ordering::Acquire);
    if key != u32::MAX {
        // SAFETY: the key was created; any non-null value makes its destructor run.
        unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    }
}

/// The kernel's id and name of the calling thread.
fn this_thread() -> (u32, [u64; 2]) {
    let mut name = [0u64; 2];
    if cfg!(miri) {
        return (1, name);
    }
    // SAFETY: PR_GET_NAME writes at most 16 bytes, terminator included (prctl(2)).
    let tid = unsafe {
        libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
        libc::gettid()
    };
    (tid as u32, name)
}

/// To be called in a forked child, on its only thread, before it records anything.
pub fn after_fork() {
    PRODUCER.with(Producer::forget);
    POOL.reset_after_fork();
}

/// Returns the calling thread's lane now, as its end would.
pub fn retire_thread() {
    PRODUCER.with(|p| p.retire(&POOL));
}
