//! Sockets and pipes inside a host program.
//!
//! As with files (`sink/descriptor.rs`): the program may close descriptors that it did not
//! open, and then the number may stand for another file. So each remembers what it opened, looks
//! again before it is used, is never closed when it is foreign, and has a high number.
//!
//! A forked child shares them with its parent: while it holds them, other processes
//! cannot tell that the parent has ended. So all are listed, and a child closes them first of all.

use std::io;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::guard::uncancelled;

/// Above what programs use for themselves, below the usual limit of 1024.
const FIRST: libc::c_int = 700;

/// Those that are open: number (less one, so that 0 is none) and identity. More than fit
/// are merely not closed in children.
static LISTED: [(AtomicI32, AtomicU64); 64] =
    [const { (AtomicI32::new(0), AtomicU64::new(0)) }; 64];

/// A descriptor that is not a file. Never blocks.
#[derive(Debug)]
pub struct Held {
    fd: RawFd,
    inode: u64,
    pid: u32,
}

impl Held {
    /// Takes over a socket or a pipe.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(fd: impl Into<OwnedFd>) -> io::Result<Held> {
        let low = fd.into().into_raw_fd();
        // SAFETY: no pointers.
        let high = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, FIRST) };
        let fd = if high == -1 {
            low
        } else {
            close(low);
            high
        };
        let inode = inode(fd).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: no pointers.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        for (number, of) in &LISTED {
            if number.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                of.store(inode, Ordering::Release);
                break;
            }
        }
        Ok(Held { fd, inode, pid: std::process::id() })
    }

    /// The number, if it is still what was opened, in this process.
    pub fn get(&self) -> Option<RawFd> {
        (self.pid == std::process::id() && inode(self.fd) == Some(self.inode)).then_some(self.fd)
    }

    /// Reads what is there; [`io::ErrorKind::WouldBlock`] if nothing is.
    ///
    /// # Errors
    /// What the system says, or that it was closed.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = self.get().ok_or(io::ErrorKind::NotConnected)?;
        // SAFETY: `buffer` is writable for its length.
        let n =
            unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// Writes what there is room for. Raises no SIGPIPE.
    ///
    /// # Errors
    /// As [`Held::read`].
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let fd = self.get().ok_or(io::ErrorKind::NotConnected)?;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `bytes` is readable for its length.
        let n = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (number, _) in &LISTED {
            let _ = number.compare_exchange(self.fd + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        if self.get().is_some() {
            close(self.fd);
        }
    }
}

/// In a forked child, on its only thread: closes what is the parent's. Async-signal-safe.
pub(crate) fn close_inherited() {
    for (number, of) in &LISTED {
        let fd = number.swap(0, Ordering::AcqRel) - 1;
        if fd >= 0 && inode(fd) == Some(of.load(Ordering::Acquire)) {
            close(fd);
        }
    }
}

/// A pair of connected sockets by which one thread wakes another.
#[derive(Debug)]
pub(super) struct Pipe {
    reader: Held,
    writer: Held,
}

impl Pipe {
    pub fn new() -> io::Result<Pipe> {
        let (reader, writer) = std::os::unix::net::UnixStream::pair()?;
        Ok(Pipe { reader: Held::new(reader)?, writer: Held::new(writer)? })
    }

    /// What becomes readable.
    pub fn reader(&self) -> Option<RawFd> {
        self.reader.get()
    }

    /// Makes it readable. If it is full, it is.
    pub fn wake(&self) {
        let _ = uncancelled(|| self.writer.write(&[0]));
    }

    /// Empties it; whether there was anything in it.
    pub fn drain(&self) -> bool {
        let mut woken = false;
        while self.reader.read(&mut [0; 64]).is_ok_and(|n| n > 0) {
            woken = true;
        }
        woken
    }
}

fn close(fd: RawFd) {
    // SAFETY: ours, as the callers have made sure, and owned by nothing else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
}

fn inode(fd: RawFd) -> Option<u64> {
    let mut stat = std::mem::MaybeUninit::uninit();
    // SAFETY: `stat` is writable, and read only if the call succeeded.
    unsafe { (libc::fstat(fd, stat.as_mut_ptr()) == 0).then(|| stat.assume_init().st_ino) }
}
