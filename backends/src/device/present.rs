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

/// Why an activity has no times that can be. It is counted: a made-up time would be worse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// It says none, or that it ended before it began.
    None,
    /// It says that it ends later.
    Future,
}

impl Present {
    /// The times of an activity on `CLOCK_BOOTTIME`, of which `nanos` makes them, if it has some
    /// that can be. `look` compares a clock anew: it may have been set just now.
    #[inline]
    pub(crate) fn times<C>(
        &mut self,
        (start, end): (u64, u64),
        clock: &mut C,
        nanos: impl Fn(&C, u64) -> u64,
        look: impl FnOnce(&mut C),
    ) -> Result<(u64, u64), Doubt> {
        if start == 0 || end < start {
            return Err(Doubt::None);
        }
        if !self.is_over(nanos(clock, end)) {
            look(clock);
            if !self.is_over(nanos(clock, end)) {
                return Err(Doubt::Future);
            }
        }
        Ok((nanos(clock, start), nanos(clock, end)))
    }

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

    #[test]
    fn times_are_looked_at_again_by_a_clock_that_was_set() {
        const HOUR: u64 = 3_600_000_000_000;
        let (mut present, mut ahead) = (Present::default(), HOUR);
        let now = boottime();
        let mut times = |start, end, ahead: &mut u64, to| {
            let nanos = |ahead: &u64, time: u64| time + ahead;
            present.times((start, end), ahead, nanos, |ahead| *ahead = to)
        };
        assert_eq!(times(now, now, &mut ahead, HOUR), Err(Doubt::Future));
        assert_eq!(times(now - 1, now, &mut ahead, 0), Ok((now - 1, now)));
        assert_eq!(ahead, 0);
        assert_eq!(times(0, now, &mut ahead, 0), Err(Doubt::None));
        assert_eq!(times(now, now - 1, &mut ahead, 0), Err(Doubt::None));
    }
}
