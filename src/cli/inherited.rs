//! What `kymo` was started with, so that the command is started with the same.
//!
//! The Rust runtime ignores SIGPIPE and opens `/dev/null` for closed standard streams
//! before `main`. So a constructor, which runs before that, notes how things were.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Standard streams that were closed, the signal mask, and how the signals were handled
/// whose handling the runtime or `kymo` changes.
pub(super) struct Inherited {
    closed: [bool; 3],
    mask: libc::sigset_t,
    handlers: [(libc::c_int, libc::sighandler_t); 3],
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

/// Called by the loader before the Rust runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let _ = INHERITED.set(Inherited::now());
}

impl Inherited {
    pub(super) fn get() -> &'static Inherited {
        INHERITED.get_or_init(Inherited::now)
    }

    fn now() -> Inherited {
        // SAFETY: F_GETFD has no pointers; each struct is filled before it is read, and
        // zeroed before that in case of failure.
        unsafe {
            let closed = [0, 1, 2].map(|fd| libc::fcntl(fd, libc::F_GETFD) == -1);
            let mut mask = MaybeUninit::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            let handlers = [libc::SIGPIPE, libc::SIGCHLD, libc::SIGBUS].map(|signal| {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed();
                libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
                (signal, action.assume_init().sa_sigaction)
            });
            Inherited { closed, mask: mask.assume_init(), handlers }
        }
    }

    /// Puts everything back, in a forked child right before `exec`.
    ///
    /// Only async-signal-safe calls.
    pub(super) fn restore(&self) {
        // SAFETY: `sigaction` and `pthread_sigmask` read structs that live through the
        // call; the handlers are the default or "ignore", as there was no other code in
        // the process to set one. A closed stream was opened by the runtime, to
        // /dev/null, and no other code has it.
        unsafe {
            for (signal, handler) in self.handlers {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
            for fd in (0..3).filter(|fd| self.closed[*fd as usize]) {
                libc::close(fd);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}
