//! Cold packets: tracks, clocks, facts about the job, and losses.

use super::message::Message;
use super::packet_of;
use super::sequence::{BOOTTIME, Snapshot, clock};
use crate::CounterUnit;
use crate::fields::{
    clock_snapshot, counter_descriptor, process_descriptor, system_info, thread_descriptor,
    trace_attributes,
    trace_attributes::attribute,
    trace_packet, trace_stats,
    trace_stats::{buffer_stats, writer_stats},
    trace_uuid, track_descriptor, utsname,
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
        described(out, sequence, |track| {
            track.uint(track_descriptor::UUID, self.uuid).message(
                track_descriptor::PROCESS,
                |process| {
                    process.uint(process_descriptor::PID, self.pid.into());
                    for part in self.command {
                        process.text(process_descriptor::CMDLINE, part);
                    }
                    process.text(process_descriptor::PROCESS_NAME, self.name);
                    if self.started != 0 {
                        process.uint(process_descriptor::START_TIMESTAMP_NS, self.started);
                    }
                },
            );
            track.int(track_descriptor::SIBLING_ORDER_RANK, self.rank.into());
        });
    }
}

impl ThreadTrack<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        described(out, sequence, |track| {
            track
                .uint(track_descriptor::UUID, self.uuid)
                .uint(track_descriptor::PARENT_UUID, self.parent)
                .message(track_descriptor::THREAD, |thread| {
                    thread
                        .uint(thread_descriptor::PID, self.pid.into())
                        .uint(thread_descriptor::TID, self.tid.into());
                    if !self.name.is_empty() {
                        thread.text(thread_descriptor::THREAD_NAME, self.name);
                    }
                });
            track.int(track_descriptor::SIBLING_ORDER_RANK, self.rank.into());
        });
    }
}

/// Says that processes, and the threads of each, stand in the order of their ranks.
pub fn row_order(out: &mut Vec<u8>, sequence: u32) {
    described(out, sequence, |track| {
        track
            .uint(track_descriptor::UUID, 0)
            .uint(track_descriptor::PROCESS_ORDERING, ORDERED_BY_RANK)
            .uint(track_descriptor::THREAD_ORDERING, ORDERED_BY_RANK);
    });
}

/// `ChildTracksOrdering`: by `sibling_order_rank`.
const EXPLICIT: u64 = 3;

impl Track<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        described(out, sequence, |track| {
            track
                .uint(track_descriptor::UUID, self.uuid)
                .uint(track_descriptor::PARENT_UUID, self.parent)
                .text(track_descriptor::NAME, self.name);
            if let Some(unit) = self.counter {
                track.message(track_descriptor::COUNTER, |counter| {
                    counter.uint(counter_descriptor::UNIT, unit as u64);
                });
            }
            if self.orders_children {
                track.uint(track_descriptor::CHILD_ORDERING, EXPLICIT);
            }
            if let Some(rank) = self.rank {
                track.int(track_descriptor::SIBLING_ORDER_RANK, rank.into());
            }
        });
    }
}

/// A packet that describes a track.
pub(super) fn described(out: &mut Vec<u8>, sequence: u32, fill: impl FnOnce(&mut Message<'_>)) {
    packet_of(out, sequence, |p| {
        p.message(trace_packet::TRACK_DESCRIPTOR, fill);
    });
}

/// Relates the system's clocks at one moment, for readers that join traces of several
/// machines or compare with logs.
pub fn clock_snapshot(out: &mut Vec<u8>, sequence: u32, clocks: &Snapshot) {
    packet_of(out, sequence, |p| {
        p.uint(trace_packet::TIMESTAMP, clocks.boottime)
            .uint(trace_packet::TIMESTAMP_CLOCK_ID, BOOTTIME);
        p.message(trace_packet::CLOCK_SNAPSHOT, |snapshot| {
            clock(snapshot, BOOTTIME, clocks.boottime);
            clocks.others(snapshot);
            snapshot.uint(clock_snapshot::PRIMARY_TRACE_CLOCK, BOOTTIME);
        });
    });
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

/// In the order of [`System::names`].
const UTSNAME: [u32; 4] = [utsname::SYSNAME, utsname::VERSION, utsname::RELEASE, utsname::MACHINE];

/// States the machine.
pub fn system_info(out: &mut Vec<u8>, sequence: u32, system: &System<'_>) {
    packet_of(out, sequence, |p| {
        p.message(trace_packet::SYSTEM_INFO, |info| {
            info.message(system_info::UTSNAME, |names| {
                for (field, name) in UTSNAME.into_iter().zip(system.names) {
                    names.text(field, name);
                }
            });
            for (field, number) in [
                (system_info::PAGE_SIZE, system.page_size),
                (system_info::NUM_CPUS, system.processors),
            ] {
                if number > 0 {
                    info.uint(field, number.into());
                }
            }
            if !system.host.is_empty() {
                info.text(system_info::MACHINE_NAME, system.host);
            }
        });
    });
}

/// Gives the trace a name that no other has. Stated once.
pub fn trace_uuid(out: &mut Vec<u8>, sequence: u32, [msb, lsb]: [u64; 2]) {
    packet_of(out, sequence, |p| {
        p.message(trace_packet::TRACE_UUID, |uuid| {
            uuid.uint(trace_uuid::MSB, msb).uint(trace_uuid::LSB, lsb);
        });
    });
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
    packet_of(out, sequence, |p| {
        p.message(trace_packet::TRACE_ATTRIBUTES, |attributes| {
            for (key, value) in facts {
                attributes.message(trace_attributes::ATTRIBUTE, |a| {
                    a.text(attribute::KEY, key.as_bytes());
                    match value {
                        Fact::Number(n) => a.int(attribute::LONG_VALUE, *n),
                        Fact::Text(text) => a.text(attribute::STRING_VALUE, text.as_bytes()),
                    };
                });
            }
        });
    });
}

/// States how many events were lost in all, in the one form that trace_processor counts
/// (`traced_buf_trace_writer_packet_loss`) and viewers show as an error. May be repeated
/// with a larger count: the last one holds. `buffer` is the size of the record memory in
/// bytes; `sequences` are those that lost something.
pub fn trace_stats(out: &mut Vec<u8>, sequence: u32, buffer: u64, lost: u64, sequences: &[u32]) {
    packet_of(out, sequence, |p| {
        p.message(trace_packet::TRACE_STATS, |stats| {
            stats.message(trace_stats::BUFFER_STATS, |b| {
                b.uint(buffer_stats::BUFFER_SIZE, buffer)
                    .uint(buffer_stats::TRACE_WRITER_PACKET_LOSS, lost);
            });
            for id in sequences {
                stats.message(trace_stats::WRITER_STATS, |writer| {
                    writer
                        .uint(writer_stats::SEQUENCE_ID, u64::from(*id))
                        .uint(writer_stats::BUFFER, 0);
                });
            }
        });
    });
}
