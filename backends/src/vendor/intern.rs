//! Names that must not be missed.

use kymograph_protos::{Recorder, StrId};

/// As [`Recorder::intern`], which refuses while another thread adds a name: for names that
/// are asked for once, or on a thread of ours.
pub(crate) fn intern(recorder: &dyn Recorder, category: StrId, text: &[u8]) -> StrId {
    // A moment only: the interner may be full, or this thread may have interrupted another
    // that is in the middle of it.
    for _ in 0..100 {
        let id = recorder.intern(category, text);
        if !id.is_none() {
            return id;
        }
        std::thread::yield_now();
    }
    StrId::NONE
}
