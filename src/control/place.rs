//! Where the control page lies: a folder of its own that only its owner can enter.

use super::Page;
use crate::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PREFIX: &str = "kymograph-";
const PAGE: &str = "control";

/// A temporary folder with a new control page in it. Both are removed on drop; processes
/// that have the page mapped keep it.
#[derive(Debug)]
pub struct Place {
    folder: PathBuf,
    page: Arc<Page>,
    /// Locked for as long as this process lives: see [`sweep`].
    _lock: File,
}

impl Place {
    /// Makes one, in memory (`/dev/shm`) if possible: the page changes all the time and
    /// would be written to disk again and again.
    ///
    /// # Errors
    /// No folder for temporary files can be written to.
    pub fn create() -> Result<Place, Error> {
        let temporary = std::env::temp_dir();
        let shm = Path::new("/dev/shm");
        sweep(shm);
        sweep(&temporary);
        Place::create_in(shm).or_else(|_| Place::create_in(&temporary))
    }

    fn create_in(parent: &Path) -> Result<Place, Error> {
        let template = parent.join(format!("{PREFIX}XXXXXX"));
        let failed = |source| Error::Control { path: template.clone(), source };
        let mut name = template.as_os_str().as_bytes().to_vec();
        name.push(0);
        // SAFETY: a NUL-terminated buffer of our own, whose six X's mkdtemp replaces.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            return Err(failed(io::Error::last_os_error()));
        }
        name.pop();
        let folder = PathBuf::from(OsString::from_vec(name));
        // Locked before there is a page: a folder with a page and no lock is an orphan. If
        // locking fails, the file system has no locks, and nobody can sweep it either.
        let made = File::open(&folder).map_err(failed).and_then(|lock| {
            let _ = try_lock(&lock);
            Page::create(&folder.join(PAGE)).map(|page| (page, lock))
        });
        match made {
            Ok((page, lock)) => Ok(Place { folder, page: Arc::new(page), _lock: lock }),
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    /// The folder; what is put there goes when the recording ends.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The page.
    pub fn page(&self) -> &Arc<Page> {
        &self.page
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes the places of `kymo`s that were killed, once nobody records into them. Only
/// those of the same user: root leaves others' alone, whatever they have put there. A lock
/// tells the dead from the living, not a pid: containers may share `/dev/shm` and yet not see
/// each other's processes.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let folder = entry.path();
        let Some(lock) = own(&folder) else {
            continue;
        };
        let Ok(page) = Page::open(&folder.join(PAGE)) else {
            continue;
        };
        if try_lock(&lock) && page.recording().is_empty() {
            remove(&folder);
        }
    }
}

/// A folder of this user's, not a link to one: nobody else can put another in its place.
fn own(path: &Path) -> Option<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = File::options().read(true).custom_flags(flags).open(path).ok()?;
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    folder.metadata().is_ok_and(|it| it.uid() == me).then_some(folder)
}

fn try_lock(file: &File) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

fn remove(folder: &Path) {
    // Best effort: a leftover of 64 KiB is swept by the next recording.
    let _ = fs::remove_dir_all(folder);
}
