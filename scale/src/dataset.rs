//! What a data set has, lacks, and has in part.

use crate::layout;
use crate::manifest::Manifest;
use crate::store::Store;
use crate::{Failure, packed};
use arrow_array::RecordBatch;
use kymograph_analysis::job::{self, list};
#[cfg(feature = "storage")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A data set that was opened.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Where it lies.
    pub root: Store,
    /// The ranks that are there, in order.
    pub ranks: Vec<Manifest>,
    /// The size of each file, in object storage, which has lists.
    #[cfg(feature = "storage")]
    listed: Option<std::collections::HashMap<String, u64>>,
}

/// What is wrong with a data set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problems {
    /// Ranks of the job that are not there.
    pub missing: Vec<i64>,
    /// Ranks that have files and no manifest.
    pub half: Vec<i64>,
    /// Ranks whose files are not as they were written, and why.
    pub changed: Vec<(i64, String)>,
    /// Ranks of traces whose end is missing.
    pub damaged: Vec<i64>,
    /// Why the ranks are not of one job.
    pub other_job: Option<String>,
}

impl Problems {
    /// A sentence for each.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.other_job.clone());
        if !self.half.is_empty() {
            let ranks = list(&self.half);
            all.push(format!(
                "{ranks} half written: `kymo dataset add` with the trace completes it"
            ));
        }
        for (rank, why) in &self.changed {
            all.push(format!("rank {rank}: {why}: `kymo dataset add` with the trace repairs it"));
        }
        if !self.missing.is_empty() {
            all.push(format!("{} missing", list(&self.missing)));
        }
        if !self.damaged.is_empty() {
            all.push(format!("{} of a trace whose end is missing", list(&self.damaged)));
        }
        all
    }
}

impl Dataset {
    /// Opens a data set.
    ///
    /// # Errors
    ///
    /// When it is none, is of a newer schema, or has no ranks.
    pub fn open(root: impl Into<Store>) -> Result<Dataset, Failure> {
        let root = root.into();
        layout::check(&root)?;
        let ranks = Manifest::all(&root)?;
        if ranks.is_empty() {
            let what = "no rank is in this data set yet: `kymo dataset add` adds some";
            return Err(Failure(format!("{root}: {what}")));
        }
        #[cfg(feature = "storage")]
        let listed = match &root {
            Store::Local(_) => None,
            Store::Remote(remote) => {
                let listed = remote.list(Path::new(""))?;
                Some(listed.into_iter().map(|object| (object.path, object.meta.size)).collect())
            }
        };
        Ok(Dataset {
            root,
            ranks,
            #[cfg(feature = "storage")]
            listed,
        })
    }

    /// What is wrong with it. Looks at the size of each file.
    pub fn problems(&self) -> Problems {
        let there: BTreeSet<i64> = self.ranks.iter().map(|manifest| manifest.rank).collect();
        let half: BTreeSet<i64> = self.with_files().difference(&there).copied().collect();
        let mut job = job::Job::default();
        self.ranks.iter().for_each(|manifest| job.learn(&manifest.member()));
        let mut missing = job.missing(&there);
        missing.retain(|rank| !half.contains(rank));
        let damaged = self.ranks.iter().filter(|manifest| manifest.damage.is_some());
        let lacks = |manifest: &Manifest| Some((manifest.rank, self.lacks(manifest)?));
        Problems {
            missing,
            half: half.into_iter().collect(),
            changed: self.ranks.iter().filter_map(lacks).collect(),
            damaged: damaged.map(|manifest| manifest.rank).collect(),
            other_job: self.ranks.iter().find_map(|m| job.check(&m.member()).err()),
        }
    }

    fn lacks(&self, manifest: &Manifest) -> Option<String> {
        #[cfg(feature = "storage")]
        if let Some(listed) = &self.listed {
            return manifest.lacks_of(&self.root, listed);
        }
        manifest.lacks(&self.root).unwrap_or_else(|why| Some(why.0))
    }

    /// Ranks that are there, beside which there are files of tasks that were killed, or have not
    /// ended yet. Kymograph passes over them, and engines that read files themselves do not.
    pub fn left_over(&self) -> Vec<i64> {
        #[cfg(feature = "storage")]
        if let Some(listed) = &self.listed {
            let mut all: BTreeMap<i64, usize> = BTreeMap::new();
            for path in listed.keys() {
                let rank = layout::rank_of(Path::new(path));
                rank.into_iter().for_each(|rank| *all.entry(rank).or_default() += 1);
            }
            // The files that a rank names, and its manifest.
            let own = |manifest: &Manifest| {
                1 + manifest.files.iter().filter(|file| listed.contains_key(&file.path)).count()
            };
            let more = |manifest: &&Manifest| {
                all.get(&manifest.rank).is_some_and(|count| *count > own(manifest))
            };
            return self.ranks.iter().filter(more).map(|manifest| manifest.rank).collect();
        }
        Vec::new()
    }

    /// Ranks that have a file of any table.
    fn with_files(&self) -> BTreeSet<i64> {
        match &self.root {
            Store::Local(root) => with_files(root),
            #[cfg(feature = "storage")]
            Store::Remote(_) => {
                let paths = self.listed.iter().flat_map(|listed| listed.keys());
                paths.filter_map(|path| layout::rank_of(Path::new(path))).collect()
            }
        }
    }

    /// Reads a file of each rank that has it, on all processors; `of` makes something smaller of
    /// it, rank by rank.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub fn each<T: Send>(
        &self,
        path: impl Fn(i64) -> PathBuf + Sync,
        of: impl Fn(&Manifest, RecordBatch) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Result<T, Failure>)>> = Mutex::new(Vec::new());
        let work = || {
            while let Some((at, manifest)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                self.ranks.get(at).map(|manifest| (at, manifest))
            } {
                let path = path(manifest.rank);
                if let Some(file) = manifest.file(&path) {
                    let given = packed::read(&self.root, file);
                    let given = given.and_then(|batch| of(manifest, batch));
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((at, given));
                }
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 1..cores.min(self.ranks.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, given)| given).collect()
    }
}

/// Ranks that have a file of any table in a folder.
fn with_files(root: &Path) -> BTreeSet<i64> {
    let folders = |path: &Path| {
        let entries = path.read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let mut ranks = BTreeSet::new();
    for table in crate::tables::NAMES {
        for partition in folders(&root.join(table)) {
            ranks.extend(folders(&partition).iter().filter_map(|file| layout::rank_of(file)));
        }
    }
    ranks
}
