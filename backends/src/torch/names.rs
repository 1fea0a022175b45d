//! Ids of the names of operators.
//!
//! An operator's name lies in its schema, always at the same address. So a table finds the id by
//! the address, without a look at all of the text for a hash, and then compares the texts: a
//! schema can go with the library that it came with, and another one come to lie there. Texts
//! that are made for each call (of nodes of the autograd graph, of annotations) are looked up by
//! what they say.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use kymograph_protos::{Recorder, StrId};

use crate::annotate::memory;

const SLOTS: usize = 1 << 12;
/// Names at most that are kept: schemas that come and go cost no memory without end.
const MOST: usize = 1 << 14;

static TABLE: [AtomicPtr<Known>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// A name that was looked up. Never freed.
struct Known {
    address: usize,
    text: std::ffi::CString,
    id: StrId,
}

/// The id of an operator's name; none if it has none at the moment.
///
/// # Safety
/// `name` is a C string.
#[inline(always)]
pub(super) unsafe fn of_schema(
    recorder: &dyn Recorder,
    category: StrId,
    name: *const c_char,
) -> StrId {
    let slot = &TABLE[(name.addr() >> 4 ^ name.addr() >> 16) % SLOTS];
    // SAFETY: null, or one that is never freed.
    if let Some(known) = unsafe { slot.load(Ordering::Acquire).as_ref() }
        && known.address == name.addr()
        // SAFETY: the caller's promise; both end with a zero.
        && unsafe { libc::strcmp(known.text.as_ptr(), name) } == 0
    {
        return known.id;
    }
    // SAFETY: the caller's promise.
    unsafe { look_up(recorder, category, name, slot) }
}

/// # Safety
/// `name` is a C string.
#[cold]
unsafe fn look_up(
    recorder: &dyn Recorder,
    category: StrId,
    name: *const c_char,
    slot: &AtomicPtr<Known>,
) -> StrId {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(name) };
    let id = recorder.intern(category, text.to_bytes());
    if !id.is_none()
        && KEPT.fetch_add(1, Ordering::Relaxed) < MOST
        && let Some(text) = memory::c_string(text.to_bytes())
        && let Some(known) = memory::keep(Known { address: name.addr(), text, id })
    {
        slot.store(known, Ordering::Release);
    }
    id
}
