//! Slices that have begun and not ended: `B` without its `E` yet, `b` without its `e`.

use hashbrown::HashMap;

use crate::trace::{SliceId, StrId, TrackId};

use super::rows::Id;

/// What pairs async events: their process, category, scope and id.
pub(super) type AsyncKey = (Id, StrId, StrId, StrId);

#[derive(Debug, Default)]
pub(super) struct Open {
    sync: HashMap<TrackId, Vec<SliceId>>,
    /// The track is that of the outermost, since what nests in it belongs there too.
    pub(super) overlapping: HashMap<AsyncKey, (TrackId, Vec<SliceId>)>,
}

impl Open {
    pub(super) fn begin(&mut self, track: TrackId, slice: SliceId) {
        self.sync.entry(track).or_default().push(slice);
    }

    /// The innermost open slice of a track: ends come in reverse order.
    pub(super) fn end(&mut self, track: TrackId) -> Option<SliceId> {
        self.sync.get_mut(&track)?.pop()
    }

    pub(super) fn begin_async(&mut self, key: AsyncKey, track: TrackId, slice: SliceId) {
        self.overlapping.entry(key).or_insert_with(|| (track, Vec::new())).1.push(slice);
    }

    /// The innermost open slice of an id. Forgets the id when it was the outermost.
    pub(super) fn end_async(&mut self, key: &AsyncKey) -> Option<SliceId> {
        let (_, open) = self.overlapping.get_mut(key)?;
        let slice = open.pop();
        if open.is_empty() {
            self.overlapping.remove(key);
        }
        slice
    }
}
