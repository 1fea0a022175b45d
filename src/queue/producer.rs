//! The writing end of a thread's queue.
//!
//! Everything a push needs lies in one thread-local block of plain cells. A push takes
//! the chunk pointer out of its cell and puts it back when done: who finds it missing
//! came in from a signal handler or an allocator hook, and is counted, not served.
//!
//! **Room for ends is reserved.** A begin is accepted only while the slots left in the
//! thread's chunks suffice for the ends of all slices then open, so an accepted slice is
//! always exact: under pressure whole slices are lost, never half of one.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytemuck::cast;
use kymograph_protos::record::{ArgType, Extra, Kind, NAME_BY_VALUE, Record, Slot, StrId};

use super::chunk::{CAPACITY, Chunk};
use super::lane::Lane;
use super::pool::Pool;

/// `leaf` when no slice is open that could still be completed in place.
const NO_LEAF: u32 = u32::MAX;
/// Longest string that travels by value; the rest is cut off and counted.
const MAX_INLINE: usize = CAPACITY as usize / 2 * 32;

/// A chunk with no room, so that a thread without one needs no check of its own.
static FULL: Chunk = Chunk::new();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The thread never recorded anything, or its lane was taken back.
    New,
    /// Getting a lane: whoever pushes now does so from inside.
    Opening,
    /// `chunk` is null only during a push.
    Ready,
}

/// See the module. Used by one thread; the reader sees only lanes and chunks.
#[derive(Debug)]
pub struct Producer {
    chunk: Cell<*const Chunk>,
    /// Slots used in `chunk`.
    pos: Cell<u32>,
    /// Ends that are owed to the slices now open.
    open: Cell<u32>,
    /// Where the open leaf lies in `chunk`, or `NO_LEAF`.
    leaf: Cell<u32>,
    /// The nesting stack that the leaf belongs to (0 for scopes, else a category).
    leaf_stack: Cell<u32>,
    state: Cell<State>,
    /// Events lost since the last `Lost` record.
    lost: Cell<u64>,
    lane: Cell<*const Lane>,
    /// Chunks kept for ends only, linked through `next`.
    spare: Cell<*const Chunk>,
    spares: Cell<u32>,
}

impl Default for Producer {
    fn default() -> Self {
        Self::new()
    }
}

impl Producer {
    /// A producer of a thread that has recorded nothing.
    pub const fn new() -> Producer {
        Producer {
            chunk: Cell::new(ptr::null()),
            pos: Cell::new(CAPACITY),
            open: Cell::new(0),
            leaf: Cell::new(NO_LEAF),
            leaf_stack: Cell::new(0),
            state: Cell::new(State::New),
            lost: Cell::new(0),
            lane: Cell::new(ptr::null()),
            spare: Cell::new(ptr::null()),
            spares: Cell::new(0),
        }
    }

    /// Records the beginning of a slice in nesting stack `stack`. If this returns false
    /// the slice is counted as lost and its end must not be recorded.
    #[inline(always)]
    pub fn begin(
        &self,
        pool: &Pool,
        head: Record,
        stack: u32,
        extras: &[Extra],
        bytes: &[u8],
    ) -> bool {
        let tail = tail_slots(extras, bytes);
        let Some(chunk) = self.enter(pool, 1 + tail, 1) else {
            return false;
        };
        self.count_truncation(bytes);
        let pos = self.pos.get();
        let end = pos + 1 + tail;
        write(chunk, pos, head, tail, extras, bytes);
        if self.leaf.get() != NO_LEAF {
            chunk.publish(pos);
        }
        chunk.show_leaf(end);
        self.leaf.set(pos);
        self.leaf_stack.set(stack);
        self.pos.set(end);
        self.open.set(self.open.get() + 1);
        self.chunk.set(chunk);
        true
    }

    /// Records the end of the innermost slice of `stack`, which [`Producer::begin`]
    /// accepted.
    #[inline(always)]
    pub fn end(&self, pool: &Pool, head: Record, stack: u32, extras: &[Extra]) -> bool {
        let leaf = self.leaf.get();
        let chunk = self.chunk.get();
        if leaf != NO_LEAF
            && !chunk.is_null()
            && self.leaf_stack.get() == stack
            && extras.is_empty()
        {
            // SAFETY: not null, so it is a chunk of the pool, which are never freed.
            let chunk = unsafe { &*chunk };
            self.chunk.set(ptr::null());
            let kind = u64::from(Kind::Scope as u8) << 48;
            let word = chunk.head_word(leaf) & !(0xff << 48) | kind;
            chunk.finish_leaf(leaf, head.time, word, self.pos.get());
            self.leaf.set(NO_LEAF);
            self.open.set(self.open.get() - 1);
            self.chunk.set(chunk);
            return true;
        }
        let owed = self.open.get();
        if owed == 0 {
            return self.event(pool, head, extras, &[]);
        }
        // This end pays for itself out of the reserve.
        self.open.set(owed - 1);
        let done = self.event(pool, head, extras, &[]);
        if !done && !extras.is_empty() {
            // What was reserved is one slot: the end matters more than its arguments.
            return self.event(pool, Record { tail: 0, ..head }, &[], &[]);
        }
        done
    }

    /// Records anything else. Returns whether there was room.
    #[inline(always)]
    pub fn event(&self, pool: &Pool, head: Record, extras: &[Extra], bytes: &[u8]) -> bool {
        let tail = tail_slots(extras, bytes);
        let Some(chunk) = self.enter(pool, 1 + tail, 0) else {
            return false;
        };
        self.count_truncation(bytes);
        let pos = self.pos.get();
        let end = pos + 1 + tail;
        write(chunk, pos, head, tail, extras, bytes);
        chunk.publish(end);
        self.leaf.set(NO_LEAF);
        self.pos.set(end);
        self.chunk.set(chunk);
        true
    }

    /// Takes the chunk out of its cell if it has room for `need` slots and the ends owed
    /// (`more` of them new).
    #[inline(always)]
    fn enter<'p>(&self, pool: &'p Pool, need: u32, more: u32) -> Option<&'p Chunk> {
        let chunk = self.chunk.get();
        if chunk.is_null() || self.pos.get() + need + self.open.get() + more > CAPACITY {
            return self.enter_slowly(pool, need, more);
        }
        self.chunk.set(ptr::null());
        // SAFETY: as in `end`.
        Some(unsafe { &*chunk })
    }

    #[cold]
    #[inline(never)]
    fn enter_slowly<'p>(&self, pool: &'p Pool, need: u32, more: u32) -> Option<&'p Chunk> {
        match self.state.get() {
            State::New => {
                if !self.open_lane(pool) {
                    pool.homeless.fetch_add(1, Ordering::Relaxed);
                    return None;
                }
            }
            // A push from inside `open_lane`, on a lane that is not there yet.
            State::Opening => {
                pool.homeless.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            State::Ready => {}
        }
        // SAFETY: `Ready` means `lane` points to a lane of the pool.
        let lane = unsafe { &*self.lane.get() };
        let chunk = self.chunk.replace(ptr::null());
        if chunk.is_null() {
            // An atomic addition: the push we interrupted may be counting itself.
            lane.reentrant.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let lost = self.lost.get();
        let found = self.find_room(pool, lane, chunk, need + u32::from(lost > 0), more);
        match found {
            Some(chunk) => {
                if lost > 0 {
                    self.lost.set(0);
                    self.write_lost(chunk, lost);
                }
                Some(chunk)
            }
            None => {
                self.lost.set(lost + 1);
                Lane::count(&lane.dropped, 1);
                None
            }
        }
    }

    /// Finds room, with a new chunk if need be, after waiting if the policy says so.
    /// On failure the old chunk is back in its cell.
    fn find_room<'p>(
        &self,
        pool: &'p Pool,
        lane: &Lane,
        chunk: *const Chunk,
        need: u32,
        more: u32,
    ) -> Option<&'p Chunk> {
        // SAFETY: as in `end`.
        let mut chunk = unsafe { &*chunk };
        let mut deadline = None;
        while !self.try_room(pool, lane, &mut chunk, need, more) {
            let stall = pool.stall_micros.load(Ordering::Relaxed);
            let now = if stall == 0 { None } else { Some(Instant::now()) };
            let wait = now.is_some_and(|now| {
                now < *deadline.get_or_insert(now + Duration::from_micros(stall.into()))
            });
            if !wait {
                self.chunk.set(chunk);
                return None;
            }
            std::thread::yield_now();
        }
        Some(chunk)
    }

    /// One attempt at room for `need` slots now and all ends later.
    fn try_room<'p>(
        &self,
        pool: &'p Pool,
        lane: &Lane,
        chunk: &mut &'p Chunk,
        need: u32,
        more: u32,
    ) -> bool {
        let owed = self.open.get() + more;
        if need > CAPACITY {
            return false;
        }
        loop {
            let left = CAPACITY - self.pos.get();
            let reserve = self.spares.get() * CAPACITY;
            let fits = left >= need;
            if fits && left + reserve >= need + owed {
                return true;
            }
            // An end (nothing more owed, one slot) may use what was kept for it.
            if !fits && reserve >= need + owed {
                // SAFETY: `spares` > 0, so the list is not empty; its links are ours.
                let next = unsafe { &*self.spare.get() };
                self.spare.set(next.next.swap(ptr::null_mut(), Ordering::Relaxed));
                self.spares.set(self.spares.get() - 1);
                self.move_to(lane, chunk, next);
                continue;
            }
            let Some(next) = pool.take_chunk() else {
                return false;
            };
            if fits {
                next.next.store(self.spare.get().cast_mut(), Ordering::Relaxed);
                self.spare.set(next);
                self.spares.set(self.spares.get() + 1);
            } else {
                self.move_to(lane, chunk, next);
            }
        }
    }

    /// Closes the current chunk, publishing the open leaf as a begin, and goes on in `next`.
    fn move_to<'p>(&self, lane: &Lane, chunk: &mut &'p Chunk, next: &'p Chunk) {
        let link = ptr::from_ref(next).cast_mut();
        if ptr::eq(*chunk, &FULL) {
            lane.first.store(link, Ordering::Release);
        } else {
            chunk.publish(self.pos.get());
            chunk.next.store(link, Ordering::Release);
        }
        self.leaf.set(NO_LEAF);
        self.pos.set(0);
        *chunk = next;
    }

    #[inline(always)]
    fn count_truncation(&self, bytes: &[u8]) {
        if bytes.len() > MAX_INLINE {
            // SAFETY: the thread has room, so it has a lane of the pool.
            Lane::count(unsafe { &(*self.lane.get()).truncated }, 1);
        }
    }

    /// Counts a string or argument that is left out of an event.
    pub fn cut_short(&self) {
        if self.state.get() == State::Ready {
            // SAFETY: `Ready` means `lane` points to a lane of the pool.
            Lane::count(unsafe { &(*self.lane.get()).truncated }, 1);
        }
    }

    /// Counts an event that its caller could not even try to record.
    pub fn refuse(&self) {
        if self.state.get() == State::Ready {
            self.lost.set(self.lost.get() + 1);
            // SAFETY: as in `cut_short`.
            Lane::count(unsafe { &(*self.lane.get()).dropped }, 1);
        }
    }

    fn write_lost(&self, chunk: &Chunk, lost: u64) {
        let pos = self.pos.get();
        let record = Record { arg: lost, kind: Kind::Lost as u8, ..Record::default() };
        chunk.put(pos, cast(record));
        chunk.publish(pos + 1);
        self.leaf.set(NO_LEAF);
        self.pos.set(pos + 1);
    }

    fn open_lane(&self, pool: &Pool) -> bool {
        self.state.set(State::Opening);
        crate::lifecycle::before_first_event();
        let lane = pool.take_lane();
        self.state.set(State::New);
        let Some(lane) = lane else {
            return false;
        };
        let (tid, name) = super::this_thread();
        lane.open(tid, name);
        self.lane.set(lane);
        self.chunk.set(&FULL);
        self.pos.set(CAPACITY);
        self.open.set(0);
        self.leaf.set(NO_LEAF);
        self.lost.set(0);
        self.spare.set(ptr::null());
        self.spares.set(0);
        self.state.set(State::Ready);
        super::on_thread_exit();
        true
    }

    /// The thread ends: publishes what is open and hands the lane to the reader.
    pub fn retire(&self, pool: &Pool) {
        if self.state.replace(State::New) != State::Ready {
            return;
        }
        let chunk = self.chunk.replace(ptr::null());
        if !chunk.is_null() && !ptr::eq(chunk, &FULL) {
            // SAFETY: as in `end`.
            unsafe { &*chunk }.publish(self.pos.get());
        }
        let mut spare = self.spare.replace(ptr::null());
        self.spares.set(0);
        while !spare.is_null() {
            // SAFETY: the list holds chunks of the pool that nobody else knows.
            let free = unsafe { &*spare };
            spare = free.next.load(Ordering::Relaxed);
            pool.give_chunk(free);
        }
        // SAFETY: the state was `Ready`.
        unsafe { &*self.lane.get() }.retire();
    }

    /// In a forked child: what this thread had belongs to the parent.
    pub(super) fn forget(&self) {
        self.chunk.set(ptr::null());
        self.state.set(State::New);
    }

    /// How many slices are open on this thread.
    pub fn depth(&self) -> u32 {
        self.open.get()
    }
}

/// Slots that arguments and a string by value take after the head. The string belongs to
/// the last of `extras` if that is of type `Bytes`; otherwise it is the event's name.
#[inline(always)]
fn tail_slots(extras: &[Extra], bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        (extras.len() as u32).div_ceil(2)
    } else {
        let extras = extras.len() as u32 + u32::from(!describes_bytes(extras));
        extras.div_ceil(2) + (bytes.len().min(MAX_INLINE) as u32).div_ceil(32)
    }
}

fn describes_bytes(extras: &[Extra]) -> bool {
    extras.last().is_some_and(|e| e.ty == ArgType::Bytes as u8)
}

#[inline(always)]
fn write(chunk: &Chunk, pos: u32, head: Record, tail: u32, extras: &[Extra], bytes: &[u8]) {
    let by_value = !bytes.is_empty() && !describes_bytes(extras);
    let tag = head.tag | if by_value { NAME_BY_VALUE } else { 0 };
    chunk.put(pos, cast(Record { tail: tail as u16, tag, ..head }));
    if tail > 0 {
        write_tail(chunk, pos + 1, extras, bytes);
    }
}

#[inline(never)]
fn write_tail(chunk: &Chunk, mut pos: u32, extras: &[Extra], bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(MAX_INLINE)];
    let named = describes_bytes(extras);
    let name = Extra::new(StrId::NONE, ArgType::Bytes, bytes.len() as u64);
    let name = (!bytes.is_empty() && !named).then_some(&name);
    let mut all = extras.iter().chain(name).copied();
    while let Some(first) = all.next() {
        chunk.put(pos, cast::<[Extra; 2], Slot>([first, all.next().unwrap_or_default()]));
        pos += 1;
    }
    for part in bytes.chunks(32) {
        let mut slot = [0; 32];
        slot[..part.len()].copy_from_slice(part);
        chunk.put(pos, cast(slot));
        pos += 1;
    }
}
