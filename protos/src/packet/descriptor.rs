//! Cold packets: tracks, clocks, facts about the job, and losses.

use super::message::Message;
use super::packet;
use super::sequence::{BOOTTIME, Snapshot, clock};
use crate::CounterUnit;
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
            track.uint(1, self.uuid).message(3, |process| {
                process.uint(1, self.pid.into());
                for part in self.command {
                    process.text(2, part);
                }
                process.text(6, self.name);
                if self.started != 0 {
                    process.uint(7, self.started);
                }
            });
            track.int(12, self.rank.into());
        });
    }
}

impl ThreadTrack<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        described(out, sequence, |track| {
            track.uint(1, self.uuid).uint(5, self.parent).message(4, |thread| {
                thread.uint(1, self.pid.into()).uint(2, self.tid.into());
                if !self.name.is_empty() {
                    thread.text(5, self.name);
                }
            });
            track.int(12, self.rank.into());
        });
    }
}

/// Says that processes, and the threads of each, stand in the order of their ranks.
pub fn row_order(out: &mut Vec<u8>, sequence: u32) {
    described(out, sequence, |track| {
        track.uint(1, 0).uint(19, ORDERED_BY_RANK).uint(20, ORDERED_BY_RANK);
    });
}

/// `ChildTracksOrdering`: by `sibling_order_rank`.
const EXPLICIT: u64 = 3;

impl Track<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        described(out, sequence, |track| {
            track.uint(1, self.uuid).uint(5, self.parent).text(2, self.name);
            if let Some(unit) = self.counter {
                track.message(8, |counter| {
                    counter.uint(3, unit as u64);
                });
            }
            if self.orders_children {
                track.uint(11, EXPLICIT);
            }
            if let Some(rank) = self.rank {
                track.int(12, rank.into());
            }
        });
    }
}

fn described(out: &mut Vec<u8>, sequence: u32, fill: impl FnOnce(&mut Message<'_>)) {
    packet(out, |p| {
        p.uint(10, sequence.into()).message(60, fill);
    });
}

/// Relates the system's clocks at one moment, for readers that join traces of several
/// machines or compare with logs.
pub fn clock_snapshot(out: &mut Vec<u8>, sequence: u32, clocks: &Snapshot) {
    packet(out, |p| {
        p.uint(10, sequence.into()).uint(8, clocks.boottime).uint(58, BOOTTIME);
        p.message(6, |snapshot| {
            clock(snapshot, BOOTTIME, clocks.boottime);
            clocks.others(snapshot);
            snapshot.uint(2, BOOTTIME);
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

/// States the machine.
pub fn system_info(out: &mut Vec<u8>, sequence: u32, system: &System<'_>) {
    packet(out, |p| {
        p.uint(10, sequence.into()).message(45, |info| {
            info.message(1, |names| {
                for (field, name) in (1..).zip(system.names) {
                    names.text(field, name);
                }
            });
            for (field, number) in [(6, system.page_size), (8, system.processors)] {
                if number > 0 {
                    info.uint(field, number.into());
                }
            }
            if !system.host.is_empty() {
                info.text(17, system.host);
            }
        });
    });
}

/// Gives the trace a name that no other has. Stated once.
pub fn trace_uuid(out: &mut Vec<u8>, sequence: u32, [msb, lsb]: [u64; 2]) {
    packet(out, |p| {
        p.uint(10, sequence.into()).message(89, |uuid| {
            uuid.uint(1, msb).uint(2, lsb);
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
    packet(out, |p| {
        p.uint(10, sequence.into()).message(126, |attributes| {
            for (key, value) in facts {
                attributes.message(1, |a| {
                    a.text(1, key.as_bytes());
                    match value {
                        Fact::Number(n) => a.int(2, *n),
                        Fact::Text(text) => a.text(3, text.as_bytes()),
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
    packet(out, |p| {
        p.uint(10, sequence.into()).message(35, |stats| {
            stats.message(1, |b| {
                b.uint(12, buffer).uint(19, lost);
            });
            for id in sequences {
                stats.message(18, |writer| {
                    writer.uint(1, u64::from(*id)).uint(4, 0);
                });
            }
        });
    });
}
