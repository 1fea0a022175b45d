//! CUPTI's clock, as nanoseconds of `CLOCK_BOOTTIME`.
//!
//! CUPTI's timestamps are `CLOCK_REALTIME` by default (cuptiGetTimestamp; device times are
//! converted to it by CUPTI).
//!
//! Where CUPTI can be given a clock of ours without harm, that is `CLOCK_BOOTTIME` itself.
//! From CUDA 12.6 Update 2 to 13.0, device times may become 0 with a clock of ours
//! (release notes of 13.1): there, and in all versions that cannot be told apart from
//! those, the default stays.

use std::sync::atomic::Ordering;

use super::state::STATE;
use super::sys::TimestampCallback;
use crate::device::clock::{self, compare, system};
use crate::device::realtime::Realtime;

/// Whether this version of CUPTI can be given a clock.
pub(crate) fn can_be_chosen(version: u32) -> bool {
    !(24..130_100).contains(&version)
}

/// CUPTI was given `CLOCK_BOOTTIME`.
pub(crate) fn choose() {
    STATE.setup.clock_chosen.store(true, Ordering::Release);
}

/// CUPTI's clock.
pub(crate) fn cupti() -> u64 {
    system(match STATE.setup.clock_chosen.load(Ordering::Acquire) {
        true => libc::CLOCK_BOOTTIME,
        false => libc::CLOCK_REALTIME,
    })
}

/// The clock that CUPTI gets. Takes no lock; runs on any thread, at any time, for ever.
pub(crate) unsafe extern "C" fn boottime() -> u64 {
    clock::boottime()
}

/// The same moment on CUPTI's clock and on another.
pub(crate) fn both(theirs: TimestampCallback) -> (u64, u64) {
    // SAFETY: a clock, which may be asked at any time.
    let both = compare(8, cupti, || Some(unsafe { theirs() })).unwrap_or_default();
    (both.ours, both.theirs)
}

/// From CUPTI's clock to the other's: a line through two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    from: (u64, u64),
    rate: f64,
}

impl Fit {
    pub(crate) fn through(first: (u64, u64), last: (u64, u64)) -> Fit {
        let run = last.0.wrapping_sub(first.0) as i64;
        let rise = last.1.wrapping_sub(first.1) as i64;
        let rate = if run > 0 && rise > 0 { rise as f64 / run as f64 } else { 1.0 };
        // From the later one: what is converted is recent.
        Fit { from: last, rate }
    }

    pub(crate) fn at(&self, time: u64) -> u64 {
        let distance = time.wrapping_sub(self.from.0) as i64;
        self.from.1.wrapping_add_signed((distance as f64 * self.rate) as i64)
    }
}

/// From CUPTI's times to `CLOCK_BOOTTIME`.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// That is what CUPTI has.
    Chosen,
    Default(Realtime),
    /// One that another user of CUPTI chose.
    Foreign(Box<Foreign>),
}

/// How many comparisons are remembered.
const FITS: usize = 64;

/// The clock of another user of CUPTI, and how it compares with ours.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    theirs: TimestampCallback,
    first: (u64, u64),
    /// From a time of theirs on: the least that it is in ours, and how to convert. The newest
    /// is the last; what was converted by an older one stays as it is.
    fits: Vec<(u64, u64, Fit)>,
}

impl Foreign {
    fn look(&mut self) {
        let now = at_once(self.theirs);
        if self.fits.last().is_some_and(|(from, ..)| now.0 <= *from) {
            return;
        }
        let least = self.nanos(now.0);
        if self.fits.len() == FITS {
            self.fits.remove(1);
        }
        self.fits.push((now.0, least, Fit::through(self.first, now)));
    }

    fn nanos(&self, time: u64) -> u64 {
        let after = self.fits.partition_point(|(from, ..)| *from <= time);
        let (_, least, fit) = &self.fits[after.saturating_sub(1)];
        fit.at(time).max(*least)
    }
}

impl Clock {
    /// Of CUPTI as it was set up: on a clock of ours or on its own.
    pub(crate) fn own() -> Clock {
        match STATE.setup.clock_chosen.load(Ordering::Acquire) {
            true => Clock::Chosen,
            false => Clock::Default(Realtime::new()),
        }
    }

    /// Of CUPTI on the clock of another user of it. Takes a moment, to learn its rate.
    pub(crate) fn foreign(theirs: TimestampCallback) -> Clock {
        let first = at_once(theirs);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let fits = vec![(0, 0, Fit::through(first, at_once(theirs)))];
        Clock::Foreign(Box::new(Foreign { theirs, first, fits }))
    }

    /// Looks whether the clock was set.
    pub(crate) fn look(&mut self) {
        match self {
            Clock::Chosen => {}
            Clock::Default(realtime) => realtime.look(),
            Clock::Foreign(foreign) => foreign.look(),
        }
    }

    /// A time of CUPTI's in nanoseconds of `CLOCK_BOOTTIME`.
    #[inline]
    pub(crate) fn nanos(&self, time: u64) -> u64 {
        match self {
            Clock::Chosen => time,
            Clock::Default(realtime) => realtime.nanos(time),
            Clock::Foreign(foreign) => foreign.nanos(time),
        }
    }
}

/// The same moment on another's clock and on `CLOCK_BOOTTIME`.
fn at_once(theirs: TimestampCallback) -> (u64, u64) {
    // SAFETY: a clock, which may be asked at any time.
    let both = compare(8, clock::boottime, || Some(unsafe { theirs() })).unwrap_or_default();
    (both.theirs, both.ours)
}
