//! How a rank is put whole into object storage, where there are no locks and no renames.
//!
//! Each task that adds a rank gives its files names of its own: `rank-000003-<id>.parquet`. Nobody
//! ever writes over them. The manifest names them, and is put last, only where it is still what the
//! task had read before (`If-None-Match: *`, or `If-Match` with its e_tag): of several tasks that
//! add the same rank at a time, one is first, the others learn that, and no file of one becomes a
//! file of another. `--replace` does the same in the place of the old manifest, so the rank is
//! there at every moment. With files of fixed names, and their e_tags in the manifest, two tasks
//! could spoil what each other has put, though nobody would take it for whole; and a data set that
//! is copied would have other e_tags.
//!
//! What is in the way of nobody has to be taken away all the same, since engines that read the
//! files themselves would read it, too. So a task says which files it is going to put before it
//! does, in `.partial/rank-000003/<id>.json`, a manifest. A task whose manifest was taken removes
//! what others had said when it began: these had read the manifest before it did, so theirs can no
//! longer be taken. Likewise goes what is older than the manifest of a rank that is there.

use super::{Listed, Put, Remote};
use crate::layout;
use crate::manifest::Manifest;
use crate::{Failure, named};
use object_store::UpdateVersion;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug)]
pub(crate) struct Attempt {
    remote: Remote,
    rank: i64,
    id: String,
    /// The manifest that was there.
    pub(crate) old: Option<Manifest>,
    version: Option<UpdateVersion>,
    /// What other tasks had said by then.
    others: Vec<String>,
}

impl Attempt {
    /// Looks at what there is of a rank.
    pub(crate) fn begin(remote: &Remote, rank: i64) -> Result<Attempt, Failure> {
        // First these: so that they are older than the manifest.
        let others = intents(remote, rank)?.into_iter().map(|listed| listed.path).collect();
        let path = layout::manifest(rank);
        let (mut old, mut version) = (None, None);
        if let Some(read) = remote.get(&path)? {
            let name = PathBuf::from(remote.name(&path));
            old = Some(Manifest::parse(&name, &read.bytes)?);
            version = Some(UpdateVersion { e_tag: read.meta.e_tag, version: read.meta.version });
        }
        Ok(Attempt { remote: remote.clone(), rank, id: new_id(), old, version, others })
    }

    /// The name of a file of this task.
    pub(crate) fn path(&self, path: PathBuf) -> PathBuf {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        path.with_file_name(format!("{stem}-{}.{end}", self.id))
    }

    /// Puts the files and the manifest; or says whose manifest was there first.
    pub(crate) fn put(
        self,
        files: &[(PathBuf, PathBuf)],
        manifest: &Manifest,
    ) -> Result<Result<(), Manifest>, Failure> {
        let remote = &self.remote;
        let path = layout::manifest(self.rank);
        let text = format!("{:#}\n", manifest.to_json()).into_bytes();
        let intent = intent(self.rank, &self.id);
        remote.put(&intent, text.clone())?;
        let own = || {
            let mut own: Vec<String> = manifest.files.iter().map(|f| f.path.clone()).collect();
            own.push(intent.to_string_lossy().into_owned());
            own
        };
        remote.upload(files).inspect_err(|_| remote.forget(&own()))?;
        // If this fails it may be there all the same, and the files are its own.
        let put = remote.put_if(&path, text.clone(), self.version.clone())?;
        // It is read in any case: an answer may have been lost, after which the second try found
        // the first; and a service that does not know conditions takes all.
        let now = remote.get(&path)?.map(|read| read.bytes);
        if now.as_deref() != Some(text.as_slice()) {
            remote.forget(&own());
            let name = PathBuf::from(remote.name(&path));
            let other = now.map(|bytes| Manifest::parse(&name, &bytes)).transpose()?;
            let gone = match put {
                Put::Done => "it was there and no longer is: somebody removes this data set",
                Put::OtherWasFirst => "another task has changed this rank at the same time: again",
            };
            return other.map(Err).ok_or_else(|| named(&name, &gone));
        }
        let old = self.old.iter().flat_map(|old| &old.files).map(|file| file.path.clone());
        let mut gone: Vec<String> = old.filter(|path| !manifest.names(path)).collect();
        gone.push(intent.to_string_lossy().into_owned());
        remote.forget(&gone);
        for other in &self.others {
            forget(remote, other, manifest);
        }
        Ok(Ok(()))
    }
}

/// Removes what tasks of a rank that is there have left.
pub(crate) fn tidy(remote: &Remote, rank: i64) -> Result<(), Failure> {
    let intents = intents(remote, rank)?;
    if intents.is_empty() {
        return Ok(());
    }
    let path = layout::manifest(rank);
    let Some(read) = remote.get(&path)? else { return Ok(()) };
    let manifest = Manifest::parse(Path::new(&remote.name(&path)), &read.bytes)?;
    for intent in intents {
        let at = intent.meta.last_modified;
        if at < read.meta.last_modified
            || manifest.files.iter().any(|f| is_of(&f.path, &intent.path))
        {
            forget(remote, &intent.path, &manifest);
        }
    }
    Ok(())
}

/// Removes the files of another task, which it had said, but for those that the manifest has.
fn forget(remote: &Remote, intent: &str, manifest: &Manifest) {
    let Ok(Some(read)) = remote.get(Path::new(intent)) else { return };
    let Ok(other) = Manifest::parse(Path::new(intent), &read.bytes) else { return };
    let files = other.files.into_iter().map(|file| file.path);
    let mut gone: Vec<String> =
        files.filter(|path| is_of(path, intent) && !manifest.names(path)).collect();
    gone.push(intent.to_owned());
    remote.forget(&gone);
}

/// Whether a file has the name of the task that has said so.
fn is_of(path: &str, intent: &str) -> bool {
    let id = Path::new(intent).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    path.ends_with(&format!("-{id}.parquet"))
}

fn intent(rank: i64, id: &str) -> PathBuf {
    layout::intents(rank).join(format!("{id}.json"))
}

fn intents(remote: &Remote, rank: i64) -> Result<Vec<Listed>, Failure> {
    remote.list(&layout::intents(rank))
}

/// A name that no other task has.
fn new_id() -> String {
    // The keys of each are random.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let first = hasher.finish();
    hasher.write_u128(
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos()),
    );
    format!("{first:016x}{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tasks_have_the_same_name() {
        let ids: std::collections::HashSet<String> = (0..1000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 1000);
    }

    #[test]
    fn a_task_says_only_files_of_its_own() {
        let intent = ".partial/rank-000003/00ff.json";
        assert!(is_of("kernels/ranks=000000-000063/rank-000003-00ff.parquet", intent));
        assert!(!is_of("kernels/ranks=000000-000063/rank-000003-11ff.parquet", intent));
        assert!(!is_of("kymograph-dataset.json", intent));
    }
}
