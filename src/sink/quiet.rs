//! Writing without signals.
//!
//! A write to a pipe whose reader is gone raises SIGPIPE, one beyond `ulimit -f` SIGXFSZ;
//! both kill by default. Inside a host program neither may happen, and neither
//! may we change how that program handles them. Both are sent to the *writing thread*, so
//! it blocks them for as long as it writes and takes back what it caused.

use std::mem::MaybeUninit;

/// Runs `write`, which makes no other use of signals, so that neither SIGPIPE nor SIGXFSZ
/// that it causes is delivered. Three to five system calls.
pub(super) fn quietly<T>(write: impl FnOnce() -> T) -> T {
    let mut ours = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: each set is initialised by the call that fills it before it is read; no
    // call keeps a pointer. On failure (impossible for valid arguments) we run unguarded.
    let guarded = unsafe {
        libc::sigemptyset(ours.as_mut_ptr()) == 0
            && libc::sigaddset(ours.as_mut_ptr(), libc::SIGPIPE) == 0
            && libc::sigaddset(ours.as_mut_ptr(), libc::SIGXFSZ) == 0
            && libc::sigpending(pending.as_mut_ptr()) == 0
            && libc::pthread_sigmask(libc::SIG_BLOCK, ours.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = write();
    if guarded {
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            // SAFETY: `pending` and `before` were filled above, `one` is filled here.
            unsafe {
                // One that was pending before we began is the program's own: leave it.
                if libc::sigismember(pending.as_ptr(), signal) == 1 {
                    continue;
                }
                let mut one = MaybeUninit::<libc::sigset_t>::uninit();
                libc::sigemptyset(one.as_mut_ptr());
                libc::sigaddset(one.as_mut_ptr(), signal);
                let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                while libc::sigtimedwait(one.as_ptr(), std::ptr::null_mut(), &now) == -1
                    && *libc::__errno_location() == libc::EINTR
                {}
            }
        }
        // SAFETY: `before` was filled by the call that blocked.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
    result
}
