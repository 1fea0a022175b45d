//! A chunk: 16 KiB of slots that one thread fills and the engine empties.
//!
//! ```text
//! byte 0      4       8           12        16          20      64
//!      ┌──────┬───────┬───────────┬─────────┬───────────┬───────┬──────────────────────┐
//!      │ next │ owner │ committed │ written │ free_next │ index │ 510 slots of 32 bytes │
//!      └──────┴───────┴───────────┴─────────┴───────────┴───────┴──────────────────────┘
//! ```
//! Chunks name each other by their position in the pool, never by address: a pool may lie
//! in memory that two processes map at different places.
//!
//! Slots `0..committed` are published and never change. Slots `committed..written` hold
//! the thread's **open leaf**: a slice that has begun with nothing recorded after it. If
//! it ends while still the leaf, its record is completed in place and a scope costs one
//! record instead of two. The engine may look at the leaf at any time
//! ([`Chunk::peek_leaf`]), so a slice that stays open for minutes is in the file all the
//! same.
//!
//! **Completing a leaf can be cut short by a SIGKILL.** Each step leaves the slots such that
//! a reader of a dead thread's chunk ([`Chunk::leaf_of_the_dead`]) finds either the beginning
//! or the whole scope.
//!
//! Slots are atomics and are accessed with relaxed loads and stores, which compile to
//! plain moves; publication is by `committed` (release) alone.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use kymograph_protos::record::{NANOS, Record, SLOT_BYTES, Slot};

/// Slots in a chunk.
pub const CAPACITY: u32 = if cfg!(miri) { 14 } else { 510 };
/// In `written`: the leaf is being completed.
const COMPLETING: u32 = 1 << 31;

/// A run of slots with one writer and one reader.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Chunk {
    /// The chunk that the writer went on to, as its index + 1; set once, when this one takes
    /// no more.
    pub(super) next: AtomicU32,
    /// The lane that uses it, as its index + 1; 0 while it is free.
    pub(super) owner: AtomicU32,
    committed: AtomicU32,
    written: AtomicU32,
    /// Link of the free list; meaningful only while the chunk is free.
    pub(super) free_next: AtomicU32,
    /// Position in the pool. Written once, before the chunk is first handed out.
    pub(super) index: AtomicU32,
    pad: [u64; 5],
    slots: [[AtomicU64; 4]; CAPACITY as usize],
}

const _: () = assert!(cfg!(miri) || size_of::<Chunk>() == 16384);
const _: () = assert!(std::mem::offset_of!(Chunk, slots) == 64);
const _: () = assert!(size_of::<[AtomicU64; 4]>() == SLOT_BYTES);

impl Chunk {
    /// A chunk with nothing in it.
    pub const fn new() -> Chunk {
        Chunk {
            next: AtomicU32::new(0),
            owner: AtomicU32::new(0),
            committed: AtomicU32::new(0),
            written: AtomicU32::new(0),
            free_next: AtomicU32::new(0),
            index: AtomicU32::new(0),
            pad: [0; 5],
            slots: [const { [const { AtomicU64::new(0) }; 4] }; CAPACITY as usize],
        }
    }

    /// Makes a drained chunk ready for its next writer.
    pub(super) fn reset(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.committed.store(0, Ordering::Relaxed);
        self.written.store(0, Ordering::Relaxed);
    }

    /// Writer: stores a slot that is not yet published.
    #[inline(always)]
    pub(super) fn put(&self, at: u32, slot: Slot) {
        debug_assert!(at < CAPACITY);
        // SAFETY: every writer checks `at` against CAPACITY before it writes (the room
        // check in `producer.rs`), so the slot exists.
        let words = unsafe { self.slots.get_unchecked(at as usize) };
        for (word, value) in words.iter().zip(slot) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Writer: shows the reader that an open leaf ends at `end`, without publishing it.
    #[inline(always)]
    pub(super) fn show_leaf(&self, end: u32) {
        self.written.store(end, Ordering::Release);
    }

    /// Writer: completes the open leaf at `at`: stores its end and its new head word, then
    /// publishes everything up to `end`.
    #[inline(always)]
    pub(super) fn finish_leaf(&self, at: u32, other: u64, head: u64, end: u32) {
        // Withdraw the leaf before changing it: a reader that copied a changed word then
        // finds `written` changed too (the fences pair with those in `peek_leaf`).
        self.written.store(COMPLETING | end, Ordering::Relaxed);
        fence(Ordering::Release);
        // SAFETY: `at` is where this leaf was `put`.
        let words = unsafe { self.slots.get_unchecked(at as usize) };
        words[1].store(other, Ordering::Relaxed);
        compiler_fence(Ordering::Release);
        words[3].store(head, Ordering::Relaxed);
        self.committed.store(end, Ordering::Release);
    }

    /// As [`Chunk::finish_leaf`], by a thread that is killed after so many of its stores.
    #[cfg(test)]
    pub(super) fn stop_completing(&self, at: u32, other: u64, head: u64, end: u32, stores: u32) {
        self.written.store(COMPLETING | end, Ordering::Relaxed);
        let words = &self.slots[at as usize];
        if stores > 0 {
            words[1].store(other, Ordering::Relaxed);
        }
        if stores > 1 {
            words[3].store(head, Ordering::Relaxed);
        }
    }

    /// The last word of the slot at `at` as its writer stored it.
    #[inline(always)]
    pub(super) fn head_word(&self, at: u32) -> u64 {
        // SAFETY: `at` is a slot that the caller wrote.
        unsafe { self.slots.get_unchecked(at as usize)[3].load(Ordering::Relaxed) }
    }

    /// Writer: publishes all slots before `end`.
    #[inline(always)]
    pub(super) fn publish(&self, end: u32) {
        self.committed.store(end, Ordering::Release);
    }

    /// Reader: how many slots are published.
    pub(super) fn committed(&self) -> u32 {
        self.committed.load(Ordering::Acquire).min(CAPACITY)
    }

    /// Reader: appends the slots `from..to`, which are published, to `out`.
    pub(super) fn copy(&self, from: u32, to: u32, out: &mut Vec<Slot>) {
        out.extend(self.slots[from as usize..to as usize].iter().map(load));
    }

    /// Reader: where the first record begins that is later than the horizon, in ticks and in
    /// nanoseconds, of those from `from` to `to`.
    pub(super) fn until(&self, from: u32, to: u32, horizon: [u64; 2]) -> u32 {
        if horizon == [u64::MAX; 2] {
            return to;
        }
        let mut at = from;
        while at < to {
            let (time, nanos) = self.time(at);
            if time > horizon[usize::from(nanos)] {
                return at;
            }
            let head: Record = bytemuck::cast(load(&self.slots[at as usize]));
            at += 1 + u32::from(head.tail);
        }
        to
    }

    /// Reader: the time of the record at `at`, and whether it is in nanoseconds.
    pub(super) fn time(&self, at: u32) -> (u64, bool) {
        let head: Record = bytemuck::cast(load(&self.slots[at as usize]));
        (head.time, head.tag & NANOS != 0)
    }

    /// Reader: copies the open leaf, if there is one right now, and returns where it lies.
    pub(super) fn peek_leaf(&self, out: &mut Vec<Slot>) -> Option<u32> {
        let from = self.committed();
        let to = self.written.load(Ordering::Acquire);
        if to <= from || to > CAPACITY {
            return None;
        }
        let start = out.len();
        self.copy(from, to, out);
        fence(Ordering::Acquire);
        let same = self.written.load(Ordering::Relaxed) == to
            && self.committed.load(Ordering::Relaxed) == from;
        if !same {
            out.truncate(start);
            return None;
        }
        Some(from)
    }

    /// Reader, once the writer's process is dead: copies the open leaf, as a beginning or as
    /// a whole scope. The end is stored before the kind, so a scope has its end.
    pub(super) fn leaf_of_the_dead(&self, out: &mut Vec<Slot>) {
        let from = self.committed();
        let to = (self.written.load(Ordering::Acquire) & !COMPLETING).min(CAPACITY);
        if to > from {
            self.copy(from, to, out);
        }
    }
}

fn load(words: &[AtomicU64; 4]) -> Slot {
    std::array::from_fn(|i| words[i].load(Ordering::Relaxed))
}
