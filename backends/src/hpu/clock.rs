//! Synapse's clock, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! It can be asked for its time: that is compared with ours when the profiler starts and
//! when it stops, and between the two on a line. A clock that was set meanwhile is believed
//! only as it was at the start.

use super::sys::{SUCCESS, Synapse};
use crate::nvidia::clock::system;

/// Difference of rates beyond which a clock was set, in millionths.
const MOST_DRIFT: u64 = 1_000;
/// How exactly two clocks can be compared at best, in nanoseconds. What is less than that is
/// noise, and stretches nothing.
const NOISE: u64 = 10_000;

/// The same moment on both clocks: theirs, ours; and how long it took to read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Both(pub(crate) u64, pub(crate) u64, pub(crate) u64);

/// Compares the clocks, several times; the closest comparison counts.
pub(crate) fn compare(synapse: &Synapse) -> Option<Both> {
    let once = || {
        let mut theirs = 0;
        let before = system(libc::CLOCK_BOOTTIME);
        // SAFETY: stores a number.
        let result = unsafe { (synapse.now)(&mut theirs) };
        let width = system(libc::CLOCK_BOOTTIME) - before;
        (result == SUCCESS).then_some((width, Both(theirs, before + width / 2, width)))
    };
    (0..5).filter_map(|_| once()).min_by_key(|(width, _)| *width).map(|(_, both)| both)
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
        let Some(stop) = stop.filter(|stop| stop.0 > start.0) else {
            return Clock { start, drift: 0.0, jumped: stop.is_some() };
        };
        let theirs = stop.0 - start.0;
        let ours = stop.1.saturating_sub(start.1);
        let drift = ours.wrapping_sub(theirs) as i64;
        let noise = NOISE + 2 * (start.2 + stop.2);
        let jumped = drift.unsigned_abs() > theirs / 1_000_000 * MOST_DRIFT + noise;
        let believed = !jumped && drift.unsigned_abs() > noise;
        let drift = if believed { drift as f64 / theirs as f64 } else { 0.0 };
        Clock { start, drift, jumped }
    }

    /// One of their times as ours.
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        let passed = time.wrapping_sub(self.start.0) as i64;
        let gained = (passed as f64 * self.drift).round() as i64;
        self.start.1.wrapping_add_signed(passed.wrapping_add(gained))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_is_met_at_both_ends() {
        let (start, stop) = (Both(5_000, 1_000_000, 50), Both(1_000_005_000, 1_001_050_000, 50));
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
        let (start, stop) = (Both(5_000, 1_000_000, 900), Both(2_005_000, 3_003_000, 900));
        let clock = Clock::new(start, Some(stop));
        assert_eq!(clock.nanos(2_005_000) - clock.nanos(5_000), 2_000_000);
    }

    #[test]
    fn a_clock_that_was_set_is_believed_as_it_was() {
        for stop in [Both(3_600_000_000_000, 2_000, 9), Both(1_000, 2_000, 9)] {
            let clock = Clock::new(Both(1_000, 1_000, 9), Some(stop));
            assert_eq!((clock.nanos(1_700), clock.jumped), (1_700, true), "{stop:?}");
        }
    }
}
