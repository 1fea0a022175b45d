//! Synapse's clock, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! It can be asked for its time: that is compared with ours when the profiler starts and
//! when it stops, and between the two on a line. A clock that was set meanwhile is believed
//! only as it was at the start.

use super::sys::{SUCCESS, Synapse};
use crate::nvidia::clock::system;

/// Difference of rates beyond which a clock was set, in millionths.
const MOST_DRIFT: u64 = 1_000;
/// How exactly two clocks can be compared, in nanoseconds.
const NOISE: u64 = 100_000;

/// A time too short to learn a rate in, in nanoseconds.
const SHORT: u64 = 1_000_000;

/// The same moment on both clocks: theirs, ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Both(pub(crate) u64, pub(crate) u64);

/// Compares the clocks, several times; the closest comparison counts.
pub(crate) fn compare(synapse: &Synapse) -> Option<Both> {
    let once = || {
        let mut theirs = 0;
        let before = system(libc::CLOCK_BOOTTIME);
        // SAFETY: stores a number.
        let result = unsafe { (synapse.now)(&mut theirs) };
        let width = system(libc::CLOCK_BOOTTIME) - before;
        (result == SUCCESS).then_some((width, Both(theirs, before + width / 2)))
    };
    (0..5).filter_map(|_| once()).min_by_key(|(width, _)| *width).map(|(_, both)| both)
}

/// From their times to ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Both,
    /// What ours gained on theirs, and while theirs ran how long.
    drift: (i64, u64),
    /// Whether their clock was set meanwhile.
    pub(crate) jumped: bool,
}

impl Clock {
    pub(crate) fn new(start: Both, stop: Option<Both>) -> Clock {
        let Some(stop) = stop.filter(|stop| stop.0 > start.0) else {
            return Clock { start, drift: (0, 1), jumped: stop.is_some() };
        };
        let theirs = stop.0 - start.0;
        let ours = stop.1.saturating_sub(start.1);
        // In so short a time a comparison's noise would be taken for drift.
        let drift = if theirs < SHORT { 0 } else { ours.wrapping_sub(theirs) as i64 };
        let most = theirs / 1_000_000 * MOST_DRIFT + NOISE;
        let jumped = drift.unsigned_abs() > most;
        Clock { start, drift: if jumped { (0, 1) } else { (drift, theirs) }, jumped }
    }

    /// One of their times as ours.
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        let passed = time.wrapping_sub(self.start.0) as i64;
        let (gained, while_ran) = self.drift;
        let correction = i128::from(passed) * i128::from(gained) / i128::from(while_ran.max(1));
        self.start.1.wrapping_add_signed(passed.wrapping_add(correction as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_is_met_at_both_ends() {
        let clock = Clock::new(Both(5_000, 1_000_000), Some(Both(1_000_005_000, 1_001_000_500)));
        assert!(!clock.jumped);
        assert_eq!(clock.nanos(5_000), 1_000_000);
        assert_eq!(clock.nanos(1_000_005_000), 1_001_000_500);
        assert_eq!(clock.nanos(500_005_000), 501_000_250);
        // What began before the profiler did.
        assert_eq!(clock.nanos(4_000), 999_000);
    }

    #[test]
    fn a_clock_that_was_set_is_believed_as_it_was() {
        for stop in [Both(3_600_000_000_000, 2_000), Both(1_500, 2_000), Both(1_000, 2_000)] {
            let clock = Clock::new(Both(1_000, 1_000), Some(stop));
            assert_eq!(clock.nanos(1_700), 1_700, "{stop:?}");
        }
        assert!(Clock::new(Both(1_000, 1_000), Some(Both(3_600_000_000_000, 2_000))).jumped);
    }
}
