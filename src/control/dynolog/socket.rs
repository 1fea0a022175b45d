//! The datagram socket to a daemon: its names, and whom it listens to.
//!
//! ```text
//! abstract    sun_path = NUL name NUL      length 2 + 1 + name + 1
//! in a folder sun_path = FOLDER / name NUL
//! ```
//! The NUL at the end of an abstract name is part of it: without it this is another
//! address, to which a stock daemon cannot answer.
//!
//! A stock daemon aborts when it gets something from a socket without a name, or from one
//! in a folder whose path is not, byte for byte, the daemon's own (in a container it may be
//! mounted elsewhere; a slash at the end makes a difference). So a [`Socket`] always has a
//! name, and sends only after it has compared what the daemon calls itself.
//!
//! It is connected to the daemon, so that the kernel lets no other process send to it. Who bound
//! the daemon's name is a question of its own, and so its user is looked at: what is not
//! from root, from our own user or from the one that was named, is not read.
//!
//! Source: dynolog's `ipcfabric/Endpoint.h`.

use std::ffi::OsStr;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use crate::config::Daemon;
use crate::control::Held;

/// How the name of a client's socket begins.
pub const CLIENT: &str = "dynoconfigclient";
/// Entries of a folder that are looked at.
const SWEPT: usize = 1000;

/// A bound socket.
#[derive(Debug)]
pub struct Socket {
    socket: Held,
    daemon: SocketAddr,
    connected: bool,
    uid: Option<u32>,
    /// Its name in the folder, and the process that has to take it away.
    path: Option<(PathBuf, u32)>,
}

/// Something that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A datagram of this length, of which the buffer has at least the beginning.
    Datagram(usize),
    /// One of another process: of this user, if it came from the daemon's address.
    Foreign(Option<u32>),
    /// Nothing.
    Nothing,
}

impl Socket {
    /// Binds a socket to `name`.
    ///
    /// # Errors
    /// The folder cannot be written to, or a name is too long for a socket's.
    pub fn open(settings: &Daemon, name: &str) -> io::Result<Socket> {
        let daemon = address(settings, &settings.name)?;
        let ours = address(settings, name)?;
        if let Some(folder) = &settings.folder {
            sweep(folder);
        }
        let socket = Held::new(UnixDatagram::bind_addr(&ours)?)?;
        let path = ours.as_pathname().map(|path| (path.to_owned(), std::process::id()));
        let socket = Socket { socket, daemon, connected: false, uid: settings.uid, path };
        if let Some((path, _)) = &socket.path {
            // The daemon may be another user's; who sends is looked at when it comes.
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        }
        socket.ask_for_senders()?;
        Ok(socket)
    }

    /// Lets the kernel say who sent a datagram. Only once the socket has a name: it would
    /// get one of the kernel's otherwise.
    fn ask_for_senders(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        // SAFETY: the option is an int, which lives through the call.
        let result = unsafe {
            libc::setsockopt(
                self.get()?.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PASSCRED,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// For `poll`.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.get()
    }

    /// The socket, which is not closed when this goes.
    fn get(&self) -> io::Result<ManuallyDrop<UnixDatagram>> {
        let fd = self.socket.get().ok_or(io::ErrorKind::BrokenPipe)?;
        // SAFETY: open, ours, and such a socket, as `socket` made sure; closed by it alone.
        Ok(ManuallyDrop::new(unsafe { UnixDatagram::from_raw_fd(fd) }))
    }

    /// Whether the daemon can still answer: the folder may have been cleaned up.
    pub fn is_there(&self) -> bool {
        self.path.as_ref().is_none_or(|(path, _)| path.symlink_metadata().is_ok())
    }

    /// Sends a datagram to the daemon, without waiting.
    ///
    /// # Errors
    /// There is no daemon (`ConnectionRefused`, `NotFound`); it is so busy that its queue
    /// is full (`WouldBlock`); it would abort (`InvalidInput`).
    pub fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, NotConnected};
        let socket = self.get()?;
        if self.connected {
            match socket.send(datagram) {
                Ok(_) => return Ok(()),
                // It is gone; there may be another one.
                Err(error) => match error.kind() {
                    ConnectionRefused | ConnectionReset | NotConnected => self.connected = false,
                    _ => return Err(error),
                },
            }
        }
        connect(&socket, &self.daemon)?;
        self.connected = true;
        socket.send(datagram).map(drop)
    }

    /// Takes what came, without waiting.
    ///
    /// # Errors
    /// Those of recvmsg(2).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let fd = self.get()?.as_raw_fd();
        // Room for one `ucred` and no descriptor: the kernel closes those that do not fit.
        let mut control = [0_u64; 4];
        let mut from = MaybeUninit::<libc::sockaddr_un>::zeroed();
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all zeroes is a valid `msghdr`.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = from.as_mut_ptr().cast();
        message.msg_namelen = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC | libc::MSG_CMSG_CLOEXEC;
        // SAFETY: every pointer in `message` is to memory that lives through the call and
        // is as long as the message says.
        let length = unsafe { libc::recvmsg(fd, &raw mut message, flags) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Received::Nothing),
                _ => Err(error),
            };
        }
        // SAFETY: all zeroes is a valid address, and the kernel wrote another one over it.
        let from = unsafe { from.assume_init() };
        let start = std::mem::offset_of!(libc::sockaddr_un, sun_path);
        let named = (message.msg_namelen as usize).saturating_sub(start).min(from.sun_path.len());
        if !self.is_daemon(bytemuck::cast_slice(&from.sun_path[..named])) {
            return Ok(Received::Foreign(None));
        }
        Ok(match sender(&message) {
            Some(uid) if self.trusts(uid) => Received::Datagram(length as usize),
            uid => Received::Foreign(uid),
        })
    }

    /// Whether `path` (a `sun_path`) is the daemon's.
    fn is_daemon(&self, path: &[u8]) -> bool {
        match self.daemon.as_pathname() {
            None => path.strip_prefix(b"\0") == self.daemon.as_abstract_name(),
            Some(daemon) => {
                let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
                path[..end] == *daemon.as_os_str().as_bytes()
            }
        }
    }

    fn trusts(&self, uid: u32) -> bool {
        // SAFETY: no arguments, cannot fail.
        let me = unsafe { libc::geteuid() };
        uid == 0 || uid == me || Some(uid) == self.uid
    }
}

/// Whether the daemon that `settings` name has a socket on which it can be asked. It does
/// not notice: nothing is sent.
///
/// # Errors
/// There is none (`ConnectionRefused`, `NotFound`), or it would abort if it was asked
/// (`InvalidInput`).
pub fn listens(settings: &Daemon) -> io::Result<()> {
    connect(&UnixDatagram::unbound()?, &address(settings, &settings.name)?)
}

/// Connects to the daemon, if that calls itself so, too.
fn connect(socket: &UnixDatagram, daemon: &SocketAddr) -> io::Result<()> {
    socket.connect_addr(daemon)?;
    let peer = socket.peer_addr()?;
    if name(&peer) == name(daemon) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "its socket is {peer:?} to itself and {daemon:?} here, and it would abort; mount the \
             folder under the same path for both"
        ),
    ))
}

/// Removes what processes left behind that were killed, or became another program: sockets
/// with a client's name on which no process listens.
fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.take(SWEPT) {
        let ours = entry.file_name().as_bytes().starts_with(CLIENT.as_bytes());
        if !ours || !entry.file_type().is_ok_and(|it| it.is_socket()) {
            continue;
        }
        let listening = UnixDatagram::unbound().and_then(|it| it.connect(entry.path()));
        if listening.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The address of `name`. Put together as a stock daemon does it, without any knowledge of
/// paths: it compares bytes.
fn address(settings: &Daemon, name: &str) -> io::Result<SocketAddr> {
    match &settings.folder {
        None => SocketAddr::from_abstract_name([name.as_bytes(), b"\0"].concat()),
        Some(folder) => {
            let path = [folder.as_os_str().as_bytes(), b"/", name.as_bytes()].concat();
            SocketAddr::from_pathname(OsStr::from_bytes(&path))
        }
    }
}

/// The bytes of an address's name.
fn name(address: &SocketAddr) -> Option<&[u8]> {
    let path = address.as_pathname().map(Path::as_os_str).map(OsStr::as_bytes);
    path.or_else(|| address.as_abstract_name())
}

/// Whose process sent a message.
fn sender(message: &libc::msghdr) -> Option<u32> {
    // SAFETY: the kernel filled the message's control buffer, which is aligned for its
    // headers; these macros stay within its length. A header of this level and type is
    // followed by a `ucred`.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(message);
        while let Some(it) = head.as_ref() {
            if it.cmsg_level == libc::SOL_SOCKET && it.cmsg_type == libc::SCM_CREDENTIALS {
                let sender = libc::CMSG_DATA(head).cast::<libc::ucred>().read_unaligned();
                return Some(sender.uid);
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
    None
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some((path, pid)) = &self.path {
            // A forked child has it, too, but it is its parent's.
            if *pid == std::process::id() {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
