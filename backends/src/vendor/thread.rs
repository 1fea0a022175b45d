//! Threads of our own in somebody's process, and waits for them.

use std::ptr;
use std::time::{Duration, Instant};

/// Runs `spawn` with all signals blocked, so that its thread never runs a handler of the
/// program's.
pub(crate) fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised before they are used, and the mask of this thread
    // is put back.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        result
    }
}

/// Waits until `done`, or for `patience`; returns whether it is done. Takes no lock: it may
/// run in a signal handler.
pub(crate) fn wait(patience: Duration, done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
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
