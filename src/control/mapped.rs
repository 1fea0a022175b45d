//! Mapped files that another process cuts short.
//!
//! Every process of a recording can truncate the files that all of them map. The kernel
//! answers the next access with SIGBUS. `kymo` outlives that: a handler puts zeros where the
//! file was, and notes that it did. The handler belongs to `kymo` alone; a traced program
//! keeps its own handling of signals.

use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Mappings that may be cut short: address and length. A free entry has the address 0.
/// Further ones are not protected.
static MAPPINGS: [(AtomicUsize, AtomicUsize); 64] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 64];

/// Whether a mapping was cut short.
static CUT: AtomicBool = AtomicBool::new(false);

/// Protects the mappings of this process, those there are and those to come. For `kymo`
/// only: it installs a signal handler.
pub fn survive_truncation() {
    // SAFETY: `on_sigbus` is async-signal-safe and has the type that SA_SIGINFO asks for; the
    // struct lives through the call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_sigbus as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
    }
}

/// Whether a file that this process maps was cut short while it was in use: what was in it
/// reads as zeros from then on.
pub(super) fn was_truncated() -> bool {
    CUT.load(Acquire)
}

/// Notes a mapping.
pub(super) fn enter(address: usize, length: usize) {
    for (start, bytes) in &MAPPINGS {
        if start.compare_exchange(0, address, AcqRel, Relaxed).is_ok() {
            bytes.store(length, Release);
            return;
        }
    }
}

/// Forgets a mapping, before it is removed.
pub(super) fn leave(address: usize) {
    for (start, bytes) in &MAPPINGS {
        if start.load(Acquire) == address {
            bytes.store(0, Release);
            start.store(0, Release);
            return;
        }
    }
}

fn is_ours(address: usize) -> bool {
    MAPPINGS.iter().any(|(start, bytes)| {
        let start = start.load(Acquire);
        start != 0 && address.wrapping_sub(start) < bytes.load(Acquire)
    })
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid struct; it has an address if the kernel itself sends
    // the signal, and is then only compared.
    let (by_kernel, address) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if by_kernel && is_ours(address) {
        // SAFETY: no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let start = (address & !(page - 1)) as *mut libc::c_void;
        // SAFETY: replaces one page of a mapping of ours, of which nothing is left behind it.
        // Zeros are valid there: all that is read from it is atomic integers.
        let zeros = unsafe { libc::mmap(start, page, protection, flags, -1, 0) };
        if zeros != libc::MAP_FAILED {
            CUT.store(true, Release);
            return;
        }
    }
    // SAFETY: both are async-signal-safe. The signal is delivered when this returns, and ends
    // the process then.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
