//! Work whose launch is still in its thread's queue.
//!
//! Queues of devices are read first, so this may be all that a short program did. While there are
//! no ranges, work is only put down; it is looked up once there are some.

use std::collections::HashMap;

use super::Work;

/// For each half of [`NANOS`].
pub(super) const MAX: usize = 1 << 16;
/// How long work waits for its launch to be read, at least.
const NANOS: u64 = 500_000_000;

/// When which queue worked.
type Part = (u32, u64, u64);

/// By the correlation id of the launch, the newer half first.
#[derive(Debug, Default)]
pub(super) struct Early {
    found: [HashMap<u64, Work>; 2],
    /// While there are no ranges.
    idle: [Vec<(u64, Part)>; 2],
    since: u64,
}

impl Early {
    pub fn add(&mut self, correlation: u64, part: Part) {
        if self.found[0].len() < MAX {
            self.found[0].entry(correlation).or_default().add(part);
        }
    }

    /// The same while there are no ranges.
    pub fn put_down(&mut self, correlation: u64, part: Part) {
        if self.idle[0].len() < MAX {
            self.idle[0].push((correlation, part));
        }
    }

    /// There are ranges from now on.
    pub fn look_up(&mut self) {
        for (correlation, part) in std::mem::take(&mut self.idle).into_iter().flatten() {
            self.add(correlation, part);
        }
    }

    /// What became of a launch so far.
    pub fn take(&mut self, correlation: u64) -> Work {
        let mut work = Work::default();
        for early in &mut self.found {
            early.remove(&correlation).iter().flat_map(Work::all).for_each(|part| work.add(part));
        }
        work
    }

    /// All queues were read: forgets what has waited long enough.
    pub fn age(&mut self, now: u64) {
        if now.saturating_sub(self.since) >= NANOS {
            self.since = now;
            self.found.swap(0, 1);
            self.found[0].clear();
            self.idle.swap(0, 1);
            self.idle[0].clear();
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.found[0].len().max(self.idle[0].len())
    }
}
