//! A file descriptor inside a host program.
//!
//! Three habits of programs make a plain `std::fs::File` dangerous here:
//!
//! * Daemons and shells close descriptors that they did not open, and the next `open`
//!   gets the number: we would write packets into *their* file. So a [`Descriptor`]
//!   remembers which file it opened and looks again before each use; it opens the file
//!   anew when the number is no longer its own, and never closes a foreign one.
//! * A forked child shares its parent's *open file description*, and with it `flock`s. So
//!   a child opens the file anew as well.
//! * Scripts expect the lowest free number. So ours are high.
//!
//! What remains is a window of a few hundred nanoseconds between the look and the write.

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Above what programs use for themselves, below the usual limit of 1024, which also
/// bounds `select`.
const FIRST: libc::c_int = 700;

/// Flags of every open: not inherited by `exec`, and no waiting for the other end of a
/// named pipe.
const ALWAYS: libc::c_int = libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;

/// An open file that the program around us may close, or fork.
#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: RawFd,
    path: PathBuf,
    flags: libc::c_int,
    identity: (u64, u64),
    pid: u32,
}

impl Descriptor {
    /// Opens `path` with `flags` (and `mode`, for `O_CREAT`).
    pub(crate) fn open(path: &Path, flags: libc::c_int, mode: u32) -> io::Result<Descriptor> {
        let fd = open(path, flags, mode)?;
        let stat = match stat(fd) {
            Ok(stat) => stat,
            Err(error) => {
                close(fd);
                return Err(error);
            }
        };
        // Opened again by its full name: the program may change its working directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Ok(Descriptor {
            fd,
            path,
            flags: flags & !(libc::O_CREAT | libc::O_EXCL),
            identity: (stat.st_dev, stat.st_ino),
            pid: std::process::id(),
        })
    }

    /// The descriptor, if it is still the file that was opened, in this process.
    fn own(&self) -> Option<libc::stat> {
        stat(self.fd).ok().filter(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Whether this process opened it: not so in a forked child.
    pub(crate) fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Makes sure that [`Descriptor::fd`] is the file that was opened, by an open file
    /// description that no other process shares, and returns its state.
    pub(crate) fn ensure(&mut self) -> io::Result<libc::stat> {
        let own = self.own();
        if let (Some(stat), true) = (own, self.is_this_process()) {
            return Ok(stat);
        }
        // Through /proc first: the file may have been renamed since.
        let fd = match own {
            Some(_) => {
                let proc = PathBuf::from(format!("/proc/self/fd/{}", self.fd));
                // O_NOFOLLOW would refuse the link in /proc itself.
                open(&proc, self.flags & !libc::O_NOFOLLOW, 0)
                    .or_else(|_| open(&self.path, self.flags, 0))?
            }
            None => open(&self.path, self.flags, 0)?,
        };
        match stat(fd) {
            Ok(stat) if (stat.st_dev, stat.st_ino) == self.identity => {
                if own.is_some() {
                    close(self.fd);
                }
                self.fd = fd;
                self.pid = std::process::id();
                Ok(stat)
            }
            Ok(_) => {
                close(fd);
                Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "the program closed the output, and its path is another file now",
                ))
            }
            Err(error) => {
                close(fd);
                Err(error)
            }
        }
    }

    /// The number. Only meaningful right after [`Descriptor::ensure`].
    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    /// Writes all of `bytes` at `offset`.
    pub(crate) fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            // SAFETY: `bytes` is valid for its length; pwrite only reads it.
            let n = unsafe {
                libc::pwrite64(self.fd, bytes.as_ptr().cast(), bytes.len(), offset as libc::off64_t)
            };
            match n {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                n if n > 0 => {
                    bytes = &bytes[n as usize..];
                    offset += n as u64;
                }
                _ => retry_if_interrupted()?,
            }
        }
        Ok(())
    }

    /// Reads as many bytes at `offset` as `bytes` has room for.
    pub(crate) fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            // SAFETY: `bytes` is writable for its length.
            let n = unsafe {
                libc::pread64(
                    self.fd,
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    offset as libc::off64_t,
                )
            };
            match n {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n if n > 0 => {
                    bytes = &mut bytes[n as usize..];
                    offset += n as u64;
                }
                _ => retry_if_interrupted()?,
            }
        }
        Ok(())
    }

    /// Sets the file's length.
    pub(crate) fn truncate(&self, length: u64) -> io::Result<()> {
        loop {
            // SAFETY: no pointers.
            if unsafe { libc::ftruncate64(self.fd, length as libc::off64_t) } == 0 {
                return Ok(());
            }
            retry_if_interrupted()?;
        }
    }

    /// Sets the permission bits, whatever the umask.
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        // SAFETY: no pointers.
        match unsafe { libc::fchmod(self.fd, mode) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// `flock` without waiting. `Ok(false)`: another process has it.
    pub(crate) fn try_lock(&self) -> io::Result<bool> {
        loop {
            // SAFETY: no pointers.
            if unsafe { libc::flock(self.fd, libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(true);
            }
            if io::Error::last_os_error().raw_os_error() == Some(libc::EWOULDBLOCK) {
                return Ok(false);
            }
            retry_if_interrupted()?;
        }
    }

    /// Gives the `flock` back.
    pub(crate) fn unlock(&self) {
        // SAFETY: no pointers. Cannot fail for a descriptor that holds the lock; for one
        // that the program closed meanwhile the lock is gone already.
        unsafe { libc::flock(self.fd, libc::LOCK_UN) };
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.own().is_some() {
            close(self.fd);
        }
    }
}

/// The pending error, unless a signal interrupted the call.
fn retry_if_interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

fn open(path: &Path, flags: libc::c_int, mode: u32) -> io::Result<RawFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let low = loop {
        // SAFETY: `name` is a C string that outlives the call.
        let fd = unsafe { libc::open64(name.as_ptr(), flags | ALWAYS, mode) };
        if fd >= 0 {
            break fd;
        }
        retry_if_interrupted()?;
    };
    // SAFETY: no pointers; `low` is ours.
    let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, FIRST) };
    if high < 0 {
        // A low limit on descriptors: the low number works as well.
        return Ok(low);
    }
    close(low);
    Ok(high)
}

fn stat(fd: RawFd) -> io::Result<libc::stat> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills the whole struct when it succeeds, and only then is it read.
    unsafe {
        match libc::fstat(fd, stat.as_mut_ptr()) {
            0 => Ok(stat.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn close(fd: RawFd) {
    // SAFETY: called only with descriptors that this module opened and has not closed.
    unsafe { libc::close(fd) };
}
