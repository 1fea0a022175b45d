//! Which operators are open on a thread, and which of them were recorded.
//!
//! PyTorch's own nest, since they are objects on the stack. What Python annotates need not: it
//! may end on another thread, or before what began inside. So an end is matched by the object's
//! address. One that ends on another thread ends there as nothing, and here with what is around
//! it.

use std::cell::Cell;

/// Operators at most that are open and followed.
const DEPTH: usize = 64;
/// Bit of an address of an object, which is aligned: its beginning was recorded.
const RECORDED: usize = 1;

#[derive(Debug)]
pub(super) struct Thread {
    depth: Cell<usize>,
    open: [Cell<usize>; DEPTH],
}

thread_local! {
    static THREAD: Thread =
        const { Thread { depth: Cell::new(0), open: [const { Cell::new(0) }; DEPTH] } };
}

/// The calling thread's. (`const` and without a destructor: the access cannot fail.)
#[inline(always)]
pub(super) fn with<R>(body: impl FnOnce(&Thread) -> R) -> R {
    let thread = THREAD.with(std::ptr::from_ref);
    // SAFETY: the calling thread's, which has no destructor.
    body(unsafe { &*thread })
}

impl Thread {
    /// Whether another one can be followed.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.depth.get() < DEPTH
    }

    /// One begins, which is followed if there is room.
    #[inline(always)]
    pub(super) fn begin(&self, object: usize, recorded: bool) {
        let depth = self.depth.get();
        if let Some(place) = self.open.get(depth) {
            place.set(object | usize::from(recorded));
            self.depth.set(depth + 1);
        }
    }

    /// One ends: how many that were recorded end now, those inside of it included.
    #[inline(always)]
    pub(super) fn end(&self, object: usize) -> usize {
        let depth = self.depth.get();
        match depth.checked_sub(1).and_then(|top| self.open.get(top)).map(Cell::get) {
            Some(top) if top & !RECORDED == object => {
                self.depth.set(depth - 1);
                top & RECORDED
            }
            _ => self.end_below(object),
        }
    }

    #[cold]
    fn end_below(&self, object: usize) -> usize {
        let open = self.open.get(..self.depth.get()).unwrap_or_default();
        let Some(at) = open.iter().rposition(|open| open.get() & !RECORDED == object) else {
            return 0;
        };
        self.depth.set(at);
        open.iter().skip(at).map(|open| open.get() & RECORDED).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_matched_by_the_object() {
        with(|thread| {
            thread.begin(0x100, true);
            thread.begin(0x200, false);
            thread.begin(0x300, true);
            assert_eq!(thread.end(0x300), 1);
            assert_eq!(thread.end(0x999), 0, "it began on another thread");
            assert_eq!(thread.end(0x200), 0);
            thread.begin(0x400, true);
            thread.begin(0x500, true);
            assert_eq!(thread.end(0x400), 2, "it ends before what began inside");
            assert_eq!(thread.end(0x500), 0);
            assert_eq!(thread.end(0x100), 1);
            assert_eq!(thread.depth.get(), 0);
        });
    }

    #[test]
    fn what_is_too_deep_is_not_followed() {
        with(|thread| {
            (0..DEPTH + 9).for_each(|n| thread.begin((n + 1) << 4, true));
            assert!(!thread.has_room());
            let ends = |n: usize| thread.end((n + 1) << 4);
            assert_eq!((0..DEPTH + 9).rev().map(ends).sum::<usize>(), DEPTH);
            assert_eq!(thread.depth.get(), 0);
        });
    }
}
