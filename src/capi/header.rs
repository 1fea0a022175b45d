//! What `include/kymograph.h` declares, in Rust, and how to read it. Layouts are pinned
//! here and by a C program of the tests.

use std::ffi::{CStr, c_char};
use std::mem::offset_of;

use kymograph_protos::StrId;
use kymograph_protos::packet::Strings;
use kymograph_protos::record::ArgType;

use crate::api::draft::{Draft, MAX_ARGS};
use crate::engine::stats::Summary;
use crate::intern::INTERNER;
use crate::recorder::category::APP;

/// `kymo_arg`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Arg {
    name: *const c_char,
    name_id: u32,
    ty: u32,
    /// A union of eight bytes.
    value: u64,
}

const _: () = assert!(size_of::<Arg>() == 24 && offset_of!(Arg, value) == 16);

/// `kymo_type`.
mod ty {
    pub const BOOL: u32 = 1;
    pub const I64: u32 = 2;
    pub const U64: u32 = 3;
    pub const F64: u32 = 4;
    pub const STRING: u32 = 5;
    pub const POINTER: u32 = 6;
    pub const FLOW: u32 = 7;
    pub const FLOW_END: u32 = 8;
    pub const STRING_ID: u32 = 9;
}

/// `kymo_summary`: only ever grows at its end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CSummary {
    size: usize,
    events: u64,
    lost: u64,
    reentrant: u64,
    unwritten: u64,
    truncated: u64,
    unmatched_ends: u64,
    misnested: u64,
    clamped: u64,
    threads: u64,
    bytes: u64,
    write_errors: u64,
    discarded: u64,
}

impl CSummary {
    /// Fills in as much as the caller has room for.
    ///
    /// # Safety
    /// `to` is null, or points to as many writable bytes as its first field says.
    pub unsafe fn write(to: *mut CSummary, s: &Summary) {
        if to.is_null() {
            return;
        }
        // SAFETY: not null, and its first field is set.
        let size = unsafe { (&raw const (*to).size).read_unaligned() };
        let all = CSummary { size, ..CSummary::of(s) };
        // SAFETY: `size` bytes are writable, and ours are at least as many as are copied.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const all).cast::<u8>(),
                to.cast(),
                size.min(size_of::<CSummary>()),
            );
        }
    }

    /// All of it.
    pub fn of(s: &Summary) -> CSummary {
        CSummary {
            size: size_of::<CSummary>(),
            events: s.events,
            lost: s.lost,
            reentrant: s.reentrant,
            unwritten: s.unwritten,
            truncated: s.truncated,
            unmatched_ends: s.unmatched_ends,
            misnested: s.misnested,
            clamped: s.clamped,
            threads: s.threads,
            bytes: s.bytes,
            write_errors: s.write_errors,
            discarded: s.discarded,
        }
    }
}

/// The bytes of a C string, `None` for null.
///
/// # Safety
/// `text` is null or a C string that lives as long as the result is used.
pub unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A name, or what stands for none.
///
/// # Safety
/// As [`bytes`].
pub unsafe fn name<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: passed on.
    unsafe { bytes(text) }.unwrap_or(UNNAMED)
}

/// What a missing name looks like in the trace.
const UNNAMED: &[u8] = b"(unnamed)";

/// A handle that we gave, or none: anything else would have the engine make tables for it.
pub fn known(id: u32) -> StrId {
    if id <= INTERNER.count() { StrId(id) } else { StrId::NONE }
}

/// The category of a handle; 0 and what is none mean "app".
pub fn category(id: u32) -> StrId {
    match known(id) {
        StrId::NONE => APP.id(),
        id => id,
    }
}

/// A name that was registered, and its category. What was not is called "(unnamed)".
pub fn registered(name: u32) -> (StrId, StrId) {
    let site = known(name);
    match INTERNER.text(site).category {
        StrId::NONE => (INTERNER.intern_or_wait(APP.id(), UNNAMED), APP.id()),
        category => (site, category),
    }
}

/// Adds the caller's arguments to an event.
///
/// # Safety
/// `args` is null or points to `count` arguments whose pointers are null or C strings that
/// live as long as the draft.
pub unsafe fn add(draft: &mut Draft<'_>, args: *const Arg, count: usize) {
    if args.is_null() {
        return;
    }
    // More than fit are never looked at, so a huge count is only as wrong as that; the
    // first that does not fit is counted as cut short.
    for index in 0..count.min(MAX_ARGS + 1) {
        // SAFETY: `index` < `count`; C aligns its structs, but nothing here depends on it.
        let arg = unsafe { args.add(index).read_unaligned() };
        // SAFETY: the caller's promise.
        let name = match unsafe { bytes(arg.name) } {
            Some(text) => INTERNER.intern_or_wait(StrId::NONE, text),
            None => known(arg.name_id),
        };
        match arg.ty {
            // C stores one byte in the union.
            ty::BOOL => draft.arg(name, ArgType::Bool, (arg.value.to_ne_bytes()[0] != 0).into()),
            ty::I64 => draft.arg(name, ArgType::I64, arg.value),
            ty::U64 => draft.arg(name, ArgType::U64, arg.value),
            ty::F64 => draft.arg(name, ArgType::F64, arg.value),
            ty::POINTER => draft.arg(name, ArgType::Pointer, arg.value),
            ty::FLOW | ty::FLOW_END if arg.value == 0 => {}
            ty::FLOW => draft.arg(name, ArgType::Flow, arg.value),
            ty::FLOW_END => draft.arg(name, ArgType::FlowEnd, arg.value),
            ty::STRING => {
                let text = std::ptr::with_exposed_provenance(arg.value as usize);
                // SAFETY: the caller's promise.
                draft.text(name, unsafe { bytes(text) }.unwrap_or(b"(null)"));
            }
            ty::STRING_ID => {
                let id =
                    known(u32::from_ne_bytes(std::array::from_fn(|n| arg.value.to_ne_bytes()[n])));
                draft.arg(name, ArgType::Str, id.0.into());
            }
            _ => {}
        }
    }
}
