//! The wall between a program and our code that it calls: nothing unwinds into the program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `body` for a foreign caller. If it panics, the panic is counted and the caller gets
/// `otherwise`.
///
/// The panic hook of the process still runs: it is the program's.
#[inline(always)]
pub fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // Dropping it could panic again.
            std::mem::forget(payload);
            otherwise
        }
    }
}

/// How many panics have been stopped in this process: none, unless Kymograph has a bug.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Runs `spawn` with all signals blocked, so that a thread it makes never runs a handler of
/// the program's, and no write of ours raises SIGPIPE in it.
pub fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_other_value_and_is_counted() {
        let before = panics();
        assert_eq!(guard(-1, || 7), 7);
        assert_eq!(guard(-1, || std::panic::resume_unwind(Box::new(()))), -1);
        assert_eq!(panics(), before + 1);
    }
}
