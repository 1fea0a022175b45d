//! What is remembered of slices and ranges that cross an edge of the window.

use std::collections::{HashMap, HashSet};

use kymograph_protos::record::{ArgType, Slot, StrId};

use crate::engine::origin::OwnTexts;
use crate::engine::record::Decoded;
use crate::engine::window::Side;

/// Slices of a thread on the wrong side of an edge.
#[derive(Debug, Default)]
pub struct Edges {
    /// Began before the window opened and have not ended: nesting stack and record.
    pub(super) early: Vec<(StrId, Box<[Slot]>)>,
    /// Began after it closed.
    pub(super) late: Vec<StrId>,
}

/// The same for ranges, by id.
#[derive(Debug, Default)]
pub struct RangeEdges {
    pub(super) early: HashMap<u64, Box<[Slot]>>,
    /// Ended early, and their beginning is still in another thread's queue.
    pub(super) ended: HashSet<u64>,
    pub(super) late: HashSet<u64>,
}

impl Edges {
    /// Whether slices wait for the window to open.
    #[inline]
    pub fn wait(&self) -> bool {
        !self.early.is_empty()
    }
}

/// Says of a slice which edge it crosses.
pub fn mark(decoded: &mut Decoded, texts: &OwnTexts, edge: Side) {
    let value = match edge {
        Side::Opens => texts.start,
        Side::Closes => texts.end,
    };
    decoded.add(texts.straddles, ArgType::Str, value.0.into());
}
