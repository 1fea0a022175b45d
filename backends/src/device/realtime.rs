//! Times of `CLOCK_REALTIME`, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! The former may be set; the latter may not. Both are steered at the same rate by the
//! kernel, so their difference is constant until the former is set: it is looked at
//! several times a second, and every time knows the difference that was valid then.
//!
//! A closer comparison counts from its own time on, and does not move what was before it: records
//! of one moment come in several buffers, and work that ended when other work began must not
//! overlap it.

use super::clock::{Both, boottime, compare, system};

/// Differences smaller than this are noise of reading two clocks.
const NOISE_NANOS: u64 = 20_000;
/// Steps of the clock that are remembered.
const STEPS: usize = 64;

/// From a time on.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: u64,
    /// BOOTTIME is that much more.
    offset: i64,
    /// No time from here on is less than this in BOOTTIME.
    least: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Realtime {
    /// In the order of their times; never empty.
    steps: Vec<Step>,
    /// How long reading both clocks took for the newest step.
    width: u64,
}

impl Realtime {
    pub(crate) fn new() -> Realtime {
        let both = read();
        Realtime::of(both.offset(), both.width)
    }

    /// As if both clocks were the same.
    #[cfg(test)]
    pub(crate) fn same() -> Realtime {
        Realtime::of(0, 0)
    }

    fn of(offset: i64, width: u64) -> Realtime {
        Realtime { steps: vec![Step { from: 0, offset, least: 0 }], width }
    }

    /// Looks whether the clock was set.
    pub(crate) fn look(&mut self) {
        self.compare(read());
    }

    fn compare(&mut self, both: Both) {
        let (offset, width) = (both.offset(), both.width);
        let last = self.steps[self.steps.len() - 1];
        if last.offset.abs_diff(offset) > NOISE_NANOS {
            // A clock set back passes through some times twice; they belong to the newer
            // past, which is what a decoder of recent records sees.
            self.steps.retain(|step| step.from < both.theirs);
            if self.steps.len() == STEPS {
                self.steps.remove(1);
            }
            self.steps.push(Step { from: both.theirs, offset, least: 0 });
            self.width = width;
        } else if width <= self.width / 2 && both.theirs > last.from && self.steps.len() < STEPS {
            let least = self.nanos(both.theirs);
            self.steps.push(Step { from: both.theirs, offset, least });
            self.width = width;
        }
    }

    /// A time in nanoseconds of `CLOCK_BOOTTIME`.
    #[inline]
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        let after = self.steps.partition_point(|step| step.from <= time);
        let step = &self.steps[after.saturating_sub(1)];
        time.saturating_add_signed(step.offset).max(step.least)
    }
}

fn read() -> Both {
    compare(8, boottime, || Some(system(libc::CLOCK_REALTIME))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_the_difference_of_their_time() {
        let mut clock = Realtime::of(-1_000, 80);
        let compare = |clock: &mut Realtime, theirs: u64, offset: i64, width| {
            let ours = theirs.wrapping_add_signed(offset);
            clock.compare(Both { theirs, ours, width });
        };
        compare(&mut clock, 5_000_000, -1_030, 60);
        assert_eq!(clock.nanos(4_000_000), 3_999_000);
        compare(&mut clock, 5_100_000, -990, 40);
        assert_eq!(clock.nanos(4_000_000), 3_999_000);
        assert_eq!(clock.nanos(5_200_000), 5_199_010);
        // Set forward by an hour.
        compare(&mut clock, 3_600_005_200_000, -3_600_000_000_990, 40);
        assert_eq!(clock.nanos(3_600_005_300_000), 5_299_010);
        assert_eq!(clock.nanos(4_000_000), 3_999_000);
        // And back.
        compare(&mut clock, 5_400_000, -990, 40);
        assert_eq!(clock.nanos(5_500_000), 5_499_010);
    }

    proptest::proptest! {
        /// Whatever is compared in between: what was converted stays, and time does not run
        /// backwards.
        #[test]
        fn closer_comparisons_keep_the_order(
            looks in proptest::collection::vec((1..50_000_u64, -900..900_i64, 0..2_000_u64), 1..40),
        ) {
            let mut clock = Realtime::of(0, 2_000);
            let (mut now, mut converted) = (1_000_000, Vec::new());
            for (passed, offset, width) in looks {
                converted.push((now, clock.nanos(now)));
                now += passed;
                let ours = now.wrapping_add_signed(offset);
                clock.compare(Both { theirs: now, ours, width });
                converted.push((now, clock.nanos(now)));
            }
            for pair in converted.windows(2) {
                assert!(pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1, "{pair:?}");
            }
            for (time, nanos) in converted {
                assert_eq!(clock.nanos(time), nanos);
            }
        }
    }

    #[test]
    fn the_real_clocks_agree() {
        let mut clock = Realtime::new();
        clock.look();
        let both = read();
        assert!(clock.nanos(both.theirs).abs_diff(both.ours) < 20_000);
    }
}
