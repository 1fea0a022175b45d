//! Makes a trace of what a program kept in a file (`RECOVER`) and could not write, as it was
//! killed: the engine runs over the file as it does over the arena of a process that `kymo`
//! records, from the beginning, as fast as it can.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::member::Elsewhere;
use crate::clock::{Anchor, Converter};
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::control_block::{Request, Shared};
use crate::engine::ending::Ending;
use crate::engine::names::Names;
use crate::engine::origin::Origin;
use crate::engine::stats::Summary;
use crate::engine::window::Window;
use crate::join::message;
use crate::process::identity;
use crate::queue::{Arena, Kept, Moment, Pool, Reader};
use crate::sink::Sink;

/// How much of the recorded time is encoded in one go, in nanoseconds: threads do not get ahead
/// of each other by more than that. A long recording goes in longer steps.
const STEP: u64 = 100_000_000;
const STEPS: u64 = 1 << 14;

/// What a file holds.
#[derive(Debug)]
pub struct Recovered {
    arena: Arc<Arena>,
    metadata: message::Metadata,
    moments: Vec<Moment>,
    kept: Kept,
}

impl Recovered {
    /// Opens the file at `path`, which stays as it is.
    ///
    /// # Errors
    /// It is no file of a recording, is damaged, or its process still runs.
    pub fn open(path: &Path) -> io::Result<Recovered> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(wrong("it is no regular file"));
        }
        let (arena, metadata) = Arena::load(&file)?;
        let metadata = match message::read(&metadata) {
            Some((message::Subject::Join, metadata)) => metadata,
            _ => return Err(wrong("it does not say whose recording it is: it is damaged")),
        };
        let recovered = Recovered::of(Arc::new(arena), metadata);
        let recovered =
            recovered.ok_or_else(|| wrong("its process was killed before it recorded anything"))?;
        match recovered.runs() {
            true => Err(wrong("its process still runs; what it records will be in its output")),
            false => Ok(recovered),
        }
    }

    /// What an arena keeps of a dead process, if it keeps anything.
    pub(super) fn of(arena: Arc<Arena>, metadata: message::Metadata) -> Option<Recovered> {
        let (kept, moments) = (arena.kept(), arena.moments());
        if moments.is_empty() || kept == Kept::Nothing {
            return None;
        }
        arena.forget_keeping();
        Some(Recovered { arena, metadata, moments, kept })
    }

    /// The process, as it saw itself.
    pub fn pid(&self) -> u32 {
        self.arena.about(1).map_or(0, |about| about.pid)
    }

    /// Whether everything is there that was recorded: of a recording that became larger than
    /// `RECOVER`, the file has only what was not written yet.
    pub fn is_whole(&self) -> bool {
        self.kept == Kept::All
    }

    /// Whether the process runs on this machine.
    fn runs(&self) -> bool {
        let fact = |key: &str| self.metadata.iter().find(|(k, _)| k == key).map(|(_, value)| value);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let started = identity::process_start(format!("/proc/{}", self.pid()).as_ref());
        let same = fact("started").is_some_and(|said| *said == started.to_string());
        started != 0 && same && fact("about/kymograph.boot_id").is_some_and(|id| id == boot.trim())
    }

    /// Writes all of it to `sink`.
    ///
    /// # Errors
    /// Its times make no sense.
    pub fn write(self, config: Config, sink: Box<dyn Sink>) -> io::Result<Summary> {
        let last = self.moments[self.moments.len() - 1].clocks.boottime;
        self.write_until(config, sink, "kymo recover", (Ending::Unknown, last))
    }

    /// As [`Recovered::write`]; also says by whom, how the process ended, and when.
    pub(super) fn write_until(
        self,
        config: Config,
        sink: Box<dyn Sink>,
        by: &str,
        (ending, at): (Ending, u64),
    ) -> io::Result<Summary> {
        let anchor =
            |moment: &Moment| Anchor { ticks: moment.ticks, nanos: moment.clocks.boottime };
        let mut anchors: Vec<Anchor> = self.moments.iter().map(anchor).collect();
        // The engine compared the clocks when it ran, and events came before that.
        let (ticks, nanos) = self.arena.about(1).map_or((0, 0), |about| about.began);
        if ticks < anchors[0].ticks && nanos < anchors[0].nanos {
            anchors.insert(0, Anchor { ticks, nanos });
        }
        let converter = Converter::through(&anchors).ok_or_else(|| wrong("it has no times"))?;
        let pool = Arc::new(Pool::view(self.arena.clone(), 1));
        if self.is_whole() {
            pool.rewind();
        }
        let names = Arc::new(Names::new(pool.clone(), None, 0));
        names.refresh();
        let origin = Origin::from_metadata(self.pid(), &self.metadata, names);
        let shared = Shared::new(
            config,
            Window::with_edges(self.arena.edges()),
            self.pid(),
            Box::new(Elsewhere::new(self.arena.clone())),
        );
        let shared = Arc::new(shared);
        let lacks = if self.is_whole() { "nothing" } else { "what was written before" };
        shared.state("recovered", &format!("by `{by}`; it lacks {lacks}"));
        let mut engine =
            Engine::new(shared.clone(), origin, sink, None, anchors[0], converter.clone());
        engine.it_was(self.moments[0].clocks);
        engine.begin();
        let span = anchors[anchors.len() - 1].nanos - anchors[0].nanos;
        let step = STEP.max(span / STEPS);
        // More than there are, unless times make no sense.
        for _ in 0..2 * (span / step) + 100 {
            let Some(next) = next_time(&pool, &converter) else { break };
            let horizon = next.saturating_add(step);
            pool.set_horizon(converter.ticks(horizon), horizon);
            engine.it_was(self.clocks_at(horizon));
            engine.tick(Request::None);
            while engine.is_behind() {
                engine.tick(Request::None);
            }
        }
        pool.set_horizon(u64::MAX, u64::MAX);
        let last = self.moments[self.moments.len() - 1].clocks;
        engine.it_was(last);
        Ok(engine.end(ending, Some(at)))
    }

    /// The clocks when boot time was `nanos`.
    fn clocks_at(&self, nanos: u64) -> kymograph_protos::packet::Snapshot {
        let after = self.moments.partition_point(|moment| moment.clocks.boottime <= nanos);
        let known = self.moments[after.saturating_sub(1)].clocks;
        let passed = nanos.wrapping_sub(known.boottime);
        kymograph_protos::packet::Snapshot {
            boottime: nanos,
            monotonic: known.monotonic.wrapping_add(passed),
            realtime: known.realtime.wrapping_add(passed),
        }
    }
}

/// The time of the oldest record that was not encoded, in nanoseconds.
fn next_time(pool: &Pool, converter: &Converter) -> Option<u64> {
    let times = (0..pool.lanes_used()).filter_map(|index| Reader::next_time(pool, index));
    times.map(|(time, is_nanos)| if is_nanos { time } else { converter.nanos(time) }).min()
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}
