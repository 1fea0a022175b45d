//! Whether something can have been at the time that it is said to have ended.
//!
//! Records are read when what they tell of is over. One that says a later time is of a clock that
//! was set, or that is not the one we take it for: where it belongs, nobody knows.

use super::clock::boottime;

/// How exact vendors' clocks may be expected to be.
const SLACK_NANOS: u64 = 10_000_000;

/// Now, or what was now a while ago: it is looked at again where that matters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Present(u64);

impl Present {
    /// Whether a time of `CLOCK_BOOTTIME` is over.
    #[inline]
    pub(crate) fn is_over(&mut self, time: u64) -> bool {
        time <= self.0 || self.look(time)
    }

    #[cold]
    fn look(&mut self, time: u64) -> bool {
        self.0 = boottime().saturating_add(SLACK_NANOS);
        time <= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_end_later_is_not_over() {
        const HOUR: u64 = 3_600_000_000_000;
        let mut present = Present::default();
        let now = boottime();
        assert!(present.is_over(now) && present.is_over(1));
        assert!(!present.is_over(now + HOUR) && !present.is_over(u64::MAX));
        assert!(present.is_over(boottime()), "it goes on");
    }
}
