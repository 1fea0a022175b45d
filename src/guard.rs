//! The one way in for foreign callers: nothing unwinds into the host.

use std::ffi::c_int;

pub(crate) use kymograph_backends::guard::guard;

use crate::stack::on_own_stack;

/// As [`guard`], for what may open files, start threads or wait: see [`uncancelled`].
pub(crate) fn slow_guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    guard(otherwise, || uncancelled(body))
}

/// Runs a set-up: as [`uncancelled`], on a stack of its own, and no signal handler runs
/// meanwhile. One that records, or leaves by `siglongjmp`, would leave half done what is done
/// once only. Signals of a fault are not held back: the system would end the process for them.
pub(crate) fn uninterrupted<T>(body: impl FnOnce() -> T) -> T {
    /// Puts back what was before.
    struct Restore(libc::sigset_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: a mask that this thread had.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        }
    }
    if cfg!(miri) {
        return body();
    }
    // SAFETY: both sets are initialised before they are read.
    let before = unsafe {
        let (mut most, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut most);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigdelset(&mut most, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &most, &mut before);
        before
    };
    let _restore = Restore(before);
    uncancelled(|| on_own_stack(body))
}

/// Runs `body` so that a `pthread_cancel` of the host's waits until after it. Many functions
/// of the C library are points at which a thread is cancelled, by unwinding that must not be
/// caught; what an event usually does has none of them.
pub(crate) fn uncancelled<T>(body: impl FnOnce() -> T) -> T {
    /// `PTHREAD_CANCEL_DISABLE` of glibc and musl.
    const DISABLE: c_int = 1;
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    }
    /// Puts back what was before.
    struct Restore(c_int);
    impl Drop for Restore {
        fn drop(&mut self) {
            // SAFETY: a state that this thread had.
            unsafe { pthread_setcancelstate(self.0, &mut 0) };
        }
    }
    if cfg!(miri) {
        return body();
    }
    let mut before = 0;
    // SAFETY: `before` is writable. Neither call is a point of cancellation.
    unsafe { pthread_setcancelstate(DISABLE, &mut before) };
    let _restore = Restore(before);
    body()
}
