//! Buffers that a vendor's library fills and gives back.
//!
//! ```text
//!  free ──request──► library ──complete──► full ──► decoder ──► free
//!   ▲ made on demand, up to a bound
//! ```
//! Both callbacks run on threads of the program or of the library, at any time: they move a
//! pointer from or to a queue and do nothing else. Buffers are never freed, since the library
//! may keep one for as long as it likes, also after a recording.
//!
//! **At the bound.** A library that must not be refused gets a scratch buffer, small, whose
//! records are counted and thrown away as soon as it comes back.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// Buffers are aligned to pages, more than any vendor's library asks for.
const ALIGN: usize = 4096;

/// How much memory there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of a buffer, in bytes.
    pub(crate) bytes: usize,
    /// Buffers at most.
    pub(crate) most: usize,
    /// Of a scratch buffer, in bytes. Must differ from `bytes`.
    pub(crate) scratch_bytes: usize,
    /// Scratch buffers at most, which the library would have to hold all at once.
    pub(crate) most_scratch: usize,
}

/// A buffer that was filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    pub(crate) start: *mut u8,
    /// Bytes of records in it.
    pub(crate) used: usize,
}

// SAFETY: its holder is the only one that has the buffer: it left the library, and
// comes back only through `recycle`.
unsafe impl Send for Full {}

struct Free(*mut u8);
// SAFETY: as for `Full`.
unsafe impl Send for Free {}

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requested: u64,
    /// Times that the library gave a buffer back, whosever it was.
    pub(crate) completed: u64,
    /// Requests at the bound: refused, or served with a scratch buffer.
    pub(crate) refused: u64,
    /// Buffers given back that were asked for by an unknown user.
    pub(crate) foreign: u64,
    /// Records in scratch buffers.
    pub(crate) discarded: u64,
}

/// See the module.
pub(crate) struct Pool {
    bounds: Bounds,
    free: ArrayQueue<Free>,
    scratch: ArrayQueue<Free>,
    full: ArrayQueue<Full>,
    /// All buffers that were made: the library may give back those of another user.
    known: Box<[AtomicPtr<u8>]>,
    made: AtomicUsize,
    made_scratch: AtomicUsize,
    requested: AtomicU64,
    completed: AtomicU64,
    refused: AtomicU64,
    foreign: AtomicU64,
    discarded: AtomicU64,
}

impl Pool {
    pub(crate) fn new(bounds: Bounds) -> Pool {
        let known = bounds.most + bounds.most_scratch;
        Pool {
            bounds,
            free: ArrayQueue::new(bounds.most),
            scratch: ArrayQueue::new(bounds.most_scratch),
            full: ArrayQueue::new(bounds.most),
            known: (0..known).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            made: AtomicUsize::new(0),
            made_scratch: AtomicUsize::new(0),
            requested: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            discarded: AtomicU64::new(0),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            requested: self.requested.load(Ordering::Relaxed),
            completed: self.completed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            foreign: self.foreign.load(Ordering::Relaxed),
            discarded: self.discarded.load(Ordering::Relaxed),
        }
    }

    /// Makes buffers ahead, until there are so many.
    pub(crate) fn warm(&self, count: usize) {
        while self.made.load(Ordering::Relaxed) < count {
            let Some(buffer) = self.make(&self.made, self.bounds.most, self.bounds.bytes) else {
                break;
            };
            let _ = self.free.push(Free(buffer));
        }
    }

    /// Makes a buffer, unless there are as many as there may be.
    #[cold]
    fn make(&self, count: &AtomicUsize, most: usize, bytes: usize) -> Option<*mut u8> {
        if count.fetch_add(1, Ordering::Relaxed) >= most {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
        // SAFETY: the layout's size is not 0.
        let buffer = unsafe { alloc_zeroed(layout) };
        if buffer.is_null() {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let (none, order, failed) = (ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
        let mut places = self.known.iter();
        let _ = places.any(|place| place.compare_exchange(none, buffer, order, failed).is_ok());
        Some(buffer)
    }

    /// A buffer for the library and its size, unless the bound is reached.
    pub(crate) fn take(&self) -> Option<(*mut u8, usize)> {
        self.requested.fetch_add(1, Ordering::Relaxed);
        let Bounds { bytes, most, .. } = self.bounds;
        let free = self.free.pop().map(|Free(buffer)| buffer);
        let buffer = free.or_else(|| self.make(&self.made, most, bytes));
        if buffer.is_none() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        Some((buffer?, bytes))
    }

    /// A scratch buffer and its size, where [`Pool::take`] had none.
    pub(crate) fn take_scratch(&self) -> Option<(*mut u8, usize)> {
        let Bounds { scratch_bytes: bytes, most_scratch: most, .. } = self.bounds;
        let free = self.scratch.pop().map(|Free(buffer)| buffer);
        Some((free.or_else(|| self.make(&self.made_scratch, most, bytes))?, bytes))
    }

    /// The library gives a buffer back. Returns whether it is one of ours: if so, it is to be
    /// handed on to [`Pool::put`], and otherwise is not ours to free.
    pub(crate) fn accept(&self, buffer: *mut u8, size: usize) -> bool {
        self.completed.fetch_add(1, Ordering::Relaxed);
        let mut known = self
            .known
            .iter()
            .map(|known| known.load(Ordering::Acquire))
            .take_while(|known| !known.is_null());
        known.any(|known| known == buffer)
            && (size == self.bounds.bytes || size == self.bounds.scratch_bytes)
    }

    /// One of another user, which registered callbacks before us and which we do not know.
    pub(crate) fn refuse(&self, buffer: *mut u8) {
        self.foreign.fetch_add(u64::from(!buffer.is_null()), Ordering::Relaxed);
    }

    /// A buffer of ours of this size came back, with so many bytes in it, of which `count`
    /// knows how many records they are.
    pub(crate) fn put(&self, full: Full, size: usize, count: impl FnOnce(&Full) -> u64) {
        // There is room: each buffer is in one queue at most.
        if size == self.bounds.scratch_bytes {
            self.discarded.fetch_add(count(&full), Ordering::Relaxed);
            let _ = self.scratch.push(Free(full.start));
        } else {
            let _ = self.full.push(full);
        }
    }

    /// A buffer that was filled.
    pub(crate) fn take_full(&self) -> Option<Full> {
        self.full.pop()
    }

    /// Gives a buffer back when its records were read.
    pub(crate) fn recycle(&self, full: Full) {
        let _ = self.free.push(Free(full.start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { bytes: 4096, most: 3, scratch_bytes: 64, most_scratch: 1 };

    #[test]
    fn buffers_go_round_and_end_at_the_bound() {
        let pool = Pool::new(BOUNDS);
        pool.warm(2);
        let all: Vec<_> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert!(all.iter().all(|(start, size)| *size == 4096 && start.addr() % 8 == 0));
        assert_eq!(pool.take(), None);
        let (scratch, size) = pool.take_scratch().unwrap();
        assert_eq!((size, pool.take_scratch()), (64, None));

        let mut theirs = [1_u8; 64];
        assert!(!pool.accept(theirs.as_mut_ptr(), 4096) && !pool.accept(ptr::null_mut(), 0));
        pool.refuse(theirs.as_mut_ptr());
        pool.refuse(ptr::null_mut());
        assert!(!pool.accept(all[0].0, 17), "nobody was given so little");

        assert!(pool.accept(all[0].0, 4096));
        pool.put(Full { start: all[0].0, used: 40 }, 4096, |_| panic!("they are read"));
        let full = pool.take_full().unwrap();
        assert_eq!((full.start, full.used), (all[0].0, 40));
        pool.recycle(full);
        assert_eq!(pool.take(), Some((all[0].0, 4096)));

        assert!(pool.accept(scratch, 64));
        pool.put(Full { start: scratch, used: 16 }, 64, |full| full.used as u64 / 8);
        assert!(pool.take_full().is_none());
        assert_eq!(pool.take_scratch(), Some((scratch, 64)));
        let (requested, completed, refused) = (5, 5, 1);
        let expected = Counts { requested, completed, refused, foreign: 1, discarded: 2 };
        assert_eq!(pool.counts(), expected);
    }

    #[test]
    fn no_buffer_is_had_by_two_threads() {
        const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };
        let pool = Pool::new(Bounds { most: 4, ..BOUNDS });
        let held: [AtomicUsize; 4] = Default::default();
        let number = |start: *mut u8| {
            pool.known.iter().position(|known| known.load(Ordering::Acquire) == start).unwrap()
        };
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let Some((start, size)) = pool.take() else { continue };
                        let number = number(start);
                        assert_eq!(held[number].fetch_add(1, Ordering::AcqRel), 0);
                        assert!(pool.accept(start, size));
                        held[number].fetch_sub(1, Ordering::AcqRel);
                        pool.put(Full { start, used: 8 }, size, |_| 0);
                        pool.take_full().into_iter().for_each(|full| pool.recycle(full));
                    }
                });
            }
        });
        let counts = pool.counts();
        assert_eq!(counts.requested - counts.refused, counts.completed);
        assert_eq!((counts.foreign, counts.discarded), (0, 0));
    }
}
