//! Flushes that another process asks for, which reads what this one records, and the end of all
//! sources: it must not wait for us, nor we for it.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Answers of a round that are counted at most.
const MAX_SOURCES: u64 = 0xff;
/// How long the reader may stand still before its process is looked for.
const STILL: Duration = Duration::from_secs(5);

/// Memory that both map. All zeros: no flush was asked for, and no source runs.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Flushes {
    /// How often flushes were asked for, and in the lowest byte how many sources have answered
    /// the last time.
    round: AtomicU64,
    /// Sources that run.
    running: AtomicU32,
    /// Not 0: they are to end.
    stop: AtomicU32,
    /// Changes as long as there is a reader.
    beats: AtomicU64,
}

impl Flushes {
    /// For the reader: asks all sources that run to push what they have finished. Returns the
    /// round, for [`Flushes::is_done`].
    pub fn ask(&self) -> u64 {
        let next = |word: u64| Some(((word >> 8) + 1) << 8);
        let before = self.round.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        (before.unwrap_or_else(|word| word) >> 8) + 1
    }

    /// For the reader: whether all have.
    pub fn is_done(&self, round: u64) -> bool {
        let word = self.round.load(Ordering::Acquire);
        let running = u64::from(self.running.load(Ordering::Acquire));
        word >> 8 != round || word & MAX_SOURCES >= running.min(MAX_SOURCES)
    }

    /// For the reader: has all sources push what they have, and end, for good.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::Release);
    }

    /// For the reader: whether no source runs.
    pub fn is_idle(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// For the reader, many times a second: it is there.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// For a source: ends all sources, if the reader is gone. To be called now and then.
    pub(crate) fn look_for_reader(&self) {
        let now = monotonic();
        let beats = self.beats.load(Ordering::Relaxed);
        if BEATS.swap(beats, Ordering::Relaxed) != beats {
            return SINCE.store(now, Ordering::Relaxed);
        }
        let still = now.saturating_sub(SINCE.load(Ordering::Relaxed));
        if beats != 0 && u128::from(still) >= STILL.as_nanos() {
            SINCE.store(now, Ordering::Relaxed);
            if IS_GONE.get().is_some_and(|is_gone| is_gone()) {
                self.stop();
            }
        }
    }

    /// A source: whether it is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire) != 0
    }

    /// A source: the last round that was asked for.
    pub(crate) fn round(&self) -> u64 {
        self.round.load(Ordering::Acquire) >> 8
    }

    /// A source: everything is pushed that was finished before this round was read.
    pub(crate) fn answer(&self, round: u64) {
        let one_more = |word: u64| {
            (word >> 8 == round && word & MAX_SOURCES < MAX_SOURCES).then_some(word + 1)
        };
        let _ = self.round.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
    }

    pub(crate) fn source_starts(&self) {
        self.running.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn source_ends(&self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}

static ASKED: AtomicPtr<Flushes> = AtomicPtr::new(ptr::null_mut());
/// What is known of the reader: its last beat, since when, and how to find out whether it is gone.
static BEATS: AtomicU64 = AtomicU64::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);
static IS_GONE: OnceLock<fn() -> bool> = OnceLock::new();

/// In nanoseconds.
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Has sources that start from now on answer what is asked there. `is_gone` says whether the
/// reader is gone; it is called when the reader has not moved for seconds.
pub fn answer_to(flushes: &'static Flushes, is_gone: fn() -> bool) {
    let _ = IS_GONE.set(is_gone);
    ASKED.store(ptr::from_ref(flushes).cast_mut(), Ordering::Release);
}

/// Where flushes are asked for, if they are.
pub(crate) fn asked() -> Option<&'static Flushes> {
    // SAFETY: null, or a reference that stays.
    unsafe { ASKED.load(Ordering::Acquire).as_ref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_is_looked_for_when_it_stands_still() {
        static FLUSHES: Flushes = Flushes {
            round: AtomicU64::new(0),
            running: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            beats: AtomicU64::new(0),
        };
        let long_ago = || SINCE.store(monotonic() - 2 * STILL.as_nanos() as u64, Ordering::Relaxed);
        let _ = IS_GONE.set(|| true);
        long_ago();
        FLUSHES.look_for_reader();
        assert!(!FLUSHES.is_stopped(), "nobody has begun to read");
        FLUSHES.beat();
        long_ago();
        FLUSHES.look_for_reader();
        assert!(!FLUSHES.is_stopped(), "it moves");
        FLUSHES.look_for_reader();
        assert!(!FLUSHES.is_stopped(), "it has moved a moment ago");
        long_ago();
        FLUSHES.look_for_reader();
        assert!(FLUSHES.is_stopped());
    }

    #[test]
    fn a_round_is_done_when_all_have_answered_it() {
        let flushes = Flushes::default();
        let first = flushes.ask();
        assert!(flushes.is_done(first), "nobody is there");
        flushes.source_starts();
        flushes.source_starts();
        let second = flushes.ask();
        assert_eq!((second, flushes.round()), (first + 1, second));
        flushes.answer(first);
        flushes.answer(second);
        assert!(!flushes.is_done(second));
        flushes.answer(second);
        assert!(flushes.is_done(second));
        let third = flushes.ask();
        assert!(!flushes.is_done(third) && flushes.is_done(second));
        flushes.source_ends();
        flushes.source_ends();
        assert!(flushes.is_done(third));
    }
}
