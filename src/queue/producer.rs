//! The writing end of a thread's queue.
//!
//! Everything a push needs lies in one thread-local block of plain cells. A push sets
//! `busy` before it looks at any of them and clears it when done: a push that finds it set
//! comes from a signal handler or an allocator hook, and is counted, not served.
//!
//! **Room for ends is reserved.** A begin is accepted only while the slots left in the
//! thread's chunks suffice for the ends of all slices then open, so an accepted slice is
//! always exact: under pressure whole slices are lost, never half of one.
//!
//! The ways of a push are inlined where the build is optimised. Elsewhere all that they keep
//! on the stack would add up, and not fit on one of 16 KiB.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use std::time::{Duration, Instant};

use kymograph_protos::record::{Extra, Kind, Record};

use super::chunk::{CAPACITY, Chunk};
use super::fork_guard;
use super::lane::Lane;
use super::left;
use super::pool::Pool;
use super::tail::{MAX_INLINE, tail_slots, write};
use crate::hooks::{ON_CLOSED, ON_FIRST_EVENT};

/// `leaf` when no slice is open that could still be completed in place.
pub(super) const NO_LEAF: u32 = u32::MAX;
/// A chunk with no room, so that a thread without one needs no check of its own.
static FULL: Chunk = Chunk::new();

/// Whether this is no chunk of the pool.
pub(super) fn is_none(chunk: *const Chunk) -> bool {
    chunk.is_null() || ptr::eq(chunk, &FULL)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The thread never recorded anything, or its lane was taken back.
    New,
    /// `lane` and `chunk` are there.
    Ready,
}

/// See the module. Used by one thread; the reader sees only lanes and chunks.
#[derive(Debug)]
pub struct Producer {
    /// During a push where its mark lies: see `left.rs`. An atomic only because signal
    /// handlers look at it.
    busy: AtomicUsize,
    /// Set while the thread goes over to another chunk.
    pub(super) moving: Cell<bool>,
    pub(super) chunk: Cell<*const Chunk>,
    /// Slots used in `chunk`.
    pub(super) pos: Cell<u32>,
    /// Ends that are owed to the slices now open.
    open: Cell<u32>,
    /// Where the open leaf lies in `chunk`, or `NO_LEAF`.
    pub(super) leaf: Cell<u32>,
    /// The nesting stack that the leaf belongs to (0 for scopes, else a category).
    leaf_stack: Cell<u32>,
    pub(super) state: Cell<State>,
    /// Events lost since the last `Lost` record.
    pub(super) lost: Cell<u64>,
    pub(super) lane: Cell<*const Lane>,
    /// The first of the chunks kept for ends only, linked through `next`, as its index + 1.
    spare: Cell<u32>,
    spares: Cell<u32>,
    /// The process that all of this belongs to: see `fork_guard.rs`.
    process: Cell<u64>,
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
            busy: AtomicUsize::new(0),
            moving: Cell::new(false),
            chunk: Cell::new(ptr::null()),
            pos: Cell::new(CAPACITY),
            open: Cell::new(0),
            leaf: Cell::new(NO_LEAF),
            leaf_stack: Cell::new(0),
            state: Cell::new(State::New),
            lost: Cell::new(0),
            lane: Cell::new(ptr::null()),
            spare: Cell::new(0),
            spares: Cell::new(0),
            process: Cell::new(0),
        }
    }

    /// Records the beginning of a slice in nesting stack `stack`. If this returns false
    /// the slice is counted as lost and its end must not be recorded.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn begin(
        &self,
        pool: &Pool,
        head: Record,
        stack: u32,
        extras: &[Extra],
        bytes: &[u8],
    ) -> bool {
        let mark = Cell::new(0);
        if !self.enter(pool, &mark) {
            return false;
        }
        let tail = tail_slots(extras, bytes);
        let Some(chunk) = self.room(pool, 1 + tail, 1, true) else {
            return self.leave(false);
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
        self.leave(true)
    }

    /// Records the end of the innermost slice of `stack`, which [`Producer::begin`]
    /// accepted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn end(&self, pool: &Pool, head: Record, stack: u32, extras: &[Extra]) -> bool {
        let mark = Cell::new(0);
        if !self.enter(pool, &mark) {
            return false;
        }
        let leaf = self.leaf.get();
        if leaf != NO_LEAF && self.leaf_stack.get() == stack && extras.is_empty() {
            // SAFETY: a leaf lies in a chunk of the pool, which are never freed.
            let chunk = unsafe { &*self.chunk.get() };
            let kind = u64::from(Kind::Scope as u8) << 48;
            let word = chunk.head_word(leaf) & !(0xff << 48) | kind;
            chunk.finish_leaf(leaf, head.time, word, self.pos.get());
            self.leaf.set(NO_LEAF);
            self.open.set(self.open.get() - 1);
            return self.leave(true);
        }
        // This end pays for itself out of the reserve. What was reserved is one slot: its
        // arguments are left out where they do not fit.
        self.open.set(self.open.get().saturating_sub(1));
        let tail = tail_slots(extras, &[]);
        if tail > 0 {
            if let Some(chunk) = self.room(pool, 1 + tail, 0, false) {
                self.append(chunk, head, tail, extras, &[]);
                return self.leave(true);
            }
            self.count_cut();
        }
        let Some(chunk) = self.room(pool, 1, 0, true) else {
            return self.leave(false);
        };
        self.append(chunk, head, 0, &[], &[]);
        self.leave(true)
    }

    /// Records anything else. Returns whether there was room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn event(&self, pool: &Pool, head: Record, extras: &[Extra], bytes: &[u8]) -> bool {
        let mark = Cell::new(0);
        if !self.enter(pool, &mark) {
            return false;
        }
        let tail = tail_slots(extras, bytes);
        let Some(chunk) = self.room(pool, 1 + tail, 0, true) else {
            return self.leave(false);
        };
        self.count_truncation(bytes);
        self.append(chunk, head, tail, extras, bytes);
        self.leave(true)
    }

    /// Writes and publishes a record for which there is room.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn append(&self, chunk: &Chunk, head: Record, tail: u32, extras: &[Extra], bytes: &[u8]) {
        let pos = self.pos.get();
        let end = pos + 1 + tail;
        write(chunk, pos, head, tail, extras, bytes);
        chunk.publish(end);
        self.leaf.set(NO_LEAF);
        self.pos.set(end);
    }

    /// Begins a push. Returns false, and counts, inside another one.
    ///
    /// A signal handler that comes between the look and the store does all its pushes
    /// before the fence, and one that comes later sees `busy`: either way nothing is read
    /// here that a handler may still change.
    #[inline(always)]
    fn enter(&self, pool: &Pool, mark: &Cell<usize>) -> bool {
        let busy = self.busy.load(Ordering::Relaxed);
        // One branch for both of what hardly ever happens.
        let other_process = self.process.get() ^ fork_guard::process();
        if busy as u64 | other_process != 0 {
            return self.enter_all_the_same(pool, busy, mark);
        }
        self.mark(mark);
        true
    }

    /// From here on handlers find the thread busy.
    #[inline(always)]
    fn mark(&self, mark: &Cell<usize>) {
        // SAFETY: a local of the caller's. Volatile, as nothing in this function reads it.
        unsafe { mark.as_ptr().write_volatile(left::MARK) };
        self.busy.store(ptr::from_ref(mark).addr(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Begins a push inside of another one, or in another process than the last one.
    #[cold]
    #[inline(never)]
    fn enter_all_the_same(&self, pool: &Pool, busy: usize, mark: &Cell<usize>) -> bool {
        if busy != 0 && !self.is_left(pool, busy, ptr::from_ref(mark).addr()) {
            return false;
        }
        self.mark(mark);
        if self.process.get() != fork_guard::process() {
            self.change_process();
        }
        true
    }

    /// The first push of this thread since the guard was set, or since it was forked by means
    /// that no handler hears of (`_Fork`, `clone`).
    fn change_process(&self) {
        let busy = self.busy.load(Ordering::Relaxed);
        super::notice_fork();
        let process = fork_guard::process();
        if self.process.replace(process) != 0 {
            self.forget();
            self.busy.store(busy, Ordering::Relaxed);
            self.process.set(process);
        }
    }

    /// Whether the push that is busy will never go on. If it will, this one is counted.
    fn is_left(&self, pool: &Pool, there: usize, here: usize) -> bool {
        let left = left::was_left(there, here);
        if left {
            self.clear_up();
        } else {
            self.count_reentrant(pool);
        }
        left
    }

    /// Ends a push with this result.
    #[inline(always)]
    fn leave(&self, result: bool) -> bool {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(0, Ordering::Relaxed);
        result
    }

    #[cold]
    fn count_reentrant(&self, pool: &Pool) {
        if self.state.get() == State::Ready {
            // SAFETY: `Ready` means `lane` points to a lane of the pool. An atomic
            // addition: another handler may be counting itself.
            unsafe { &*self.lane.get() }.reentrant.fetch_add(1, Ordering::Relaxed);
        } else {
            pool.lose(1);
        }
    }

    /// The chunk, if it has room for `need` slots and the ends owed (`more` of them new);
    /// or another one. If there is none the event is lost, and counted if it `counts`.
    #[inline(always)]
    fn room<'p>(&self, pool: &'p Pool, need: u32, more: u32, counts: bool) -> Option<&'p Chunk> {
        let chunk = self.chunk.get();
        if chunk.is_null() || self.pos.get() + need + self.open.get() + more > CAPACITY {
            return self.room_elsewhere(pool, need, more, counts);
        }
        // SAFETY: not null, so it is a chunk of the pool, which are never freed.
        Some(unsafe { &*chunk })
    }

    #[cold]
    #[inline(never)]
    fn room_elsewhere<'p>(
        &self,
        pool: &'p Pool,
        need: u32,
        more: u32,
        counts: bool,
    ) -> Option<&'p Chunk> {
        if self.state.get() == State::New && !self.open_lane(pool) {
            pool.lose(u64::from(counts));
            return None;
        }
        // SAFETY: `Ready` means `lane` points to a lane of the pool.
        let lane = unsafe { &*self.lane.get() };
        if super::arena().is_some_and(super::Arena::is_closing) {
            ON_CLOSED.call();
            return None;
        }
        super::goes_on();
        self.moving.set(true);
        compiler_fence(Ordering::SeqCst);
        // What was lost is told before what comes next, if there is room for both: an end
        // has one slot of its own and no more.
        let lost = self.lost.get();
        if lost > 0 && self.try_room(pool, lane, need + 1, more) {
            self.lost.set(0);
            self.write_lost(lost);
        } else if !self.find_room(pool, lane, need, more) {
            self.moving.set(false);
            if counts {
                self.lost.set(lost + 1);
                Lane::count(&lane.dropped, 1);
            }
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        self.moving.set(false);
        // SAFETY: as in `room`: there is room in it, so it is no longer `FULL`.
        Some(unsafe { &*self.chunk.get() })
    }

    /// Finds room, with a new chunk if need be, after waiting if the policy says so.
    fn find_room(&self, pool: &Pool, lane: &Lane, need: u32, more: u32) -> bool {
        let mut deadline = None;
        while !self.try_room(pool, lane, need, more) {
            let stall = pool.stall_micros();
            let now = if stall == 0 { None } else { Some(Instant::now()) };
            let wait = now.is_some_and(|now| {
                now < *deadline.get_or_insert(now + Duration::from_micros(stall.into()))
            });
            if !wait {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// One attempt at room for `need` slots now and all ends later.
    fn try_room(&self, pool: &Pool, lane: &Lane, need: u32, more: u32) -> bool {
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
                let Some(next) = self.take_spare(pool) else { return false };
                self.move_to(lane, next);
                continue;
            }
            let owner = lane.index.load(Ordering::Relaxed);
            let Some(next) = pool.take_chunk(owner) else {
                return false;
            };
            if fits {
                next.next.store(self.spare.get(), Ordering::Relaxed);
                self.spare.set(number(next));
                self.spares.set(self.spares.get() + 1);
            } else {
                self.move_to(lane, next);
            }
        }
    }

    /// Takes one of the chunks kept for ends.
    fn take_spare<'p>(&self, pool: &'p Pool) -> Option<&'p Chunk> {
        let spare = pool.chunk(self.spare.get().checked_sub(1)?)?;
        self.spare.set(spare.next.swap(0, Ordering::Relaxed));
        self.spares.set(self.spares.get().saturating_sub(1));
        Some(spare)
    }

    /// Closes the current chunk, publishing the open leaf as a begin, and goes on in `next`.
    fn move_to(&self, lane: &Lane, next: &Chunk) {
        let chunk = self.chunk.get();
        if ptr::eq(chunk, &FULL) {
            lane.begin_with(number(next));
        } else {
            // SAFETY: as in `room`.
            let chunk = unsafe { &*chunk };
            chunk.publish(self.pos.get());
            chunk.next.store(number(next), Ordering::Release);
        }
        self.leaf.set(NO_LEAF);
        self.pos.set(0);
        self.chunk.set(next);
    }

    #[inline(always)]
    fn count_truncation(&self, bytes: &[u8]) {
        if bytes.len() > MAX_INLINE {
            self.count_cut();
        }
    }

    /// Something was recorded without a part of it.
    #[cold]
    fn count_cut(&self) {
        if self.state.get() == State::Ready {
            // SAFETY: as in `room_elsewhere`.
            Lane::count(unsafe { &(*self.lane.get()).truncated }, 1);
        }
    }

    /// Counts a string or argument that is left out of an event.
    pub fn cut_short(&self) {
        self.count_cut();
    }

    /// Counts an event that its caller could not even try to record.
    pub fn refuse(&self) {
        if self.state.get() == State::Ready {
            self.lost.set(self.lost.get() + 1);
            // SAFETY: as in `cut_short`.
            Lane::count(unsafe { &(*self.lane.get()).dropped }, 1);
        }
    }

    fn write_lost(&self, lost: u64) {
        // SAFETY: as in `room_elsewhere`, which found room in it.
        let chunk = unsafe { &*self.chunk.get() };
        let record = Record { arg: lost, kind: Kind::Lost as u8, ..Record::default() };
        self.append(chunk, record, 0, &[], &[]);
    }

    fn open_lane(&self, pool: &Pool) -> bool {
        ON_FIRST_EVENT.call();
        let Some(lane) = super::take_lane(pool) else {
            return false;
        };
        self.adopt(lane);
        super::on_thread_exit();
        true
    }

    /// Goes on with `lane`, which is empty and belongs to this thread alone.
    pub(super) fn adopt(&self, lane: &Lane) {
        self.lane.set(lane);
        self.chunk.set(&FULL);
        self.pos.set(CAPACITY);
        self.open.set(0);
        self.leaf.set(NO_LEAF);
        self.lost.set(0);
        self.spare.set(0);
        self.spares.set(0);
        self.state.set(State::Ready);
    }

    /// The thread ends: publishes what is open and hands the lane to the reader.
    pub fn retire(&self, pool: &Pool) {
        if self.process.get() != fork_guard::process() {
            // Of the process that this one was forked from.
            return;
        }
        if self.busy.swap(0, Ordering::Relaxed) != 0 {
            self.clear_up();
        }
        if self.state.replace(State::New) != State::Ready {
            return;
        }
        self.leaf.set(NO_LEAF);
        let chunk = self.chunk.replace(ptr::null());
        if !chunk.is_null() && !ptr::eq(chunk, &FULL) {
            // SAFETY: as in `room`.
            unsafe { &*chunk }.publish(self.pos.get());
        }
        while let Some(spare) = self.take_spare(pool) {
            pool.give_chunk(number(spare) - 1);
        }
        self.spare.set(0);
        self.spares.set(0);
        // SAFETY: the state was `Ready`.
        unsafe { &*self.lane.get() }.retire();
    }

    /// In a forked child: what this thread had belongs to the parent.
    pub(super) fn forget(&self) {
        self.chunk.set(ptr::null());
        self.leaf.set(NO_LEAF);
        self.open.set(0);
        self.state.set(State::New);
        self.process.set(fork_guard::process());
        self.busy.store(0, Ordering::Relaxed);
    }

    /// How many slices are open on this thread.
    pub fn depth(&self) -> u32 {
        self.open.get()
    }
}

/// What stands for a chunk in links: its index + 1.
fn number(chunk: &Chunk) -> u32 {
    chunk.index.load(Ordering::Relaxed) + 1
}
