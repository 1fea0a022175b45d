//! Where a data set lies: a folder of this machine, or a place in object storage.
//!
//! Files are named by their paths from the root, the same in both. What one has and the other has
//! not, such as locks and renames, is in [`crate::turn`].

#[cfg(feature = "storage")]
use crate::storage::{Address, Remote};
use crate::{Failure, named};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Clone, Debug)]
pub enum Store {
    /// A folder, which is mounted here.
    Local(PathBuf),
    /// `s3://bucket/job.set`, or another service's.
    #[cfg(feature = "storage")]
    Remote(Remote),
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
            #[cfg(feature = "storage")]
            Store::Remote(remote) => remote.fmt(f),
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

/// What to say of an address to a build that opens none.
#[cfg(not(feature = "storage"))]
pub(crate) fn no_storage(word: &str) -> Failure {
    Failure(format!(
        "{word}: this kymo-scale was built without object storage: `cargo build --release -p \
         kymograph-scale --features storage` makes one with it, `--features query,storage` one \
         with queries, too"
    ))
}

impl Store {
    /// What a word stands for: an address of object storage, or a folder. Opens no connection.
    ///
    /// # Errors
    ///
    /// When it is an address at which there can be no data set, or which this build cannot open.
    pub fn of(word: impl AsRef<Path>) -> Result<Store, Failure> {
        let path = word.as_ref();
        let word = path.to_str().unwrap_or_default();
        match scheme(word) {
            None => Ok(Store::Local(path.to_owned())),
            Some("http" | "https") => Err(Failure(format!(
                "{word}: over HTTP there is no list of files, so there can be no data set: say \
                 s3://, gs:// or az://, or a folder into which you have copied it"
            ))),
            #[cfg(feature = "storage")]
            Some(_) => Ok(Store::Remote(Remote::open(Address::of(word)?)?)),
            #[cfg(not(feature = "storage"))]
            Some("s3" | "gs" | "az") => Err(no_storage(word)),
            #[cfg(not(feature = "storage"))]
            Some(_) => Err(Failure(format!(
                "{word}: data sets are folders that are mounted here, or at s3://, gs:// or az://"
            ))),
        }
    }

    /// The name of a file in sentences.
    pub(crate) fn name(&self, path: &Path) -> PathBuf {
        match self {
            Store::Local(root) => root.join(path),
            #[cfg(feature = "storage")]
            Store::Remote(remote) => PathBuf::from(remote.name(path)),
        }
    }

    /// Reads a small file; `None` if it is not there.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        match self {
            Store::Local(root) => read(&root.join(path)),
            #[cfg(feature = "storage")]
            Store::Remote(remote) => Ok(remote.get(path)?.map(|object| object.bytes.into())),
        }
    }

    /// The small files right below a path whose names are wanted, each with its name in
    /// sentences, in any order.
    pub(crate) fn read_folder(
        &self,
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
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
                    if wanted(&name)
                        && let Some(text) = read(&path)?
                    {
                        all.push((path, text));
                    }
                }
                Ok(all)
            }
            #[cfg(feature = "storage")]
            Store::Remote(remote) => remote.read_folder(folder, wanted),
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
        let why = |word: &str| Store::of(word).unwrap_err().0;
        assert!(why("https://host/set").contains("over HTTP there is no list of files"));
        assert!(why("ftp://host/set").contains("s3://, gs://"), "{}", why("ftp://host/set"));
    }

    #[cfg(not(feature = "storage"))]
    #[test]
    fn a_build_without_object_storage_says_which_has_it() {
        let why = Store::of("s3://bucket/set").unwrap_err().0;
        assert!(why.contains("--features storage"), "{why}");
    }
}
