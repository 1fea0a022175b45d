//! Tracks of any origin: what [`super::ProcessTrack`], [`super::ThreadTrack`] and
//! [`super::Track`] say of our own, in full generality, for traces that are converted. Encoded by
//! hand: a converted trace may have numbers that the schema's types do not hold.

use super::descriptor::described;
use super::message::Message;
use crate::fields::{counter_descriptor, process_descriptor, thread_descriptor, track_descriptor};

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
        described(out, sequence, |track| self.fields(track));
    }

    fn fields(&self, track: &mut Message<'_>) {
        track.uint(track_descriptor::UUID, self.uuid);
        if self.parent != 0 {
            track.uint(track_descriptor::PARENT_UUID, self.parent);
        }
        if let Some(name) = self.name {
            track.text(track_descriptor::NAME, name);
        }
        if !self.description.is_empty() {
            track.text(track_descriptor::DESCRIPTION, self.description);
        }
        track_of(track, &self.of);
        if self.order != 0 {
            track.uint(track_descriptor::CHILD_ORDERING, self.order);
        }
        if let Some(rank) = self.rank {
            track.int(track_descriptor::SIBLING_ORDER_RANK, rank.into());
        }
    }
}

fn track_of(track: &mut Message<'_>, of: &TrackOf<'_>) {
    match *of {
        TrackOf::Process { pid, name, command, started, labels, sort_index } => {
            track.message(track_descriptor::PROCESS, |process| {
                process.int(process_descriptor::PID, pid);
                for part in command {
                    process.text(process_descriptor::CMDLINE, part);
                }
                if let Some(index) = sort_index {
                    process.int(process_descriptor::LEGACY_SORT_INDEX, index);
                }
                if !name.is_empty() {
                    process.text(process_descriptor::PROCESS_NAME, name);
                }
                if let Some(started) = started {
                    process.int(process_descriptor::START_TIMESTAMP_NS, started);
                }
                for label in labels {
                    process.text(process_descriptor::PROCESS_LABELS, label);
                }
            });
        }
        TrackOf::Thread { pid, tid, name, sort_index } => {
            track.message(track_descriptor::THREAD, |thread| {
                thread.int(thread_descriptor::PID, pid).int(thread_descriptor::TID, tid);
                if let Some(index) = sort_index {
                    thread.int(thread_descriptor::LEGACY_SORT_INDEX, index);
                }
                if !name.is_empty() {
                    thread.text(thread_descriptor::THREAD_NAME, name);
                }
            });
        }
        TrackOf::Counter { unit, unit_name } => {
            track.message(track_descriptor::COUNTER, |counter| {
                if unit != 0 {
                    counter.uint(counter_descriptor::UNIT, unit);
                }
                if !unit_name.is_empty() {
                    counter.text(counter_descriptor::UNIT_NAME, unit_name);
                }
            });
        }
        TrackOf::Other => {}
    }
}
