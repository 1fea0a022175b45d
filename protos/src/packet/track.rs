//! Tracks of any origin: what [`super::ProcessTrack`], [`super::ThreadTrack`] and
//! [`super::Track`] say of our own, in full generality, for traces that are converted.

use super::message::Message;
use super::packet;

/// A track of any kind.
#[derive(Clone, Copy, Debug)]
pub struct AnyTrack<'a> {
    /// Identifies the track within the trace; not 0.
    pub uuid: u64,
    /// The uuid of the track that it lies under; 0 for roots.
    pub parent: u64,
    /// What viewers show, if it is no process or thread.
    pub name: Option<&'a [u8]>,
    /// A sentence about it; may be empty.
    pub description: &'a [u8],
    /// What it stands for.
    pub of: TrackOf<'a>,
    /// `ChildTracksOrdering`; 0 to say nothing.
    pub order: u64,
    /// Its place among its siblings, if their parent orders by rank.
    pub rank: Option<i32>,
}

/// What a track stands for.
#[derive(Clone, Copy, Debug)]
pub enum TrackOf<'a> {
    /// A process.
    Process {
        /// The kernel's id.
        pid: i64,
        /// What viewers show; may be empty.
        name: &'a [u8],
        /// The command line.
        command: &'a [&'a [u8]],
        /// When it started.
        started: Option<i64>,
        /// Words beside its name.
        labels: &'a [&'a [u8]],
        /// Its place among processes.
        sort_index: Option<i64>,
    },
    /// A thread.
    Thread {
        /// The kernel's id of the process.
        pid: i64,
        /// The kernel's id of the thread.
        tid: i64,
        /// What viewers show; may be empty.
        name: &'a [u8],
        /// Its place among threads.
        sort_index: Option<i64>,
    },
    /// A counter.
    Counter {
        /// `CounterDescriptor.Unit`.
        unit: u64,
        /// A unit that has no number; may be empty.
        unit_name: &'a [u8],
    },
    /// Anything else.
    Other,
}

impl AnyTrack<'_> {
    /// Appends the description.
    pub fn write(&self, out: &mut Vec<u8>, sequence: u32) {
        packet(out, |p| {
            p.uint(10, sequence.into()).message(60, |track| self.fields(track));
        });
    }

    fn fields(&self, track: &mut Message<'_>) {
        track.uint(1, self.uuid);
        if self.parent != 0 {
            track.uint(5, self.parent);
        }
        if let Some(name) = self.name {
            track.text(2, name);
        }
        if !self.description.is_empty() {
            track.text(14, self.description);
        }
        track_of(track, &self.of);
        if self.order != 0 {
            track.uint(11, self.order);
        }
        if let Some(rank) = self.rank {
            track.int(12, rank.into());
        }
    }
}

fn track_of(track: &mut Message<'_>, of: &TrackOf<'_>) {
    match *of {
        TrackOf::Process { pid, name, command, started, labels, sort_index } => {
            track.message(3, |process| {
                process.int(1, pid);
                for part in command {
                    process.text(2, part);
                }
                if let Some(index) = sort_index {
                    process.int(3, index);
                }
                if !name.is_empty() {
                    process.text(6, name);
                }
                if let Some(started) = started {
                    process.int(7, started);
                }
                for label in labels {
                    process.text(8, label);
                }
            });
        }
        TrackOf::Thread { pid, tid, name, sort_index } => {
            track.message(4, |thread| {
                thread.int(1, pid).int(2, tid);
                if let Some(index) = sort_index {
                    thread.int(3, index);
                }
                if !name.is_empty() {
                    thread.text(5, name);
                }
            });
        }
        TrackOf::Counter { unit, unit_name } => {
            track.message(8, |counter| {
                if unit != 0 {
                    counter.uint(3, unit);
                }
                if !unit_name.is_empty() {
                    counter.text(6, unit_name);
                }
            });
        }
        TrackOf::Other => {}
    }
}
