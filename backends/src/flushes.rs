//! Flushes that another process asks for, which reads what this one records, and the end of all
//! sources: it must not wait for us, nor we for it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Answers of a round that are counted at most.
const MOST: u64 = 0xff;

/// Memory that both map. All zeros: nobody has asked, and no source runs.
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
}

impl Flushes {
    /// Who reads: asks all sources that run to push what they have finished. Returns the
    /// round, for [`Flushes::is_done`].
    pub fn ask(&self) -> u64 {
        let next = |word: u64| Some(((word >> 8) + 1) << 8);
        let before = self.round.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        (before.unwrap_or_else(|word| word) >> 8) + 1
    }

    /// Who reads: whether all have.
    pub fn is_done(&self, round: u64) -> bool {
        let word = self.round.load(Ordering::Acquire);
        let running = u64::from(self.running.load(Ordering::Acquire));
        word >> 8 != round || word & MOST >= running.min(MOST)
    }

    /// Who reads: has all sources push what they have, and end, for good.
    pub fn stop(&self) {
        self.stop.store(1, Ordering::Release);
    }

    /// Who reads: whether no source runs.
    pub fn is_idle(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
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
        let one_more = |word: u64| (word >> 8 == round && word & MOST < MOST).then_some(word + 1);
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

/// Has sources that start from now on answer what is asked there.
pub fn answer_to(flushes: &'static Flushes) {
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
