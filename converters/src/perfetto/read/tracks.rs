//! Tracks, by the uuids that packets use, and the processes and threads behind them.
//!
//! Packets may come in any order: an event or a child may name a track before it is
//! described. So a uuid gets its row when it is first heard of, and the description fills
//! it in.

use hashbrown::HashMap;
use kymograph_protos::fields::process_tree::{PROCESSES, THREADS, process, thread};
use kymograph_protos::fields::{
    counter_descriptor, process_descriptor, thread_descriptor, track_descriptor,
};
use kymograph_protos::packet::source::unzigzag;

use super::origin::Origin;
use super::sequence::intern_text;
use crate::chrome::ROW;
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{
    Nanos, Number, Order, Process, ProcessId, Sample, Series, SeriesId, SeriesKind, StrId, Thread,
    ThreadId, Trace, Track, TrackId, TrackKind, Unit,
};

/// See the module.
#[derive(Debug, Default)]
pub struct Tracks {
    by_uuid: HashMap<u64, TrackId>,
    /// Of the tracks that are not described yet.
    undescribed: HashMap<TrackId, StrId>,
    processes: HashMap<(u32, i64), ProcessId>,
    threads: HashMap<(u32, i64, i64), ThreadId>,
    counters: HashMap<u64, Counter>,
    /// Tracks of asynchronous events of old traces, by process, id and scope.
    pub legacy: HashMap<(Option<TrackId>, u64, StrId), TrackId>,
    last: Option<(u64, TrackId)>,
    /// Counters that were part of an event of JSON: its name, and whose it was.
    grouped: Vec<(TrackId, StrId, u64)>,
}

/// How the values of a counter track are written.
#[derive(Clone, Copy, Debug)]
struct Counter {
    series: SeriesId,
    incremental: bool,
    multiplier: i64,
}

/// A `TrackDescriptor`.
#[derive(Default)]
struct Described<'a> {
    uuid: u64,
    parent: u64,
    name: Option<&'a [u8]>,
    description: Option<&'a [u8]>,
    process: Option<Field<'a>>,
    thread: Option<Field<'a>>,
    counter: Option<Field<'a>>,
    order: Order,
    rank: Option<i32>,
}

impl Tracks {
    /// The track with this uuid.
    #[inline]
    pub fn get(&mut self, trace: &mut Trace, uuid: u64) -> TrackId {
        if let Some((last, track)) = self.last
            && last == uuid
        {
            return track;
        }
        let track = *self.by_uuid.entry(uuid).or_insert_with(|| {
            let track = trace.tracks.push(Track { uuid, ..Track::new(None, StrId::NONE) });
            self.undescribed.insert(track, StrId::NONE);
            track
        });
        self.last = Some((uuid, track));
        track
    }

    /// An event of this name lies on `track`: tracks without a descriptor are called
    /// after their first event.
    #[inline]
    pub fn used(&mut self, track: TrackId, name: StrId) {
        if self.undescribed.is_empty() {
            return;
        }
        if let Some(first) = self.undescribed.get_mut(&track)
            && first.is_none()
        {
            *first = name;
        }
    }

    /// Takes note of a `TrackDescriptor`. Returns false if it has no uuid.
    pub fn describe(
        &mut self,
        trace: &mut Trace,
        machine: u32,
        bytes: &[u8],
        origin: &Origin<'_>,
    ) -> bool {
        let described = read_descriptor(bytes);
        if described.uuid == 0 {
            return false;
        }
        let track = self.get(trace, described.uuid);
        self.undescribed.remove(&track);
        let parent = (described.parent != 0).then(|| self.get(trace, described.parent));
        let row = &mut trace.tracks[track];
        row.parent = parent.filter(|parent| *parent != track).or(row.parent);
        row.rank = described.rank.or(row.rank);
        if described.order != Order::Unknown {
            row.order = described.order;
        }
        if let Some(name) = described.name {
            row.name = intern_text(&mut trace.strings, name);
        }
        if let Some(text) = described.description {
            row.description = intern_text(&mut trace.strings, text);
        }
        if let Some(thread) = described.thread {
            self.describe_thread(trace, machine, track, thread);
        } else if let Some(process) = described.process {
            self.describe_process(trace, machine, track, process);
        } else if let Some(counter) = described.counter {
            self.describe_counter(trace, track, counter);
        }
        self.original(trace, track, origin);
        true
    }

    /// Puts in what the file had that the trace was made from, and the descriptor has no room for.
    fn original(&mut self, trace: &mut Trace, track: TrackId, origin: &Origin<'_>) {
        match (trace.tracks[track].kind, origin.pid, origin.tid) {
            (TrackKind::Process(process), Some(pid), _) => trace.processes[process].pid = pid,
            (TrackKind::Thread(thread), _, Some(tid)) => trace.threads[thread].tid = tid,
            _ => {}
        }
        if let Some(name) = origin.counter {
            let name = intern_text(&mut trace.strings, name);
            self.grouped.push((track, name, origin.counter_of));
        }
    }

    /// Counters of one event of JSON lie on one track there.
    fn group(&self, trace: &mut Trace) {
        let mut groups: HashMap<(Option<TrackId>, StrId, StrId, bool), TrackId> = HashMap::new();
        let mut threads: HashMap<(ProcessId, i64), TrackId> = HashMap::new();
        for (_, thread) in trace.threads.iter() {
            threads.insert((thread.process, thread.tid), thread.track);
        }
        for &(track, name, of) in &self.grouped {
            let mut parent = trace.tracks[track].parent;
            if let (Some(tid), Some(process)) = (of.checked_sub(3), trace.process_of(track)) {
                parent = threads.get(&(process, unzigzag(tid))).copied().or(parent);
            }
            let whole = trace.strings.get(trace.tracks[track].name);
            let key = whole.strip_prefix(trace.strings.get(name)).unwrap_or(whole);
            let key = key.strip_prefix(' ').unwrap_or(key).to_owned();
            let key = trace.strings.intern(&key);
            let marked = if of == 2 { trace.strings.intern(ROW) } else { StrId::NONE };
            let category = trace.tracks[track].description;
            let group = *groups.entry((parent, name, category, of == 2)).or_insert_with(|| {
                trace.tracks.push(Track { description: marked, ..Track::new(parent, name) })
            });
            (trace.tracks[track].parent, trace.tracks[track].name) = (Some(group), key);
        }
        for (_, series) in trace.counters.series.iter_mut() {
            if let SeriesKind::Track(track) = series.kind {
                series.name = trace.tracks[track].name;
            }
        }
    }

    fn describe_process(&mut self, trace: &mut Trace, machine: u32, track: TrackId, of: Field) {
        let mut pid = 0;
        for (number, field) in of.fields() {
            if number == process_descriptor::PID {
                pid = i64::from(field.int() as i32);
            }
        }
        let process = match trace.tracks[track].kind {
            TrackKind::Process(process) => process,
            _ => self.adopt_process(trace, machine, pid, track),
        };
        let mut command = Vec::new();
        let mut labels = Vec::new();
        let row = &mut trace.processes[process];
        for (number, field) in of.fields() {
            match number {
                process_descriptor::CMDLINE => {
                    command.push(intern_text(&mut trace.strings, field.bytes()))
                }
                process_descriptor::LEGACY_SORT_INDEX => {
                    row.sort_index = Some(i64::from(field.int() as i32))
                }
                process_descriptor::PROCESS_NAME => {
                    row.name = intern_text(&mut trace.strings, field.bytes())
                }
                process_descriptor::START_TIMESTAMP_NS => row.started = Some(Nanos(field.int())),
                process_descriptor::PROCESS_LABELS => {
                    labels.push(intern_text(&mut trace.strings, field.bytes()))
                }
                _ => {}
            }
        }
        if !command.is_empty() {
            row.command = command;
        }
        if !labels.is_empty() {
            row.labels = labels;
        }
    }

    /// The process `pid` gets `track`, if it is one of which only the pid is known; else a
    /// new process does.
    fn adopt_process(
        &mut self,
        trace: &mut Trace,
        machine: u32,
        pid: i64,
        track: TrackId,
    ) -> ProcessId {
        let known = self.processes.get(&(machine, pid)).copied();
        let known = known.filter(|known| trace.tracks[trace.processes[*known].track].uuid == 0);
        let process = known.unwrap_or_else(|| new_process(trace, machine, pid, track));
        self.processes.insert((machine, pid), process);
        let old = std::mem::replace(&mut trace.processes[process].track, track);
        trace.tracks[track].kind = TrackKind::Process(process);
        replace(trace, old, track);
        process
    }

    /// The process with this pid; a new one if there is none.
    pub fn process(&mut self, trace: &mut Trace, machine: u32, pid: i64) -> ProcessId {
        *self.processes.entry((machine, pid)).or_insert_with(|| {
            let track = trace.tracks.push(Track::new(None, StrId::NONE));
            let process = new_process(trace, machine, pid, track);
            trace.tracks[track].kind = TrackKind::Process(process);
            process
        })
    }

    fn describe_thread(&mut self, trace: &mut Trace, machine: u32, track: TrackId, of: Field) {
        let (mut pid, mut tid) = (0, 0);
        for (number, field) in of.fields() {
            match number {
                thread_descriptor::PID => pid = i64::from(field.int() as i32),
                thread_descriptor::TID => tid = field.int(),
                _ => {}
            }
        }
        let thread = match trace.tracks[track].kind {
            TrackKind::Thread(thread) => thread,
            _ => self.adopt_thread(trace, (machine, pid, tid), track),
        };
        let row = &mut trace.threads[thread];
        for (number, field) in of.fields() {
            match number {
                thread_descriptor::LEGACY_SORT_INDEX => {
                    row.sort_index = Some(i64::from(field.int() as i32))
                }
                thread_descriptor::THREAD_NAME => {
                    row.name = intern_text(&mut trace.strings, field.bytes())
                }
                _ => {}
            }
        }
    }

    fn adopt_thread(
        &mut self,
        trace: &mut Trace,
        key: (u32, i64, i64),
        track: TrackId,
    ) -> ThreadId {
        let known = self.threads.get(&key).copied();
        let known = known.filter(|known| trace.tracks[trace.threads[*known].track].uuid == 0);
        let thread = known.unwrap_or_else(|| self.new_thread(trace, key, track));
        self.threads.insert(key, thread);
        let old = std::mem::replace(&mut trace.threads[thread].track, track);
        trace.tracks[track].kind = TrackKind::Thread(thread);
        trace.tracks[track].parent = Some(trace.processes[trace.threads[thread].process].track);
        replace(trace, old, track);
        thread
    }

    fn new_thread(&mut self, trace: &mut Trace, key: (u32, i64, i64), track: TrackId) -> ThreadId {
        let process = self.process(trace, key.0, key.1);
        let name = StrId::NONE;
        trace.threads.push(Thread { process, tid: key.2, name, sort_index: None, track })
    }

    /// The thread with these ids; a new one if there is none.
    pub fn thread(&mut self, trace: &mut Trace, machine: u32, pid: i64, tid: i64) -> ThreadId {
        let key = (machine, pid, tid);
        if let Some(thread) = self.threads.get(&key) {
            return *thread;
        }
        let track = trace.tracks.push(Track::new(None, StrId::NONE));
        let thread = self.new_thread(trace, key, track);
        trace.tracks[track].kind = TrackKind::Thread(thread);
        trace.tracks[track].parent = Some(trace.processes[trace.threads[thread].process].track);
        self.threads.insert(key, thread);
        thread
    }

    fn describe_counter(&mut self, trace: &mut Trace, track: TrackId, of: Field) {
        let (mut incremental, mut multiplier, mut unit) = (false, 1, Unit::None);
        for (number, field) in of.fields() {
            match (number, field.uint()) {
                // What a thread's extra counters are is said by their type alone.
                (counter_descriptor::TYPE | counter_descriptor::UNIT, 1) => {
                    unit = Unit::Nanoseconds
                }
                (counter_descriptor::TYPE | counter_descriptor::UNIT, 2) => unit = Unit::Count,
                (counter_descriptor::UNIT, 3) => unit = Unit::Bytes,
                // Some write the default as 0.
                (counter_descriptor::UNIT_MULTIPLIER, factor) => {
                    multiplier = if factor == 0 { 1 } else { field.int() }
                }
                (counter_descriptor::IS_INCREMENTAL, yes) => incremental = yes != 0,
                (counter_descriptor::UNIT_NAME, _) => {
                    unit = Unit::Named(intern_text(&mut trace.strings, field.bytes()))
                }
                _ => {}
            }
        }
        let uuid = trace.tracks[track].uuid;
        let counter = self.counter(trace, uuid);
        (counter.incremental, counter.multiplier) = (incremental, multiplier);
        let series = counter.series;
        trace.tracks[track].kind = TrackKind::Counter(unit);
        let series = &mut trace.counters.series[series];
        series.unit = unit;
        series.name = trace.tracks[track].name;
        series.description = trace.tracks[track].description;
    }

    fn counter(&mut self, trace: &mut Trace, uuid: u64) -> &mut Counter {
        let track = self.get(trace, uuid);
        self.counters.entry(uuid).or_insert_with(|| {
            let kind = SeriesKind::Track(track);
            let (name, description) = (trace.tracks[track].name, StrId::NONE);
            if trace.tracks[track].kind == TrackKind::Other {
                trace.tracks[track].kind = TrackKind::Counter(Unit::None);
            }
            let series = Series { kind, name, description, unit: Unit::None };
            let series = trace.counters.series.push(series);
            Counter { series, incremental: false, multiplier: 1 }
        })
    }

    /// A counter track has a value. `totals` are those of its sequence's counters that are
    /// written as differences.
    pub fn sample(
        &mut self,
        trace: &mut Trace,
        totals: &mut HashMap<u64, i64>,
        uuid: u64,
        time: i64,
        value: Number,
    ) {
        let counter = *self.counter(trace, uuid);
        let value = match value {
            Number::I64(n) => {
                let n = n.wrapping_mul(counter.multiplier);
                Number::I64(if counter.incremental {
                    let total = totals.entry(uuid).or_insert(0);
                    *total = total.wrapping_add(n);
                    *total
                } else {
                    n
                })
            }
            Number::F64(x) => Number::F64(x * counter.multiplier as f64),
        };
        trace.counters.push(Sample { series: counter.series, time: Nanos(time), value });
    }

    /// Takes note of a `ProcessTree`.
    pub fn process_tree(&mut self, trace: &mut Trace, machine: u32, bytes: &[u8]) {
        for (number, entry) in Fields::new(bytes) {
            let (mut first, mut tgid, mut texts) = (0, 0, Vec::new());
            for (part, field) in entry.fields() {
                match (number, part) {
                    (PROCESSES, process::PID) | (THREADS, thread::TID) => {
                        first = i64::from(field.int() as i32)
                    }
                    (PROCESSES, process::CMDLINE) | (THREADS, thread::NAME) => {
                        texts.push(intern_text(&mut trace.strings, field.bytes()))
                    }
                    (THREADS, thread::TGID) => tgid = i64::from(field.int() as i32),
                    _ => {}
                }
            }
            match number {
                PROCESSES => {
                    let process = self.process(trace, machine, first);
                    let row = &mut trace.processes[process];
                    if row.name.is_none() {
                        row.name = texts.first().copied().unwrap_or_default();
                    }
                    if row.command.is_empty() {
                        row.command = texts;
                    }
                }
                THREADS => {
                    let thread = self.thread(trace, machine, tgid, first);
                    let row = &mut trace.threads[thread];
                    if let Some(name) = texts.first().filter(|_| row.name.is_none()) {
                        row.name = *name;
                    }
                }
                _ => {}
            }
        }
    }

    /// Names the tracks that have no descriptor. Returns how many those are.
    pub fn finish(self, trace: &mut Trace) -> u64 {
        if !self.grouped.is_empty() {
            self.group(trace);
        }
        for (track, name) in &self.undescribed {
            trace.tracks[*track].name = *name;
        }
        self.undescribed.len() as u64
    }
}

fn new_process(trace: &mut Trace, machine: u32, pid: i64, track: TrackId) -> ProcessId {
    trace.processes.push(Process {
        pid,
        name: StrId::NONE,
        command: Vec::new(),
        started: None,
        labels: Vec::new(),
        sort_index: None,
        machine,
        track,
    })
}

/// Puts the children of a track that was made up under the one that was described.
fn replace(trace: &mut Trace, old: TrackId, new: TrackId) {
    if old != new {
        for (_, track) in trace.tracks.iter_mut() {
            if track.parent == Some(old) {
                track.parent = Some(new);
            }
        }
    }
}

fn read_descriptor(bytes: &[u8]) -> Described<'_> {
    let mut track = Described::default();
    for (number, field) in Fields::new(bytes) {
        match number {
            track_descriptor::UUID => track.uuid = field.uint(),
            track_descriptor::NAME
            | track_descriptor::STATIC_NAME
            | track_descriptor::ATRACE_NAME => track.name = Some(field.bytes()),
            track_descriptor::PROCESS => track.process = Some(field),
            track_descriptor::THREAD => track.thread = Some(field),
            track_descriptor::PARENT_UUID => track.parent = field.uint(),
            track_descriptor::COUNTER => track.counter = Some(field),
            track_descriptor::CHILD_ORDERING => {
                track.order = match field.uint() {
                    1 => Order::ByName,
                    2 => Order::ByTime,
                    3 => Order::ByRank,
                    _ => Order::Unknown,
                }
            }
            track_descriptor::SIBLING_ORDER_RANK => track.rank = Some(field.int() as i32),
            track_descriptor::DESCRIPTION => track.description = Some(field.bytes()),
            _ => {}
        }
    }
    track
}
