//! What the threads of a recording share while their records are written.

use kymograph_protos::packet::Snapshot;
use kymograph_protos::record::{NANOS, Record};

use super::process::Process;
use crate::clock::Converter;
use crate::intern::Interner;
use crate::recording::{Bounds, Window};

/// Counts of what was recorded, and of everything that was not recorded as it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Slices, instants, counter values and ranges written.
    pub events: u64,
    /// Ends of slices that had no beginning in the recording.
    pub unmatched_ends: u64,
    /// Scopes that were ended before scopes inside them; these end with it.
    pub misnested: u64,
    /// Times that ran backwards on their thread and were moved up.
    pub clamped: u64,
    /// Records of a kind that the writer does not know.
    pub unknown: u64,
}

/// Everything a record may need to become packets.
#[derive(Debug)]
pub struct Context<'a> {
    pub out: &'a mut Vec<u8>,
    pub strings: &'a Interner,
    pub converter: &'a Converter,
    /// The time of this pass.
    pub clocks: Snapshot,
    /// When the recording started, in ticks: what is older was left over.
    pub started: u64,
    /// What belongs to the trace.
    pub window: &'a Window,
    /// The same, as of the last look.
    pub bounds: Bounds,
    pub process: &'a mut Process,
    pub totals: &'a mut Totals,
}

impl Context<'_> {
    pub fn nanos(&self, ticks: u64) -> u64 {
        self.converter.nanos(ticks)
    }

    /// A time of a record, in nanoseconds.
    #[inline]
    pub fn time(&self, head: &Record, time: u64) -> u64 {
        if head.tag & NANOS != 0 { time } else { self.converter.nanos(time) }
    }

    /// Learns what belongs to the trace, after what is going to be judged was drained.
    pub fn look(&mut self) {
        self.bounds = self.window.bounds(self.converter);
    }
}
