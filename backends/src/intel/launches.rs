//! Work that was asked for and never reported.
//!
//! PTI does not say what it drops. But every call of SYCL that launches something has an id
//! that the record of the work bears, too; ids count up. Two bits for each of the newest
//! few millions tell whether both came, in whichever order.

/// Ids in a chunk.
const IDS: u32 = 64;
/// Chunks that are remembered: 4 million ids.
const CHUNKS: usize = 1 << 16;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    /// Which ids these are: they begin at that many times 64.
    number: u32,
    asked: u64,
    done: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    chunks: Vec<Chunk>,
    /// Of ids that were forgotten.
    missing: u64,
    /// Activities that bear no id.
    nameless: u64,
}

impl Launches {
    /// A call asked for work.
    pub(crate) fn asked(&mut self, id: u32) {
        if let Some(chunk) = self.chunk(id) {
            chunk.asked |= 1 << (id % IDS);
        }
    }

    /// A device did something.
    pub(crate) fn done(&mut self, id: u32) {
        self.nameless += u64::from(id == 0);
        if let Some(chunk) = self.chunk(id) {
            chunk.done |= 1 << (id % IDS);
        }
    }

    /// How many calls had asked for work that was never reported.
    pub(crate) fn missing(&self) -> u64 {
        let open = self.chunks.iter().map(missing).sum::<u64>();
        (self.missing + open).saturating_sub(self.nameless)
    }

    #[inline]
    fn chunk(&mut self, id: u32) -> Option<&mut Chunk> {
        if self.chunks.is_empty() {
            self.chunks = vec![Chunk::default(); CHUNKS];
        }
        let number = id / IDS;
        let chunk = &mut self.chunks[number as usize % CHUNKS];
        if chunk.number != number {
            if chunk.number > number {
                // Too late: it was counted.
                return None;
            }
            self.missing += missing(chunk);
            *chunk = Chunk { number, ..Chunk::default() };
        }
        Some(chunk)
    }
}

fn missing(chunk: &Chunk) -> u64 {
    (chunk.asked & !chunk.done).count_ones().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_not_done_is_missing() {
        let mut launches = Launches::default();
        (1..=1000).for_each(|id| launches.asked(id));
        (1..=1000).filter(|id| id % 10 != 0).for_each(|id| launches.done(id));
        assert_eq!(launches.missing(), 100);
        // Several activities of one call, and one that came before its call.
        launches.done(1);
        launches.done(2000);
        launches.asked(2000);
        assert_eq!(launches.missing(), 100);
        // Ids that the vendor lost are no loss of ours.
        (0..30).for_each(|_| launches.done(0));
        assert_eq!(launches.missing(), 70);
    }

    #[test]
    fn old_ids_are_forgotten_and_counted() {
        let mut launches = Launches::default();
        launches.asked(7);
        launches.asked(7 + IDS * CHUNKS as u32);
        launches.done(7);
        assert_eq!(launches.missing(), 2);
        launches.done(7 + IDS * CHUNKS as u32);
        assert_eq!(launches.missing(), 1);
    }
}
