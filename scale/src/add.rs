//! From traces to a data set, a rank at a time.
//!
//! ```text
//! trace ─► model ─► tables, metrics ─► .partial/… ─► renamed, table by table ─► manifest
//! ```
//! A rank is there when its manifest is. A task that is killed before leaves a rank that is not
//! there, which the next task that adds it overwrites; tasks of one rank take turns. The same trace
//! again changes nothing. [`crate::turn`] has the turns, and what is different in object storage.

use crate::fingerprint::Fingerprint;
use crate::input::{self, Input};
use crate::layout::{self, metric, table};
use crate::manifest::{File, Manifest};
use crate::store::Store;
use crate::turn::{Move, Turn};
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
    pub root: Store,
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
    #[cfg(feature = "storage")]
    versions: HashMap<crate::fingerprint::Version, Vec<i64>>,
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
    traces: &[Input],
    told: impl Fn(&Path, &Result<Vec<Done>, Failure>) + Sync,
) -> Result<(), Failure> {
    layout::create(&wish.root)?;
    match &wish.root {
        Store::Local(root) => {
            let ranks = root.join(layout::RANKS);
            std::fs::create_dir_all(&ranks).map_err(|error| named(&ranks, &error))?;
        }
        // There are no folders.
        #[cfg(feature = "storage")]
        Store::Remote(_) => {}
    }
    let mut known = Known::default();
    for manifest in Manifest::all(&wish.root)? {
        known.learn(&manifest);
    }
    let known = Mutex::new(known);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(input) = traces.get(next.fetch_add(1, Ordering::Relaxed)) {
            told(input.name(), &add_trace(wish, input, &known));
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

fn add_trace(wish: &Wish, input: &Input, known: &Mutex<Known>) -> Result<Vec<Done>, Failure> {
    let path = input.name();
    // What is there is known of a file by its bytes, and in object storage by the tag of its
    // version, so that nothing is fetched in vain.
    let (file, fingerprint, e_tag) = match input {
        Input::File(path) => {
            let fingerprint = Fingerprint::of(path)?;
            let ranks = locked(known).traces.get(&fingerprint).cloned();
            if let Some(done) = there(wish, ranks, |is: &Manifest| is.fingerprint == fingerprint)? {
                return Ok(done);
            }
            (input::open(path)?, fingerprint, None)
        }
        #[cfg(feature = "storage")]
        Input::Object(object) => {
            let version = object.version()?;
            let ranks = version.as_ref().and_then(|it| locked(known).versions.get(it).cloned());
            if let Some(done) = there(wish, ranks, |is: &Manifest| is.version() == version)? {
                return Ok(done);
            }
            let (file, fingerprint) = object.fetch()?;
            (file, fingerprint, version.map(|version| version.e_tag))
        }
    };
    let trace = format::read(file, None).map_err(|error| named(path, &error))?;
    let damage = job::damage(&trace);
    if let Some(what) = damage.as_ref().filter(|_| !wish.damaged) {
        let why = format!("{what}; --damaged takes what is there");
        return Err(named(path, &why));
    }
    let ranks = run::ranks(&trace, wish.rank.unwrap_or(-1));
    let (e_tag, count) = (&e_tag, ranks.len() as u64);
    let source = Source { trace: &trace, path, fingerprint, e_tag, count, damage: &damage };
    let mut done = Vec::new();
    for (process, rank) in ranks {
        if rank < 0 {
            return Err(named(path, &"it does not say its rank: say --rank N"));
        }
        done.push(source.add(wish, process, rank, known)?);
    }
    Ok(done)
}

/// What is to be told of a trace if all of its ranks are there.
fn there(
    wish: &Wish,
    ranks: Option<Vec<i64>>,
    is_of_trace: impl Fn(&Manifest) -> bool,
) -> Result<Option<Vec<Done>>, Failure> {
    let Some(ranks) = ranks else { return Ok(None) };
    for rank in &ranks {
        let manifest = Manifest::read(&wish.root, *rank)?;
        let Some(manifest) = manifest.filter(|manifest| is_of_trace(manifest)) else {
            return Ok(None);
        };
        // A task may have been killed between two ranks of one trace.
        if manifest.source_ranks > ranks.len() as u64 {
            return Ok(None);
        }
        if !is_there(wish, &manifest)? {
            return Ok(None);
        }
    }
    Ok(Some(ranks.into_iter().map(Done::There).collect()))
}

/// Whether a rank is there, whole, with the metrics that are wanted.
fn is_there(wish: &Wish, manifest: &Manifest) -> Result<bool, Failure> {
    let rank = manifest.rank;
    let has = |name: &str| {
        manifest.has(&metric(name, rank)) || manifest.nothing.iter().any(|(of, _)| of == name)
    };
    let there =
        wish.metrics.iter().all(|metric| has(metric.name)) && manifest.lacks(&wish.root)?.is_none();
    #[cfg(feature = "storage")]
    if let (true, Store::Remote(remote)) = (there, &wish.root) {
        crate::storage::attempt::tidy(remote, rank)?;
    }
    Ok(there)
}

impl Known {
    fn learn(&mut self, manifest: &Manifest) {
        self.job.learn(&manifest.member());
        let ranks = self.traces.entry(manifest.fingerprint).or_default();
        if !ranks.contains(&manifest.rank) {
            ranks.push(manifest.rank);
        }
        #[cfg(feature = "storage")]
        if let Some(version) = manifest.version() {
            let ranks = self.versions.entry(version).or_default();
            if !ranks.contains(&manifest.rank) {
                ranks.push(manifest.rank);
            }
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
    e_tag: &'a Option<String>,
    /// How many ranks it has.
    count: u64,
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
        let turn = Turn::begin(&wish.root, rank)?;
        if let Some(old) = turn.old() {
            let same = old.fingerprint == self.fingerprint;
            if same && is_there(wish, old)? {
                return Ok(Done::There(rank));
            }
            if !same && !wish.replace {
                let what = "is there from";
                return Err(self.differs(rank, what, &old.source));
            }
        }
        let model = Model::new(self.trace, process, rank, Reading::Exact);
        let mut manifest = self.manifest(&model, process);
        {
            let mut known = locked(known);
            known.check(&manifest, self.path)?;
            known.learn(&manifest);
            known.added.insert(rank, self.path.to_owned());
        }
        let partial = turn.partial()?;
        let moves = write(wish, &model, partial.path(), &turn, &mut manifest)?;
        match turn.put(&moves, &manifest)? {
            Ok(()) => Ok(Done::Added(rank, manifest.events)),
            Err(other) if other.fingerprint == self.fingerprint && is_there(wish, &other)? => {
                Ok(Done::There(rank))
            }
            Err(other) => {
                let what = "was added by another task at the same time, from";
                Err(self.differs(rank, what, &other.source))
            }
        }
    }

    fn differs(&self, rank: i64, what: &str, source: &str) -> Failure {
        let what = format!("rank {rank} {what} {source}, which differs; --replace takes this one");
        named(self.path, &what)
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
            source_e_tag: self.e_tag.clone(),
            source_ranks: self.count,
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

fn write(
    wish: &Wish,
    model: &Model<'_>,
    partial: &Path,
    turn: &Turn<'_>,
    manifest: &mut Manifest,
) -> Result<Vec<Move>, Failure> {
    let rank = model.rank;
    let mut moves = Vec::new();
    let (tables, events) = tables::all(model)?;
    manifest.events = events;
    let mut put = |name: &str, to: PathBuf, batch: &arrow_array::RecordBatch| {
        let from = partial.join(format!("{}.parquet", moves.len()));
        let to = turn.path(to);
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
