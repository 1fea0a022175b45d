//! Objects by name: a program may compare the pointers that it gets, so there is one per name.
//!
//! Programs look an object up as often as they record (PyTorch creates a string handle for
//! every operator), so looking up takes no lock and holds no signals back.

use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::super::memory;
use super::super::table::mix;
use crate::guard::without_signals;

/// Objects of one kind at most: they are never freed.
const MAX: u32 = 1 << 16;
/// Twice as many, so that the way to a name is short.
const CELLS: usize = 2 << 16;

struct Node<T> {
    name: &'static [u8],
    object: T,
}

/// An open-addressed hash table that only grows. Memory that no name needs is never touched.
pub(super) struct Known<T> {
    cells: [AtomicPtr<Node<T>>; CELLS],
    count: AtomicU32,
}

impl<T> Known<T> {
    pub(super) const fn new() -> Known<T> {
        let cells = [const { AtomicPtr::new(ptr::null_mut()) }; CELLS];
        Known { cells, count: AtomicU32::new(0) }
    }

    /// The object with this name, made by `new` if there is none yet. Null if there are too
    /// many, or no memory.
    #[inline]
    pub(super) fn get(&self, name: &[u8], new: impl FnOnce(CString) -> T) -> *mut T {
        match self.find(hash(name), name) {
            Ok(object) => object,
            Err(_) => without_signals(|| self.insert(name, new)).unwrap_or(ptr::null_mut()),
        }
    }

    /// The object with this name, or the empty cell where it belongs.
    fn find(&self, hash: usize, name: &[u8]) -> Result<*mut T, &AtomicPtr<Node<T>>> {
        // `MAX` leaves half of the cells empty, so this ends.
        let mut at = hash % CELLS;
        loop {
            let cell = &self.cells[at];
            let node = cell.load(Ordering::Acquire);
            if node.is_null() {
                return Err(cell);
            }
            // SAFETY: nodes are stored whole and never freed.
            if unsafe { (*node).name } == name {
                // SAFETY: as above; the field is only pointed to.
                return Ok(unsafe { &raw mut (*node).object });
            }
            at = (at + 1) % CELLS;
        }
    }

    #[cold]
    fn insert(&self, name: &[u8], new: impl FnOnce(CString) -> T) -> Option<*mut T> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= MAX {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        // A C string has no zero inside of it.
        let object = new(memory::c_string(name)?);
        let name: &'static [u8] = memory::concat(&[name])?.leak();
        let node = memory::keep(Node { name, object })?;
        loop {
            // Another thread may have been faster, with this name or with another. What it
            // does not need any more stays: that happens once per name at most.
            let cell = match self.find(hash(name), name) {
                Ok(object) => return Some(object),
                Err(cell) => cell,
            };
            let null = ptr::null_mut();
            if cell.compare_exchange(null, node, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: made above, never freed; the field is only pointed to.
                return Some(unsafe { &raw mut (*node).object });
            }
        }
    }
}

fn hash(name: &[u8]) -> usize {
    let words = name.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    words.fold(name.len() as u64, |hash, word| mix(hash ^ word)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ask_for_the_same_names_get_the_same_objects() {
        static KNOWN: Known<CString> = Known::new();
        let names: Vec<String> = (0..1000).map(|n| format!("name {n}")).collect();
        let asked = || names.iter().map(|name| KNOWN.get(name.as_bytes(), |text| text).addr());
        let all: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| asked().collect::<Vec<_>>())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|objects| *objects == all[0] && !objects.contains(&0)));
        let mut distinct = all[0].clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len());
        let object = KNOWN.get(b"name 7", |_| unreachable!("it is known"));
        // SAFETY: one of the objects, which live for good.
        assert_eq!(unsafe { &*object }.as_bytes(), b"name 7");
    }

    #[test]
    fn more_than_the_most_get_null_and_the_others_stay() {
        static KNOWN: Known<u32> = Known::new();
        let get = |n: u32| KNOWN.get(&n.to_le_bytes()[..], |_| n);
        let zero_free = (0x0101_0101_u32..).filter(|n| !n.to_le_bytes().contains(&0));
        let asked: Vec<u32> = zero_free.take(MAX as usize + 10).collect();
        let refused = asked.iter().filter(|n| get(**n).is_null()).count();
        assert_eq!(refused, 10);
        // SAFETY: as above.
        assert_eq!(unsafe { *get(asked[5]) }, asked[5]);
    }
}
