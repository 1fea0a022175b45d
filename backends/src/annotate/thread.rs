//! What a thread remembers: its push/pop stacks, one per category.
//!
//! NVTX and ITT nest per thread and domain, and the recorder matches a pop to the
//! innermost push of the same category. So there is one stack per category here too, be
//! it fed by one domain, by two of the same name, or by both libraries.
//!
//! A stack holds no names, only which of its levels were recorded: one bit each for the
//! first 64. Deeper than that (a program that forgets its pops), the first push that is
//! refused silences what is pushed on top of it until it is popped.
//!
//! All state is `Cell`s without destructors: usable in a signal handler, while the thread
//! ends, and without registration.

use std::cell::Cell;

use kymograph_protos::StrId;

/// Categories whose stack is not empty, at most, on one thread.
const STACKS: usize = 32;
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

    /// Opens a level, recorded by `send` (which says whether it was). Returns its number.
    #[inline(always)]
    pub(crate) fn push(&self, send: impl FnOnce(u32) -> bool) -> u32 {
        let level = self.depth.get();
        let recorded = level < self.silent_from.get() && send(level);
        self.depth.set(level.saturating_add(1));
        if level < 64 {
            let bit = 1 << level;
            let lost = self.lost.get();
            self.lost.set(if recorded { lost & !bit } else { lost | bit });
        } else if !recorded {
            self.silent_from.set(self.silent_from.get().min(level));
        }
        level
    }

    /// Closes the innermost level; none if none is open.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Popped> {
        let level = self.depth.get().checked_sub(1)?;
        self.depth.set(level);
        let recorded = if level < 64 {
            self.lost.get() >> level & 1 == 0
        } else {
            level < self.silent_from.get()
        };
        if self.silent_from.get() == level {
            self.silent_from.set(u32::MAX);
        }
        Some(Popped { level, recorded })
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

    #[test]
    fn a_refused_push_is_remembered_at_any_depth() {
        let stack = Stack::new();
        for level in 0..200 {
            // 3 and 100 are refused; what is on top of 100 is never offered.
            let mut offered = false;
            assert_eq!(
                stack.push(|_| {
                    offered = true;
                    level != 3 && level != 100
                }),
                level
            );
            assert_eq!(offered, level <= 100);
        }
        for level in (0..200).rev() {
            let recorded = level != 3 && level < 100;
            assert_eq!(stack.pop(), Some(Popped { level, recorded }));
        }
        assert_eq!(stack.pop(), None);
        stack.push(|_| true);
        assert_eq!(stack.pop(), Some(Popped { level: 0, recorded: true }));
    }

    #[test]
    fn more_categories_than_stacks() {
        with(|thread| {
            let open = |i: u32| thread.stack(StrId(i + 1)).map(|s| s.push(|_| true));
            assert!((0..STACKS as u32).all(|i| open(i * 7) == Some(0)));
            assert!((0..STACKS as u32).all(|i| open(i * 7) == Some(1)));
            assert_eq!(open(100_000), None);
            let close = |i: u32| thread.stack(StrId(i + 1)).and_then(Stack::pop);
            assert_eq!(close(7).map(|p| p.level), Some(1));
            assert_eq!(close(7).map(|p| p.level), Some(0));
            assert_eq!(open(100_000), Some(0));
        });
    }
}
