//! The environment, as far as this process may be guided by it.
//!
//! A program that runs with more rights than the user that started it (setuid, setgid, file
//! capabilities) gets its environment from a user that must not decide which files it writes
//! or which libraries it loads. The kernel tells such a program so (getauxval(3), `AT_SECURE`).

use std::ffi::OsString;

/// The kernel's number of the calling thread. The C library has a function for it from glibc 2.30
/// on only: without that, what is built also runs with 2.28. Async-signal-safe.
#[inline]
pub fn gettid() -> i32 {
    // SAFETY: takes nothing, returns a number.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether this process has more rights than the user that started it.
pub fn is_privileged() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A variable that names something to load or to write; none in a privileged process. As
/// `std::env::var_os`, it is not safe against another thread that calls `setenv`.
pub fn variable(name: &str) -> Option<OsString> {
    if is_privileged() { None } else { std::env::var_os(name) }
}
