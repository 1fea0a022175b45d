//! The clock of rocprofiler-sdk, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! It is `CLOCK_BOOTTIME` in all versions (rocprofiler-sdk/source/lib/common/utility.hpp,
//! `default_clock_id`). That is checked and not believed: a time is what it says plus what
//! the two clocks differ by at the moment.

use super::sys::{SUCCESS, Sdk};
use crate::device::clock::{boottime, compare};

/// Differences smaller than this are noise of reading two clocks.
const NOISE_NANOS: u64 = 20_000;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Clock {
    /// What `CLOCK_BOOTTIME` is more.
    pub(crate) offset: i64,
    /// How often the difference was found to be another one.
    pub(crate) jumps: u64,
}

impl Clock {
    /// Compares the clocks.
    pub(crate) fn look(&mut self, sdk: &Sdk) {
        let Some(read) = sdk.timestamp else { return };
        let theirs = || {
            let mut time = 0;
            // SAFETY: stores a number.
            (unsafe { read(&mut time) } == SUCCESS).then_some(time)
        };
        if let Some(both) = compare(4, boottime, theirs) {
            self.compare(both.offset(), both.width);
        }
    }

    fn compare(&mut self, offset: i64, width: u64) {
        let same = offset.unsigned_abs() <= NOISE_NANOS + width;
        let offset = if same { 0 } else { offset };
        if offset.abs_diff(self.offset) > NOISE_NANOS + width {
            self.jumps += 1;
            self.offset = offset;
        }
    }

    /// A time of the library's in nanoseconds of `CLOCK_BOOTTIME`.
    #[inline]
    pub(crate) fn nanos(self, time: u64) -> u64 {
        time.saturating_add_signed(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_difference_counts() {
        let mut clock = Clock::default();
        clock.compare(150, 80);
        assert_eq!((clock.nanos(1_000), clock.jumps), (1_000, 0));
        clock.compare(-3_600_000_000_000, 80);
        clock.compare(-3_600_000_000_400, 80);
        assert_eq!((clock.nanos(3_600_000_001_000), clock.jumps), (1_000, 1));
        clock.compare(90, 80);
        assert_eq!((clock.nanos(1_000), clock.jumps), (1_000, 2));
    }
}
