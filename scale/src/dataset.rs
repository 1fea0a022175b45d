//! What a data set has, lacks, and has in part.

use crate::layout;
use crate::manifest::Manifest;
use crate::store::Store;
use crate::{Failure, packed};
use arrow_array::RecordBatch;
use kymograph_analysis::job::{self, list};
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
        Ok(Dataset { root, ranks })
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
        let lacks = |manifest: &Manifest| Some((manifest.rank, manifest.lacks(&self.root)?));
        Problems {
            missing,
            half: half.into_iter().collect(),
            changed: self.ranks.iter().filter_map(lacks).collect(),
            damaged: damaged.map(|manifest| manifest.rank).collect(),
            other_job: self.ranks.iter().find_map(|m| job.check(&m.member()).err()),
        }
    }

    /// Ranks that have a file of any table.
    fn with_files(&self) -> BTreeSet<i64> {
        match &self.root {
            Store::Local(root) => with_files(root),
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
                if manifest.has(&path) {
                    let given = packed::read(&self.root.name(&path));
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
