//! Which calls are open on a thread, and which of them were recorded.

use std::cell::Cell;

use kymograph_protos::record::OPERATOR;
use kymograph_protos::{ColdRecorder, Recorder, StrId};

use crate::recorder::PIPELINE;

/// How deep a thread's calls are, and which of the outermost were recorded.
struct Depth {
    depth: Cell<usize>,
    recorded: [Cell<u64>; WORDS],
}

const WORDS: usize = 8;

thread_local! {
    static DEPTH: Depth =
        const { Depth { depth: Cell::new(0), recorded: [const { Cell::new(0) }; WORDS] } };
}

/// Forgets what is open.
pub(super) fn forget() {
    DEPTH.with(|thread| thread.depth.set(0));
}

/// How many calls are open that were reported.
pub(super) fn depth() -> usize {
    DEPTH.with(|thread| thread.depth.get())
}

/// A call begins; `site` is its name, none if it is not recorded. Asked for only if there is a
/// recording that wants it.
#[inline]
pub(super) fn enter(category: StrId, site: impl FnOnce() -> StrId) {
    DEPTH.with(|thread| {
        let depth = thread.depth.get();
        thread.depth.set(depth + 1);
        let Some(word) = thread.recorded.get(depth / 64) else {
            return PIPELINE.lost(1);
        };
        let mut recorded = false;
        if PIPELINE.enabled(category) {
            let site = site();
            recorded = !site.is_none() && PIPELINE.begin(site, OPERATOR);
        }
        let bit = 1 << (depth % 64);
        word.set(if recorded { word.get() | bit } else { word.get() & !bit });
    });
}

/// The innermost call ends.
#[inline]
pub(super) fn leave() {
    DEPTH.with(|thread| {
        // Of one that began before it was followed, nothing is known.
        let Some(depth) = thread.depth.get().checked_sub(1) else { return };
        thread.depth.set(depth);
        let word = thread.recorded.get(depth / 64);
        if word.is_some_and(|word| word.get() >> (depth % 64) & 1 != 0) {
            PIPELINE.end();
        }
    });
}
