//! Whether something can have been at the time that it is said to have ended.
//!
//! Records are read when what they tell of is over. One that says a later time is of a clock that
//! was set, or that is not the one we take it for: where it belongs is unknown.

use kymograph_protos::ColdRecorder;

use super::clock::boottime;

/// How exact vendors' clocks may be expected to be.
const SLACK_NANOS: u64 = 10_000_000;

/// Checks the times of activities. One without times that can be is lost, and counted: a made-up
/// time would be worse.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Present {
    /// What was now a while ago: it is looked at again where that matters.
    now: u64,
    /// Activities that say no times, or that they ended before they began.
    pub(crate) timeless: u64,
    /// Activities that end later than they were read.
    pub(crate) future: u64,
}

impl Present {
    /// The times of an activity on `CLOCK_BOOTTIME`, of which `nanos` makes them, if it has some
    /// that can be; otherwise the recorder is told that it is lost. `look` compares a clock anew:
    /// it may have been set just now.
    #[inline]
    pub(crate) fn times<C>(
        &mut self,
        (start, end): (u64, u64),
        clock: &mut C,
        nanos: impl Fn(&C, u64) -> u64,
        look: impl FnOnce(&mut C),
        recorder: &dyn ColdRecorder,
    ) -> Option<(u64, u64)> {
        if start == 0 || end < start {
            self.lose_timeless(recorder);
            return None;
        }
        if !self.is_over(nanos(clock, end)) {
            look(clock);
            if !self.is_over(nanos(clock, end)) {
                self.lose_future(recorder);
                return None;
            }
        }
        Some((nanos(clock, start), nanos(clock, end)))
    }

    /// An activity without times is lost.
    #[cold]
    pub(crate) fn lose_timeless(&mut self, recorder: &dyn ColdRecorder) {
        self.timeless += 1;
        recorder.lost(1);
    }

    /// An activity that ends later than it was read is lost.
    #[cold]
    pub(crate) fn lose_future(&mut self, recorder: &dyn ColdRecorder) {
        self.future += 1;
        recorder.lost(1);
    }

    /// Whether a time of `CLOCK_BOOTTIME` is over.
    #[inline]
    pub(crate) fn is_over(&mut self, time: u64) -> bool {
        time <= self.now || self.look(time)
    }

    #[cold]
    fn look(&mut self, time: u64) -> bool {
        self.now = boottime().saturating_add(SLACK_NANOS);
        time <= self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::notes::Notes;

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
        let (notes, mut present, mut ahead) = (Notes::new(), Present::default(), HOUR);
        let now = boottime();
        let mut times = |start, end, ahead: &mut u64, to| {
            let nanos = |ahead: &u64, time: u64| time + ahead;
            present.times((start, end), ahead, nanos, |ahead| *ahead = to, notes)
        };
        assert_eq!(times(now, now, &mut ahead, HOUR), None);
        assert_eq!(times(now - 1, now, &mut ahead, 0), Some((now - 1, now)));
        assert_eq!(ahead, 0);
        assert_eq!(times(0, now, &mut ahead, 0), None);
        assert_eq!(times(now, now - 1, &mut ahead, 0), None);
        assert_eq!((present.timeless, present.future), (2, 1));
        assert_eq!(*notes.lost.lock().unwrap(), 3);
    }
}
