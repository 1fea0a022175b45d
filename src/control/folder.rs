//! Where processes that can be asked for traces are found: a socket for each, named after
//! its pid, in a folder that only their user can enter.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::reach;
use crate::config::Config;

/// The folder of the user who runs this process. Made if it is not there.
///
/// # Errors
/// It cannot be made, or belongs to another user.
pub(super) fn create(config: &Config) -> io::Result<PathBuf> {
    let folder = path(config, me());
    let made = DirBuilder::new().recursive(config.sockets.is_some()).mode(0o700).create(&folder);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if is_trusted(&folder, me()) {
        Ok(folder)
    } else {
        let why = format!("{} belongs to another user, or others may enter it", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// Removes sockets that killed processes left behind; some of them, since this runs inside
/// the host program. Not by their pid: containers may share the folder and yet not
/// see each other's processes.
pub(super) fn sweep(folder: &Path) {
    const SOME: usize = 16;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| {
        // Links are not followed, and connections to what is no socket are refused as well.
        let is_socket = path.symlink_metadata().is_ok_and(|m| m.file_type().is_socket());
        is_socket && path.file_name().and_then(pid).is_some()
    });
    for path in sockets.take(SOME) {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if reach::connect(&path).is_err_and(refused) {
            let _ = fs::remove_file(path);
        }
    }
}

/// A folder in which sockets may be, and the user it must belong to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Folder {
    /// Where it is, if it is there.
    pub path: PathBuf,
    /// The user that must own it; none: any user whose processes may be asked.
    pub owner: Option<u32>,
}

/// Where sockets may be of processes that this user may ask; for root, of every user.
/// Nothing in them can be trusted, nor that they are folders.
pub fn folders(config: &Config) -> Vec<Folder> {
    let all = me() == 0;
    if let Some(path) = &config.sockets {
        return vec![Folder { path: path.clone(), owner: (!all).then(me) }];
    }
    let mut found = vec![Folder { path: path(config, me()), owner: Some(me()) }];
    if all {
        let names = |folder| fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(names("/run/user").filter_map(|entry| {
            let owner = Some(entry.file_name().to_str()?.parse().ok()?);
            Some(Folder { path: entry.path().join("kymograph"), owner })
        }));
        found.extend(names("/tmp").filter_map(|entry| {
            let name = entry.file_name();
            let owner = Some(name.to_str()?.strip_prefix("kymograph-")?.parse().ok()?);
            Some(Folder { path: entry.path(), owner })
        }));
    }
    found.sort();
    found.dedup();
    found
}

/// The name of the socket of a process.
pub(super) fn name(pid: u32) -> String {
    format!("{pid}.sock")
}

/// The name of the socket on which `kymo`, which is this process, answers for another.
pub(super) fn name_for(pid: u32) -> String {
    format!("{pid}@{}.sock", std::process::id())
}

/// Whose socket this is, by its name.
pub fn pid(name: &OsStr) -> Option<u32> {
    let name = name.to_str()?.strip_suffix(".sock")?;
    name.split('@').next()?.parse().ok()
}

/// The `kymo` that answers on it in the place of another process, by its name.
pub fn pid_of_kymo(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_suffix(".sock")?.split_once('@')?.1.parse().ok()
}

/// Whether another process answers on it.
pub fn is_answered_for(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'@')
}

/// `/run/user/<uid>` goes when the user has logged out of everything, and so do the
/// processes that could be asked there.
fn path(config: &Config, user: u32) -> PathBuf {
    if let Some(folder) = &config.sockets {
        return folder.clone();
    }
    let run = PathBuf::from(format!("/run/user/{user}"));
    if run.metadata().is_ok_and(|m| m.is_dir() && m.uid() == user) {
        return run.join("kymograph");
    }
    PathBuf::from(format!("/tmp/kymograph-{user}"))
}

fn is_trusted(folder: &Path, user: u32) -> bool {
    let metadata = folder.symlink_metadata();
    metadata.is_ok_and(|m| m.is_dir() && m.uid() == user && m.mode() & 0o077 == 0)
}

fn me() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}
