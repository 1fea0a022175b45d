//! Where processes that can be asked for traces are found: a socket for each, named after
//! its pid, in a folder that only their user can enter.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::config::Config;

/// The folder of the user who runs this process. Made if it is not there.
///
/// # Errors
/// It cannot be made, or belongs to somebody else.
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
        let why = format!("{} belongs to somebody else, or others may enter it", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }
}

/// Removes sockets that killed processes left behind; some of them, as it is done inside
/// somebody else's program. Not by their pid: containers may share the folder and yet not
/// see each other's processes.
pub(super) fn sweep(folder: &Path) {
    const SOME: usize = 16;
    let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| pid(path).is_some());
    for path in sockets.take(SOME) {
        if UnixStream::connect(&path).is_err_and(refused) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The sockets of all processes that this user may ask; for root, those of every user.
pub fn sockets(config: &Config) -> Vec<(u32, PathBuf)> {
    let mut folders = vec![path(config, me())];
    if me() == 0 && config.sockets.is_none() {
        let users = fs::read_dir("/run/user").into_iter().flatten().flatten();
        folders.extend(users.map(|user| user.path().join("kymograph")));
        let temporary = fs::read_dir("/tmp").into_iter().flatten().flatten();
        let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("kymograph-");
        folders.extend(temporary.filter(|e| ours(&e.file_name())).map(|e| e.path()));
    }
    folders.sort();
    folders.dedup();
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok());
    let mut found: Vec<_> = entries
        .flatten()
        .flatten()
        .filter_map(|entry| Some((pid(&entry.path())?, entry.path())))
        .collect();
    found.sort();
    found
}

/// Whose socket this is, by its name.
fn pid(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
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
