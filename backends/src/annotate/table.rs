//! Tables that only grow: a handle is an index, so a stale or invented one is harmless.
//!
//! Readers never wait. Both are bounded: a program that registers without end gets null
//! handles, not our memory.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kymograph_protos::StrId;

use super::memory;
use super::session::Session;

/// Elements in the first segment; each next one doubles.
const FIRST: usize = 32;
const SEGMENTS: usize = 12;

/// An append-only list. Elements never move.
pub(crate) struct List<T> {
    count: AtomicU32,
    segments: [OnceLock<Box<[OnceLock<T>]>>; SEGMENTS],
}

impl<T> List<T> {
    pub(crate) const fn new() -> List<T> {
        List { count: AtomicU32::new(0), segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// Segment and place in it of an index.
    fn place(index: u32) -> (usize, usize) {
        let n = index as usize / FIRST + 1;
        let segment = n.ilog2() as usize;
        (segment, index as usize - FIRST * ((1 << segment) - 1))
    }

    /// Adds an element and returns its index, if there is room.
    pub(crate) fn push(&self, value: T) -> Option<u32> {
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        let (segment, at) = Self::place(index);
        let Some(segment_cell) = self.segments.get(segment) else {
            // Stay at the limit, lest the count wrap around after 2^32 attempts.
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        if segment_cell.get().is_none() {
            let mut cells = Vec::new();
            // Without memory this index stays empty.
            cells.try_reserve_exact(FIRST << segment).ok()?;
            cells.resize_with(FIRST << segment, OnceLock::new);
            // Somebody may have been faster.
            let _ = segment_cell.set(cells.into_boxed_slice());
        }
        let _ = segment_cell.get()?.get(at)?.set(value);
        Some(index)
    }

    /// The element with this index.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let (segment, at) = Self::place(index);
        self.segments.get(segment)?.get()?.get(at)?.get()
    }

    /// The index of one of the last `most` elements that `wanted` accepts.
    pub(crate) fn find_recent(&self, most: u32, wanted: impl Fn(&T) -> bool) -> Option<u32> {
        let end = self.count.load(Ordering::Acquire);
        (end.saturating_sub(most)..end).find(|&i| self.get(i).is_some_and(&wanted))
    }

    /// The first element that `wanted` accepts, with its index. For small lists.
    pub(crate) fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<(u32, &T)> {
        (0..self.count.load(Ordering::Acquire))
            .find_map(|i| self.get(i).filter(|value| wanted(value)).map(|value| (i, value)))
    }
}

/// Slots of a [`Map`].
const SLOTS: usize = 1 << 12;
/// Slots looked at before a map counts as full around a key.
const PROBES: usize = 64;

/// A lock-free map from a pair of numbers to a small number; entries are never removed.
///
/// Keys are kept as 64-bit hashes of the pair: with the few thousand that fit, two pairs
/// share one with a probability below 10⁻¹².
pub(crate) struct Map {
    slots: [(AtomicU64, AtomicU32); SLOTS],
}

impl Map {
    pub(crate) const fn new() -> Map {
        Map { slots: [const { (AtomicU64::new(0), AtomicU32::new(0)) }; SLOTS] }
    }

    fn probe(hash: u64) -> impl Iterator<Item = usize> {
        (0..PROBES).map(move |i| (hash as usize).wrapping_add(i) % SLOTS)
    }

    /// Sets the value of a key; `false` if there is no room. `value` is not 0.
    pub(crate) fn insert(&self, a: u64, b: u64, value: u32) -> bool {
        let hash = pair(a, b);
        for i in Self::probe(hash) {
            let (key, cell) = &self.slots[i];
            match key.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {}
                Err(found) if found == hash => {}
                Err(_) => continue,
            }
            cell.store(value, Ordering::Release);
            return true;
        }
        false
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, a: u64, b: u64) -> Option<u32> {
        let hash = pair(a, b);
        for i in Self::probe(hash) {
            let (key, cell) = &self.slots[i];
            match key.load(Ordering::Acquire) {
                0 => return None,
                found if found == hash => {
                    // 0: the inserting thread is between its two stores.
                    return Some(cell.load(Ordering::Acquire)).filter(|&value| value != 0);
                }
                _ => {}
            }
        }
        None
    }
}

/// A well-mixed, non-zero hash of two numbers (the finaliser of splitmix64, twice).
pub(crate) fn pair(a: u64, b: u64) -> u64 {
    mix(mix(a) ^ b) | 1
}

/// The finaliser of splitmix64.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A text that is interned when it is first needed, and again if that failed: the
/// recorder may refuse an id for a moment, and a handle lives as long as the process.
#[derive(Debug)]
pub(crate) struct Interned {
    text: Cow<'static, [u8]>,
    id: AtomicU32,
}

impl Interned {
    pub(crate) const fn known(text: &'static [u8]) -> Interned {
        Interned { text: Cow::Borrowed(text), id: AtomicU32::new(0) }
    }

    /// None if there is no memory for the text.
    pub(crate) fn new(text: &[u8]) -> Option<Interned> {
        let text = super::text::clip(text, super::text::MAX_TEXT);
        let text = Cow::Owned(memory::concat(&[text])?);
        Some(Interned { text, id: AtomicU32::new(0) })
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The id. Always ask with the same category.
    #[inline]
    pub(crate) fn id(&self, session: &Session, category: StrId) -> StrId {
        match self.id.load(Ordering::Relaxed) {
            0 => {
                let id = session.intern_or_wait(category, &self.text);
                self.id.store(id.0, Ordering::Relaxed);
                id
            }
            id => StrId(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_elements_and_knows_its_end() {
        let list = List::new();
        for i in 0..1000_u32 {
            assert_eq!(list.push(i * 3), Some(i));
        }
        assert!((0..1000).all(|i| list.get(i) == Some(&(i * 3))));
        assert_eq!(list.get(1000), None);
        assert_eq!(list.get(u32::MAX), None);
        assert_eq!(list.find(|&x| x == 30).map(|found| found.0), Some(10));
    }

    #[test]
    fn a_full_list_refuses() {
        let list = List::new();
        let room = (0..).take_while(|_| list.push(()).is_some()).count();
        assert_eq!(room, FIRST * ((1 << SEGMENTS) - 1));
        assert_eq!(list.push(()), None);
    }

    #[test]
    fn a_map_finds_what_was_put_in_and_refuses_when_full() {
        let map = Box::leak(Box::new(Map::new()));
        assert!(map.insert(1, 2, 3) && map.insert(2, 1, 4) && map.insert(1, 2, 5));
        assert_eq!((map.get(1, 2), map.get(2, 1), map.get(0, 0)), (Some(5), Some(4), None));
        let stored = (0..SLOTS as u64 * 2).filter(|&i| map.insert(9, i, 1)).count();
        assert!(stored < SLOTS && stored > SLOTS / 2);
    }
}
