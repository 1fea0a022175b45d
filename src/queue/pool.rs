//! The pool: every chunk and lane of the process, handed out and taken back without locks.
//!
//! Memory is bounded for the whole process, not per thread: a thread holds one chunk while
//! it records and gets another when it needs one, so one busy thread may use what a
//! hundred idle ones do not. Free chunks form a stack: the chunk that was emptied last is
//! filled next, while it is still in a cache, and memory that was never needed is never
//! touched.
//!
//! The stack is Treiber's with a tag in the upper half of the head, which changes at every
//! operation: a thread that went to sleep between reading the head and replacing it cannot
//! succeed by accident (ABA). Chunks are never returned to the allocator, so reading the
//! link of a chunk that somebody else just took is harmless.

use std::alloc::Layout;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::chunk::Chunk;
use super::lane::Lane;

/// Chunks in a segment (16 MiB), which is what the pool grows by.
pub const SEGMENT_CHUNKS: u32 = if cfg!(miri) { 8 } else { 1024 };
/// Segments at most: 2 GiB.
const SEGMENTS: usize = 128;

/// A last-in first-out list of indices, linked through a side array of the caller's.
#[derive(Debug, Default)]
struct IndexStack {
    /// Tag in the upper half, index + 1 in the lower (0: empty).
    head: AtomicU64,
}

impl IndexStack {
    const fn new() -> IndexStack {
        IndexStack { head: AtomicU64::new(0) }
    }

    fn push<'a>(&self, index: u32, link: impl Fn(u32) -> &'a AtomicU32) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            link(index).store(head as u32, Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop<'a>(&self, link: impl Fn(u32) -> &'a AtomicU32) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = link(index).load(Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
            match self.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Pool {
    chunks: [AtomicPtr<Chunk>; SEGMENTS],
    lanes: [AtomicPtr<Lane>; SEGMENTS],
    /// How many chunks have memory behind them, and as many lanes.
    size: AtomicU32,
    /// How many chunks may be in use at once.
    limit: AtomicU32,
    in_use: AtomicU32,
    fresh_chunks: AtomicU32,
    fresh_lanes: AtomicU32,
    free_chunks: IndexStack,
    free_lanes: IndexStack,
    /// Events of threads that could not even get a lane, and of devices that got lost
    /// before they were pushed.
    pub(super) homeless: AtomicU64,
    /// How long a push may wait for room, in microseconds. 0: not at all.
    pub(super) stall_micros: AtomicU32,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// A pool without memory: [`Pool::provide`] gives it some.
    pub const fn new() -> Pool {
        Pool {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            lanes: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            size: AtomicU32::new(0),
            limit: AtomicU32::new(0),
            in_use: AtomicU32::new(0),
            fresh_chunks: AtomicU32::new(0),
            fresh_lanes: AtomicU32::new(0),
            free_chunks: IndexStack::new(),
            free_lanes: IndexStack::new(),
            homeless: AtomicU64::new(0),
            stall_micros: AtomicU32::new(0),
        }
    }

    /// Sets how many bytes of records may wait to be written, in the whole process.
    /// Called by one thread at a time, before a recording starts. Returns false when the
    /// system has no memory for it.
    pub fn provide(&self, bytes: usize) -> bool {
        let wanted =
            (bytes / size_of::<Chunk>()).clamp(1, SEGMENTS * SEGMENT_CHUNKS as usize) as u32;
        while self.size.load(Ordering::Relaxed) < wanted {
            let size = self.size.load(Ordering::Relaxed);
            let segment = (size / SEGMENT_CHUNKS) as usize;
            let (Some(chunks), Some(lanes)) = (zeroed::<Chunk>(), zeroed::<Lane>()) else {
                return false;
            };
            self.chunks[segment].store(chunks, Ordering::Release);
            self.lanes[segment].store(lanes, Ordering::Release);
            self.size.store(size + SEGMENT_CHUNKS, Ordering::Release);
        }
        self.limit.store(wanted, Ordering::Relaxed);
        // What was lost before is not this recording's loss.
        self.homeless.store(0, Ordering::Relaxed);
        true
    }

    /// The chunk with this index, which was handed out before.
    fn chunk(&self, index: u32) -> &Chunk {
        let segment = self.chunks[(index / SEGMENT_CHUNKS) as usize].load(Ordering::Acquire);
        // SAFETY: indices below `size` lie in segments that were stored before `size` grew;
        // segments are never freed, and zeroed memory is a valid empty `Chunk`.
        unsafe { &*segment.add((index % SEGMENT_CHUNKS) as usize) }
    }

    /// The lane with this index, which was handed out before.
    pub fn lane(&self, index: u32) -> &Lane {
        let segment = self.lanes[(index / SEGMENT_CHUNKS) as usize].load(Ordering::Acquire);
        // SAFETY: as for `chunk`; zeroed memory is a valid free `Lane`.
        unsafe { &*segment.add((index % SEGMENT_CHUNKS) as usize) }
    }

    /// An empty chunk, or none when the limit is reached.
    pub(super) fn take_chunk(&self) -> Option<&Chunk> {
        if self.in_use.fetch_add(1, Ordering::Relaxed) >= self.limit.load(Ordering::Relaxed) {
            self.in_use.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let index = match self.free_chunks.pop(|i| &self.chunk(i).free_next) {
            Some(index) => index,
            None => match next_below(&self.fresh_chunks, &self.size) {
                Some(index) => {
                    self.chunk(index).index.store(index, Ordering::Relaxed);
                    index
                }
                // Between a `pop` and its `in_use` update elsewhere: as good as full.
                None => {
                    self.in_use.fetch_sub(1, Ordering::Relaxed);
                    return None;
                }
            },
        };
        let chunk = self.chunk(index);
        chunk.reset();
        Some(chunk)
    }

    /// Takes back a chunk that nobody writes or reads any more.
    pub(super) fn give_chunk(&self, chunk: &Chunk) {
        self.free_chunks.push(chunk.index.load(Ordering::Relaxed), |i| &self.chunk(i).free_next);
        self.in_use.fetch_sub(1, Ordering::Relaxed);
    }

    /// A lane for a new thread, or none when there are as many threads as chunks.
    pub(super) fn take_lane(&self) -> Option<&Lane> {
        let index = match self.free_lanes.pop(|i| &self.lane(i).free_next) {
            Some(index) => index,
            None => next_below(&self.fresh_lanes, &self.size)?,
        };
        let lane = self.lane(index);
        lane.index.store(index, Ordering::Relaxed);
        Some(lane)
    }

    /// Takes back a lane whose thread ended and whose chunks were drained.
    pub(super) fn give_lane(&self, lane: &Lane) {
        self.free_lanes.push(lane.index.load(Ordering::Relaxed), |i| &self.lane(i).free_next);
    }

    /// All lanes ever handed out have an index below this.
    pub fn lanes_used(&self) -> u32 {
        self.fresh_lanes.load(Ordering::Acquire).min(self.size.load(Ordering::Acquire))
    }

    /// Events of threads that could not get a lane.
    pub fn homeless(&self) -> u64 {
        self.homeless.load(Ordering::Relaxed)
    }

    /// How long a push may wait for room, in microseconds; 0: not at all.
    pub fn set_stall(&self, micros: u32) {
        self.stall_micros.store(micros, Ordering::Relaxed);
    }

    /// Bytes of chunks that threads hold or that wait to be read.
    pub fn bytes_in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed) as usize * size_of::<Chunk>()
    }

    /// Whether more than half of the memory is in use.
    pub fn is_crowded(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > self.limit.load(Ordering::Relaxed) / 2
    }

    /// Counts events that were lost before they came here.
    pub fn lose(&self, events: u64) {
        self.homeless.fetch_add(events, Ordering::Relaxed);
    }

    /// In a forked child, where no other thread exists: everything is free again. What
    /// the parent had queued is the parent's to write.
    pub(super) fn reset_after_fork(&self) {
        self.free_chunks.head.store(0, Ordering::Relaxed);
        self.free_lanes.head.store(0, Ordering::Relaxed);
        for index in 0..self.lanes_used() {
            self.lane(index).reset();
        }
        self.in_use.store(0, Ordering::Relaxed);
        self.fresh_chunks.store(0, Ordering::Relaxed);
        self.fresh_lanes.store(0, Ordering::Relaxed);
        self.homeless.store(0, Ordering::Relaxed);
    }
}

/// Hands out `counter` and steps it, while it is below `bound`.
fn next_below(counter: &AtomicU32, bound: &AtomicU32) -> Option<u32> {
    let bound = bound.load(Ordering::Acquire);
    counter.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| (n < bound).then_some(n + 1)).ok()
}

/// Zeroed memory for a segment of `T`; the system gives pages when they are first touched.
///
/// Straight from the system: an allocator that is asked for zeros at the alignment of a
/// cache line writes them, and the whole buffer would be resident before it is used.
fn zeroed<T>() -> Option<*mut T> {
    let layout = Layout::array::<T>(SEGMENT_CHUNKS as usize).ok()?;
    if cfg!(miri) {
        // SAFETY: the layout is not empty. `T` is `Chunk` or `Lane`, made of integers and
        // pointers in atomics only, for which all-zero bytes are valid.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        return (!memory.is_null()).then_some(memory.cast());
    }
    // SAFETY: a new mapping, which overlaps nothing. Its pages are aligned for any `T` here
    // and read as zeros.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            layout.size(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (memory != libc::MAP_FAILED).then_some(memory.cast())
}
