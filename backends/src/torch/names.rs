//! Ids of the names of operators.
//!
//! An operator's name lies in its schema, always at the same address. So a table finds the id by
//! the address, without a look at all of the text for a hash, and then compares its length, its
//! beginning and its end: a schema can go with the library that it came with, and another one come
//! to lie there. Texts
//! that are made for each call (of nodes of the autograd graph, of annotations) are looked up by
//! what they say.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use kymograph_protos::{Recorder, StrId};

use super::layout::{Layout, read};
use crate::annotate::memory;

const SLOTS: usize = 1 << 12;
/// Names at most that are kept: schemas that come and go cost no memory without end.
const MAX_NAMES: usize = 1 << 14;

static TABLE: [AtomicPtr<Known>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A name that was looked up. Never freed.
struct Known {
    text: &'static [u8],
    ends: [u64; 2],
    address: usize,
    id: StrId,
}

/// The name of a schema.
#[derive(Clone, Copy)]
pub(super) struct Name {
    text: *const u8,
    length: usize,
}

impl Name {
    /// A schema begins with its name, a `std::string`.
    ///
    /// # Safety
    /// `schema` is a FunctionSchema, and lives as long as this.
    #[inline(always)]
    pub(super) unsafe fn of_schema(schema: *const u8, layout: &Layout) -> Name {
        // SAFETY: a string of the new ABI is a pointer and a length; one of the old ABI is a
        // pointer, and the length lies three words before what it points to.
        unsafe {
            let text: *const u8 = read(schema, 0);
            let length = if layout.old_strings { read(text.sub(24), 0) } else { read(schema, 8) };
            Name { text, length }
        }
    }

    /// The first eight bytes and the last.
    ///
    /// # Safety
    /// There are eight.
    #[inline(always)]
    unsafe fn ends(self) -> [u64; 2] {
        // SAFETY: the caller's promise.
        unsafe { [read(self.text, 0), read(self.text, self.length - 8)] }
    }
}

/// The id of an operator's name; none if it has none at the moment.
///
/// # Safety
/// The name lives.
#[inline(always)]
pub(super) unsafe fn of_schema(recorder: &dyn Recorder, category: StrId, name: Name) -> StrId {
    let address = name.text.addr();
    let slot = &TABLE[(address >> 4 ^ address >> 16) % SLOTS];
    // SAFETY: null, or one that is never freed. As many bytes as the name has were looked at
    // when it was known, at least eight.
    unsafe {
        if let Some(known) = slot.load(Ordering::Acquire).as_ref()
            && known.address == address
            && known.text.len() == name.length
            && known.ends == name.ends()
        {
            return known.id;
        }
        look_up(recorder, category, name, slot)
    }
}

/// # Safety
/// The name lives.
#[cold]
#[inline(never)]
unsafe fn look_up(
    recorder: &dyn Recorder,
    category: StrId,
    name: Name,
    slot: &AtomicPtr<Known>,
) -> StrId {
    // SAFETY: the caller's promise.
    let text = unsafe { std::slice::from_raw_parts(name.text, name.length) };
    let id = recorder.intern(category, text);
    if !id.is_none()
        && text.len() >= 8
        && KEPT.fetch_add(1, Ordering::Relaxed) < MAX_NAMES
        && let Some(text) = memory::concat(&[text])
        // SAFETY: it has eight bytes.
        && let ends = unsafe { name.ends() }
        && let Some(known) =
            memory::keep(Known { text: text.leak(), ends, address: name.text.addr(), id })
    {
        slot.store(known, Ordering::Release);
    }
    id
}
