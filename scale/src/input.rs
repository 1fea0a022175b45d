//! Traces as people say them: files, folders and patterns.

use crate::{Failure, named};
use kymograph_converters::folder;
use std::path::{Path, PathBuf};

/// A trace that was not read yet.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file of this machine.
    File(PathBuf),
}

impl Input {
    /// The traces that a word stands for, as [`folder::traces`] has it.
    ///
    /// # Errors
    ///
    /// When there are none, or the list of them cannot be had.
    pub fn all(word: &str) -> Result<Vec<Input>, Failure> {
        let paths = folder::traces(word).map_err(Failure)?;
        Ok(paths.into_iter().map(Input::File).collect())
    }

    /// Its path.
    pub fn name(&self) -> &Path {
        match self {
            Input::File(path) => path,
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
