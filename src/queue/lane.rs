//! A lane: what the engine knows of one recording thread. Recycled when the thread ends.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The lane is free. Zero, so that fresh memory is a free lane.
pub(super) const FREE: u32 = 0;
/// A thread records on it.
pub(super) const ACTIVE: u32 = 1;
/// Its thread ended; what it wrote is still to be read.
pub(super) const RETIRED: u32 = 2;
/// Not a thread's: the names that a process gives ids to (see `names.rs`).
pub(super) const NAMES: u32 = 3;
/// Its thread ended and what it wrote was read, and is kept (see `kept.rs`).
pub(super) const KEPT: u32 = 4;

/// See the module. On cache lines of its own: the counters are written by its thread.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Lane {
    pub(super) state: AtomicU32,
    /// The kernel's id of the thread.
    pub(super) tid: AtomicU32,
    pub(super) index: AtomicU32,
    /// Link of the free list.
    pub(super) free_next: AtomicU32,
    /// The first chunk of the thread that was not given back, as its index + 1, and how many
    /// of its slots were read. Set by the thread with its first chunk; from then on the
    /// reader's, so that the reader of the next recording goes on where this one stopped.
    pub(super) first: AtomicU32,
    pub(super) read: AtomicU32,
    /// The first chunk of the thread that is kept, as its index + 1.
    pub(super) begin: AtomicU32,
    /// The member of the pool's memory that it belongs to: see [`super::Pool::view`].
    pub(super) member: AtomicU32,
    /// Events that found no room.
    pub(super) dropped: AtomicU64,
    /// Events pushed from inside a push (a signal handler, an allocator hook).
    pub(super) reentrant: AtomicU64,
    /// The kernel's name of the thread when it recorded its first event, padded with NUL.
    pub(super) name: [AtomicU64; 2],
    /// Strings that were too long to travel by value and lost their end; ends that found
    /// no room for their arguments.
    pub(super) truncated: AtomicU64,
    /// What of these three earlier readers have reported.
    pub(super) reported: [AtomicU64; 3],
}

impl Lane {
    /// Prepares a lane for a new thread and shows it to the engine.
    pub(super) fn open(&self, member: u32, tid: u32, name: [u64; 2]) {
        self.reset();
        self.member.store(member, Ordering::Relaxed);
        self.tid.store(tid, Ordering::Relaxed);
        for (word, value) in self.name.iter().zip(name) {
            word.store(value, Ordering::Relaxed);
        }
        self.state.store(ACTIVE, Ordering::Release);
    }

    /// Its first chunk, as its index + 1.
    pub(super) fn begin_with(&self, chunk: u32) {
        self.begin.store(chunk, Ordering::Relaxed);
        self.first.store(chunk, Ordering::Release);
    }

    /// The thread ended: nothing more will be written.
    pub(super) fn retire(&self) {
        self.state.store(RETIRED, Ordering::Release);
    }

    pub(super) fn reset(&self) {
        self.first.store(0, Ordering::Relaxed);
        self.begin.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.dropped.store(0, Ordering::Relaxed);
        self.reentrant.store(0, Ordering::Relaxed);
        self.truncated.store(0, Ordering::Relaxed);
        for reported in &self.reported {
            reported.store(0, Ordering::Relaxed);
        }
        self.state.store(FREE, Ordering::Release);
    }

    /// Adds to a counter that only the lane's own thread writes: no locked instruction.
    pub(super) fn count(counter: &AtomicU64, n: u64) {
        counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }
}
