//! The library that `kymo` carries, for machines on which `kymo` is the only file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A library as it is stored: compressed with zstd.
struct Carried {
    packed: &'static [u8],
    /// CRC-32 and length of what unpacks from it.
    crc: u32,
    length: u64,
}

/// Not in builds with debug assertions, where compressing would take longer than compiling and the
/// library lies beside `kymo`.
fn carried() -> Option<Carried> {
    #[cfg(debug_assertions)]
    let library: Option<(&'static [u8], u32, u64)> = None;
    #[cfg(not(debug_assertions))]
    let library: Option<(&'static [u8], u32, u64)> = kymograph_embed::library!();
    library.map(|(packed, crc, length)| Carried { packed, crc, length })
}

/// Where it is unpacked, the first of these that works. It must stay when `kymo` has ended, since
/// processes may outlive it and start others, so that a `memfd` does not do; and programs of other
/// users, which a recorded `su` starts, must be able to read it, so that a home does not do either.
const PARENTS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The path of the library after it was unpacked; `None` if this `kymo` carries none.
pub(super) fn unpacked() -> Option<Result<PathBuf, String>> {
    let carried = carried()?;
    Some(in_own_folder(|folder| carried.unpack(folder)).map_err(|error| {
        format!(
            "cannot unpack the library that kymo carries into {}: {error}; make room in one of \
             them, or put libkymograph.so beside kymo",
            PARENTS.join(", ")
        )
    }))
}

/// Has `put` write into a folder that stays, that only this user can write to, and that everybody
/// can enter: in the first of [`PARENTS`] where that succeeds.
pub(super) fn in_own_folder<T>(mut put: impl FnMut(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut refused = io::ErrorKind::PermissionDenied.into();
    for parent in PARENTS {
        match own_folder(Path::new(parent)).and_then(|folder| put(&folder)) {
            Ok(done) => return Ok(done),
            Err(error) => refused = io::Error::new(error.kind(), format!("{parent}: {error}")),
        }
    }
    Err(refused)
}

fn own_folder(parent: &Path) -> io::Result<PathBuf> {
    // SAFETY: no arguments, cannot fail.
    let me = unsafe { libc::geteuid() };
    let folder = parent.join(format!("kymograph-library-{me}"));
    match fs::DirBuilder::new().mode(0o755).create(&folder) {
        // Whatever the umask is.
        Ok(()) => fs::set_permissions(&folder, PermissionsExt::from_mode(0o755))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    // Another user may have made it, to have us load something else, or may exchange it.
    let is_ours = |about: fs::Metadata| about.is_dir() && is_only_ours(&about);
    let stays = |about: fs::Metadata| {
        about.mode() & 0o022 == 0 && [0, me].contains(&about.uid()) || about.mode() & 0o1000 != 0
    };
    if folder.symlink_metadata().is_ok_and(is_ours) && parent.metadata().is_ok_and(stays) {
        return Ok(folder);
    }
    let why = format!("{} can be written by other users", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn is_only_ours(about: &fs::Metadata) -> bool {
    // SAFETY: no arguments, cannot fail.
    about.uid() == unsafe { libc::geteuid() } && about.mode() & 0o022 == 0
}

impl Carried {
    /// The library in `folder`: the one that is there if it is whole, else it is written anew.
    fn unpack(&self, folder: &Path) -> io::Result<PathBuf> {
        if !may_execute(folder)? {
            return Err(io::Error::other("programs there cannot be executed (noexec)"));
        }
        // The file keeps its name: that is what sanitizers are told to ignore.
        let version = env!("CARGO_PKG_VERSION");
        let place = folder.join(format!("{version}-{:08x}", self.crc));
        let path = place.join("libkymograph.so");
        if self.is_whole(&path) {
            return Ok(path);
        }
        match fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => fs::set_permissions(&place, PermissionsExt::from_mode(0o755))?,
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let draft = place.join(format!("new-{}-{}", std::process::id(), since.as_nanos()));
        // It becomes the library when it is whole; who has the old one open keeps that.
        let written = self.write(&draft).and_then(|()| fs::rename(&draft, &path));
        written.inspect_err(|_| _ = fs::remove_file(&draft))?;
        Ok(path)
    }

    fn write(&self, draft: &Path) -> io::Result<()> {
        let library = zstd::bulk::decompress(self.packed, self.length as usize)?;
        if !self.is(&library) {
            return Err(io::Error::other("the copy in kymo is damaged; install kymo anew"));
        }
        let mut options = File::options();
        let mut file = options.write(true).create_new(true).mode(0o755).open(draft)?;
        file.write_all(&library)?;
        file.set_permissions(PermissionsExt::from_mode(0o755))
    }

    /// Whether a file is ours and has exactly the bytes that it should have.
    fn is_whole(&self, path: &Path) -> bool {
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
        let Ok(mut file) = file else { return false };
        let right = |about: fs::Metadata| {
            about.is_file() && is_only_ours(&about) && about.len() == self.length
        };
        if !file.metadata().is_ok_and(right) {
            return false;
        }
        // Piece by piece: fresh memory for all of it would take longer than reading it.
        let (mut crc, mut length) = (crc32fast::Hasher::new(), 0);
        let mut piece = [0; 64 << 10];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return length == self.length && crc.finalize() == self.crc,
                Ok(read) => {
                    crc.update(&piece[..read]);
                    length += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    fn is(&self, library: &[u8]) -> bool {
        library.len() as u64 == self.length && crc32fast::hash(library) == self.crc
    }
}

/// Whether what lies in `folder` can be mapped as code.
fn may_execute(folder: &Path) -> io::Result<bool> {
    let name = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    let mut about = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a C string, and room for the answer, which is read only if it was given.
    unsafe {
        match libc::statvfs(name.as_ptr(), about.as_mut_ptr()) {
            0 => Ok(about.assume_init().f_flag & libc::ST_NOEXEC == 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Where the library comes from, for `kymo --version`.
pub(super) fn is_there() -> bool {
    carried().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(library: &[u8]) -> Carried {
        let packed = zstd::bulk::compress(library, 1).unwrap().leak();
        Carried { packed, crc: crc32fast::hash(library), length: library.len() as u64 }
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_is_unpacked_is_whole_and_used_again() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let library = b"the library".repeat(1000);
        let carried = of(&library);
        let path = carried.unpack(folder.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), library);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755);
        let inode = path.metadata().unwrap().ino();
        assert_eq!(carried.unpack(folder.path()).unwrap(), path);
        assert_eq!(path.metadata().unwrap().ino(), inode);
        // What was damaged, cut or exchanged is written anew.
        let mut damaged = library.clone();
        damaged[7] ^= 1;
        for wrong in [&damaged[..], &library[..100], b""] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(fs::read(carried.unpack(folder.path()).unwrap()).unwrap(), library);
        }
        fs::remove_file(&path).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, b"not to be touched").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        carried.unpack(folder.path()).unwrap();
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read(&other).unwrap(), b"not to be touched");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
        carried.unpack(folder.path()).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o755);
        assert_eq!(files(path.parent().unwrap()), 1);
    }

    #[test]
    fn a_damaged_copy_is_not_unpacked() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let mut carried = of(b"the library");
        carried.crc ^= 1;
        assert!(carried.unpack(folder.path()).is_err());
        let place = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        assert_eq!(files(&place), 0);
    }

    #[test]
    fn several_at_once_agree() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let library = b"0123456789".repeat(10_000);
        let carried = of(&library);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let path = carried.unpack(folder.path()).unwrap();
                    assert_eq!(fs::read(path).unwrap(), library);
                });
            }
        });
    }
}
