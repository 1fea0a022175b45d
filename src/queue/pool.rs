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
//! link of a chunk that another thread just took is harmless.
//!
//! The memory is the process's own ([`Pool::provide`]), or an [`Arena`] that another process
//! reads ([`Pool::share`], [`Pool::view`]).

use std::alloc::Layout;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::arena::Arena;
use super::chunk::Chunk;
use super::kept::Kept;
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

    fn push<'a>(&self, index: u32, link: impl Fn(u32) -> Option<&'a AtomicU32>) {
        let mut head = self.head.load(Ordering::Relaxed);
        let Some(next) = link(index) else { return };
        loop {
            next.store(head as u32, Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop<'a>(&self, link: impl Fn(u32) -> Option<&'a AtomicU32>) -> Option<u32> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = link(index)?.load(Ordering::Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
            match self.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
    }
}

/// The counters of a pool. They lie beside the chunks, so that all processes that map those
/// agree. All zeros is a pool that has handed out nothing.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Counters {
    /// How many chunks may be in use at once.
    limit: AtomicU32,
    in_use: AtomicU32,
    fresh_chunks: AtomicU32,
    fresh_lanes: AtomicU32,
    free_chunks: IndexStack,
    free_lanes: IndexStack,
    /// Events of threads that could not even get a lane, and of devices that got lost
    /// before they were pushed.
    homeless: AtomicU64,
    /// How long a push may wait for room, in microseconds. 0: not at all.
    stall_micros: AtomicU32,
}

impl Counters {
    /// Chunks that were ever handed out.
    pub(super) fn fresh_chunks(&self) -> u32 {
        self.fresh_chunks.load(Ordering::Acquire)
    }

    const fn new() -> Counters {
        Counters {
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
}

/// Chunks that names may take when records have taken all.
const NAME_CHUNKS: u32 = 64;

/// See the module.
#[derive(Debug)]
pub struct Pool {
    chunks: [AtomicPtr<Chunk>; SEGMENTS],
    lanes: [AtomicPtr<Lane>; SEGMENTS],
    /// How many chunks have memory behind them here, and as many lanes.
    size: AtomicU32,
    own: Counters,
    /// Where the counters are if not in `own`.
    shared: AtomicPtr<Counters>,
    /// Records of a later time are not read yet: in ticks, and in nanoseconds.
    horizon: [AtomicU64; 2],
    /// The member whose lanes are handed out and found here; 0 for memory that is not shared.
    member: AtomicU32,
    /// What `view` keeps mapped.
    _arena: Option<Arc<Arena>>,
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// A pool without memory: [`Pool::provide`] or [`Pool::share`] gives it some.
    pub const fn new() -> Pool {
        Pool {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            lanes: [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS],
            size: AtomicU32::new(0),
            own: Counters::new(),
            shared: AtomicPtr::new(std::ptr::null_mut()),
            horizon: [const { AtomicU64::new(u64::MAX) }; 2],
            member: AtomicU32::new(0),
            _arena: None,
        }
    }

    fn counters(&self) -> &Counters {
        // SAFETY: null, or the counters of an arena, which outlives the pool (`share`).
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }.unwrap_or(&self.own)
    }

    /// Sets how many bytes of records may wait to be written, in the whole process.
    /// Called by one thread at a time, before a recording starts. Returns false when the
    /// system has no memory for it.
    pub fn provide(&self, bytes: usize) -> bool {
        let wanted = chunks_for(bytes);
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
        self.counters().limit.store(wanted, Ordering::Relaxed);
        true
    }

    /// Whether it has memory already.
    pub fn is_in_use(&self) -> bool {
        self.size.load(Ordering::Acquire) != 0
    }

    /// What was lost before is not the next recording's loss.
    pub fn forget_losses(&self) {
        self.counters().homeless.store(0, Ordering::Relaxed);
    }

    /// Uses the memory of `arena`. Returns false, and changes nothing, if the pool has handed
    /// out memory already.
    pub fn share(&self, arena: &'static Arena) -> bool {
        if self.size.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.map(arena);
        self.counters().limit.store(arena.limit(), Ordering::Relaxed);
        true
    }

    #[cfg(test)]
    pub(super) fn set_limit(&self, chunks: u32) {
        self.counters().limit.store(chunks, Ordering::Relaxed);
    }

    fn map(&self, arena: &Arena) {
        for segment in 0..(arena.chunks() / SEGMENT_CHUNKS) as usize {
            let at = segment * SEGMENT_CHUNKS as usize;
            self.chunks[segment].store(arena.chunk(at), Ordering::Release);
            self.lanes[segment].store(arena.lane(at), Ordering::Release);
        }
        self.shared.store(arena.counters(), Ordering::Release);
        self.size.store(arena.chunks(), Ordering::Release);
    }

    /// The lanes of one member of an arena, for the engine that reads them. Reading gives chunks
    /// back to the whole arena.
    pub fn view(arena: Arc<Arena>, member: u32) -> Pool {
        let mut pool = Pool::new();
        pool.map(&arena);
        pool._arena = Some(arena);
        pool.member.store(member, Ordering::Release);
        pool
    }

    /// From now on lanes are handed out for this member, unless they are for another already.
    pub(super) fn become_member(&self, member: u32) -> bool {
        self.member.compare_exchange(0, member, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    pub(super) fn member(&self) -> u32 {
        self.member.load(Ordering::Acquire)
    }

    /// The chunk with this index, which was handed out before; `None` if there is none with
    /// it, which only damaged memory says.
    pub(super) fn chunk(&self, index: u32) -> Option<&Chunk> {
        let segment = self.chunks.get((index / SEGMENT_CHUNKS) as usize)?.load(Ordering::Acquire);
        // SAFETY: a segment that is there holds `SEGMENT_CHUNKS` chunks, and is never freed;
        // zeroed memory is a valid empty `Chunk`, and so is any other.
        (!segment.is_null()).then(|| unsafe { &*segment.add((index % SEGMENT_CHUNKS) as usize) })
    }

    /// The lane with this index, likewise.
    pub(super) fn lane(&self, index: u32) -> Option<&Lane> {
        let segment = self.lanes.get((index / SEGMENT_CHUNKS) as usize)?.load(Ordering::Acquire);
        // SAFETY: as for `chunk`.
        (!segment.is_null()).then(|| unsafe { &*segment.add((index % SEGMENT_CHUNKS) as usize) })
    }

    /// An empty chunk for the lane with this index, or none when the limit is reached.
    pub(super) fn take_chunk(&self, owner: u32) -> Option<&Chunk> {
        self.take_chunk_within(owner, 0)
    }

    /// As [`Pool::take_chunk`], for names, without which records cannot be read.
    pub(super) fn take_chunk_for_names(&self, owner: u32) -> Option<&Chunk> {
        let chunk = self.take_chunk_within(owner, NAME_CHUNKS);
        if chunk.is_some() && self.keeps() {
            // They are not read here, where they would count for ever.
            self.counters().in_use.fetch_sub(1, Ordering::Relaxed);
        }
        chunk
    }

    fn take_chunk_within(&self, owner: u32, more: u32) -> Option<&Chunk> {
        let counters = self.counters();
        let limit = counters.limit.load(Ordering::Relaxed) + more;
        if counters.in_use.fetch_add(1, Ordering::Relaxed) >= limit {
            counters.in_use.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let link = |index| self.chunk(index).map(|chunk| &chunk.free_next);
        let index = counters
            .free_chunks
            .pop(link)
            .or_else(|| next_below(&counters.fresh_chunks, &self.size));
        let Some(chunk) = index.and_then(|index| Some((self.chunk(index)?, index))) else {
            // Between a `pop` and its `in_use` update elsewhere: as good as full.
            counters.in_use.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let (chunk, index) = chunk;
        chunk.index.store(index, Ordering::Relaxed);
        chunk.reset();
        chunk.owner.store(owner + 1, Ordering::Relaxed);
        Some(chunk)
    }

    /// Takes back the chunk with this index, which no thread writes or reads any more.
    pub(super) fn give_chunk(&self, index: u32) {
        if self.give_back(index) {
            self.counters().in_use.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The chunk with this index was read to its end.
    pub(super) fn was_read(&self, index: u32) {
        if self.keeps() {
            self.counters().in_use.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.give_chunk(index);
        }
    }

    /// Puts a chunk on the list of the free ones. Of two who give it back, as the reader of a
    /// dead process might, one does.
    pub(super) fn give_back(&self, index: u32) -> bool {
        let Some(chunk) = self.chunk(index) else { return false };
        if chunk.owner.swap(0, Ordering::AcqRel) == 0 {
            return false;
        }
        let link = |index| self.chunk(index).map(|chunk| &chunk.free_next);
        self.counters().free_chunks.push(index, link);
        true
    }

    /// Whether what was read is kept. Of memory that is read elsewhere it never is.
    fn keeps(&self) -> bool {
        self._arena.is_none()
            && !self.shared.load(Ordering::Relaxed).is_null()
            && super::arena().is_some_and(|arena| arena.kept() == Kept::All)
    }

    /// A lane for a new thread, or none when there are as many threads as chunks.
    pub(super) fn take_lane(&self) -> Option<&Lane> {
        let counters = self.counters();
        let index = match counters.free_lanes.pop(|i| self.lane(i).map(|lane| &lane.free_next)) {
            Some(index) => index,
            None => next_below(&counters.fresh_lanes, &self.size)?,
        };
        let lane = self.lane(index)?;
        lane.index.store(index, Ordering::Relaxed);
        Some(lane)
    }

    /// Takes back the lane with this index, whose thread ended and whose chunks were drained.
    pub(super) fn give_lane(&self, index: u32) {
        let Some(lane) = self.lane(index) else { return };
        if self.keeps() {
            return lane.keep();
        }
        lane.reset();
        let link = |index| self.lane(index).map(|lane| &lane.free_next);
        self.counters().free_lanes.push(index, link);
    }

    /// All lanes ever handed out have an index below this.
    pub fn lanes_used(&self) -> u32 {
        let fresh = self.counters().fresh_lanes.load(Ordering::Acquire);
        fresh.min(self.size.load(Ordering::Acquire))
    }

    /// Whether a thread has recorded on one of its lanes that is not given back.
    pub fn has_records(&self) -> bool {
        (0..self.lanes_used()).any(|index| super::Reader::open(self, index).is_some())
    }

    /// All chunks ever handed out have an index below this.
    pub(super) fn chunks_used(&self) -> u32 {
        let fresh = self.counters().fresh_chunks.load(Ordering::Acquire);
        fresh.min(self.size.load(Ordering::Acquire))
    }

    /// Takes back whatever the member whose lanes these are still had, once its process is
    /// dead and its lanes were drained.
    pub fn reclaim(&self) {
        let member = self.member();
        let theirs = |lane: &Lane| {
            lane.member.load(Ordering::Relaxed) == member
                && lane.state.load(Ordering::Acquire) != super::lane::FREE
        };
        let lanes: Vec<u32> =
            (0..self.lanes_used()).filter(|index| self.lane(*index).is_some_and(theirs)).collect();
        if lanes.is_empty() {
            return;
        }
        for index in 0..self.chunks_used() {
            let owner = self.chunk(index).map_or(0, |chunk| chunk.owner.load(Ordering::Acquire));
            if owner != 0 && lanes.contains(&(owner - 1)) {
                self.give_chunk(index);
            }
        }
        for index in lanes {
            self.give_lane(index);
        }
    }

    /// Events of threads that could not get a lane. Those of an arena are its maker's.
    pub fn homeless(&self) -> u64 {
        if self.member() > 1 {
            return 0;
        }
        self.counters().homeless.load(Ordering::Relaxed)
    }

    /// How long a push may wait for room, in microseconds; 0: not at all.
    pub fn set_stall(&self, micros: u32) {
        self.counters().stall_micros.store(micros, Ordering::Relaxed);
    }

    pub(super) fn stall_micros(&self) -> u32 {
        self.counters().stall_micros.load(Ordering::Relaxed)
    }

    /// Bytes of chunks that threads hold or that wait to be read.
    pub fn bytes_in_use(&self) -> usize {
        self.counters().in_use.load(Ordering::Relaxed) as usize * size_of::<Chunk>()
    }

    /// Whether more than half of the memory is in use.
    pub fn is_backlogged(&self) -> bool {
        let counters = self.counters();
        counters.in_use.load(Ordering::Relaxed) > counters.limit.load(Ordering::Relaxed) / 2
    }

    /// Counts events that were lost before they came here.
    pub fn lose(&self, events: u64) {
        self.counters().homeless.fetch_add(events, Ordering::Relaxed);
    }

    /// Records of a later time are not read yet: in ticks and in nanoseconds.
    pub fn set_horizon(&self, ticks: u64, nanos: u64) {
        self.horizon[0].store(ticks, Ordering::Relaxed);
        self.horizon[1].store(nanos, Ordering::Relaxed);
    }

    pub(super) fn horizon(&self) -> [u64; 2] {
        [0, 1].map(|which: usize| self.horizon[which].load(Ordering::Relaxed))
    }

    /// In a forked child, whose memory this is not: it has none, until it is given some.
    pub(super) fn abandon(&self) {
        self.size.store(0, Ordering::Release);
        self.shared.store(std::ptr::null_mut(), Ordering::Release);
        self.member.store(0, Ordering::Release);
        for segment in 0..SEGMENTS {
            self.chunks[segment].store(std::ptr::null_mut(), Ordering::Release);
            self.lanes[segment].store(std::ptr::null_mut(), Ordering::Release);
        }
        self.reset_after_fork();
    }

    /// In a forked child, where no other thread exists: everything of its own is free again.
    /// What the parent had queued is the parent's to write. Shared memory stays as it is.
    pub(super) fn reset_after_fork(&self) {
        if !self.shared.load(Ordering::Acquire).is_null() {
            self.member.store(0, Ordering::Release);
            return;
        }
        let counters = &self.own;
        counters.free_chunks.head.store(0, Ordering::Relaxed);
        counters.free_lanes.head.store(0, Ordering::Relaxed);
        for index in 0..self.lanes_used() {
            self.lane(index).into_iter().for_each(Lane::reset);
        }
        counters.in_use.store(0, Ordering::Relaxed);
        counters.fresh_chunks.store(0, Ordering::Relaxed);
        counters.fresh_lanes.store(0, Ordering::Relaxed);
        counters.homeless.store(0, Ordering::Relaxed);
    }
}

/// How many chunks so many bytes are, within what a pool can hold.
pub(super) fn chunks_for(bytes: usize) -> u32 {
    (bytes / size_of::<Chunk>()).clamp(1, SEGMENTS * SEGMENT_CHUNKS as usize) as u32
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
