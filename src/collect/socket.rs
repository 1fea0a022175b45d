//! The socket at which `kymo` hears of the processes that it records.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::join::message::{self, Metadata, Subject};
use crate::join::{SOCKET, address, wait_for_answers};

/// Processes that may wait to be heard.
const WAITING: libc::c_int = 4096;

/// What a process has sent, and which that is.
pub(super) struct Peer {
    pub socket: OwnedFd,
    pub pid: u32,
    pub uid: u32,
    pub subject: Subject,
    pub metadata: Metadata,
    pub file: Option<OwnedFd>,
}

/// Listens in `folder`. Returns also where.
pub(super) fn listen(folder: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (address, length) = address(folder)?;
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes numbers; the descriptor is new and ours. `address` lives through the
    // call and is as long as is said.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, kind, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        if libc::bind(fd, (&raw const address).cast(), length) != 0
            || libc::listen(fd, WAITING) != 0
        {
            return Err(io::Error::last_os_error());
        }
        Ok((socket, folder.join(SOCKET)))
    }
}

/// The next process that has connected, and its message; `None` if there is none.
pub(super) fn accept(listener: &OwnedFd) -> Option<io::Result<Peer>> {
    // SAFETY: no pointers but null; the descriptor is new and ours.
    let socket = unsafe {
        let none = std::ptr::null_mut();
        let fd = listener.as_raw_fd();
        let fd = libc::accept4(fd, none, std::ptr::null_mut(), libc::SOCK_CLOEXEC);
        if fd < 0 {
            return None;
        }
        OwnedFd::from_raw_fd(fd)
    };
    Some(receive(socket))
}

fn receive(socket: OwnedFd) -> io::Result<Peer> {
    let libc::ucred { pid, uid, .. } = credentials(&socket)?;
    // It has sent before it went on; any other client is not waited for.
    wait_for_answers(&socket, Duration::from_secs(1));
    let (message, file) = message::receive(socket.as_fd())?;
    if message.is_empty() {
        // It only asked whether kymo is there.
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    // Of a library of another release.
    let (subject, metadata) = message::read(&message).ok_or(io::ErrorKind::Unsupported)?;
    Ok(Peer { socket, pid: pid as u32, uid, subject, metadata, file })
}

fn credentials(socket: &OwnedFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: `peer` is as long as is said.
    let answer = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut peer).cast(), &mut length)
    };
    if answer == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}
