//! Other users of the machine: root can be any of them.

use std::io;
use std::path::Path;

/// A user who owns nothing.
pub const NOBODY: u32 = 65_534;

/// Whether the tests can be several users; says so if not.
pub fn are_possible() -> bool {
    // SAFETY: no arguments, cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let possible = root && run_as(NOBODY, is).is_some_and(|is| is == NOBODY);
    if !possible {
        println!("skipped: only root can be several users");
    }
    possible
}

fn is() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Runs something as another user: on a thread of its own, as the kernel keeps users by
/// thread. None if that is not possible.
pub fn run_as<T: Send>(user: u32, run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| scope.spawn(|| become_user(user).then(run)).join().unwrap())
}

/// Makes the calling thread, and no other, another user's.
pub fn become_user(user: u32) -> bool {
    // SAFETY: no pointers but null, of which none is read. The calls of the C library would
    // change all threads.
    unsafe {
        libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) == 0
            && libc::syscall(libc::SYS_setresgid, user, user, user) == 0
            && libc::syscall(libc::SYS_setresuid, user, user, user) == 0
    }
}

/// Gives a file to a user.
pub fn give(path: &Path, user: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user), Some(user))
}
