//! What belongs to the process and not to one of its threads: its description, counters,
//! named tracks and ranges.

use std::collections::{BTreeMap, HashMap, HashSet};

use kymograph_protos::packet::{
    self, CounterValue, Event, EventType, Name, ProcessTrack, Sequence, Snapshot, Strings, Track,
};
use kymograph_protos::record::{
    ArgType, CounterUnit, Kind, Record, Slot, StrId, THREAD_TRACK, TYPE_BITS,
};
use kymograph_protos::rows;

use super::context::Context;
use super::counters::GpuCounters;
use super::device::{Devices, OwnFact};
use super::edges::crossing::{self, RangeEdges};
use super::groups::Groups;
use super::origin::Origin;
use super::ranges::{Ranges, Running};
use super::record::{Decoded, category};
use super::spans::Spans;
use super::steps::{STEP, Steps};
use super::tracks::{Named, Tracks};
use crate::process::identity::mix;

/// A counter, and what it was last.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    uuid: u64,
    unit: CounterUnit,
    described: bool,
    last: (u64, CounterValue),
}

/// See the module.
#[derive(Debug)]
pub struct Process {
    pub uuid: u64,
    pub pid: u32,
    pub name: Vec<u8>,
    /// What viewers show.
    pub row: Vec<u8>,
    /// Its rank in a distributed job and the like.
    pub place: Vec<(String, i64)>,
    pub command: Vec<Vec<u8>>,
    pub started: u64,
    pub sequence: Sequence,
    described: bool,
    counters: HashMap<StrId, Sampled>,
    pub tracks: Tracks,
    /// Groups of tracks that were described.
    pub groups: Groups,
    /// Lanes that were described.
    lanes: HashSet<u64>,
    pub ranges: Ranges,
    pub steps: Steps,
    /// Ranges that cross the edges of the window.
    pub edges: RangeEdges,
    pub devices: Devices,
    /// The name of the argument that calls say their launch's number by.
    pub correlation: StrId,
    pub spans: Spans,
    pub gpu_counters: GpuCounters,
    /// Threads that described themselves.
    pub threads: HashSet<u32>,
    /// What is known about the job, by key.
    pub metadata: BTreeMap<String, OwnFact>,
    /// Names given to other threads, to be handed to them.
    pub renamed: Vec<(u32, Vec<u8>)>,
    /// What the user who records should know, each sentence once; and how many of them have been
    /// passed on.
    notes: Vec<String>,
    notes_told: usize,
}

/// Sentences of a process that are told.
const MAX_NOTES: usize = 16;

impl Process {
    /// The process that `origin` describes. `salt` is a number that no other process of the
    /// trace has.
    pub fn of(origin: &Origin, sequence: u32, salt: u32) -> Process {
        let (pid, started) = (origin.pid, origin.started);
        Process {
            uuid: mix(&[u64::from(pid), started]),
            pid,
            name: origin.name.clone(),
            row: Vec::new(),
            place: origin.place.clone(),
            command: origin.command.clone(),
            started,
            sequence: Sequence::new(sequence),
            described: false,
            counters: HashMap::new(),
            tracks: Tracks::default(),
            groups: Groups::default(),
            lanes: HashSet::new(),
            ranges: Ranges::default(),
            steps: Steps::default(),
            edges: RangeEdges::default(),
            devices: Devices::new(salt),
            correlation: origin.texts.correlation,
            spans: Spans::new(origin.texts.annotations),
            gpu_counters: GpuCounters::default(),
            threads: HashSet::new(),
            metadata: BTreeMap::new(),
            renamed: Vec::new(),
            notes: Vec::new(),
            notes_told: 0,
        }
    }

    /// The uuid of the track of a thread.
    pub fn thread_uuid(&self, tid: u32) -> u64 {
        mix(&[self.uuid, u64::from(tid)])
    }

    /// Ranges that were ended and never begun.
    pub fn unmatched_ranges(&self) -> u64 {
        self.ranges.unmatched()
    }

    /// An end that came before its beginning turns out to be of no interest.
    pub fn forget_early_end(&mut self, id: u64) {
        self.ranges.take_early(id);
    }

    /// Describes the process if that is due. `stated`: what its sequence says of clocks.
    pub fn describe(&mut self, out: &mut Vec<u8>, now: u64, stated: &Snapshot) {
        if self.sequence.is_stale(now) {
            self.sequence.restart(out, self.uuid, stated, now, false);
            self.described = false;
            self.gpu_counters.forget();
        }
        if !self.described {
            self.described = true;
            let rank = self.rank();
            self.row = rows::process(rank, &String::from_utf8_lossy(&self.name)).into_bytes();
            let track = ProcessTrack {
                uuid: self.uuid,
                pid: self.pid,
                name: &self.row,
                command: &self.command,
                started: self.started,
                rank: rows::process_rank(rank, self.started),
            };
            packet::row_order(out, self.sequence.id());
            track.write(out, self.sequence.id());
        }
    }

    /// Its rank in a distributed job.
    pub fn rank(&self) -> Option<i64> {
        self.place.iter().find(|(key, _)| key == "rank").map(|(_, rank)| *rank)
    }

    /// Keeps a sentence for the user who records.
    pub fn note(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if self.notes.len() < MAX_NOTES && !self.notes.iter().any(|known| **known == *text) {
            self.notes.push(text.into_owned());
        }
    }

    /// The sentences that were not asked for before.
    pub fn new_notes(&mut self) -> &[String] {
        let told = std::mem::replace(&mut self.notes_told, self.notes.len());
        &self.notes[told..]
    }

    /// Forgets what was stated: the sequence restarts.
    pub fn expire(&mut self) {
        self.sequence.expire();
        self.described = false;
        self.counters.values_mut().for_each(|counter| counter.described = false);
        self.lanes.clear();
        self.tracks.expire();
        self.groups.clear();
        self.spans.expire();
        self.gpu_counters.forget();
    }

    /// The uuid of a named track, of a thread's or (0) of its own.
    pub fn track_uuid(&self, id: u64) -> u64 {
        match id {
            0 => self.uuid,
            _ if id & THREAD_TRACK != 0 => self.thread_uuid(id as u32),
            _ => mix(&[self.uuid, 0x7472_6163, id]),
        }
    }
}

impl Context<'_> {
    /// Writes a record that belongs to no thread's own track, on `sequence`, which is the
    /// recording thread's.
    pub fn shared_record(
        &mut self,
        head: &Record,
        kind: Kind,
        decoded: &Decoded,
        record: &[Slot],
        sequence: &mut Sequence,
    ) {
        match kind {
            Kind::Counter => self.counter(head, sequence),
            Kind::Instant => {
                self.totals.events += 1;
                let track = self.process.track_uuid(decoded.track);
                if self.restarts {
                    self.state_track(decoded.track, sequence.id());
                }
                self.emit(
                    EventType::Instant,
                    self.time(head, head.time),
                    track,
                    head,
                    decoded,
                    sequence,
                );
            }
            Kind::RangeBegin => self.range_begin(head, decoded, record, sequence),
            Kind::RangeEnd => {
                let time = self.time(head, head.time);
                self.open_early_range(head.other, sequence);
                self.range_end(head.other, time, decoded, sequence);
            }
            Kind::Track => self.track(head, decoded, sequence),
            Kind::ThreadName => {
                let name = decoded.text(head.site, self.strings).to_vec();
                self.process.renamed.push((head.arg as u32, name));
            }
            Kind::ProcessName => {
                self.process.name = decoded.text(head.site, self.strings).to_vec();
                self.process.described = false;
            }
            Kind::Device => self.device_activity(head, decoded, sequence),
            Kind::Queue => {
                let of = (self.process.pid, self.process.rank());
                self.process.devices.queue(head, decoded, self.strings, of);
            }
            Kind::Gpu => self.device(head, decoded, sequence),
            Kind::Fact => self.fact(head, decoded, sequence),
            Kind::GpuCounter => self.gpu_counter(head, decoded),
            _ => self.totals.unknown += 1,
        }
    }

    fn counter(&mut self, head: &Record, sequence: &mut Sequence) {
        self.totals.events += 1;
        let last = (self.time(head, head.time), value(head));
        let track = match self.process.counters.get_mut(&head.site) {
            Some(counter) if counter.described => {
                counter.last = last;
                counter.uuid
            }
            _ => self.describe_counter(head, last, sequence.id()),
        };
        self.sample(track, last, sequence);
    }

    fn sample(&mut self, track: u64, (time, value): (u64, CounterValue), sequence: &mut Sequence) {
        let event = Event { track, counter: Some(value), ..Event::new(EventType::Counter, time) };
        sequence.event(self.out, self.strings, &event);
    }

    #[cold]
    fn describe_counter(&mut self, head: &Record, last: (u64, CounterValue), sequence: u32) -> u64 {
        let unit = match head.other {
            1 => CounterUnit::Nanoseconds,
            2 => CounterUnit::Count,
            3 => CounterUnit::Bytes,
            _ => CounterUnit::None,
        };
        let uuid = mix(&[self.process.uuid, 0x636f_756e, u64::from(head.site.0)]);
        let counter = Sampled { uuid, unit, described: true, last };
        self.process.counters.insert(head.site, counter);
        self.write_counter(head.site, &counter, sequence);
        uuid
    }

    fn write_counter(&mut self, site: StrId, &Sampled { uuid, unit, .. }: &Sampled, sequence: u32) {
        let name = self.strings.text(site).bytes;
        Track { uuid, parent: self.process.uuid, name, counter: Some(unit), ..Track::default() }
            .write(self.out, sequence);
    }

    /// Says anew what belongs to the process: all but its own description, which
    /// [`Process::describe`] has written.
    pub fn restate_process(&mut self) {
        // Apart from the rest, so that it can be borrowed along with it.
        let mut sequence = std::mem::replace(&mut self.process.sequence, Sequence::new(0));
        let metadata = std::mem::take(&mut self.process.metadata);
        for (key, fact) in &metadata {
            packet::trace_attributes(self.out, sequence.id(), &[(key, fact.as_fact())]);
        }
        self.process.metadata = metadata;
        self.restate_devices(sequence.id());
        let counters = std::mem::take(&mut self.process.counters);
        for (site, counter) in &counters {
            self.write_counter(*site, counter, sequence.id());
            self.sample(counter.uuid, counter.last, &mut sequence);
        }
        self.process.counters = counters;
        let ranges = std::mem::take(&mut self.process.ranges);
        let mut decoded = Decoded::default();
        let written = |range: &&Running| range.written && !range.begun.record.is_empty();
        for range in ranges.running().filter(written) {
            let (head, _) = decoded.read(&range.begun.record, self.strings);
            decoded.leave_flows_open();
            let (_, called) = self.lane_of(&head, &decoded);
            self.describe_lane(range.lane, decoded.track, called, sequence.id());
            let (time, lane) = (range.begun.time, range.lane);
            self.emit(EventType::Begin, time, lane, &head, &decoded, &mut sequence);
        }
        self.process.ranges = ranges;
        self.process.sequence = sequence;
        self.restate_spans();
    }

    /// The track of a range, and what that is called if it is not a named one.
    fn lane_of(&self, head: &Record, decoded: &Decoded) -> (u64, StrId) {
        // Ranges without a track lie on one of their category's.
        match (decoded.track, category(head, self.strings)) {
            (0, StrId::NONE) => (mix(&[u64::from(head.site.0)]), head.site),
            (0, category) => (mix(&[u64::from(category.0)]), category),
            (id, _) => (self.process.track_uuid(id), StrId::NONE),
        }
    }

    pub fn range_begin(
        &mut self,
        head: &Record,
        decoded: &Decoded,
        record: &[Slot],
        sequence: &mut Sequence,
    ) {
        let time = self.time(head, head.time);
        let bytes = match decoded.name(head.site) {
            Name::Bytes(bytes) => Some(bytes.into()),
            Name::Id(_) => None,
        };
        let (track, called) = self.lane_of(head, decoded);
        let is_step = self.is_step(head);
        self.totals.events += u64::from(!is_step);
        let mut begun = self.begun(time, head, record);
        if is_step {
            begun.record = record[..1 + head.tail as usize].into();
        }
        let (process, own) = (self.process.uuid, decoded.track != 0);
        let uuid = move |n| if own && n == 0 { track } else { mix(&[process, track, n]) };
        let name = (head.site, bytes);
        let lane = self.process.ranges.begin(head.other, track, begun, name, !is_step, uuid);
        if !is_step {
            self.describe_lane(lane, decoded.track, called, sequence.id());
            self.emit(EventType::Begin, time, lane, head, decoded, sequence);
        }
        if let Some(early) = self.process.ranges.take_early(head.other) {
            self.range_end(head.other, early.time, &early.decoded, sequence);
        }
    }

    fn describe_lane(&mut self, lane: u64, track: u64, called: StrId, sequence: u32) {
        if !self.process.lanes.insert(lane) {
            return;
        }
        self.state_track(track, sequence);
        let named = match self.process.tracks.get(track) {
            // Stated just now.
            Some(_) if lane == self.process.track_uuid(track) => return,
            Some(named) => named.clone(),
            None if track != 0 => return self.process.tracks.early(track, lane),
            None => {
                match self.strings.text(called).bytes {
                    // In front of all others.
                    STEP => {
                        let name = rows::steps(self.process.rank()).into_bytes().into();
                        Named { name, parent: 0, rank: Some(-1) }
                    }
                    name => Named { name: name.into(), parent: 0, rank: None },
                }
            }
        };
        self.write_track(lane, &named, sequence);
    }

    /// Writes the beginning of a step that ends; returns false if it is not to be shown.
    fn begin_step(&mut self, range: &Running, sequence: &mut Sequence) -> bool {
        if !self.process.steps.are_shown() {
            return false;
        }
        self.totals.events += 1;
        self.write_step(range, sequence);
        true
    }

    /// Says that a step has begun.
    pub fn write_step(&mut self, range: &Running, sequence: &mut Sequence) {
        let mut decoded = Decoded::default();
        let (head, _) = decoded.read(&range.begun.record, self.strings);
        if self.began_early(&head) {
            crossing::mark(&mut decoded, &self.origin.texts, super::window::Side::Opens);
        }
        let (_, called) = self.lane_of(&head, &decoded);
        self.describe_lane(range.lane, decoded.track, called, sequence.id());
        self.emit(EventType::Begin, range.begun.time, range.lane, &head, &decoded, sequence);
    }

    pub fn range_end(&mut self, id: u64, time: u64, decoded: &Decoded, sequence: &mut Sequence) {
        let Some(range) = self.process.ranges.end(id, time, decoded) else {
            return;
        };
        if !range.written && !self.begin_step(&range, sequence) {
            return;
        }
        let name = range.bytes.as_deref().map_or(Name::Id(range.site), Name::Bytes);
        decoded.with_args(|args| {
            let event = Event {
                track: range.lane,
                name,
                args,
                flows: &decoded.flows,
                flow_ends: &decoded.flow_ends,
                ..Event::new(EventType::End, time)
            };
            sequence.event(self.out, self.strings, &event);
        });
        self.took(name, time.saturating_sub(range.begun.time));
    }

    /// The process is gone: ranges that are open end at this time.
    #[cold]
    pub fn close_ranges(&mut self, at: u64, decoded: &Decoded, sequence: &mut Sequence) {
        for id in self.process.ranges.ids() {
            self.range_end(id, at, decoded, sequence);
        }
    }

    fn emit(
        &mut self,
        ty: EventType,
        time: u64,
        track: u64,
        head: &Record,
        decoded: &Decoded,
        sequence: &mut Sequence,
    ) {
        let category = category(head, self.strings);
        let gpu = self.process.devices.correlation(decoded);
        decoded.with_args(|args| {
            let event = Event {
                track,
                gpu,
                category,
                name: decoded.name(head.site),
                args,
                flows: &decoded.flows,
                flow_ends: &decoded.flow_ends,
                ..Event::new(ty, time)
            };
            sequence.event(self.out, self.strings, &event);
        });
    }
}

/// The value of a counter.
pub fn value(head: &Record) -> CounterValue {
    match ArgType::from_u8(head.tag & TYPE_BITS) {
        Some(ArgType::F64) => CounterValue::F64(f64::from_bits(head.arg)),
        _ => CounterValue::I64(head.arg as i64),
    }
}
