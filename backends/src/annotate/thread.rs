//! What a thread remembers: its push/pop stacks, one per category.
//!
//! NVTX and ITT nest per thread and domain, and the recorder matches a pop to the
//! innermost push of the same category. So there is one stack per category here too, be
//! it fed by one domain, by two of the same name, or by both libraries.
//!
//! A stack holds no names, only which of its levels were recorded: one bit each for the
//! first 64. Deeper than that, levels that were refused are remembered in runs. Where there
//! are more of those than fit, the next push that is refused silences what is pushed on top
//! of it until it is popped, and that is counted.
//!
//! All state is `Cell`s without destructors: usable in a signal handler, while the thread
//! ends, and without registration.

use std::cell::Cell;

use kymograph_protos::StrId;

use super::guard::events_left_out;

/// Categories whose stack is not empty, at most, on one thread.
const STACKS: usize = 32;
/// Levels with a bit of their own.
const SHALLOW: u32 = u64::BITS;
/// Runs of refused levels below those, at most, on one thread.
const RUNS: usize = 16;
/// Metadata that waits for the end of its slice, at most, on one thread.
const PENDING: usize = 32;

/// The stack of one category.
#[derive(Debug)]
pub(crate) struct Stack {
    category: Cell<u32>,
    depth: Cell<u32>,
    lost: Cell<u64>,
    silent_from: Cell<u32>,
}

/// Levels of a category, one after the other, whose pushes were refused.
#[derive(Clone, Copy, Debug)]
struct Run {
    category: u32,
    from: u32,
    /// The last one.
    to: u32,
}

/// The refused levels deeper than [`SHALLOW`], of all categories.
#[derive(Debug)]
struct Refused {
    runs: [Cell<Run>; RUNS],
    count: Cell<usize>,
}

/// What a pop found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Popped {
    /// 0-based level that ended.
    pub(crate) level: u32,
    /// Whether its push was recorded.
    pub(crate) recorded: bool,
}

impl Stack {
    const fn new() -> Stack {
        Stack {
            category: Cell::new(0),
            depth: Cell::new(0),
            lost: Cell::new(0),
            silent_from: Cell::new(u32::MAX),
        }
    }

    /// How many levels are open.
    #[inline(always)]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// Opens a level, recorded by `send` (which says whether it was) if it is `live`. Returns
    /// its number.
    #[inline(always)]
    fn push(&self, deep: &Refused, live: bool, send: impl FnOnce(u32) -> bool) -> u32 {
        let level = self.depth.get();
        let silent = level >= self.silent_from.get();
        let recorded = live && !silent && send(level);
        self.depth.set(level.saturating_add(1));
        if level < SHALLOW {
            let bit = 1 << level;
            let lost = self.lost.get();
            self.lost.set(if recorded { lost & !bit } else { lost | bit });
        } else if silent {
            events_left_out(live.into());
        } else if !recorded && !deep.add(self.category.get(), level) {
            self.silent_from.set(level);
        }
        level
    }

    /// Closes the innermost level; none if none is open.
    #[inline(always)]
    fn pop(&self, deep: &Refused) -> Option<Popped> {
        let level = self.depth.get().checked_sub(1)?;
        self.depth.set(level);
        let recorded = if level < SHALLOW {
            self.lost.get() >> level & 1 == 0
        } else {
            level < self.silent_from.get() && !deep.remove(self.category.get(), level)
        };
        if self.silent_from.get() == level {
            self.silent_from.set(u32::MAX);
        }
        Some(Popped { level, recorded })
    }
}

impl Refused {
    const fn new() -> Refused {
        const NONE: Run = Run { category: 0, from: 0, to: 0 };
        Refused { runs: [const { Cell::new(NONE) }; RUNS], count: Cell::new(0) }
    }

    /// The innermost run of a category.
    fn find(&self, category: u32) -> Option<(usize, Run)> {
        let runs = self.runs[..self.count.get()].iter().map(Cell::get).enumerate();
        runs.rev().find(|(_, run)| run.category == category)
    }

    /// The innermost level of a category was refused. Returns whether that can be remembered.
    #[cold]
    fn add(&self, category: u32, level: u32) -> bool {
        if let Some((at, run)) = self.find(category)
            && run.to + 1 == level
        {
            self.runs[at].set(Run { to: level, ..run });
            return true;
        }
        let count = self.count.get();
        let Some(place) = self.runs.get(count) else {
            return false;
        };
        place.set(Run { category, from: level, to: level });
        self.count.set(count + 1);
        true
    }

    /// Whether the innermost level of a category, which ends, was refused.
    #[cold]
    fn remove(&self, category: u32, level: u32) -> bool {
        let Some((at, run)) = self.find(category).filter(|(_, run)| run.to == level) else {
            return false;
        };
        if run.from < level {
            self.runs[at].set(Run { to: level - 1, ..run });
            return true;
        }
        let count = self.count.get();
        for next in at + 1..count {
            self.runs[next - 1].set(self.runs[next].get());
        }
        self.count.set(count - 1);
        true
    }
}

/// An argument that waits for the end of its slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) category: u32,
    pub(crate) level: u32,
    pub(crate) extra: kymograph_protos::Extra,
}

/// The state of one thread.
#[derive(Debug)]
pub(crate) struct Thread {
    stacks: [Stack; STACKS],
    refused: Refused,
    /// One more than the level of the innermost open
    /// `autograd::engine::evaluate_function` of PyTorch; 0: none is open.
    pub(crate) evaluating: Cell<u32>,
    /// A small number that tells threads apart; 0: not given yet.
    pub(crate) ordinal: Cell<u32>,
    pending: [Cell<Option<Pending>>; PENDING],
    pending_count: Cell<usize>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            stacks: [const { Stack::new() }; STACKS],
            refused: Refused::new(),
            evaluating: Cell::new(0),
            ordinal: Cell::new(0),
            pending: [const { Cell::new(None) }; PENDING],
            pending_count: Cell::new(0),
        }
    };
}

/// The calling thread's state. (`const` and without a destructor: the access cannot fail.)
#[inline(always)]
pub(crate) fn with<R>(body: impl FnOnce(&Thread) -> R) -> R {
    // Only the address is asked for inside: `LocalKey::with` is not inlined with more in it,
    // and then calls twice.
    let thread = THREAD.with(std::ptr::from_ref);
    // SAFETY: the calling thread's, which has no destructor.
    body(unsafe { &*thread })
}

impl Thread {
    /// Opens a level of `category`, recorded by `send` (which says whether it was) if it is
    /// `live`. Returns its number, or none where there is no room for another category.
    #[inline(always)]
    pub(crate) fn push(
        &self,
        category: StrId,
        live: bool,
        send: impl FnOnce(u32) -> bool,
    ) -> Option<u32> {
        let Some(stack) = self.stack(category) else {
            events_left_out(live.into());
            return None;
        };
        Some(stack.push(&self.refused, live, send))
    }

    /// Closes the innermost level of `category`, if one is open.
    #[inline(always)]
    pub(crate) fn pop(&self, category: StrId) -> Option<Popped> {
        self.stack(category)?.pop(&self.refused)
    }

    /// The stack of `category`, if it is not empty or there is room for it.
    #[inline(always)]
    pub(crate) fn stack(&self, category: StrId) -> Option<&Stack> {
        let home = &self.stacks[category.0 as usize % STACKS];
        if home.category.get() == category.0 {
            return Some(home);
        }
        self.find(category)
    }

    /// A stack may live anywhere, as it moved in when its home was taken: look everywhere
    /// before taking an empty one.
    #[inline(never)]
    fn find(&self, category: StrId) -> Option<&Stack> {
        let start = category.0 as usize % STACKS;
        let all = || (0..STACKS).map(|i| &self.stacks[(start + i) % STACKS]);
        if let Some(stack) = all().find(|s| s.category.get() == category.0 && s.depth() > 0) {
            return Some(stack);
        }
        let stack = all().find(|s| s.depth() == 0)?;
        stack.category.set(category.0);
        stack.lost.set(0);
        stack.silent_from.set(u32::MAX);
        Some(stack)
    }

    /// Keeps an argument for the end of an open level; `false` if there is no room.
    pub(crate) fn keep(&self, pending: Pending) -> bool {
        let count = self.pending_count.get();
        let Some(place) = self.pending.get(count) else {
            return false;
        };
        place.set(Some(pending));
        self.pending_count.set(count + 1);
        true
    }

    /// Whether arguments wait. Cheap.
    #[inline(always)]
    pub(crate) fn has_pending(&self) -> bool {
        self.pending_count.get() > 0
    }

    /// Takes the arguments that waited for the end of a level.
    pub(crate) fn take(&self, category: StrId, level: u32, mut each: impl FnMut(Pending)) {
        let mut kept = 0;
        for i in 0..self.pending_count.get() {
            let Some(pending) = self.pending[i].get() else {
                continue;
            };
            if pending.category == category.0 && pending.level >= level {
                each(pending);
            } else {
                self.pending[kept].set(Some(pending));
                kept += 1;
            }
        }
        self.pending_count.set(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StrId = StrId(1);

    #[test]
    fn a_refused_push_is_remembered_at_any_depth() {
        with(|thread| {
            let refused = |level| level == 3 || (100..110).contains(&level) || level == 150;
            for level in 0..200 {
                assert_eq!(thread.push(ONE, true, |level| !refused(level)), Some(level));
                // What another category does is none of this one's business.
                thread.push(StrId(2), true, |_| !(70..=180).contains(&level));
                thread.push(StrId(3), level != 120, |_| true);
            }
            for level in (0..200).rev() {
                let recorded = !refused(level);
                assert_eq!(thread.pop(ONE), Some(Popped { level, recorded }));
                let expected = Popped { level, recorded: level != 120 };
                assert_eq!(thread.pop(StrId(3)), Some(expected));
            }
            assert_eq!(thread.pop(ONE), None);
            assert_eq!(thread.push(ONE, true, |_| true), Some(0));
            assert_eq!(thread.pop(ONE), Some(Popped { level: 0, recorded: true }));
        });
    }

    #[test]
    fn what_cannot_be_remembered_is_not_recorded_and_counted() {
        with(|thread| {
            let before = super::super::guard::stats().events;
            // Every second one below the first 64 is refused: more runs than are kept.
            let mut offered = 0;
            for _ in 0..200 {
                thread.push(ONE, true, |level| {
                    offered += 1;
                    level < SHALLOW || level % 2 == 0
                });
            }
            let silent_from = SHALLOW + 2 * RUNS as u32 + 1;
            assert_eq!(offered, silent_from + 1);
            let left_out = super::super::guard::stats().events - before;
            assert!(left_out >= u64::from(200 - offered), "{left_out}");
            for level in (0..200).rev() {
                let recorded = level < SHALLOW || level < silent_from && level % 2 == 0;
                assert_eq!(thread.pop(ONE), Some(Popped { level, recorded }));
            }
            assert_eq!(thread.push(ONE, true, |_| true), Some(0));
        });
    }

    #[test]
    fn more_categories_than_stacks() {
        with(|thread| {
            let open = |i: u32| thread.push(StrId(i + 1), true, |_| true);
            assert!((0..STACKS as u32).all(|i| open(i * 7) == Some(0)));
            assert!((0..STACKS as u32).all(|i| open(i * 7) == Some(1)));
            assert_eq!(open(100_000), None);
            let close = |i: u32| thread.pop(StrId(i + 1)).map(|popped| popped.level);
            assert_eq!(close(7), Some(1));
            assert_eq!(close(7), Some(0));
            assert_eq!(open(100_000), Some(0));
        });
    }
}
