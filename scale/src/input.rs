//! Traces as people say them: files, folders, patterns, and addresses.

#[cfg(feature = "storage")]
use crate::storage::Object;
#[cfg(not(feature = "storage"))]
use crate::store::no_storage;
use crate::store::scheme;
use crate::{Failure, named};
use kymograph_converters::folder;
use std::path::{Path, PathBuf};

/// A trace that was not read yet.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file of this machine.
    File(PathBuf),
    /// One in object storage, or over HTTP.
    #[cfg(feature = "storage")]
    Object(Object),
}

impl Input {
    /// The traces that a word stands for, as [`folder::traces`] has it for files; an address that
    /// ends in `/` is a folder.
    ///
    /// # Errors
    ///
    /// When there are none, or the list of them cannot be had.
    pub fn all(word: &str) -> Result<Vec<Input>, Failure> {
        if scheme(word).is_none() {
            let paths = folder::traces(word).map_err(Failure)?;
            return Ok(paths.into_iter().map(Input::File).collect());
        }
        #[cfg(feature = "storage")]
        return Ok(Object::all(word)?.into_iter().map(Input::Object).collect());
        #[cfg(not(feature = "storage"))]
        Err(no_storage(word))
    }

    /// Its path or address.
    pub fn name(&self) -> &Path {
        match self {
            Input::File(path) => path,
            #[cfg(feature = "storage")]
            Input::Object(object) => &object.name,
        }
    }
}

impl From<&PathBuf> for Input {
    fn from(path: &PathBuf) -> Input {
        Input::File(path.clone())
    }
}

/// Opens a file.
pub(crate) fn open(path: &Path) -> Result<std::fs::File, Failure> {
    std::fs::File::open(path).map_err(|error| named(path, &error))
}
