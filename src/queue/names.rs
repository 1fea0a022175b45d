//! The names that a process has given ids to, for the process that reads its records.
//!
//! A record says a name by its id, which only the process's interner understands. So every
//! insertion is published first: as a record of kind `Name`, on a lane of its own. By the
//! time that a record with an id can be read, the name can be read as well.
//!
//! A name longer than a record may be comes in several, one after the other.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use kymograph_protos::record::{Kind, Record, Slot, StrId};

use super::chunk::{CAPACITY, Chunk};
use super::lane::{Lane, NAMES};
use super::pool::Pool;
use super::reader::Reader;
use super::tail::{MAX_INLINE, tail_slots, write};

/// A name and its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named<'a> {
    /// From 1, without gaps.
    pub id: StrId,
    /// What it belongs to.
    pub category: StrId,
    /// The name of the first argument of events that are called so.
    pub arg: StrId,
    /// The name itself.
    pub text: &'a [u8],
}

/// The writing end. Used under the interner's lock.
#[derive(Debug)]
pub(super) struct Writer {
    lane: Cell<*const Lane>,
    chunk: Cell<*const Chunk>,
    pos: Cell<u32>,
    /// The member whose names these are.
    member: Cell<u32>,
}

// SAFETY: used by one thread at a time, which the interner's lock sees to.
unsafe impl Sync for Writer {}

impl Writer {
    pub(super) const fn new() -> Writer {
        Writer {
            lane: Cell::new(ptr::null()),
            chunk: Cell::new(ptr::null()),
            pos: Cell::new(CAPACITY),
            member: Cell::new(0),
        }
    }

    /// Publishes a name. Returns false if there is no room for it.
    pub(super) fn publish(&self, pool: &Pool, name: Named<'_>) -> bool {
        self.begin(pool);
        let total = StrId(name.text.len() as u32);
        let head = Record {
            other: name.id.0.into(),
            arg: u64::from(name.arg.0) << 32 | u64::from(name.category.0),
            site: total,
            kind: Kind::Name as u8,
            ..Record::default()
        };
        if name.text.is_empty() {
            return self.append(pool, head, &[]);
        }
        name.text.chunks(MAX_INLINE).all(|part| self.append(pool, head, part))
    }

    /// Publishes what a thread is called that has recorded nothing.
    pub(super) fn publish_thread(&self, pool: &Pool, tid: u32, name: &[u8]) -> bool {
        let name = &name[..name.len().min(MAX_INLINE)];
        let (site, kind) = (StrId(name.len() as u32), Kind::ThreadName as u8);
        self.begin(pool);
        self.append(pool, Record { arg: tid.into(), site, kind, ..Record::default() }, name)
    }

    /// Turns to the member that this process is.
    fn begin(&self, pool: &Pool) {
        if self.member.get() != pool.member() {
            // Of the process that this one was forked from.
            self.forget();
            self.member.set(pool.member());
        }
    }

    /// In a forked child: what was written to is not its own.
    pub(super) fn forget(&self) {
        self.lane.set(ptr::null());
        self.chunk.set(ptr::null());
        self.pos.set(CAPACITY);
        self.member.set(0);
    }

    fn append(&self, pool: &Pool, head: Record, part: &[u8]) -> bool {
        let tail = tail_slots(&[], part);
        let Some(chunk) = self.room(pool, 1 + tail) else { return false };
        let pos = self.pos.get();
        write(chunk, pos, head, tail, &[], part);
        self.pos.set(pos + 1 + tail);
        chunk.publish(pos + 1 + tail);
        true
    }

    fn room<'p>(&self, pool: &'p Pool, need: u32) -> Option<&'p Chunk> {
        // SAFETY: null, or a chunk of the pool, which are never freed.
        let chunk: Option<&'p Chunk> = unsafe { self.chunk.get().as_ref() };
        if let Some(chunk) = chunk.filter(|_| self.pos.get() + need <= CAPACITY) {
            return Some(chunk);
        }
        if self.lane.get().is_null() {
            let lane = pool.take_lane()?;
            lane.open_for_names(pool.member());
            self.lane.set(lane);
        }
        // SAFETY: a lane of the pool, which are never freed.
        let lane = unsafe { &*self.lane.get() };
        let next = pool.take_chunk_for_names(lane.index.load(Ordering::Relaxed))?;
        let link = next.index.load(Ordering::Relaxed) + 1;
        match chunk {
            Some(chunk) => chunk.next.store(link, Ordering::Release),
            None => lane.begin_with(link),
        }
        self.chunk.set(next);
        self.pos.set(0);
        Some(next)
    }
}

impl Lane {
    fn open_for_names(&self, member: u32) {
        self.reset();
        self.member.store(member, Ordering::Relaxed);
        self.state.store(NAMES, Ordering::Release);
    }
}

/// The reading end.
#[derive(Debug, Default)]
pub struct NameLog {
    reader: Option<Reader>,
    slots: Vec<Slot>,
    /// The beginning of a name whose rest is still to come.
    begun: Vec<u8>,
}

impl NameLog {
    /// Calls `each` with the names that came since the last time, in the order of their ids,
    /// and `thread` with what threads are called.
    pub fn read(
        &mut self,
        pool: &Pool,
        mut each: impl FnMut(Named<'_>),
        mut thread: impl FnMut(u32, &[u8]),
    ) {
        if self.reader.is_none() {
            self.reader = Reader::of_names(pool);
        }
        let Some(reader) = &mut self.reader else { return };
        self.slots.clear();
        reader.drain(pool, &mut self.slots, usize::MAX);
        let mut rest = self.slots.as_slice();
        while let Some((first, tail)) = rest.split_first() {
            let head: Record = bytemuck::cast(*first);
            let (tail, after) = tail.split_at((head.tail as usize).min(tail.len()));
            rest = after;
            let bytes: &[u8] = tail.get(1..).map_or(&[][..], bytemuck::cast_slice);
            if head.kind == Kind::ThreadName as u8 {
                thread(head.arg as u32, &bytes[..bytes.len().min(head.site.0 as usize)]);
            }
            if head.kind != Kind::Name as u8 {
                continue;
            }
            let left = (head.site.0 as usize).saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&bytes[..bytes.len().min(left).min(MAX_INLINE)]);
            if self.begun.len() >= head.site.0 as usize {
                each(Named {
                    id: StrId(head.other as u32),
                    category: StrId(head.arg as u32),
                    arg: StrId((head.arg >> 32) as u32),
                    text: &self.begun,
                });
                self.begun.clear();
            }
        }
    }
}
