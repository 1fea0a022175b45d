//! The rendezvous directory: where processes find the `kymo` that records them. Only its owner
//! can list it, and `kymo` relies on nothing in it.

use crate::error::Error;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "kymograph-";
/// An empty file: its path is what processes are told.
const CONTROL: &str = "control";
/// What processes of other users write to, which cannot join: a line for each, with its user.
/// Any process that knows the folder's name may add to it, and only `kymo` may read it.
const LEFT_OUT: &str = "left-out";
/// How much of that is read.
const MAX_LENGTH: u64 = 64 << 10;

/// The rendezvous directory of one `kymo`: a temporary folder, removed on drop.
#[derive(Debug)]
pub struct Rendezvous {
    folder: PathBuf,
    /// Locked for as long as this process lives: see [`sweep`].
    _lock: File,
}

impl Rendezvous {
    /// Makes one, in memory (`/dev/shm`) if possible.
    ///
    /// # Errors
    /// No folder for temporary files can be written to.
    pub fn create() -> Result<Rendezvous, Error> {
        let temporary = std::env::temp_dir();
        let shm = Path::new("/dev/shm");
        sweep(shm);
        sweep(&temporary);
        Rendezvous::create_in(shm).or_else(|_| Rendezvous::create_in(&temporary))
    }

    fn create_in(parent: &Path) -> Result<Rendezvous, Error> {
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
        // Locked before the file is there: a folder with that and no lock is an orphan. If
        // locking fails, the file system has no locks, and it cannot be swept either.
        let made = File::open(&folder).map_err(failed).and_then(|lock| {
            let _ = try_lock(&lock);
            let control = folder.join(CONTROL);
            let failed = |source| Error::Control { path: control.clone(), source };
            File::create_new(&control).map_err(failed)?;
            // Best effort: without it there is one reason less to tell.
            let open =
                |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode));
            let told = folder.join(LEFT_OUT);
            let _ = File::create_new(&told)
                .and_then(|_| open(&told, 0o622))
                .and_then(|()| open(&folder, 0o711));
            Ok(lock)
        });
        match made {
            Ok(lock) => Ok(Rendezvous { folder, _lock: lock }),
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

    /// How many processes could not be recorded because they run as another user than `kymo`,
    /// and as which users. The processes report this themselves.
    pub fn left_out(&self) -> (usize, BTreeSet<u32>) {
        let mut said = String::new();
        if let Ok(file) = File::open(self.folder.join(LEFT_OUT)) {
            let _ = file.take(MAX_LENGTH).read_to_string(&mut said);
        }
        let users = said.lines().filter_map(|line| line.parse::<u32>().ok());
        (users.clone().count(), users.collect())
    }

    /// What processes are told (`KYMOGRAPH_CONTROL`).
    pub fn control(&self) -> PathBuf {
        self.folder.join(CONTROL)
    }
}

/// In a process that may not join the `kymo` that has told it `control`: tells that one.
#[cfg(feature = "inject")]
pub(crate) fn tell_left_out(control: &Path) {
    use std::io::Write as _;

    let flags = libc::O_APPEND | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let told = control.with_file_name(LEFT_OUT);
    let file = File::options().append(true).custom_flags(flags).open(told);
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    let _ = file.and_then(|mut file| file.write_all(format!("{me}\n").as_bytes()));
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes the places of `kymo`s that were killed. Only
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
        let made = folder.join(CONTROL).symlink_metadata().is_ok_and(|file| file.is_file());
        if made && try_lock(&lock) {
            remove(&folder);
        }
    }
}

/// A folder of this user's, not a link to one: no other user can put another in its place.
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
    // Best effort: what is left over is swept by the next recording.
    let _ = fs::remove_dir_all(folder);
}
