//! From traces to a data set, a rank at a time.
//!
//! ```text
//! trace ─► model ─► tables, metrics ─► .partial/… ─► renamed, table by table ─► manifest
//! ```
//! A rank is there when its manifest is. A task that is killed before leaves a rank that is not
//! there, which the next task that adds it overwrites; tasks of one rank take turns. The same trace
//! again changes nothing.

use crate::layout::{self, metric, table};
use crate::manifest::{File, Fingerprint, Manifest};
use crate::{Failure, named, packed, tables};
use kymograph_analysis::{Error, Metric, Model, Options, Reading, job, run};
use kymograph_converters::format;
use kymograph_converters::trace::{Job, ProcessId, Trace};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The metrics whose tables are stored by default.
pub const METRICS: [&str; 12] = [
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_types",
    "kernel_breakdown",
    "gpu_utilization",
    "idle_time",
    "collectives",
    "stragglers",
    "step_variance",
    "profiler_steps",
    "memory_bandwidth_summary",
    "data_quality",
];

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The data set.
    pub root: PathBuf,
    /// The metrics whose tables are stored.
    pub metrics: Vec<&'static Metric>,
    /// How many traces are read at the same time.
    pub jobs: usize,
    /// The rank of a trace that does not say.
    pub rank: Option<i64>,
    /// Whether ranks that are there from another trace are replaced.
    pub replace: bool,
    /// Whether traces whose end is missing are taken.
    pub damaged: bool,
}

/// What was done for a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Done {
    /// It was added: how many events it has.
    Added(i64, u64),
    /// It was there already.
    There(i64),
}

/// What is known about the job, from the ranks that are there.
#[derive(Debug, Default)]
struct Known {
    job: job::Job,
    traces: HashMap<Fingerprint, Vec<i64>>,
    /// Ranks that this task has added, and of which file.
    added: HashMap<i64, PathBuf>,
}

/// Adds traces; tells `told` about each. Goes on with the others when one cannot be added.
///
/// # Errors
///
/// When the data set itself cannot be written.
pub fn add(
    wish: &Wish,
    traces: &[PathBuf],
    told: impl Fn(&Path, &Result<Vec<Done>, Failure>) + Sync,
) -> Result<(), Failure> {
    layout::create(&wish.root)?;
    let ranks = wish.root.join(layout::RANKS);
    std::fs::create_dir_all(&ranks).map_err(|error| named(&ranks, &error))?;
    let mut known = Known::default();
    for manifest in Manifest::all(&wish.root)? {
        known.learn(&manifest);
    }
    let known = Mutex::new(known);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(path) = traces.get(next.fetch_add(1, Ordering::Relaxed)) {
            told(path, &add_trace(wish, path, &known));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..wish.jobs.min(traces.len()) {
            scope.spawn(work);
        }
        work();
    });
    Ok(())
}

fn locked(known: &Mutex<Known>) -> std::sync::MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn add_trace(wish: &Wish, path: &Path, known: &Mutex<Known>) -> Result<Vec<Done>, Failure> {
    let fingerprint = Fingerprint::of(path)?;
    let ranks = locked(known).traces.get(&fingerprint).cloned();
    if let Some(ranks) = ranks {
        let there = |rank: &i64| is_there(&wish.root, *rank, fingerprint, &wish.metrics);
        if ranks.iter().map(there).collect::<Result<Vec<_>, _>>()?.iter().all(|there| *there) {
            return Ok(ranks.into_iter().map(Done::There).collect());
        }
    }
    let file = std::fs::File::open(path).map_err(|error| named(path, &error))?;
    let trace = format::read(file, None).map_err(|error| named(path, &error))?;
    let damage = job::damage(&trace);
    if let Some(what) = damage.as_ref().filter(|_| !wish.damaged) {
        let why = format!("{what}; --damaged takes what is there");
        return Err(named(path, &why));
    }
    let mut done = Vec::new();
    for (process, rank) in run::ranks(&trace, wish.rank.unwrap_or(-1)) {
        if rank < 0 {
            return Err(named(path, &"it does not say its rank: say --rank N"));
        }
        let source = Source { trace: &trace, path, fingerprint, damage: &damage };
        done.push(source.add(wish, process, rank, known)?);
    }
    Ok(done)
}

/// Whether a rank is there, whole, from this trace, with these metrics.
fn is_there(
    root: &Path,
    rank: i64,
    fingerprint: Fingerprint,
    metrics: &[&Metric],
) -> Result<bool, Failure> {
    let Some(manifest) = Manifest::read(root, rank)? else { return Ok(false) };
    let has = |name: &str| {
        manifest.has(&metric(name, rank)) || manifest.nothing.iter().any(|(of, _)| of == name)
    };
    Ok(manifest.fingerprint == fingerprint
        && manifest.lacks(root).is_none()
        && metrics.iter().all(|metric| has(metric.name)))
}

impl Known {
    fn learn(&mut self, manifest: &Manifest) {
        self.job.learn(&manifest.member());
        let ranks = self.traces.entry(manifest.fingerprint).or_default();
        if !ranks.contains(&manifest.rank) {
            ranks.push(manifest.rank);
        }
    }

    /// Refuses what is of another job.
    fn check(&self, manifest: &Manifest, path: &Path) -> Result<(), Failure> {
        let rank = manifest.rank;
        self.job.check(&manifest.member()).map_err(|why| named(path, &why))?;
        if let Some(other) = self.added.get(&rank).filter(|other| *other != path) {
            let other = other.display();
            return Err(named(path, &format!("it is rank {rank}, and {other} is, too")));
        }
        Ok(())
    }
}

/// A trace that was read.
struct Source<'a> {
    trace: &'a Trace,
    path: &'a Path,
    fingerprint: Fingerprint,
    damage: &'a Option<String>,
}

impl Source<'_> {
    fn add(
        &self,
        wish: &Wish,
        process: Option<ProcessId>,
        rank: i64,
        known: &Mutex<Known>,
    ) -> Result<Done, Failure> {
        let root = &wish.root;
        let lock = root.join(layout::lock(rank));
        let lock_file = std::fs::File::create(&lock).map_err(|error| named(&lock, &error))?;
        lock_file.lock().map_err(|error| named(&lock, &error))?;
        let old = Manifest::read(root, rank)?;
        if is_there(root, rank, self.fingerprint, &wish.metrics)? {
            return Ok(Done::There(rank));
        }
        if let Some(old) =
            old.as_ref().filter(|old| old.fingerprint != self.fingerprint && !wish.replace)
        {
            let source = &old.source;
            return Err(named(
                self.path,
                &format!(
                    "rank {rank} is there from {source}, which differs; --replace takes this one"
                ),
            ));
        }
        let model = Model::new(self.trace, process, rank, Reading::Exact);
        let mut manifest = self.manifest(&model, process);
        {
            let mut known = locked(known);
            known.check(&manifest, self.path)?;
            known.learn(&manifest);
            known.added.insert(rank, self.path.to_owned());
        }
        forget_partial(root, rank);
        let partial = layout::partial(root, rank)?;
        let moves = write(wish, &model, partial.path(), &mut manifest)?;
        put(root, &moves, old.as_ref(), &manifest)?;
        Ok(Done::Added(rank, manifest.events))
    }

    fn manifest(&self, model: &Model<'_>, process: Option<ProcessId>) -> Manifest {
        let trace = self.trace;
        let job = Job::of(trace);
        let events = &model.events;
        let ends = (0..events.len() as u32).map(|row| events.end(row));
        Manifest {
            rank: model.rank,
            world_size: job.world_size,
            host: process.map_or(job.host, |process| trace.host(process)),
            source: self.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into()),
            fingerprint: self.fingerprint,
            events: 0,
            origin: model.origin,
            end: ends.max().unwrap_or(model.origin),
            realtime_offset: trace.facts.realtime_offset().map(|offset| offset.0),
            damage: self.damage.clone(),
            nothing: Vec::new(),
            files: Vec::new(),
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

/// A file under its first name, and its last one from the root.
type Move = (PathBuf, PathBuf);

fn write(
    wish: &Wish,
    model: &Model<'_>,
    partial: &Path,
    manifest: &mut Manifest,
) -> Result<Vec<Move>, Failure> {
    let rank = model.rank;
    let mut moves = Vec::new();
    let (tables, events) = tables::all(model)?;
    manifest.events = events;
    let mut put = |name: &str, to: PathBuf, batch: &arrow_array::RecordBatch| {
        let from = partial.join(format!("{}.parquet", moves.len()));
        let size = packed::write(&from, name, batch)?;
        let path = to.to_string_lossy().into_owned();
        manifest.files.push(File { path, size, rows: batch.num_rows() as u64 });
        moves.push((from, to));
        Ok::<(), Failure>(())
    };
    for (name, batch) in &tables {
        put(name, table(name, rank), batch)?;
    }
    let options = Options::default();
    for metric in &wish.metrics {
        match (metric.of_trace)(model, &options) {
            Ok(batch) => put(metric.name, layout::metric(metric.name, rank), &batch)?,
            Err(why @ Error::Nothing(_)) => {
                manifest.nothing.push((metric.name.to_owned(), why.to_string()));
            }
            Err(why) => return Err(Failure(format!("{}: rank {rank}: {why}", metric.name))),
        }
    }
    Ok(moves)
}

/// Gives all files their names, and the rank its manifest.
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
        for file in old.files.iter().filter(|file| !manifest.has(Path::new(&file.path))) {
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
