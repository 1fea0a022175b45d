//! Synapse's clock, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! It can be asked for its time: that is compared with ours when the profiler starts and
//! when it stops, and between the two on a line. A clock that was set meanwhile is believed
//! only as it was at the start.

use super::sys::{SUCCESS, Synapse};
use crate::device::clock::{self, Both};

/// Difference of rates beyond which a clock was set, in millionths.
const MAX_DRIFT: u64 = 1_000;
/// How exactly two clocks can be compared at best, in nanoseconds. What is less than that is
/// noise, and stretches nothing.
const NOISE: u64 = 10_000;

/// Compares the clocks.
pub(crate) fn compare(synapse: &Synapse) -> Option<Both> {
    let theirs = || {
        let mut time = 0;
        // SAFETY: stores a number.
        (unsafe { (synapse.now)(&mut time) } == SUCCESS).then_some(time)
    };
    clock::compare(5, clock::boottime, theirs)
}

/// From their times to ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Both,
    /// What ours gains on theirs, per nanosecond.
    drift: f64,
    /// Whether their clock was set meanwhile.
    pub(crate) jumped: bool,
}

impl Clock {
    pub(crate) fn new(start: Both, stop: Option<Both>) -> Clock {
        let Some(stop) = stop.filter(|stop| stop.theirs > start.theirs) else {
            return Clock { start, drift: 0.0, jumped: stop.is_some() };
        };
        let theirs = stop.theirs - start.theirs;
        let ours = stop.ours.saturating_sub(start.ours);
        let drift = ours.wrapping_sub(theirs) as i64;
        let noise = NOISE + 2 * (start.width + stop.width);
        let jumped = drift.unsigned_abs() > theirs / 1_000_000 * MAX_DRIFT + noise;
        let believed = !jumped && drift.unsigned_abs() > noise;
        let drift = if believed { drift as f64 / theirs as f64 } else { 0.0 };
        Clock { start, drift, jumped }
    }

    /// One of their times as ours.
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        let passed = time.wrapping_sub(self.start.theirs) as i64;
        let gained = (passed as f64 * self.drift).round() as i64;
        self.start.ours.wrapping_add_signed(passed.wrapping_add(gained))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(theirs: u64, ours: u64, width: u64) -> Both {
        Both { theirs, ours, width }
    }

    #[test]
    fn a_clock_that_drifts_is_met_at_both_ends() {
        let (start, stop) = (both(5_000, 1_000_000, 50), both(1_000_005_000, 1_001_050_000, 50));
        let clock = Clock::new(start, Some(stop));
        assert!(!clock.jumped);
        assert_eq!(clock.nanos(5_000), 1_000_000);
        assert_eq!(clock.nanos(1_000_005_000), 1_001_050_000);
        assert_eq!(clock.nanos(500_005_000), 501_025_000);
        // What began before the profiler did.
        assert_eq!(clock.nanos(4_000), 999_000);
    }

    #[test]
    fn noise_stretches_nothing() {
        let (start, stop) = (both(5_000, 1_000_000, 900), both(2_005_000, 3_003_000, 900));
        let clock = Clock::new(start, Some(stop));
        assert_eq!(clock.nanos(2_005_000) - clock.nanos(5_000), 2_000_000);
    }

    #[test]
    fn a_clock_that_was_set_is_believed_as_it_was() {
        for stop in [both(3_600_000_000_000, 2_000, 9), both(1_000, 2_000, 9)] {
            let clock = Clock::new(both(1_000, 1_000, 9), Some(stop));
            assert_eq!((clock.nanos(1_700), clock.jumped), (1_700, true), "{stop:?}");
        }
    }
}
