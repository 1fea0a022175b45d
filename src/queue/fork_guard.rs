//! Tells a process from the one that it was forked from, at the price of one load.
//!
//! `pthread_atfork` handlers do not run in the children of `_Fork` and of a raw `clone`. In
//! memory of its own such a child would at worst record in vain; in memory that it shares
//! with its parent it would write into the parent's queues. So the number of the process lies
//! in a page that the kernel clears in every child (`MADV_WIPEONFORK`, Linux 4.14), and each
//! push compares it with the number that its thread has seen last. The child of a `vfork`
//! runs in its parent's memory, on the parent's thread, and records as that.

use std::sync::atomic::{AtomicU64, Ordering};

/// A page of its own.
#[repr(C, align(4096))]
struct Page {
    process: AtomicU64,
    rest: [u64; 511],
}

static PAGE: Page = Page { process: AtomicU64::new(0), rest: [0; 511] };

/// The number of this process; 0 before [`arm`], and in a child until it is [`renew`]ed.
#[inline(always)]
pub(super) fn process() -> u64 {
    PAGE.process.load(Ordering::Relaxed)
}

/// Has the kernel clear the number in children, from now on. Where it cannot, forks are only
/// noticed by `pthread_atfork`.
pub(super) fn arm() {
    if cfg!(miri) {
        return;
    }
    // SAFETY: a page of zeros of our own, that lies in anonymous memory (`.bss`); the advice
    // changes what children find there, and nothing in this process.
    unsafe {
        let page = (&raw const PAGE).cast_mut().cast();
        libc::madvise(page, size_of::<Page>(), libc::MADV_WIPEONFORK);
    }
    renew();
}

/// Gives this process its number. Takes no lock and allocates nothing.
pub(super) fn renew() {
    // SAFETY: no arguments, cannot fail.
    let pid = unsafe { libc::getpid() } as u64;
    let _ = PAGE.rest;
    PAGE.process.store(pid.max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_no_handler_hears_of_finds_no_number() {
        arm();
        assert_eq!(process(), u64::from(std::process::id()));
        // SAFETY: `fork` as the kernel does it. The child makes one more system call.
        unsafe {
            let child = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
            if child == 0 {
                libc::_exit(if process() == 0 { 7 } else { 8 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child as libc::pid_t, &mut status, 0), child as libc::pid_t);
            assert_eq!(libc::WEXITSTATUS(status), 7);
        }
    }
}
