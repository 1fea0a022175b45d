//! What the threads of a recording share while their records are written.

use kymograph_protos::packet::{Name, Snapshot};
use kymograph_protos::record::{NANOS, Record, Slot};

use super::nesting::Begun;
use super::origin::Origin;
use super::process::Process;
use super::watch::Watch;
use super::window::{Bounds, Window};
use crate::clock::Converter;
use crate::intern::Interner;

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
    pub origin: &'a Origin,
    /// Its names.
    pub strings: &'a Interner,
    pub converter: &'a Converter,
    /// The time of this pass.
    pub clocks: Snapshot,
    /// A moment before it, in ticks.
    pub recent: u64,
    /// What sequences that start say of clocks.
    pub stated: Snapshot,
    /// When the recording started, in ticks: what is older was left over.
    pub started: u64,
    /// What belongs to the trace.
    pub window: &'a Window,
    /// The same, as of the last look.
    pub bounds: Bounds,
    pub process: &'a mut Process,
    pub totals: &'a mut Totals,
    /// Whether the packets have restart points: see [`super::restart`].
    pub restarts: bool,
    pub watch: Option<&'a mut Watch>,
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

    /// Whether a slice began a moment before this pass.
    #[inline]
    pub fn is_recent(&self, head: &Record) -> bool {
        head.tag & NANOS == 0 && head.time >= self.recent
    }

    /// A slice took this long. Returns whether that is too long.
    #[inline]
    pub fn took(&mut self, name: Name<'_>, nanos: u64) -> bool {
        match &mut self.watch {
            Some(watch) => watch.took(name, self.strings, nanos),
            None => false,
        }
    }

    /// A beginning, to be kept until its end. `record` begins with its slots.
    pub fn begun(&self, time: u64, head: &Record, record: &[Slot]) -> Begun {
        let kept = if self.restarts { 1 + head.tail as usize } else { 0 };
        Begun { time, record: record[..kept].into() }
    }

    /// Learns what belongs to the trace, after what is going to be judged was drained.
    pub fn look(&mut self) {
        self.bounds = self.window.bounds(self.converter);
    }
}
