//! Ranges of devices that have ended, as a whole: those of the row beside a queue.
//!
//! Viewers show what begins at one time in the order of the file, each below the one before. A
//! range often begins with those inside of it, since it begins with its first activity. So it
//! waits for what may lie around it: for open ranges that began with it, and for threads that others
//! work for, which are gone over later than those.

use std::cmp::Reverse;

use kymograph_protos::StrId;
use kymograph_protos::packet::Name;

use super::Line;

/// Ranges that may wait; if there are more, they come in the order of their ends.
const MAX: usize = 1 << 14;

/// A range that a queue worked for. Times are nanoseconds on the trace's clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whole {
    /// The queue.
    pub queue: u32,
    /// When it began to work for the range.
    pub since: u64,
    /// When it was done.
    pub until: u64,
    /// When the range ended on its thread.
    pub(super) closed: u64,
    pub(super) site: StrId,
    pub(super) bytes: Option<Box<[u8]>>,
}

impl Whole {
    /// What it is called.
    pub fn name(&self) -> Name<'_> {
        self.bytes.as_deref().map_or(Name::Id(self.site), Name::Bytes)
    }

    /// Whether one around it may come.
    fn waits(&self, lines: &[Line]) -> bool {
        lines.iter().any(|line| {
            let late = line.others_work()
                && line.steps.front().is_some_and(|(time, _)| *time < self.closed);
            let began = (self.queue, self.since);
            let mut queues = line.open.iter().flat_map(|range| &range.queues);
            late || queues.any(|(queue, since, _)| (*queue, *since) == began)
        })
    }
}

/// Those that wait, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Wholes(Vec<Whole>);

impl Wholes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, whole: Whole) {
        self.0.push(whole);
    }

    /// Hands out those that need not wait; `all`: all of them.
    pub(super) fn settle(&mut self, lines: &[Line], all: bool, mut write: impl FnMut(&Whole)) {
        let all = all || self.0.len() > MAX;
        let ended = std::mem::take(&mut self.0).into_iter();
        let (waiting, mut ready): (Vec<_>, Vec<_>) = ended.partition(|w| !all && w.waits(lines));
        self.0 = waiting;
        // What lies around others ends later, if not on the device then on its thread.
        ready.reverse();
        ready.sort_by_key(|whole| (whole.since, Reverse(whole.until)));
        ready.iter().for_each(&mut write);
    }
}
