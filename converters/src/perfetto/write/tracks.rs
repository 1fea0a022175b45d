//! Descriptions of the tracks of the host: what viewers call them, and in which order they
//! stand.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use kymograph_protos::packet::{self, AnyTrack, TrackOf};
use kymograph_protos::rows::{self, Beside, Of};

use super::host::uuid;
use super::rows::TrackRow;
use super::{FACTS, FULL, Writer, counters};
use crate::perfetto::rows::{MADE, OF_PROFILER, PROFILER, UNNAMED};
use crate::trace::{
    Nanos, Order, ProcessId, SeriesKind, StrId, Thread, Trace, Track, TrackId, TrackKind, Unit, mix,
};

impl<W: Write> Writer<'_, W> {
    /// Describes all tracks.
    pub(super) fn tracks(&mut self, rows: &[TrackRow]) -> io::Result<()> {
        let mut counted: HashMap<TrackId, StrId> = HashMap::new();
        for (_, series) in self.trace.counters.series.iter() {
            if let SeriesKind::Track(track) = series.kind {
                counted.insert(track, series.description);
            }
        }
        packet::row_order(&mut self.packets, FACTS);
        let counters = counters::groups(self.trace, rows);
        let mut groups = HashSet::new();
        for (id, track) in self.trace.tracks.iter() {
            if counters.contains(&id) || is_group(self.trace, track) || is_made(self.trace, track) {
                continue;
            }
            if let Some(row) = self.beside(track) {
                self.describe_beside(track, (uuid(self.trace, id), row), &mut groups);
                continue;
            }
            let counter = counted.get(&id).copied().unwrap_or_default();
            let description = if track.description.is_none() { counter } else { track.description };
            let group = track.parent.filter(|parent| counters.contains(parent));
            self.describe(id, uuid(self.trace, id), description, group);
            self.flush(FULL)?;
        }
        Ok(())
    }

    /// What a track tells about a stream.
    fn beside(&self, track: &Track) -> Option<Beside> {
        (track.kind == TrackKind::Other)
            .then(|| self.trace.strings.get(track.name))
            .and_then(Beside::named)
    }

    /// Describes a track that tells about a stream, in its group.
    fn describe_beside(
        &mut self,
        track: &Track,
        (uuid, row): (u64, Beside),
        groups: &mut HashSet<u64>,
    ) {
        let above = track.parent.map_or(0, |parent| self::uuid(self.trace, parent));
        let group = mix(&[4, above, row.group_rank() as u64]);
        let described = AnyTrack {
            uuid: group,
            parent: above,
            name: None,
            description: &[],
            of: TrackOf::Other,
            order: Order::ByRank as u64,
            rank: Some(row.group_rank()),
        };
        if groups.insert(group) {
            let name = row.group();
            AnyTrack { name: Some(name.as_bytes()), ..described }.write(&mut self.packets, FACTS);
        }
        let (name, rank) = (row.row(), Some(row.rank()));
        let description = self.trace.strings.get(track.description).as_bytes();
        let name = Some(name.as_bytes());
        AnyTrack { uuid, parent: group, name, description, rank, order: 0, ..described }
            .write(&mut self.packets, FACTS);
    }

    /// Describes a track under its uuid. A counter of a `group` lies under the process of that.
    fn describe(&mut self, id: TrackId, uuid: u64, description: StrId, group: Option<TrackId>) {
        let trace = self.trace;
        let track = &trace.tracks[id];
        let text = |id| trace.strings.get(id).as_bytes();
        let texts = |ids: &[_]| ids.iter().map(|id| text(*id)).collect::<Vec<_>>();
        let parent = match group {
            Some(group) => counters::parent(trace, group),
            None => track.parent,
        };
        let parent = match parent {
            Some(parent) => self::uuid(trace, parent),
            None if is_profilers(trace, track) => self.profiler_row(),
            None => 0,
        };
        let start = self.packets.len();
        let (command, labels, row);
        let mut rank = track.rank;
        let of = match track.kind {
            TrackKind::Process(id) => {
                let process = &trace.processes[id];
                row = rows::process(trace.rank(id), trace.strings.get(process.name));
                rank = Some(process_rank(trace, id));
                (command, labels) = (texts(&process.command), texts(&process.labels));
                TrackOf::Process {
                    pid: self.ids.pid(process.pid),
                    name: row.as_bytes(),
                    command: &command,
                    started: process.started.map(|started| (started + Nanos(self.shift)).0),
                    labels: &labels,
                    sort_index: process.sort_index,
                }
            }
            TrackKind::Thread(thread) => {
                let thread = &trace.threads[thread];
                let pid = trace.processes[thread.process].pid;
                rank = Some(thread_rank(trace, thread, pid));
                TrackOf::Thread {
                    pid: self.ids.pid(pid),
                    tid: self.ids.tid(pid, thread.tid),
                    name: text(thread.name),
                    sort_index: thread.sort_index,
                }
            }
            TrackKind::Counter(unit) => counter_of(trace, unit),
            TrackKind::Other => TrackOf::Other,
        };
        let name = name(trace, track, group);
        let described = AnyTrack {
            uuid,
            parent,
            name: name.as_ref().map(String::as_bytes),
            description: text(description),
            of,
            order: match (track.kind, track.order) {
                // Their children stand where viewers want them.
                (TrackKind::Process(_) | TrackKind::Thread(_), _) => 0,
                (_, order) => order as u64,
            },
            rank,
        };
        described.write(&mut self.packets, FACTS);
        self.named(start, id, group);
    }

    /// The row under which the profiler's own are folded.
    fn profiler_row(&mut self) -> u64 {
        let uuid = mix(&[7]);
        let described = AnyTrack {
            uuid,
            parent: 0,
            name: Some(PROFILER.as_bytes()),
            description: MADE.as_bytes(),
            of: TrackOf::Other,
            order: 0,
            rank: None,
        };
        described.write(&mut self.packets, FACTS);
        uuid
    }

    /// Describes a lane beside a track: for a process or thread one below it.
    pub(super) fn describe_lane(&mut self, id: TrackId, uuid: u64) {
        let trace = self.trace;
        let track = &trace.tracks[id];
        let own = self::uuid(trace, id);
        if let Some(row) = self.beside(track) {
            // Lanes are told from groups by these having been described.
            return self.describe_beside(track, (uuid, row), &mut HashSet::new());
        }
        let (parent, name) = match track.kind {
            TrackKind::Process(process) => (own, trace.processes[process].name),
            TrackKind::Thread(thread) => (own, trace.threads[thread].name),
            _ => (track.parent.map_or(0, |parent| self::uuid(trace, parent)), track.name),
        };
        let described = AnyTrack {
            uuid,
            parent,
            name: (!name.is_none()).then(|| trace.strings.get(name).as_bytes()),
            description: trace.strings.get(track.description).as_bytes(),
            of: TrackOf::Other,
            order: 0,
            rank: track.rank,
        };
        described.write(&mut self.packets, FACTS);
    }
}

/// What a track is called.
fn name(trace: &Trace, track: &Track, group: Option<TrackId>) -> Option<String> {
    if let Some(group) = group {
        return Some(counters::full_name(trace, group, track.name));
    }
    match (trace.strings.get(track.name), track.kind) {
        ("", TrackKind::Other) => Some(UNNAMED.to_owned()),
        _ if track.name.is_none() => None,
        (name, _) => Some(name.to_owned()),
    }
}

/// Where a process stands.
fn process_rank(trace: &Trace, id: ProcessId) -> i32 {
    let process = &trace.processes[id];
    let started = process.started.map_or(0, |started| started.0.max(0) as u64);
    match (trace.rank(id), process.sort_index) {
        (None, Some(index)) => index.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
        (rank, _) => rows::process_rank(rank, started),
    }
}

/// Where a thread stands.
fn thread_rank(trace: &Trace, thread: &Thread, pid: i64) -> i32 {
    match thread.sort_index.filter(|index| *index != thread.tid) {
        Some(index) => index.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
        None => rows::thread_rank(pid, thread.tid, trace.strings.get(thread.name).as_bytes()),
    }
}

fn counter_of(trace: &Trace, unit: Unit) -> TrackOf<'_> {
    let (unit, name) = match unit {
        Unit::None => (0, ""),
        Unit::Nanoseconds => (1, ""),
        Unit::Count => (2, ""),
        Unit::Bytes => (3, ""),
        Unit::Named(name) => (0, trace.strings.get(name)),
    };
    TrackOf::Counter { unit, unit_name: name.as_bytes() }
}

/// Whether a track is a group that is described with what lies in it.
fn is_group(trace: &Trace, track: &Track) -> bool {
    let name = trace.strings.get(track.name);
    let device = name.strip_prefix("GPU ").and_then(|rest| rest.split_once(' '));
    let group = |of| {
        let (device, _) = device?;
        Some(Beside { device: device.parse().ok()?, stream: 0, of }.group())
    };
    track.order == Order::ByRank
        && [Of::Annotations, Of::Sync].into_iter().any(|of| group(of).as_deref() == Some(name))
}

/// Whether a root is one of those in which Kineto tells of itself.
fn is_profilers(trace: &Trace, track: &Track) -> bool {
    let root = track.kind == TrackKind::Other && track.parent.is_none() && track.queue.is_none();
    root && OF_PROFILER.contains(&trace.strings.get(track.name))
}

/// Whether a track was made to hold those, and holds none any more.
fn is_made(trace: &Trace, track: &Track) -> bool {
    trace.strings.get(track.description) == MADE
}
