//! How tasks that add the same rank stay out of each other's way, and how its files get their
//! names.
//!
//! In a folder tasks take turns, by a lock, and files are renamed when they are written. In object
//! storage there is neither: see `storage::attempt`.

use crate::layout;
use crate::manifest::Manifest;
#[cfg(feature = "storage")]
use crate::storage::attempt::Attempt;
use crate::store::Store;
use crate::{Failure, named};
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file under its first name, and its last one from the root.
pub(crate) type Move = (PathBuf, PathBuf);

/// A task's turn with a rank.
pub(crate) enum Turn<'a> {
    Local(Local<'a>),
    #[cfg(feature = "storage")]
    Remote(Attempt),
}

/// With the lock of the rank.
pub(crate) struct Local<'a> {
    root: &'a Path,
    rank: i64,
    old: Option<Manifest>,
    _lock: File,
}

impl<'a> Turn<'a> {
    /// Waits for the turn, and looks at what there is.
    pub(crate) fn begin(store: &'a Store, rank: i64) -> Result<Turn<'a>, Failure> {
        match store {
            Store::Local(root) => {
                let path = root.join(layout::lock(rank));
                let lock = File::create(&path).map_err(|error| named(&path, &error))?;
                lock.lock().map_err(|error| named(&path, &error))?;
                let old = Manifest::read(store, rank)?;
                Ok(Turn::Local(Local { root, rank, old, _lock: lock }))
            }
            #[cfg(feature = "storage")]
            Store::Remote(remote) => Ok(Turn::Remote(Attempt::begin(remote, rank)?)),
        }
    }

    /// The manifest that was there.
    pub(crate) fn old(&self) -> Option<&Manifest> {
        match self {
            Turn::Local(local) => local.old.as_ref(),
            #[cfg(feature = "storage")]
            Turn::Remote(attempt) => attempt.old.as_ref(),
        }
    }

    /// The last name of a file of this task.
    pub(crate) fn path(&self, path: PathBuf) -> PathBuf {
        match self {
            Turn::Local(_) => path,
            #[cfg(feature = "storage")]
            Turn::Remote(attempt) => attempt.path(path),
        }
    }

    /// A folder for files under their first names, which goes when this task ends.
    pub(crate) fn partial(&self) -> Result<TempDir, Failure> {
        match self {
            Turn::Local(local) => {
                forget_partial(local.root, local.rank);
                layout::partial(local.root, local.rank)
            }
            #[cfg(feature = "storage")]
            Turn::Remote(_) => {
                let folder = std::env::temp_dir();
                tempfile::tempdir().map_err(|error| named(&folder, &error))
            }
        }
    }

    /// Gives all files their last names, and the rank its manifest; or says whose manifest was
    /// there first.
    pub(crate) fn put(
        self,
        moves: &[Move],
        manifest: &Manifest,
    ) -> Result<Result<(), Manifest>, Failure> {
        match self {
            Turn::Local(local) => put(local.root, moves, local.old.as_ref(), manifest).map(Ok),
            #[cfg(feature = "storage")]
            Turn::Remote(attempt) => attempt.put(moves, manifest),
        }
    }
}

/// Removes what tasks of this rank left that were killed: no other task holds its lock.
fn forget_partial(root: &Path, rank: i64) {
    let own = |folder: &Path, start: String| {
        let entries = folder.read_dir().into_iter().flatten().flatten();
        let own = move |e: &std::fs::DirEntry| e.file_name().to_string_lossy().starts_with(&start);
        entries.filter(own).map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    for folder in own(&layout::partials(root), layout::partial_prefix(rank)) {
        let _ = std::fs::remove_dir_all(folder);
    }
    let manifest = layout::manifest(rank);
    for file in own(&root.join(layout::RANKS), layout::whole_prefix(&manifest)) {
        let _ = std::fs::remove_file(file);
    }
}

fn put(
    root: &Path,
    moves: &[Move],
    old: Option<&Manifest>,
    manifest: &Manifest,
) -> Result<(), Failure> {
    let path = root.join(layout::manifest(manifest.rank));
    if let Some(old) = old {
        // From here on the rank is not there, and when its files are, it is again.
        std::fs::remove_file(&path).map_err(|error| named(&path, &error))?;
        for file in old.files.iter().filter(|file| !manifest.names(&file.path)) {
            let _ = std::fs::remove_file(root.join(&file.path));
        }
    }
    for (from, to) in moves {
        let to = root.join(to);
        let folder = to.parent().unwrap_or(root);
        let made = std::fs::create_dir_all(folder);
        made.and_then(|()| std::fs::rename(from, &to)).map_err(|error| named(&to, &error))?;
    }
    layout::whole(&path, format!("{:#}\n", manifest.to_json()).as_bytes())
}
