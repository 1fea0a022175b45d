//! Ranges: slices that may cross each other and end on another thread.

use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::record::{Kind, Record};
use kymograph_protos::{Recorder, StrId};

use super::callsite::Callsite;
use super::draft::Draft;
use super::track::Track;
use super::value::{Encoded, Value};
use crate::clock;
use crate::recorder::PIPELINE;

/// Ids of ranges and tracks, unique in the process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// An id that nothing else in the process has.
pub(crate) fn unique() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A slice that lasts until this is dropped, wherever that happens. Made by
/// [`crate::range!`]. It lies on the track it was given, else on one named after its
/// category.
#[must_use = "the range ends when this is dropped; keep it as long as what it describes lasts"]
#[derive(Debug)]
pub struct Range {
    /// 0: not recorded.
    id: u64,
}

impl Range {
    /// A range that records nothing.
    pub const fn none() -> Range {
        Range { id: 0 }
    }

    /// Ends it here and now, as dropping it does.
    pub fn end(self) {}

    /// Ends it with arguments that were not known when it began.
    pub fn end_with<const N: usize>(mut self, args: [(&'static str, &dyn Value); N]) {
        let id = std::mem::take(&mut self.id);
        if id != 0 {
            let mut draft = Draft::new(Kind::RangeEnd, StrId::NONE).other(id);
            draft.values(&args);
            draft.push();
        }
    }

    /// For the macro.
    #[doc(hidden)]
    #[inline]
    pub fn open<const N: usize>(
        site: &'static Callsite<N>,
        track: Option<&Track>,
        values: [Encoded<'_>; N],
    ) -> Range {
        let id = unique();
        let track = track.map(Track::id);
        Range { id: if site.record(Kind::RangeBegin, id, track, values) { id } else { 0 } }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        if self.id != 0 {
            let head = Record {
                time: clock::ticks(),
                other: self.id,
                kind: Kind::RangeEnd as u8,
                ..Record::default()
            };
            PIPELINE.push(head, &[]);
        }
    }
}
