//! Where a data set lies: a folder of this machine.
//!
//! The rest of the crate names files by their paths from the root. Locks and renames are in
//! [`crate::turn`].

use crate::{Failure, layout, named};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Debug)]
pub enum Store {
    /// A folder, which is mounted here.
    Local(PathBuf),
}

impl From<&Path> for Store {
    fn from(folder: &Path) -> Store {
        Store::Local(folder.to_owned())
    }
}

impl From<PathBuf> for Store {
    fn from(folder: PathBuf) -> Store {
        Store::Local(folder)
    }
}

impl From<&PathBuf> for Store {
    fn from(folder: &PathBuf) -> Store {
        Store::Local(folder.clone())
    }
}

impl From<&Store> for Store {
    fn from(store: &Store) -> Store {
        store.clone()
    }
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Store::Local(root) => root.display().fmt(f),
        }
    }
}

/// The scheme of an address, as people write it: `s3` of `s3://bucket/job.set`. None of what is a
/// path.
pub fn scheme(word: &str) -> Option<&str> {
    let (scheme, _) = word.split_once("://")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (!scheme.is_empty() && scheme.chars().all(fits)).then_some(scheme)
}

impl Store {
    /// What a word stands for.
    ///
    /// # Errors
    ///
    /// When it is an address.
    pub fn of(word: impl AsRef<Path>) -> Result<Store, Failure> {
        let path = word.as_ref();
        match path.to_str().and_then(scheme) {
            None => Ok(Store::Local(path.to_owned())),
            Some(_) => Err(named(path, &"data sets are folders that are mounted here")),
        }
    }

    /// The name of a file in sentences.
    pub(crate) fn name(&self, path: &Path) -> PathBuf {
        match self {
            Store::Local(root) => root.join(path),
        }
    }

    /// Reads a small file; `None` if it is not there.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Store::Local(root) => read(&root.join(path)),
        }
    }

    /// The manifests of all ranks, each with its name in sentences, in any order.
    pub(crate) fn manifests(&self) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
        let folder = Path::new(layout::RANKS);
        let is_manifest = |name: &str| !name.starts_with('.') && name.ends_with(".json");
        match self {
            Store::Local(root) => {
                let folder = root.join(folder);
                let entries = match folder.read_dir() {
                    Ok(entries) => entries,
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                    Err(error) => return Err(named(&folder, &error)),
                };
                let mut all = Vec::new();
                for entry in entries {
                    let path = entry.map_err(|error| named(&folder, &error))?.path();
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    // A task that replaces the rank may just have taken it away.
                    if is_manifest(&name)
                        && let Some(text) = read(&path)?
                    {
                        all.push((path, text));
                    }
                }
                Ok(all)
            }
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(named(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        assert_eq!(scheme("s3://bucket/set"), Some("s3"));
        assert_eq!(scheme("/shared/job.set"), None);
        assert_eq!(scheme("odd name://x"), None);
        assert!(matches!(Store::of("job.set"), Ok(Store::Local(path)) if path == *"job.set"));
        let why = Store::of("s3://bucket/set").unwrap_err().0;
        assert!(why.starts_with("s3://bucket/set: data sets are folders"), "{why}");
    }
}
