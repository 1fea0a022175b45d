//! Which operators are open on a thread, and which of them were recorded.
//!
//! PyTorch's own nest, since they are objects on the stack. What Python annotates need not: it
//! may end on another thread, or before what began inside. So an end is matched by the object's
//! address. One that ends on another thread ends there as nothing, and here with what is around
//! it. Annotations that nest apart from operators end with annotations around them, and operators
//! with operators.

use std::cell::Cell;

/// Operators at most that are open and followed.
const DEPTH: usize = 64;
/// Bits of an address of an object, which is aligned: its beginning was recorded as a scope, or
/// as an annotation that nests apart from scopes.
const SCOPE: usize = 1;
const APART: usize = 2;
const BITS: usize = SCOPE | APART;

/// How a beginning was recorded, if it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recorded {
    Not = 0,
    Scope = SCOPE as isize,
    Apart = APART as isize,
}

/// How many end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ends {
    pub(super) scopes: usize,
    pub(super) apart: usize,
}

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
    pub(super) fn begin(&self, object: usize, recorded: Recorded) {
        let depth = self.depth.get();
        if let Some(place) = self.open.get(depth) {
            place.set(object | recorded as usize);
            self.depth.set(depth + 1);
        }
    }

    /// One ends: how many that were recorded end now, those inside of it included.
    #[inline(always)]
    pub(super) fn end(&self, object: usize) -> Ends {
        let depth = self.depth.get();
        match depth.checked_sub(1).and_then(|top| self.open.get(top)).map(Cell::get) {
            Some(top) if top & !BITS == object => {
                self.depth.set(depth - 1);
                Ends { scopes: top & SCOPE, apart: (top & APART) >> 1 }
            }
            _ => self.end_below(object),
        }
    }

    #[cold]
    fn end_below(&self, object: usize) -> Ends {
        let mut ends = Ends::default();
        let open = self.open.get(..self.depth.get()).unwrap_or_default();
        let Some(at) = open.iter().rposition(|open| open.get() & !BITS == object) else {
            return ends;
        };
        let (_, rest) = open.split_at(at);
        let apart = rest.first().map_or(0, |ended| ended.get() & APART);
        let mut depth = at;
        for inside in rest.iter().map(Cell::get) {
            if inside & APART == apart {
                ends.scopes += inside & SCOPE;
                ends.apart += (inside & APART) >> 1;
            } else if let Some(place) = self.open.get(depth) {
                place.set(inside);
                depth += 1;
            }
        }
        self.depth.set(depth);
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn scopes(scopes: usize) -> Ends {
        Ends { scopes, apart: 0 }
    }

    #[test]
    fn ends_are_matched_by_the_object() {
        with(|thread| {
            thread.begin(0x100, Recorded::Scope);
            thread.begin(0x200, Recorded::Not);
            thread.begin(0x300, Recorded::Scope);
            assert_eq!(thread.end(0x300), scopes(1));
            assert_eq!(thread.end(0x999), scopes(0), "it began on another thread");
            assert_eq!(thread.end(0x200), scopes(0));
            thread.begin(0x400, Recorded::Scope);
            thread.begin(0x500, Recorded::Scope);
            assert_eq!(thread.end(0x400), scopes(2), "it ends before what began inside");
            assert_eq!(thread.end(0x500), scopes(0));
            assert_eq!(thread.end(0x100), scopes(1));
            assert_eq!(thread.depth.get(), 0);
        });
    }

    #[test]
    fn what_nests_apart_ends_apart() {
        with(|thread| {
            let one = Ends { scopes: 0, apart: 1 };
            thread.begin(0x100, Recorded::Scope);
            thread.begin(0x200, Recorded::Apart);
            thread.begin(0x300, Recorded::Scope);
            assert_eq!(thread.end(0x200), one, "the operator inside goes on");
            assert_eq!(thread.end(0x300), scopes(1));
            thread.begin(0x400, Recorded::Apart);
            thread.begin(0x500, Recorded::Scope);
            assert_eq!(thread.end(0x100), scopes(2), "the annotation inside goes on");
            assert_eq!(thread.end(0x500), scopes(0));
            assert_eq!(thread.end(0x400), one);
            thread.begin(0x600, Recorded::Apart);
            thread.begin(0x700, Recorded::Scope);
            thread.begin(0x800, Recorded::Apart);
            assert_eq!(thread.end(0x600), Ends { scopes: 0, apart: 2 });
            assert_eq!(thread.end(0x800), scopes(0));
            assert_eq!(thread.end(0x700), scopes(1));
            assert_eq!(thread.depth.get(), 0);
        });
    }

    #[test]
    fn what_is_too_deep_is_not_followed() {
        with(|thread| {
            (0..DEPTH + 9).for_each(|n| thread.begin((n + 1) << 4, Recorded::Scope));
            assert!(!thread.has_room());
            let ends = |n: usize| thread.end((n + 1) << 4).scopes;
            assert_eq!((0..DEPTH + 9).rev().map(ends).sum::<usize>(), DEPTH);
            assert_eq!(thread.depth.get(), 0);
        });
    }
}
