//! The spans that each thread has entered, as far as this layer recorded them.
//!
//! The registry has such a stack too, but shows only its top, and a span may be entered on
//! several threads at once: whether its beginning *here* was recorded is only known here.

use std::cell::RefCell;

use kymograph_protos::StrId;
use kymograph_protos::record::Kind;

use super::sites::Site;
use crate::api::draft::Draft;

/// A span that was entered.
#[derive(Debug)]
pub struct Open {
    pub span: u64,
    pub site: &'static Site,
    /// Whether a slice began with it.
    pub recorded: bool,
}

thread_local! {
    /// Apart from the queue's own thread-local: it grows, so it has a destructor.
    static ENTERED: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// A span was entered. While the thread ends and its stack is gone, its slice is ended at
/// once.
pub fn push(open: Open) {
    let recorded = open.recorded;
    if ENTERED.try_with(|entered| entered.borrow_mut().push(open)).is_err() && recorded {
        end();
    }
}

/// A span is exited: `end` records the end of its slice if it has one. Slices that began
/// inside it and have not ended are cut here, and go on after it.
pub fn pop(span: u64, end_it: impl FnOnce()) {
    let _ = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        let Some(at) = entered.iter().rposition(|open| open.span == span) else {
            return;
        };
        entered[at + 1..].iter().filter(|open| open.recorded).for_each(|_| end());
        if entered.remove(at).recorded {
            end_it();
        }
        for inside in entered[at..].iter_mut().filter(|open| open.recorded) {
            inside.recorded = inside.site.draft(Kind::Begin).push();
        }
    });
}

fn end() {
    Draft::new(Kind::End, StrId::NONE).push();
}
