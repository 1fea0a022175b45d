//! Which of a thread's open scopes the library knows.
//!
//! A scope that begins while it is not recorded never reaches the library: two more calls would
//! take longer than all else that it does. The library counts what it is given, so that at its end
//! each scope has to know on which side it began. Scopes without arguments have no state of their
//! own; but they nest, and a recording begins or ends seldom: so a thread counts how many of its
//! innermost scopes are of one side, and keeps such counts of what is around these.

use std::cell::{Cell, RefCell};
use std::mem::{ManuallyDrop, take};

/// See the module.
pub struct Levels {
    /// The innermost scopes, which the library does not know, and those around them, which it does.
    run: Cell<Run>,
    /// What is around these, the innermost last. Empty outside of scopes in which a recording has
    /// begun or ended; of a thread that ends in such a one it is not freed.
    around: RefCell<ManuallyDrop<Vec<Run>>>,
}

#[derive(Clone, Copy, Default)]
struct Run {
    unknown: usize,
    known: usize,
}

thread_local! {
    /// Constant and without a destructor, so that it is reached in one step.
    static LEVELS: Levels = const { Levels::new() };
}

/// A scope begins that the library is not given.
#[inline]
pub fn begin_unknown() {
    LEVELS.with(Levels::begin_unknown);
}

/// A scope begins that the library is to be given: whether it is. Without memory for a count it is
/// not.
#[inline]
pub fn begin_known() -> bool {
    LEVELS.with(Levels::begin_known)
}

/// The innermost scope ends: whether the library knows it. One that began before there was a
/// library it does not know.
#[inline]
pub fn end() -> bool {
    LEVELS.with(Levels::end)
}

impl Levels {
    const fn new() -> Levels {
        Levels {
            run: Cell::new(Run { unknown: 0, known: 0 }),
            around: RefCell::new(ManuallyDrop::new(Vec::new())),
        }
    }

    #[inline]
    fn begin_unknown(&self) {
        let run = self.run.get();
        self.run.set(Run { unknown: run.unknown + 1, ..run });
    }

    #[inline]
    fn begin_known(&self) -> bool {
        let mut run = self.run.get();
        if run.unknown > 0 {
            let mut around = self.around.borrow_mut();
            if around.try_reserve(1).is_err() {
                self.begin_unknown();
                return false;
            }
            around.push(run);
            run = Run::default();
        }
        self.run.set(Run { known: run.known + 1, ..run });
        true
    }

    #[inline]
    fn end(&self) -> bool {
        let run = self.run.get();
        if run.unknown > 0 {
            self.run.set(Run { unknown: run.unknown - 1, ..run });
            return false;
        }
        if run.known > 0 {
            self.run.set(Run { known: run.known - 1, ..run });
            return true;
        }
        self.end_around()
    }

    #[cold]
    fn end_around(&self) -> bool {
        let mut around = self.around.borrow_mut();
        // What is kept has scopes of the library's that it does not know, innermost.
        let Some(run) = around.pop() else { return false };
        self.run.set(Run { unknown: run.unknown - 1, ..run });
        if around.is_empty() {
            drop(take(&mut **around));
        }
        false
    }
}
