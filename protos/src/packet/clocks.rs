//! Readings of clocks.

use crate::perfetto::ClockSnapshot;
use crate::perfetto::clock_snapshot::Clock;

/// `BuiltinClock`.
pub(super) const BOOTTIME: u64 = 6;
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;

/// The same moment on the system's clocks, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    /// `CLOCK_BOOTTIME`, the clock of the trace.
    pub boottime: u64,
    /// `CLOCK_MONOTONIC`; 0 if unknown.
    pub monotonic: u64,
    /// `CLOCK_REALTIME`; 0 if unknown.
    pub realtime: u64,
}

impl Snapshot {
    /// The ids and times of the clocks that are not the trace's; a time of 0 is unknown.
    pub(super) fn others(&self) -> [(u64, u64); 2] {
        [(REALTIME, self.realtime), (MONOTONIC, self.monotonic)]
    }
}

/// Readings of the system's clocks, and of one of the sequence's own that starts at boot time.
pub(super) fn reading(clocks: &Snapshot, incremental: Option<u64>) -> ClockSnapshot {
    let clock = |id: u64, time| Clock {
        clock_id: Some(id as u32),
        timestamp: Some(time),
        ..Clock::default()
    };
    let boottime = clock(BOOTTIME, clocks.boottime);
    let own =
        incremental.map(|id| Clock { is_incremental: Some(true), ..clock(id, clocks.boottime) });
    let others = clocks.others().into_iter().filter(|(_, time)| *time != 0);
    ClockSnapshot {
        clocks: [boottime]
            .into_iter()
            .chain(own)
            .chain(others.map(|(id, time)| clock(id, time)))
            .collect(),
        primary_trace_clock: Some(BOOTTIME as i32),
    }
}
