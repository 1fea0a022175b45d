//! The sockets of processes that can be asked for traces.
//!
//! Root asks the processes of every user, and each user's folder holds what that user likes:
//! links, other files, sockets of other programs. So each step starts from a descriptor of
//! what was checked before, not from a path that may lead elsewhere meanwhile, and a
//! connection counts only if the kernel says that the folder's owner listens.

use kymograph::control::{self, Folder, Peer};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;

/// Entries of a folder that are looked at. No user has so many processes to ask.
const ENTRIES: usize = 10_000;
/// Sockets of a folder that are connected to.
const SOCKETS: usize = 1_000;

/// A folder that belongs to whom it should.
#[derive(Debug)]
struct Opened {
    folder: File,
    owner: u32,
}

/// A socket, or what has a socket's name.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    opened: Rc<Opened>,
    name: OsString,
}

/// All that may be sockets of processes.
pub(super) fn find(folders: &[Folder]) -> Vec<Socket> {
    folders.iter().filter_map(open).flat_map(|opened| opened.sockets()).collect()
}

/// Opens a folder, unless it is a link or another user's.
fn open(folder: &Folder) -> Option<Rc<Opened>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags).open(&folder.path).ok()?;
    let owner = opened.metadata().ok()?.uid();
    let expected = folder.owner.is_none_or(|expected| expected == owner);
    expected.then(|| Rc::new(Opened { folder: opened, owner }))
}

impl Opened {
    fn sockets(self: &Rc<Self>) -> Vec<Socket> {
        let names = fs::read_dir(by_descriptor(&self.folder)).into_iter().flatten().flatten();
        let names = names.take(ENTRIES).map(|entry| entry.file_name());
        let names = names.filter(|name| control::pid_of_socket(name).is_some()).take(SOCKETS);
        names.map(|name| Socket { opened: Rc::clone(self), name }).collect()
    }
}

impl Socket {
    /// Whether `kymo` answers on it in the place of that process.
    pub(super) fn is_answered_for(&self) -> bool {
        control::is_answered_for(&self.name)
    }

    /// The process, by the socket's name, which its user can choose.
    pub(super) fn pid(&self) -> u32 {
        control::pid_of_socket(&self.name).unwrap_or_default()
    }

    /// Connects, without waiting. A socket of this user's own that a process left behind when
    /// it was killed is removed; those of others are left to them.
    pub(super) fn connect(&self) -> io::Result<(UnixStream, Peer)> {
        let other = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let path = by_descriptor(&self.opened.folder).join(&self.name);
        let flags = libc::O_PATH | libc::O_NOFOLLOW;
        let socket = File::options().read(true).custom_flags(flags).open(&path)?;
        let metadata = socket.metadata()?;
        if !metadata.file_type().is_socket() || metadata.uid() != self.opened.owner {
            return Err(other("it is not a socket of its folder's owner"));
        }
        let stream = control::connect(&by_descriptor(&socket)).inspect_err(|error| {
            let left_behind = error.kind() == io::ErrorKind::ConnectionRefused;
            // SAFETY: no arguments, cannot fail.
            if left_behind && self.opened.owner == unsafe { libc::geteuid() } {
                let _ = fs::remove_file(&path);
            }
        })?;
        let peer = control::peer(&stream)?;
        if peer.uid != self.opened.owner {
            return Err(other("another user listens"));
        }
        if self.is_answered_for() && !self.may_answer(peer) {
            return Err(other("it speaks for another user's process"));
        }
        Ok((stream, peer))
    }
}

impl Socket {
    /// Whether who listens answers for a process of its own: as the kernel knows both. Root's
    /// may answer for any. What cannot be seen from here is in another pid namespace.
    fn may_answer(&self, peer: Peer) -> bool {
        let owner = self.opened.owner;
        let is_owners = |pid: u32| {
            let process = fs::metadata(format!("/proc/{pid}"));
            process.map_or(true, |process| process.uid() == owner)
        };
        let answers = if peer.pid == 0 { control::pid_of_kymo(&self.name) } else { Some(peer.pid) };
        answers.is_some_and(is_owners) && (owner == 0 || is_owners(self.pid()))
    }
}

/// A path that leads to what is open, wherever that is now.
fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
