//! Connections to the sockets of other processes, without waiting: a listener may be
//! stopped, or let its queue of connections fill up.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The process at the other end, as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The process that connected, or listens. 0: not one that can be seen from here.
    pub pid: u32,
    /// Its effective user then.
    pub uid: u32,
}

/// Connects to a stream socket. The connection does not block.
///
/// # Errors
/// What the system says: [`io::ErrorKind::ConnectionRefused`] if no process listens,
/// [`io::ErrorKind::WouldBlock`] if there is a queue.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: all zeros are a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // Room for a NUL at its end.
    if bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the address is readable for `length` bytes, which is no more than it has.
    let result =
        unsafe { libc::connect(fd, (&raw const address).cast(), length as libc::socklen_t) };
    if result == 0 { Ok(socket.into()) } else { Err(io::Error::last_os_error()) }
}

/// The process at the other end of a connection of a Unix socket.
///
/// # Errors
/// What the system says.
pub fn peer(socket: &impl AsRawFd) -> io::Result<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is writable for `length` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut length,
        )
    };
    match result {
        0 => Ok(Peer { pid: peer.pid as u32, uid: peer.uid }),
        _ => Err(io::Error::last_os_error()),
    }
}
