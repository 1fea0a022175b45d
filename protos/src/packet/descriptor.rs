//! Cold packets: tracks, clocks, facts about the job, and losses. They are messages of the schema,
//! which prost encodes.

use super::clocks::{Snapshot, reading};
use super::cold::{some_string, state, state_at, string};
use super::message::Message;
use super::packet_of;
use crate::CounterUnit;
use crate::fields::trace_packet;
use crate::perfetto::trace_attributes::{Attribute, attribute};
use crate::perfetto::trace_packet::Data;
use crate::perfetto::trace_stats::{BufferStats, WriterStats};
use crate::perfetto::track_descriptor::{ChildTracksOrdering, StaticOrDynamicName};
use crate::perfetto::{
    CounterDescriptor, ProcessDescriptor, SystemInfo, ThreadDescriptor, TraceAttributes,
    TraceStats, TraceUuid, TrackDescriptor, Utsname,
};
use crate::rows::ORDERED_BY_RANK;

/// Describes a process: the parent of its threads and tracks.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTrack<'a> {
    /// Identifies the track within the trace.
    pub uuid: u64,
    /// The kernel's id.
    pub pid: u32,
    /// What viewers show.
    pub name: &'a [u8],
    /// The command line.
    pub command: &'a [Vec<u8>],
    /// When it started, in nanoseconds of `CLOCK_BOOTTIME`; 0 if unknown.
    pub started: u64,
    /// Its place among the processes.
    pub rank: i32,
}

/// Describes a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTrack<'a> {
    /// Identifies the track within the trace.
    pub uuid: u64,
    /// The uuid of its process.
    pub parent: u64,
    /// The kernel's id of the process.
    pub pid: u32,
    /// The kernel's id of the thread.
    pub tid: u32,
    /// What viewers show; empty if unknown.
    pub name: &'a [u8],
    /// Its place among the threads of the process.
    pub rank: i32,
}

/// Describes any other track. Tracks with the same name and parent are shown as one row,
/// so slices that overlap can lie on several of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Track<'a> {
    /// Identifies the track within the trace.
    pub uuid: u64,
    /// The uuid of its process or of another track.
    pub parent: u64,
    /// What viewers show.
    pub name: &'a [u8],
    /// The unit, if this is a counter.
    pub counter: Option<CounterUnit>,
    /// Its place among its siblings, if their parent orders by rank.
    pub rank: Option<i32>,
    /// Whether its children are ordered by their rank.
    pub orders_children: bool,
}

impl ProcessTrack<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        let process = ProcessDescriptor {
            pid: Some(self.pid as i32),
            cmdline: self.command.iter().map(|part| string(part)).collect(),
            process_name: Some(string(self.name)),
            start_timestamp_ns: Some(self.started as i64).filter(|time| *time != 0),
            ..ProcessDescriptor::default()
        };
        let track = TrackDescriptor {
            uuid: Some(self.uuid),
            process: Some(process),
            sibling_order_rank: Some(self.rank),
            ..TrackDescriptor::default()
        };
        state(out, sequence, Data::TrackDescriptor(track));
    }
}

impl ThreadTrack<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        let thread = ThreadDescriptor {
            pid: Some(self.pid as i32),
            tid: Some(self.tid.into()),
            thread_name: some_string(self.name),
            ..ThreadDescriptor::default()
        };
        let track = TrackDescriptor {
            uuid: Some(self.uuid),
            parent_uuid: Some(self.parent),
            thread: Some(thread),
            sibling_order_rank: Some(self.rank),
            ..TrackDescriptor::default()
        };
        state(out, sequence, Data::TrackDescriptor(track));
    }
}

/// Says that processes, and the threads of each, stand in the order of their ranks.
pub fn row_order(out: &mut Vec<u8>, sequence: u32) {
    let track = TrackDescriptor {
        uuid: Some(0),
        process_ordering: Some(ORDERED_BY_RANK as i32),
        thread_ordering: Some(ORDERED_BY_RANK as i32),
        ..TrackDescriptor::default()
    };
    state(out, sequence, Data::TrackDescriptor(track));
}

impl Track<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        let counter = |unit| CounterDescriptor { unit: Some(unit as i32), ..Default::default() };
        let ordering = ChildTracksOrdering::Explicit as i32;
        let track = TrackDescriptor {
            uuid: Some(self.uuid),
            parent_uuid: Some(self.parent),
            static_or_dynamic_name: Some(StaticOrDynamicName::Name(string(self.name))),
            counter: self.counter.map(counter),
            child_ordering: self.orders_children.then_some(ordering),
            sibling_order_rank: self.rank,
            ..TrackDescriptor::default()
        };
        state(out, sequence, Data::TrackDescriptor(track));
    }
}

/// A packet that describes a track, by hand: see `track.rs`.
pub(super) fn described(out: &mut Vec<u8>, sequence: u32, fill: impl FnOnce(&mut Message<'_>)) {
    packet_of(out, sequence, |p| {
        p.message(trace_packet::TRACK_DESCRIPTOR, fill);
    });
}

/// Relates the system's clocks at one moment, for readers that join traces of several
/// machines or compare with logs.
pub fn clock_snapshot(out: &mut Vec<u8>, sequence: u32, clocks: &Snapshot) {
    state_at(out, sequence, clocks.boottime, Data::ClockSnapshot(reading(clocks, None)));
}

/// What is known of the machine. Texts may be empty, and numbers 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct System<'a> {
    /// What uname(2) says: sysname, version, release, machine.
    pub names: [&'a [u8]; 4],
    /// The name of the machine.
    pub host: &'a [u8],
    /// Bytes in a page of memory.
    pub page_size: u32,
    /// Processors.
    pub processors: u32,
}

/// States the machine.
pub fn system_info(out: &mut Vec<u8>, sequence: u32, system: &System<'_>) {
    let [sysname, version, release, machine] = system.names.map(|name| Some(string(name)));
    let number = |number: u32| Some(number).filter(|number| *number > 0);
    let info = SystemInfo {
        utsname: Some(Utsname { sysname, version, release, machine }),
        page_size: number(system.page_size),
        num_cpus: number(system.processors),
        machine_name: some_string(system.host),
        ..SystemInfo::default()
    };
    state(out, sequence, Data::SystemInfo(info));
}

/// Gives the trace a name that no other has. Stated once.
pub fn trace_uuid(out: &mut Vec<u8>, sequence: u32, [msb, lsb]: [u64; 2]) {
    let uuid = TraceUuid { msb: Some(msb as i64), lsb: Some(lsb as i64) };
    state(out, sequence, Data::TraceUuid(uuid));
}

/// The value of a trace attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact<'a> {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a str),
}

/// States facts about the job: rows `trace_attribute.KEY` of trace_processor's metadata.
/// Readers that do not know the packet skip it.
pub fn trace_attributes(out: &mut Vec<u8>, sequence: u32, facts: &[(&str, Fact<'_>)]) {
    let attribute = |(key, fact): &(&str, Fact<'_>)| Attribute {
        key: Some(string(key.as_bytes())),
        value: Some(match fact {
            Fact::Number(number) => attribute::Value::LongValue(*number),
            Fact::Text(text) => attribute::Value::StringValue(string(text.as_bytes())),
        }),
    };
    let attributes = TraceAttributes { attribute: facts.iter().map(attribute).collect() };
    state(out, sequence, Data::TraceAttributes(attributes));
}

/// States how many events were lost in all, in the one form that trace_processor counts
/// (`traced_buf_trace_writer_packet_loss`) and viewers show as an error. May be repeated
/// with a larger count: the last one holds. `buffer` is the size of the record memory in
/// bytes; `sequences` are those that lost something.
pub fn trace_stats(out: &mut Vec<u8>, sequence: u32, buffer: u64, lost: u64, sequences: &[u32]) {
    let buffer = BufferStats {
        buffer_size: Some(buffer),
        trace_writer_packet_loss: Some(lost),
        ..BufferStats::default()
    };
    let writer = |id: &u32| WriterStats {
        sequence_id: Some(u64::from(*id)),
        buffer: Some(0),
        ..WriterStats::default()
    };
    let stats = TraceStats {
        buffer_stats: vec![buffer],
        writer_stats: sequences.iter().map(writer).collect(),
        ..TraceStats::default()
    };
    state(out, sequence, Data::TraceStats(stats));
}
