//! What a data set has, lacks, and has in part.

use crate::layout;
use crate::manifest::Manifest;
use crate::{Failure, named, packed};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A data set that was opened.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Its folder.
    pub root: PathBuf,
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

/// `rank 3 is`, `ranks 3, 7–9 are`.
fn list(ranks: &[i64]) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rank => *last = *rank,
            _ => runs.push((*rank, *rank)),
        }
    }
    let run = |(from, to): &(i64, i64)| match to - from {
        0 => from.to_string(),
        1 => format!("{from}, {to}"),
        _ => format!("{from}–{to}"),
    };
    let mut text = runs.iter().take(10).map(run).collect::<Vec<_>>().join(", ");
    if runs.len() > 10 {
        text += " and others";
    }
    match ranks {
        [_] => format!("rank {text} is"),
        _ => format!("ranks {text} ({} in all) are", ranks.len()),
    }
}

impl Dataset {
    /// Opens a data set.
    ///
    /// # Errors
    ///
    /// When it is none, is of a newer schema, or has no ranks.
    pub fn open(root: &Path) -> Result<Dataset, Failure> {
        layout::check(root)?;
        let ranks = Manifest::all(root)?;
        if ranks.is_empty() {
            let what = "no rank is in this data set yet: `kymo dataset add` adds some";
            return Err(named(root, &what));
        }
        Ok(Dataset { root: root.to_owned(), ranks })
    }

    /// What is wrong with it. Looks at the size of each file.
    pub fn problems(&self) -> Problems {
        let there: BTreeSet<i64> = self.ranks.iter().map(|manifest| manifest.rank).collect();
        let half: BTreeSet<i64> = self.with_files().difference(&there).copied().collect();
        let size = self.ranks.iter().find_map(|manifest| manifest.world_size);
        let missing =
            (0..size.unwrap_or(0)).filter(|rank| !there.contains(rank) && !half.contains(rank));
        let other = self.ranks.iter().find(|m| m.world_size.is_some() && m.world_size != size);
        let number = |size: Option<i64>| size.unwrap_or_default();
        let damaged = self.ranks.iter().filter(|manifest| manifest.damage.is_some());
        let lacks = |manifest: &Manifest| Some((manifest.rank, manifest.lacks(&self.root)?));
        Problems {
            missing: missing.collect(),
            half: half.into_iter().collect(),
            changed: self.ranks.iter().filter_map(lacks).collect(),
            damaged: damaged.map(|manifest| manifest.rank).collect(),
            other_job: other.map(|manifest| {
                let (rank, said) = (manifest.rank, number(manifest.world_size));
                format!(
                    "rank {rank} is of a job of {said} ranks, others of one of {}",
                    number(size)
                )
            }),
        }
    }

    /// Ranks that have a file of any table.
    fn with_files(&self) -> BTreeSet<i64> {
        let folders = |path: &Path| {
            let entries = path.read_dir().into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
        };
        let mut ranks = BTreeSet::new();
        for table in crate::tables::NAMES {
            for partition in folders(&self.root.join(table)) {
                for file in folders(&partition) {
                    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
                    let rank: Option<i64> =
                        name.and_then(|name| name.strip_prefix("rank-")?.parse().ok());
                    ranks.extend(rank);
                }
            }
        }
        ranks
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
                    let given = packed::read(&self.root.join(path));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_listed_in_runs() {
        assert_eq!(list(&[3]), "rank 3 is");
        assert_eq!(list(&[3, 7, 8, 9, 11, 12]), "ranks 3, 7–9, 11, 12 (6 in all) are");
    }
}
