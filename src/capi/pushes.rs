//! Which of a thread's open pushes were recorded.
//!
//! A C caller pops without saying what: if its push was not recorded (the category was
//! off, the queue full, no recording ran yet), the pop must not end the slice around it.
//! So each push leaves a bit. The stack has no limit: beyond the levels that have bits,
//! pushes are recorded for as long as all of them are, which two counters can tell; from
//! the first one that is not, everything deeper is not either (and is counted as lost).

use std::cell::Cell;
use std::sync::atomic::{Ordering, compiler_fence};

/// Levels with a bit of their own.
const BITS: usize = 1024;

/// See the module. Used by one thread, and by signal handlers on it that pop what they
/// push.
#[derive(Debug)]
pub struct Pushes {
    depth: Cell<usize>,
    /// How many of the innermost levels, all of them beyond `BITS`, are not recorded.
    dark: Cell<usize>,
    bits: [Cell<u64>; BITS / 64],
}

impl Pushes {
    /// Nothing is open.
    pub const fn new() -> Pushes {
        Pushes {
            depth: Cell::new(0),
            dark: Cell::new(0),
            bits: [const { Cell::new(0) }; BITS / 64],
        }
    }

    /// A push: `record` tries to record it and says whether it was; it is told whether it
    /// may try.
    #[inline]
    pub fn enter(&self, record: impl FnOnce(bool) -> bool) {
        let at = self.depth.get();
        // First the level is taken, then it is described: a signal handler in between
        // uses the next level.
        self.depth.set(at + 1);
        compiler_fence(Ordering::SeqCst);
        if at < BITS {
            let (word, bit) = (&self.bits[at / 64], 1 << (at % 64));
            let recorded = record(true);
            word.set(if recorded { word.get() | bit } else { word.get() & !bit });
        } else if self.dark.get() > 0 {
            record(false);
            self.dark.set(self.dark.get() + 1);
        } else if !record(true) {
            self.dark.set(1);
        }
    }

    /// A pop: whether its push was recorded. A pop without a push was not.
    #[inline]
    pub fn leave(&self) -> bool {
        let Some(at) = self.depth.get().checked_sub(1) else {
            return false;
        };
        let recorded = if at < BITS {
            self.bits[at / 64].get() >> (at % 64) & 1 == 1
        } else if self.dark.get() > 0 {
            self.dark.set(self.dark.get() - 1);
            false
        } else {
            true
        };
        compiler_fence(Ordering::SeqCst);
        self.depth.set(at);
        recorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pop_knows_its_push_at_any_depth() {
        for lost in [0, 1, 63, 64, 1000, BITS - 1, BITS, BITS + 1, BITS + 500] {
            let pushes = Pushes::new();
            let mut truth = Vec::new();
            for level in 0..BITS + 1000 {
                pushes.enter(|may| {
                    truth.push(may && level != lost && level % 3 != 1 - lost % 2);
                    truth[level]
                });
            }
            for recorded in truth.into_iter().rev() {
                assert_eq!(pushes.leave(), recorded);
            }
            assert!(!pushes.leave(), "a pop too many");
        }
    }

    #[test]
    fn recursion_is_recorded_as_deep_as_it_goes() {
        let pushes = Pushes::new();
        (0..100_000).for_each(|_| {
            pushes.enter(|may| may);
        });
        assert!((0..100_000).all(|_| pushes.leave()));
    }

    #[test]
    fn what_is_deeper_than_an_unrecorded_deep_push_may_not_be_recorded() {
        let pushes = Pushes::new();
        (0..BITS).for_each(|_| pushes.enter(|_| true));
        pushes.enter(|_| false);
        pushes.enter(|may| {
            assert!(!may);
            false
        });
        assert!(!pushes.leave() && !pushes.leave());
        pushes.enter(|may| may);
        assert!(pushes.leave());
    }
}
