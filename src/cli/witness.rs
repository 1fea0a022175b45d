//! Whether the output is still where it was, when all is written.
//!
//! Others may remove it, put another file in its place, or cut it short while it is written.
//! So the file itself is looked at, by a descriptor, and what its path leads to.

use super::status::size;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// An output that was just made.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
    path: PathBuf,
}

impl Witness {
    /// Remembers which file it is.
    pub(super) fn of(path: &Path) -> io::Result<Witness> {
        let file = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
        Ok(Witness { file, path: path.to_owned() })
    }

    /// What has become of it, if it is not where it was: a sentence for people, and where it
    /// is now, if anywhere.
    pub(super) fn missing(&self) -> Option<(String, Option<PathBuf>)> {
        let shown = self.path.display();
        let same = |here: &Metadata, there: &Metadata| {
            (here.dev(), here.ino()) == (there.dev(), there.ino())
        };
        let file = match self.file.metadata() {
            Ok(file) => file,
            Err(error) => return Some((format!("{shown} cannot be looked at: {error}"), None)),
        };
        let found = self.path.metadata();
        if found.as_ref().is_ok_and(|found| same(&file, found)) {
            return None;
        }
        let elsewhere = self.elsewhere(&file);
        let what = match (found.is_ok(), &elsewhere) {
            (true, _) => "was replaced by another file",
            (false, Some(_)) => "was moved",
            (false, None) => "was removed",
        };
        let where_now = match &elsewhere {
            Some(path) => format!("what was recorded is in {}", path.display()),
            None => "what was recorded is gone with it".to_owned(),
        };
        Some((format!("{shown} {what} while it was written: {where_now}"), elsewhere))
    }

    /// What is wrong with its length, of which `expected` were written: a sentence for people.
    pub(super) fn cut(&self, expected: u64) -> Option<String> {
        let length = self.file.metadata().ok()?.len();
        (length < expected).then(|| {
            format!(
                "{} was cut short while it was written: of {} it has {}, and what is in it may \
                 not be whole",
                self.path.display(),
                size(expected),
                size(length)
            )
        })
    }

    /// Its other name, if the system knows one that leads to it.
    fn elsewhere(&self, file: &Metadata) -> Option<PathBuf> {
        if file.nlink() == 0 {
            return None;
        }
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()?;
        let found = path.metadata().ok()?;
        ((file.dev(), file.ino()) == (found.dev(), found.ino())).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_happens_to_an_output_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["t.pftrace", "u.pftrace"].map(|name| folder.path().join(name));
        let begin = || {
            fs::write(&path, "0123456789").unwrap();
            Witness::of(&path).unwrap()
        };
        let witness = begin();
        assert_eq!((witness.missing(), witness.cut(10)), (None, None));
        File::options().write(true).open(&path).unwrap().set_len(3).unwrap();
        assert!(witness.cut(10).unwrap().contains("of 10 B it has 3 B"));

        let witness = begin();
        fs::rename(&path, &other).unwrap();
        let (said, now) = witness.missing().unwrap();
        assert!(said.contains("was moved") && said.ends_with("u.pftrace"), "{said}");
        assert_eq!(now.as_ref(), Some(&other));
        fs::write(&path, "another").unwrap();
        let (said, _) = witness.missing().unwrap();
        assert!(said.contains("was replaced") && said.ends_with("u.pftrace"), "{said}");
        fs::remove_file(&other).unwrap();
        let (said, _) = witness.missing().unwrap();
        assert!(said.contains("was replaced") && said.ends_with("gone with it"), "{said}");
        fs::remove_file(&path).unwrap();
        let (said, _) = witness.missing().unwrap();
        assert!(said.contains("was removed") && said.ends_with("gone with it"), "{said}");
        // The same file again, by a link.
        let witness = begin();
        fs::hard_link(&path, &other).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert_eq!(witness.missing(), None);
    }
}
