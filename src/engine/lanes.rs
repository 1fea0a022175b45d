//! The queues that the engine empties, a thread each.

use std::collections::BTreeSet;
use std::time::Instant;

use kymograph_protos::record::Slot;

use super::thread::Thread;
use crate::queue::Losses;

/// Slots turned into packets before the next lane gets its turn.
pub(super) const BATCH: usize = 1 << 15;

/// See the module.
pub(super) struct Lanes {
    /// By the numbers of their lanes.
    pub threads: Vec<Option<Thread>>,
    /// How many threads there have been.
    pub count: u64,
    /// Losses of threads that ended.
    pub gone: Losses,
    /// Sequences of threads that lost something and ended.
    pub lossy: BTreeSet<u32>,
    /// A lane was not emptied in the last pass.
    pub behind: bool,
    /// When names of threads were looked up last.
    pub named: Instant,
    /// Slots that are being turned into packets; kept for its memory.
    pub scratch: Vec<Slot>,
}

impl Lanes {
    pub fn new(now: Instant) -> Lanes {
        Lanes {
            threads: Vec::new(),
            count: 0,
            gone: Losses::default(),
            lossy: BTreeSet::new(),
            behind: false,
            named: now,
            scratch: Vec::with_capacity(BATCH * 2),
        }
    }
}
