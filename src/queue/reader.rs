//! The reading end of a thread's queue: used by the engine alone.

use std::sync::atomic::Ordering;

use kymograph_protos::record::Slot;

use super::chunk::Chunk;
use super::lane::{ACTIVE, Lane, NAMES, RETIRED};
use super::pool::Pool;

/// What a call of [`Reader::drain`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drained {
    /// The thread may record more.
    Alive,
    /// The thread ended and everything it wrote was read.
    Ended,
}

/// Where the engine stands in one lane. There is one at a time; where it stopped, the next
/// one goes on.
#[derive(Debug)]
pub struct Reader {
    lane: *const Lane,
    index: u32,
    /// The chunk that is read, as its index + 1.
    chunk: u32,
    pos: u32,
    losses: Losses,
    /// The losses that earlier readers reported.
    before: Losses,
}

// SAFETY: lanes are never freed and are accessed through atomics; `chunk` and `pos` move with
// the reader.
unsafe impl Send for Reader {}

/// The losses of a thread so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Events that found no room.
    pub dropped: u64,
    /// Events pushed from inside a push.
    pub reentrant: u64,
    /// Strings cut short, and ends without their arguments.
    pub truncated: u64,
}

impl Losses {
    /// Events that are missing.
    pub fn events(&self) -> u64 {
        self.dropped + self.reentrant
    }
}

impl Reader {
    /// A reader of the lane with this index, if a thread (of the member that `pool` is a view
    /// of) uses it.
    pub fn open(pool: &Pool, index: u32) -> Option<Reader> {
        let lane = pool.lane(index)?;
        let used = matches!(lane.state.load(Ordering::Acquire), ACTIVE | RETIRED);
        let ours = lane.member.load(Ordering::Relaxed) == pool.member();
        (used && ours).then(|| Reader::of(lane, index))
    }

    /// A reader of the names of the member that `pool` is a view of, if it has any yet.
    pub(super) fn of_names(pool: &Pool) -> Option<Reader> {
        (0..pool.lanes_used()).find_map(|index| {
            let lane = pool.lane(index)?;
            let names = lane.state.load(Ordering::Acquire) == NAMES;
            let ours = lane.member.load(Ordering::Relaxed) == pool.member();
            (names && ours).then(|| Reader::of(lane, index))
        })
    }

    fn of(lane: &Lane, index: u32) -> Reader {
        let [dropped, reentrant, truncated] =
            lane.reported.each_ref().map(|n| n.load(Ordering::Relaxed));
        Reader {
            lane,
            index,
            chunk: 0,
            pos: lane.read.load(Ordering::Relaxed),
            losses: Losses::default(),
            before: Losses { dropped, reentrant, truncated },
        }
    }

    fn lane(&self) -> &Lane {
        // SAFETY: lanes are never freed.
        unsafe { &*self.lane }
    }

    /// The kernel's id of the thread.
    pub fn tid(&self) -> u32 {
        self.lane().tid.load(Ordering::Relaxed)
    }

    /// The thread's name when it recorded its first event.
    pub fn name(&self) -> Vec<u8> {
        let words = &self.lane().name;
        let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        bytes.take_while(|b| *b != 0).collect()
    }

    /// What the thread had lost when the lane was last drained, without what an earlier
    /// reader reported.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Appends all published slots to `out`, but stops after the chunk with which `out`
    /// holds `enough`. Gives emptied chunks back. When the thread ended and nothing is
    /// left, the lane is given back too and the reader must not be used again.
    pub fn drain(&mut self, pool: &Pool, out: &mut Vec<Slot>, enough: usize) -> Drained {
        // Read before the slots: what a retired thread wrote is all published.
        // SAFETY: lanes are never freed.
        let lane = unsafe { &*self.lane };
        let state = lane.state.load(Ordering::Acquire);
        let seen = [&lane.dropped, &lane.reentrant, &lane.truncated]
            .map(|counter| counter.load(Ordering::Relaxed));
        for (reported, seen) in lane.reported.iter().zip(seen) {
            reported.store(seen, Ordering::Relaxed);
        }
        self.losses = Losses {
            dropped: seen[0].saturating_sub(self.before.dropped),
            reentrant: seen[1].saturating_sub(self.before.reentrant),
            truncated: seen[2].saturating_sub(self.before.truncated),
        };
        if self.chunk == 0 {
            self.chunk = lane.first.load(Ordering::Acquire);
        }
        while let Some(chunk) = self.current(pool) {
            // Read before `committed`: once there is a next chunk, this one is final.
            let next = chunk.next.load(Ordering::Acquire);
            let committed = chunk.committed().max(self.pos);
            let end = chunk.until(self.pos, committed, pool.horizon());
            chunk.copy(self.pos, end, out);
            self.pos = end;
            if next == 0 || end < committed {
                break;
            }
            let read = std::mem::replace(&mut self.chunk, next);
            self.pos = 0;
            lane.first.store(next, Ordering::Relaxed);
            pool.was_read(read - 1);
            if out.len() >= enough {
                lane.read.store(0, Ordering::Relaxed);
                return Drained::Alive;
            }
        }
        if state == RETIRED && !self.is_held(pool) {
            if self.chunk != 0 {
                // The thread that wrote it is gone.
                pool.was_read(self.chunk - 1);
            }
            pool.give_lane(self.index);
            return Drained::Ended;
        }
        lane.read.store(self.pos, Ordering::Relaxed);
        Drained::Alive
    }

    /// Whether there is more, which the horizon holds back.
    fn is_held(&self, pool: &Pool) -> bool {
        self.current(pool).is_some_and(|chunk| {
            chunk.committed() > self.pos || chunk.next.load(Ordering::Acquire) != 0
        })
    }

    /// The time of the first record of a lane that was not read, in ticks or in nanoseconds.
    pub fn next_time(pool: &Pool, index: u32) -> Option<(u64, bool)> {
        let mut reader = Reader::open(pool, index)?;
        reader.chunk = reader.lane().first.load(Ordering::Acquire);
        let chunk = reader.current(pool)?;
        if reader.pos < chunk.committed() {
            return Some(chunk.time(reader.pos));
        }
        reader.chunk = chunk.next.load(Ordering::Acquire);
        let chunk = reader.current(pool).filter(|chunk| chunk.committed() > 0)?;
        Some(chunk.time(0))
    }

    /// The chunk that is read. One that is free has no owner: memory that says so is
    /// damaged, and is not followed, nor round in circles.
    fn current<'p>(&self, pool: &'p Pool) -> Option<&'p Chunk> {
        let chunk = pool.chunk(self.chunk.checked_sub(1)?)?;
        (chunk.owner.load(Ordering::Acquire) == self.index + 1).then_some(chunk)
    }

    /// Once the thread's process is dead, after [`Reader::drain`] has found all: what it had
    /// begun last and not ended, if that was not published yet.
    pub fn drain_leaf_of_the_dead(&mut self, pool: &Pool, out: &mut Vec<Slot>) {
        let Some(chunk) = self.current(pool) else { return };
        let before = out.len();
        if chunk.committed() <= self.pos {
            chunk.leaf_of_the_dead(out);
        }
        self.pos += (out.len() - before) as u32;
    }

    /// Copies the slots of the thread's open leaf, if it has one right now that was not
    /// drained. It will be drained later, as the same beginning or as a whole scope: the
    /// next record of this lane.
    pub fn peek_leaf(&self, pool: &Pool, out: &mut Vec<Slot>) -> bool {
        self.current(pool).is_some_and(|chunk| chunk.peek_leaf(out) == Some(self.pos))
    }
}

#[cfg(test)]
impl Reader {
    /// The open leaf of a thread that is dead, wherever this reader stands.
    pub(super) fn leaf_of(&mut self, pool: &Pool, out: &mut Vec<Slot>) {
        self.drain(pool, &mut Vec::new(), usize::MAX);
        self.drain_leaf_of_the_dead(pool, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{CAPACITY, Producer};
    use kymograph_protos::record::{Kind, Record};

    #[test]
    fn the_next_reader_goes_on_where_the_last_one_stopped() {
        let pool = Pool::new();
        assert!(pool.provide(1 << 20));
        let producer = Producer::new();
        let mut pushed = 0;
        let mut push = |count: u32| {
            for _ in 0..count {
                let head = Record { time: pushed, kind: Kind::Instant as u8, ..Record::default() };
                assert!(producer.event(&pool, head, &[], &[]));
                pushed += 1;
            }
        };
        let mut read = 0;
        // Within a chunk, across several, and with nothing new.
        for count in [3, CAPACITY * 2, 0, CAPACITY, 5] {
            push(count);
            let mut reader = Reader::open(&pool, 0).unwrap();
            let mut slots = Vec::new();
            assert_eq!(reader.drain(&pool, &mut slots, usize::MAX), Drained::Alive);
            let times: Vec<u64> = slots.iter().map(|slot| slot[0]).collect();
            assert_eq!(times, (read..read + u64::from(count)).collect::<Vec<_>>());
            read += u64::from(count);
        }
        assert_eq!(pool.bytes_in_use(), size_of::<Chunk>());
    }
}
