//! One process, one file.

use super::Sink;
use super::compress::Batch;
use super::descriptor::Descriptor;
use super::gzip::Member;
use super::quiet::quietly;
use crate::config::Compress;
use crate::error::Error;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a batch may wait for the reader of a pipe.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A file of this process's own; also a named pipe or a device.
///
/// The file is locked (`flock`) for as long as it is written, so that two recordings do
/// not write over each other. A forked child that got hold of its parent's sink cannot
/// write to it.
#[derive(Debug)]
pub struct File {
    output: Descriptor,
    length: u64,
    regular: bool,
    how: Compress,
    /// With gzip: what the file holds.
    member: Member,
    /// A pipe that took half a batch, or whose reader is gone: nothing more can follow.
    broken: bool,
}

impl File {
    /// Creates `path`, or empties it if it exists.
    ///
    /// `mode` are its exact permission bits; without, they are 0666 less the umask.
    ///
    /// `safe` is for folders that others may write to, such as `/tmp`. It refuses a path
    /// that is a symbolic link, and an existing file that has further names (hard links),
    /// belongs to another user or is not a regular file: each may lead to a file that
    /// another user wants overwritten. The folders on the way are not checked: symbolic
    /// links among them are followed, so they must be trusted.
    ///
    /// # Errors
    /// It cannot be created, or is refused; nothing was changed then.
    pub fn create(path: &Path, safe: bool, mode: Option<u32>) -> Result<File, Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let nofollow = if safe { libc::O_NOFOLLOW } else { 0 };
        // Created closed and opened up below: there is no moment of wider permissions.
        let first = mode.map_or(0o666, |_| 0o600);
        let flags = libc::O_WRONLY | libc::O_CREAT | nofollow;
        let mut output = Descriptor::open(path, flags, first).map_err(failed)?;
        let stat = output.ensure().map_err(failed)?;
        let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        if safe {
            refuse_unsafe(path, &stat, regular)?;
        }
        // A file system without flock (some on clusters) does without the protection.
        if regular && matches!(output.try_lock(), Ok(false)) {
            return Err(failed(io::Error::from_raw_os_error(libc::EWOULDBLOCK)));
        }
        if regular {
            if let Some(mode) = mode {
                output.set_mode(mode).map_err(failed)?;
            }
            // Not for nothing: ext4 writes a file that was truncated to nothing to the disk
            // when it is closed (auto_da_alloc), and closing is part of stopping.
            if stat.st_size != 0 {
                output.truncate(0).map_err(failed)?;
            }
        }
        Ok(File {
            output,
            length: 0,
            regular,
            how: Compress::None,
            member: Member::default(),
            broken: false,
        })
    }

    /// Compresses what it writes, if it is a regular file: gives itself back as an error
    /// if it is not. Called before the first batch.
    pub(super) fn compress(mut self, how: Compress) -> Result<File, File> {
        self.how = how;
        if self.regular { Ok(self) } else { Err(self) }
    }

    fn append(&mut self, packets: &[u8]) -> io::Result<()> {
        if packets.is_empty() {
            return Ok(());
        }
        let batch = Batch::of(self.how, packets)?;
        self.output.ensure()?;
        let (file, length, member) = (&self.output, self.length, &mut self.member);
        self.length = quietly(|| batch.append(file, length, member))?;
        Ok(())
    }

    fn send(&mut self, packets: &[u8]) -> io::Result<()> {
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let sent =
            self.output.ensure().and_then(|_| quietly(|| send_all(self.output.fd(), packets)));
        self.broken = sent.is_err();
        sent
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Closing is not enough: forked children share the lock, and may live on.
        if self.regular && self.output.is_this_process() && self.output.ensure().is_ok() {
            self.output.unlock();
        }
    }
}

impl Sink for File {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        if !self.output.is_this_process() {
            return Err(io::Error::other("the file is the parent process's"));
        }
        if self.regular { self.append(packets) } else { self.send(packets) }
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn refuse_unsafe(path: &Path, stat: &libc::stat, regular: bool) -> Result<(), Error> {
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    let why = if !regular {
        "it is not a regular file, and SAFE is on; choose another path"
    } else if stat.st_uid != me {
        "it belongs to another user, and SAFE is on; choose another path"
    } else if stat.st_nlink > 1 {
        "it has other names (hard links), and SAFE is on; remove it or choose another path"
    } else {
        return Ok(());
    };
    Err(Error::Refused { path: path.to_owned(), why })
}

/// Writes to a pipe or device, waiting for room for [`TIMEOUT`] at most.
fn send_all(fd: libc::c_int, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !bytes.is_empty() {
        // SAFETY: `bytes` is valid for its length; write only reads it.
        let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if n > 0 {
            bytes = &bytes[n as usize..];
            continue;
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            _ if n == 0 => return Err(io::ErrorKind::WriteZero.into()),
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(error);
                }
                let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one pollfd, valid during the call.
                unsafe { libc::poll(&mut poll, 1, left.as_millis() as libc::c_int + 1) };
            }
            _ => return Err(error),
        }
    }
    Ok(())
}
