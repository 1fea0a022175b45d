//! Tracks of the host, and what lies on them.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use kymograph_protos::device::GpuApi;
use kymograph_protos::packet::{
    self, AnyTrack, Correlation, Event, EventType, Name, Sequence, TrackOf,
};
use kymograph_protos::rows::{self, Beside, Of};

use super::lanes::{self, Lane};
use super::memory::is_of_memory;
use super::{FACTS, FULL, Writer};
use crate::perfetto::rows::{MADE, OF_PROFILER, PROFILER, UNNAMED};
use crate::trace::{
    EventRef, Instant, InstantId, Order, SeriesKind, Slice, SliceId, StrId, Trace, Track, TrackId,
    TrackKind, Unit,
};

/// A track with at least this many events gets a sequence of its own.
const MANY: usize = 64;
/// Sequences of their own at most: larger ids make larger packets.
const MOST: u32 = 100;

impl<W: Write> Writer<'_, W> {
    pub(super) fn host(&mut self) -> io::Result<()> {
        let mut counted: HashMap<TrackId, StrId> = HashMap::new();
        for (_, series) in self.trace.counters.series.iter() {
            if let SeriesKind::Track(track) = series.kind {
                counted.insert(track, series.description);
            }
        }
        packet::row_order(&mut self.packets, FACTS);
        let mut groups = HashSet::new();
        for (id, track) in self.trace.tracks.iter() {
            if is_group(self.trace, track) || is_made(self.trace, track) {
                continue;
            }
            if let Some(row) = self.beside(track) {
                self.describe_beside(track, (uuid(self.trace, id), row), &mut groups);
                continue;
            }
            let counter = counted.get(&id).copied().unwrap_or_default();
            let description = if track.description.is_none() { counter } else { track.description };
            self.describe(id, uuid(self.trace, id), description);
            self.flush(FULL)?;
        }
        let slices = self.trace.slices.by_track();
        let mut instants: Vec<InstantId> = self.trace.instants.ids().collect();
        instants.sort_by_key(|id| {
            let instant = self.trace.instants.get(*id);
            (instant.track, instant.time)
        });
        let of_memory = |id: &InstantId| is_of_memory(self.trace, &self.trace.instants.get(*id));
        let (memory, instants): (Vec<_>, Vec<_>) = instants.into_iter().partition(of_memory);
        let (mut slices, mut instants) = (slices.as_slice(), instants.as_slice());
        let mut shared = self.sequence();
        while let Some(track) = next_track(self.trace, slices, instants) {
            let is_here = |id: &SliceId| self.trace.slices.get(*id).track == track;
            let (here, others) = slices.split_at(slices.partition_point(is_here));
            slices = others;
            let is_here = |id: &InstantId| self.trace.instants.get(*id).track == track;
            let (moments, others) = instants.split_at(instants.partition_point(is_here));
            instants = others;
            self.track(track, here, moments, &mut shared)?;
        }
        self.memory(&memory)
    }

    /// Moments on a row that is no track of the hub.
    pub(super) fn moments(
        &mut self,
        moments: &[InstantId],
        uuid: u64,
        sequence: &mut Sequence,
    ) -> io::Result<()> {
        self.lane(&Lane::new(), moments, uuid, 0, sequence)
    }

    /// The events of one track.
    fn track(
        &mut self,
        track: TrackId,
        slices: &[SliceId],
        instants: &[InstantId],
        shared: &mut Sequence,
    ) -> io::Result<()> {
        let uuid = uuid(self.trace, track);
        let mut lanes = lanes::deal(&self.trace.slices, slices);
        if lanes.is_empty() {
            lanes.push(Lane::new());
        }
        for (number, lane) in lanes.iter().enumerate() {
            let instants = if number == 0 { instants } else { &[] };
            let lane_uuid = if number == 0 { uuid } else { mix(&[uuid, number as u64]) };
            if number > 0 {
                self.describe_lane(track, lane_uuid);
                self.written.moved += lane.len() as u64;
            }
            if lane.len() * 2 + instants.len() >= MANY && self.next_sequence < MOST {
                let mut own = self.sequence();
                self.lane(lane, instants, lane_uuid, lane_uuid, &mut own)?;
            } else {
                self.lane(lane, instants, lane_uuid, 0, shared)?;
            }
        }
        Ok(())
    }

    /// The events of one lane; `default` is the track of `sequence`.
    fn lane(
        &mut self,
        lane: &[SliceId],
        instants: &[InstantId],
        uuid: u64,
        default: u64,
        sequence: &mut Sequence,
    ) -> io::Result<()> {
        let mut lane = Open { uuid, default, sequence, open: Vec::new(), slices: lane };
        let mut instants = instants.iter().peekable();
        while let Some((first, rest)) = lane.slices.split_first() {
            let slice = self.trace.slices.get(*first);
            // Of what happens at one moment: ends, beginnings, moments.
            while let Some(id) =
                instants.next_if(|id| self.trace.instants.get(**id).time < slice.start)
            {
                self.instant(&mut lane, *id)?;
            }
            self.close(&mut lane, slice.start.0)?;
            lane.slices = rest;
            if let Some(time) = self.time(slice.start) {
                self.begin(&mut lane, *first, &slice, time)?;
            }
        }
        for id in instants {
            self.instant(&mut lane, *id)?;
        }
        self.close(&mut lane, i64::MAX)
    }

    fn begin(
        &mut self,
        lane: &mut Open<'_>,
        id: SliceId,
        slice: &Slice,
        time: u64,
    ) -> io::Result<()> {
        self.event(lane, EventRef::Slice(id), &Said::from(slice), EventType::Begin, time)?;
        lane.open.push((id, *slice));
        Ok(())
    }

    fn instant(&mut self, lane: &mut Open<'_>, id: InstantId) -> io::Result<()> {
        let instant = self.trace.instants.get(id);
        self.close(lane, instant.time.0.saturating_sub(1))?;
        match self.time(instant.time) {
            Some(time) => self.event(
                lane,
                EventRef::Instant(id),
                &Said::from(&instant),
                EventType::Instant,
                time,
            ),
            None => Ok(()),
        }
    }

    /// Ends the slices that have ended by `time`.
    fn close(&mut self, lane: &mut Open<'_>, time: i64) -> io::Result<()> {
        while let Some((id, slice)) = lane.open.last().copied() {
            let Some(end) = slice.end().filter(|end| end.0 <= time) else { break };
            lane.open.pop();
            let said = Said { args: None, ..Said::from(&slice) };
            self.event(lane, EventRef::Slice(id), &said, EventType::End, end.0 as u64)?;
        }
        Ok(())
    }

    fn event(
        &mut self,
        lane: &mut Open<'_>,
        of: EventRef,
        said: &Said,
        ty: EventType,
        time: u64,
    ) -> io::Result<()> {
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        self.args(said.args, &mut args);
        let (mut flows, mut flow_ends) = (Vec::new(), Vec::new());
        for point in self.arrows.points(of) {
            // Flows touch a slice when it ends, or else when it begins.
            let at_end = said.start != said.end && point.time.0 == said.end;
            if at_end == (ty == EventType::End) {
                if point.ends { &mut flow_ends } else { &mut flows }.push(point.id);
            }
        }
        let launched =
            ty != EventType::End && self.arrows.launches(self.trace, of, &mut self.launches);
        let track = if lane.default == 0 { lane.uuid } else { 0 };
        self.ready(lane.sequence, lane.default, time);
        let event = Event {
            ty,
            time,
            track,
            // An end is found by its name; its category would only take room.
            category: if ty == EventType::End { Default::default() } else { said.category },
            name: Name::Id(said.name),
            args: &args,
            flows: &flows,
            flow_ends: &flow_ends,
            gpu: launched.then_some(Correlation {
                launched: &self.launches.submitted,
                waited: &self.launches.waited,
                api: GpuApi::from_u8(self.launches.api),
            }),
            counter: None,
        };
        lane.sequence.event(&mut self.packets, &self.texts, &event);
        self.args = args;
        self.flush(FULL)
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

    /// Describes a track under its uuid.
    fn describe(&mut self, id: TrackId, uuid: u64, description: StrId) {
        let trace = self.trace;
        let track = &trace.tracks[id];
        let text = |id| trace.strings.get(id).as_bytes();
        let texts = |ids: &[_]| ids.iter().map(|id| text(*id)).collect::<Vec<_>>();
        let (command, labels, row);
        let mut rank = track.rank;
        let of = match track.kind {
            TrackKind::Process(id) => {
                let process = &trace.processes[id];
                let number = trace.rank(id);
                row = rows::process(number, trace.strings.get(process.name));
                let started = process.started.map_or(0, |started| started.0.max(0) as u64);
                rank = Some(match (number, process.sort_index) {
                    (None, Some(index)) => index.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
                    (number, _) => rows::process_rank(number, started),
                });
                (command, labels) = (texts(&process.command), texts(&process.labels));
                TrackOf::Process {
                    pid: process.pid,
                    name: row.as_bytes(),
                    command: &command,
                    started: process.started.map(|started| started.0),
                    labels: &labels,
                    sort_index: process.sort_index,
                }
            }
            TrackKind::Thread(thread) => {
                let thread = &trace.threads[thread];
                let pid = trace.processes[thread.process].pid;
                rank = Some(match thread.sort_index.filter(|index| *index != thread.tid) {
                    Some(index) => index.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
                    None => rows::thread_rank(pid, thread.tid, text(thread.name)),
                });
                TrackOf::Thread {
                    pid,
                    tid: thread.tid,
                    name: text(thread.name),
                    sort_index: thread.sort_index,
                }
            }
            TrackKind::Counter(unit) => counter_of(trace, unit),
            TrackKind::Other => TrackOf::Other,
        };
        let described = AnyTrack {
            uuid,
            parent: match track.parent {
                Some(parent) => self::uuid(trace, parent),
                None if is_profilers(trace, track) => self.profiler_row(),
                None => 0,
            },
            name: match (trace.strings.get(track.name), track.kind) {
                ("", TrackKind::Other) => Some(UNNAMED.as_bytes()),
                ("", _) => None,
                (name, _) => Some(name.as_bytes()),
            },
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
    fn describe_lane(&mut self, id: TrackId, uuid: u64) {
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

/// A lane being written.
struct Open<'a> {
    uuid: u64,
    /// The track of the sequence; 0 if it has none of its own.
    default: u64,
    sequence: &'a mut Sequence,
    /// What has begun and not ended.
    open: Vec<(SliceId, Slice)>,
    /// What has not begun.
    slices: &'a [SliceId],
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

/// What a slice and a moment have in common.
struct Said {
    name: StrId,
    category: StrId,
    args: Option<crate::trace::ArgsId>,
    start: i64,
    end: i64,
}

impl From<&Slice> for Said {
    fn from(slice: &Slice) -> Said {
        Said {
            name: slice.name,
            category: slice.category,
            args: slice.args,
            start: slice.start.0,
            end: slice.end().unwrap_or(slice.start).0,
        }
    }
}

impl From<&Instant> for Said {
    fn from(instant: &Instant) -> Said {
        let Instant { name, category, args, time, .. } = *instant;
        Said { name, category, args, start: time.0, end: time.0 }
    }
}

/// The track that comes next, of two lists that are in the order of tracks.
fn next_track(trace: &Trace, slices: &[SliceId], instants: &[InstantId]) -> Option<TrackId> {
    let slice = slices.first().map(|id| trace.slices.get(*id).track);
    let instant = instants.first().map(|id| trace.instants.get(*id).track);
    slice.into_iter().chain(instant).min()
}

/// The uuid of a track: its own, or one made of what it is.
pub(super) fn uuid(trace: &Trace, id: TrackId) -> u64 {
    let track = &trace.tracks[id];
    if track.uuid != 0 {
        return track.uuid;
    }
    match track.kind {
        TrackKind::Process(process) => {
            let process = &trace.processes[process];
            mix(&[1, process.pid as u64, process.machine.into(), id.index() as u64])
        }
        TrackKind::Thread(thread) => {
            let thread = &trace.threads[thread];
            let pid = trace.processes[thread.process].pid;
            mix(&[2, pid as u64, thread.tid as u64, id.index() as u64])
        }
        _ => mix(&[3, id.index() as u64, trace.tracks.len() as u64]),
    }
}

pub(super) fn counter_of(trace: &Trace, unit: Unit) -> TrackOf<'_> {
    let (unit, name) = match unit {
        Unit::None => (0, ""),
        Unit::Nanoseconds => (1, ""),
        Unit::Count => (2, ""),
        Unit::Bytes => (3, ""),
        Unit::Named(name) => (0, trace.strings.get(name)),
    };
    TrackOf::Counter { unit, unit_name: name.as_bytes() }
}

/// A number that others hardly get, and never 0.
pub(super) fn mix(parts: &[u64]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15u64;
    for part in parts {
        hash = (hash ^ part).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash.max(1)
}
