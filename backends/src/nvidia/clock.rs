//! CUPTI's clock, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! CUPTI's timestamps are `CLOCK_REALTIME` by default (cuptiGetTimestamp; device times are
//! converted to it by CUPTI). That clock may be set; `CLOCK_BOOTTIME` may not. Both are
//! steered at the same rate by the kernel, so their difference is constant until somebody
//! sets the former: it is looked at several times a second, and every time knows the
//! difference that was valid then.
//!
//! Where CUPTI can be given a clock of ours without harm, that is `CLOCK_BOOTTIME` itself.
//! From CUDA 12.6 Update 2 to 13.0, device times may become 0 with a clock of ours
//! (release notes of 13.1): there, and in all versions that cannot be told apart from
//! those, the default stays.

use std::sync::atomic::{AtomicBool, Ordering};

use super::copies::Fit;
use super::sys::TimestampCallback;

/// A clock of the system in nanoseconds.
pub(crate) fn system(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable, and the clocks used here exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether this version of CUPTI can be given a clock.
pub(crate) fn can_be_chosen(version: u32) -> bool {
    !(24..130_100).contains(&version)
}

/// Whether CUPTI was given it.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// CUPTI was given `CLOCK_BOOTTIME`.
pub(crate) fn choose() {
    CHOSEN.store(true, Ordering::Release);
}

/// CUPTI's clock.
pub(crate) fn cupti() -> u64 {
    system(match CHOSEN.load(Ordering::Acquire) {
        true => libc::CLOCK_BOOTTIME,
        false => libc::CLOCK_REALTIME,
    })
}

/// The clock that CUPTI gets. Takes no lock; runs on any thread, at any time, for ever.
pub(crate) unsafe extern "C" fn boottime() -> u64 {
    system(libc::CLOCK_BOOTTIME)
}

/// Differences smaller than this are noise of reading two clocks.
const NOISE_NANOS: u64 = 20_000;
/// Steps of the clock that are remembered.
const STEPS: usize = 64;

/// From CUPTI's times to `CLOCK_BOOTTIME`.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// From this time of CUPTI's clock on, BOOTTIME is that much more.
    steps: Vec<(u64, i64)>,
    /// How long reading both clocks took for the newest step.
    width: u64,
    /// CUPTI's clock is one that another user of it chose: that, and how they compare.
    foreign: Option<(TimestampCallback, (u64, u64), Fit)>,
}

impl Clock {
    /// Of CUPTI as it was set up: on a clock of ours or on its own.
    pub(crate) fn own() -> Clock {
        if CHOSEN.load(Ordering::Acquire) {
            return Clock { steps: vec![(0, 0)], width: 0, foreign: None };
        }
        Clock::realtime()
    }

    /// Of a library whose times are those of `CLOCK_REALTIME`.
    pub(crate) fn realtime() -> Clock {
        let (_, offset, width) = read();
        Clock { steps: vec![(0, offset)], width, foreign: None }
    }

    /// CUPTI's times are those of `CLOCK_BOOTTIME`.
    #[cfg(test)]
    pub(crate) fn same() -> Clock {
        Clock { steps: vec![(0, 0)], width: 0, foreign: None }
    }

    /// Of CUPTI on the clock of another user of it. Takes a moment, to learn its rate.
    pub(crate) fn foreign(theirs: TimestampCallback) -> Clock {
        let first = compare(theirs);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let fit = Fit::through(first, compare(theirs));
        Clock { steps: vec![(0, 0)], width: 0, foreign: Some((theirs, first, fit)) }
    }

    /// Looks whether the clock was set.
    pub(crate) fn look(&mut self) {
        if let Some((theirs, first, fit)) = &mut self.foreign {
            *fit = Fit::through(*first, compare(*theirs));
        } else if self.steps[0] != (0, 0) {
            let (real, offset, width) = read();
            self.compare(real, offset, width);
        }
    }

    fn compare(&mut self, real: u64, offset: i64, width: u64) {
        let last = self.steps.len() - 1;
        let (from, known) = self.steps[last];
        if known.abs_diff(offset) > NOISE_NANOS {
            // A clock set back passes through some times twice; they belong to the newer
            // past, which is what a decoder of recent records sees.
            self.steps.retain(|step| step.0 < real);
            if self.steps.len() == STEPS {
                self.steps.remove(1);
            }
            self.steps.push((real, offset));
            self.width = width;
        } else if width < self.width {
            self.steps[last] = (from, offset);
            self.width = width;
        }
    }

    /// A time of CUPTI's in nanoseconds of `CLOCK_BOOTTIME`.
    #[inline]
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        if let Some((_, _, fit)) = &self.foreign {
            return fit.at(time);
        }
        let after = self.steps.partition_point(|step| step.0 <= time);
        time.saturating_add_signed(self.steps[after.saturating_sub(1)].1)
    }
}

/// The same moment on another's clock and on `CLOCK_BOOTTIME`.
fn compare(theirs: TimestampCallback) -> (u64, u64) {
    let once = || {
        let before = system(libc::CLOCK_BOOTTIME);
        // SAFETY: a clock, which may be asked at any time.
        let their = unsafe { theirs() };
        let width = system(libc::CLOCK_BOOTTIME) - before;
        (width, (their, before + width / 2))
    };
    (0..8).map(|_| once()).min_by_key(|(width, _)| *width).map_or((0, 0), |(_, both)| both)
}

/// `CLOCK_REALTIME`, what BOOTTIME is more, and how long it took to read them.
fn read() -> (u64, i64, u64) {
    let once = || {
        let before = system(libc::CLOCK_BOOTTIME);
        let real = system(libc::CLOCK_REALTIME);
        let width = system(libc::CLOCK_BOOTTIME) - before;
        (real, (before + width / 2).wrapping_sub(real) as i64, width)
    };
    (0..8).map(|_| once()).min_by_key(|(_, _, width)| *width).unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_the_difference_of_their_time() {
        let mut clock = Clock { steps: vec![(0, -1_000)], width: 50, foreign: None };
        clock.compare(5_000_000, -1_030, 60);
        assert_eq!(clock.nanos(4_000_000), 3_999_000);
        clock.compare(5_100_000, -990, 40);
        assert_eq!(clock.nanos(4_000_000), 3_999_010);
        // Set forward by an hour.
        clock.compare(3_600_005_200_000, -3_600_000_000_990, 40);
        assert_eq!(clock.nanos(3_600_005_300_000), 5_299_010);
        assert_eq!(clock.nanos(4_000_000), 3_999_010);
        // And back.
        clock.compare(5_400_000, -990, 40);
        assert_eq!(clock.nanos(5_500_000), 5_499_010);
    }

    #[test]
    fn the_real_clocks_agree() {
        let mut clock = Clock::own();
        clock.look();
        let (real, offset, _) = read();
        let boot = real.saturating_add_signed(offset);
        assert!(clock.nanos(real).abs_diff(boot) < 20_000);
    }
}
