//! Clocks: from what a packet says to the trace's clock.
//!
//! Snapshots say what several clocks showed at one moment. Between them clocks are taken
//! to run at the same rate, as trace_processor does: a time is moved by the difference that
//! the last snapshot before it shows.

use hashbrown::HashMap;
use kymograph_protos::fields::{clock_snapshot, clock_snapshot::clock};

use crate::perfetto::wire::{Field, Fields};
use crate::trace::{ClockReading, Nanos};

pub const REALTIME: u32 = 1;
pub const MONOTONIC: u32 = 3;
pub const BOOTTIME: u32 = 6;
/// Clocks of this and the following 63 numbers belong to a sequence.
const SEQUENCE_CLOCKS: std::ops::Range<u32> = 64..128;

/// A clock as a snapshot describes it.
#[derive(Clone, Copy, Debug)]
struct Shown {
    id: u32,
    time: u64,
    incremental: bool,
    multiplier: u64,
}

/// A clock of a sequence whose times are differences.
#[derive(Clone, Copy, Debug)]
struct Incremental {
    last: i64,
    multiplier: i64,
}

/// See the module.
#[derive(Debug)]
pub struct Clocks {
    trace_clock: u32,
    fixed: bool,
    /// For a clock: what it showed and what the trace's clock did, in ascending order. The
    /// sequence is 0 for clocks of all.
    shown: HashMap<(u32, u32), Vec<(i64, i64)>>,
    incremental: HashMap<(u32, u32), Incremental>,
}

/// A time that could not be related to the trace's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unrelated(pub i64);

impl Clocks {
    pub fn new() -> Clocks {
        Clocks {
            trace_clock: BOOTTIME,
            fixed: false,
            shown: HashMap::new(),
            incremental: HashMap::new(),
        }
    }

    /// Takes note of a `ClockSnapshot` on a sequence. Returns what the system's clocks
    /// showed, if the trace's clock is among them.
    pub fn snapshot(&mut self, sequence: u32, bytes: &[u8]) -> Option<ClockReading> {
        let mut shown = Vec::new();
        for (number, field) in Fields::new(bytes) {
            match number {
                clock_snapshot::CLOCKS => shown.push(read_clock(field)),
                // The first snapshot that names the trace's clock decides.
                clock_snapshot::PRIMARY_TRACE_CLOCK if !self.fixed => {
                    self.fixed = true;
                    self.trace_clock = field.uint() as u32;
                }
                _ => {}
            }
        }
        let of = |id| shown.iter().find(|c| c.id == id).map(Shown::nanos);
        let trace = of(self.trace_clock);
        for clock in &shown {
            let key = (scope(sequence, clock.id), clock.id);
            if clock.incremental {
                let multiplier = clock.multiplier as i64;
                self.incremental.insert(key, Incremental { last: clock.nanos(), multiplier });
            }
            if let Some(trace) = trace.filter(|_| clock.id != self.trace_clock) {
                let list = self.shown.entry(key).or_default();
                let at = list.partition_point(|(time, _)| *time <= clock.nanos());
                // Of several at one time the last holds.
                match at.checked_sub(1).map(|before| &mut list[before]) {
                    Some(same) if same.0 == clock.nanos() => same.1 = trace,
                    _ => list.insert(at, (clock.nanos(), trace)),
                }
            }
        }
        Some(ClockReading {
            trace: Nanos(trace?),
            realtime: of(REALTIME).map(Nanos),
            monotonic: of(MONOTONIC).map(Nanos),
        })
    }

    /// What the trace's clock shows at `time` of a clock; 0 is the trace's own.
    pub fn convert(&mut self, sequence: u32, clock: u32, time: u64) -> Result<i64, Unrelated> {
        let key = (scope(sequence, clock), clock);
        let time = match self.incremental.get_mut(&key) {
            Some(incremental) if SEQUENCE_CLOCKS.contains(&clock) => {
                let passed = (time as i64).wrapping_mul(incremental.multiplier);
                incremental.last = incremental.last.wrapping_add(passed);
                incremental.last
            }
            _ => time as i64,
        };
        if clock == 0 || clock == self.trace_clock {
            return Ok(time);
        }
        let Some(list) = self.shown.get(&key) else {
            return Err(Unrelated(time));
        };
        let after = list.partition_point(|(shown, _)| *shown <= time);
        let (shown, trace) = list[after.saturating_sub(1)];
        Ok(time.wrapping_add(trace.wrapping_sub(shown)))
    }
}

impl Shown {
    fn nanos(&self) -> i64 {
        (self.time as i64).wrapping_mul(self.multiplier as i64)
    }
}

fn read_clock(field: Field<'_>) -> Shown {
    let mut clock = Shown { id: 0, time: 0, incremental: false, multiplier: 1 };
    for (number, field) in field.fields() {
        match number {
            clock::CLOCK_ID => clock.id = field.uint() as u32,
            clock::TIMESTAMP => clock.time = field.uint(),
            clock::IS_INCREMENTAL => clock.incremental = field.uint() != 0,
            clock::UNIT_MULTIPLIER_NS => clock.multiplier = field.uint().max(1),
            _ => {}
        }
    }
    clock
}

fn scope(sequence: u32, clock: u32) -> u32 {
    if SEQUENCE_CLOCKS.contains(&clock) { sequence } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymograph_protos::packet::Message;

    fn snapshot(clocks: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (id, time, incremental) in clocks {
            Message::new(&mut out).message(1, |c| {
                c.uint(1, *id).uint(2, *time).uint(3, *incremental);
            });
        }
        out
    }

    #[test]
    fn a_time_moves_with_the_last_snapshot_before_it() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.convert(1, MONOTONIC, 7), Err(Unrelated(7)));
        clocks.snapshot(1, &snapshot(&[(6, 1000, 0), (3, 100, 0)]));
        clocks.snapshot(1, &snapshot(&[(6, 2010, 0), (3, 1100, 0)]));
        assert_eq!(clocks.convert(9, MONOTONIC, 50), Ok(950));
        assert_eq!(clocks.convert(9, MONOTONIC, 1099), Ok(1999));
        assert_eq!(clocks.convert(9, MONOTONIC, 1100), Ok(2010));
        assert_eq!(clocks.convert(9, BOOTTIME, 5), Ok(5));
    }

    #[test]
    fn differences_add_up_on_their_sequence() {
        let mut clocks = Clocks::new();
        clocks.snapshot(1, &snapshot(&[(6, 1000, 0), (64, 10, 1)]));
        clocks.snapshot(2, &snapshot(&[(6, 5000, 0), (64, 5000, 1)]));
        assert_eq!(clocks.convert(1, 64, 5), Ok(1005));
        assert_eq!(clocks.convert(2, 64, 1), Ok(5001));
        assert_eq!(clocks.convert(1, 64, 5), Ok(1010));
        assert_eq!(clocks.convert(1, 64, (-8i64) as u64), Ok(1002));
        assert_eq!(clocks.convert(3, 64, 5), Err(Unrelated(5)));
    }
}
