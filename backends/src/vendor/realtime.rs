//! Times of `CLOCK_REALTIME`, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! The former may be set; the latter may not. Both are steered at the same rate by the
//! kernel, so their difference is constant until somebody sets the former: it is looked at
//! several times a second, and every time knows the difference that was valid then.

use super::clock::{Both, boottime, compare, system};

/// Differences smaller than this are noise of reading two clocks.
const NOISE_NANOS: u64 = 20_000;
/// Steps of the clock that are remembered.
const STEPS: usize = 64;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Realtime {
    /// From this time on, BOOTTIME is that much more.
    steps: Vec<(u64, i64)>,
    /// How long reading both clocks took for the newest step.
    width: u64,
}

impl Realtime {
    pub(crate) fn new() -> Realtime {
        let both = read();
        Realtime { steps: vec![(0, both.offset())], width: both.width }
    }

    /// As if both clocks were the same.
    #[cfg(test)]
    pub(crate) fn same() -> Realtime {
        Realtime { steps: vec![(0, 0)], width: 0 }
    }

    /// Looks whether the clock was set.
    pub(crate) fn look(&mut self) {
        self.compare(read());
    }

    fn compare(&mut self, both: Both) {
        let (offset, width) = (both.offset(), both.width);
        let last = self.steps.len() - 1;
        let (from, known) = self.steps[last];
        if known.abs_diff(offset) > NOISE_NANOS {
            // A clock set back passes through some times twice; they belong to the newer
            // past, which is what a decoder of recent records sees.
            self.steps.retain(|step| step.0 < both.theirs);
            if self.steps.len() == STEPS {
                self.steps.remove(1);
            }
            self.steps.push((both.theirs, offset));
            self.width = width;
        } else if width < self.width {
            self.steps[last] = (from, offset);
            self.width = width;
        }
    }

    /// A time in nanoseconds of `CLOCK_BOOTTIME`.
    #[inline]
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        let after = self.steps.partition_point(|step| step.0 <= time);
        time.saturating_add_signed(self.steps[after.saturating_sub(1)].1)
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
        let mut clock = Realtime { steps: vec![(0, -1_000)], width: 50 };
        let compare = |clock: &mut Realtime, theirs: u64, offset: i64, width| {
            let ours = theirs.wrapping_add_signed(offset);
            clock.compare(Both { theirs, ours, width });
        };
        compare(&mut clock, 5_000_000, -1_030, 60);
        assert_eq!(clock.nanos(4_000_000), 3_999_000);
        compare(&mut clock, 5_100_000, -990, 40);
        assert_eq!(clock.nanos(4_000_000), 3_999_010);
        // Set forward by an hour.
        compare(&mut clock, 3_600_005_200_000, -3_600_000_000_990, 40);
        assert_eq!(clock.nanos(3_600_005_300_000), 5_299_010);
        assert_eq!(clock.nanos(4_000_000), 3_999_010);
        // And back.
        compare(&mut clock, 5_400_000, -990, 40);
        assert_eq!(clock.nanos(5_500_000), 5_499_010);
    }

    #[test]
    fn the_real_clocks_agree() {
        let mut clock = Realtime::new();
        clock.look();
        let both = read();
        assert!(clock.nanos(both.theirs).abs_diff(both.ours) < 20_000);
    }
}
