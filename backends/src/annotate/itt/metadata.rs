//! Metadata: arguments that arrive after their task has begun.
//!
//! The beginning is recorded by then, so they wait for its end: those of a task on the
//! thread, those of an overlapped task or frame with its entry in the table. What belongs
//! to nothing open (or finds no room) becomes an instant called as its key.

use std::ffi::{c_char, c_int, c_void};

use kymograph_protos::{ArgType, Extra, Kind, StrId};

use super::super::args::Args;
use super::super::guard::{arg_left_out, guard};
use super::super::memory;
use super::super::session::{Session, session};
use super::super::text::{MAX_INTERNED, WideText, ascii_n, clip};
use super::super::thread::{self, Pending};
use super::names::{DomainRef, StringRef};
use super::ranges;
use super::sys::{self, Function, Id};
use super::tasks::live;

pub(crate) fn functions() -> [(&'static str, Function); 8] {
    [
        ("metadata_add", add as Function),
        ("metadata_str_add", str_add as Function),
        ("metadata_str_addA", str_add as Function),
        ("metadata_str_addW", str_add_w as Function),
        ("metadata_add_with_scope", add_with_scope as Function),
        ("metadata_str_add_with_scope", str_add_with_scope as Function),
        ("metadata_str_add_with_scopeA", str_add_with_scope as Function),
        ("metadata_str_add_with_scopeW", str_add_with_scope_w as Function),
    ]
}

/// Values of one piece of metadata that are kept.
const MAX_VALUES: usize = 16;

/// Size of a value of this type, and what it is.
pub(crate) fn layout(ty: c_int) -> Option<(usize, ArgType)> {
    Some(match ty {
        sys::METADATA_U64 => (8, ArgType::U64),
        sys::METADATA_I64 => (8, ArgType::I64),
        sys::METADATA_U32 => (4, ArgType::U64),
        sys::METADATA_I32 => (4, ArgType::I64),
        sys::METADATA_U16 => (2, ArgType::U64),
        sys::METADATA_I16 => (2, ArgType::I64),
        sys::METADATA_F32 => (4, ArgType::F64),
        sys::METADATA_F64 => (8, ArgType::F64),
        _ => return None,
    })
}

/// A value of a type of [`layout`], as an argument.
///
/// # Safety
/// `data` is readable for a value of this type.
pub(crate) unsafe fn value(ty: c_int, data: *const u8) -> Option<(ArgType, u64)> {
    let (size, arg) = layout(ty)?;
    let mut bytes = [0; 8];
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), size) };
    let raw = u64::from_le_bytes(bytes);
    let shift = 64 - 8 * size as u32;
    Some(match (arg, size) {
        (ArgType::I64, _) => (arg, ((raw << shift).cast_signed() >> shift).cast_unsigned()),
        (ArgType::F64, 4) => (arg, f64::from(f32::from_bits(raw as u32)).to_bits()),
        _ => (arg, raw),
    })
}

/// Gives arguments to what they belong to.
fn attach(session: &Session, domain: DomainRef, id: Id, key: StringRef, args: &mut Args) {
    if args.extras().is_empty() {
        return;
    }
    if !id.is_null() && ranges::keep(domain, id, args.extras()) {
        return;
    }
    let category = domain.category(session);
    let kept = thread::with(|thread| {
        let Some(level) = thread.stack(category).and_then(|s| s.depth().checked_sub(1)) else {
            return 0;
        };
        let keep =
            |extra: &&Extra| thread.keep(Pending { category: category.0, level, extra: **extra });
        args.extras().iter().take_while(keep).count()
    });
    let rest = args.extras().get(kept..).unwrap_or_default();
    if rest.is_empty() || !live(session, domain, category) {
        return;
    }
    let mut left = Args::new();
    rest.iter().for_each(|&extra| left.push(extra));
    session.send(Kind::Instant, category, &key.text(session, category), 0, &mut left);
}

/// The argument name of a piece of metadata.
fn name(session: &Session, key: &StringRef, index: Option<usize>) -> StrId {
    let text = key.bytes();
    let text: &[u8] = if text.is_empty() { b"metadata" } else { clip(text, MAX_INTERNED) };
    match index {
        None => session.intern_or_wait(StrId::NONE, text),
        Some(i) => {
            let index = memory::format(format_args!("[{i}]"));
            let name = index.and_then(|index| memory::concat(&[text, &index]));
            name.map_or(StrId::NONE, |name| session.intern_or_wait(StrId::NONE, &name))
        }
    }
}

/// # Safety
/// `data` is NULL or points to `count` values of this type.
unsafe fn numbers(
    domain: DomainRef,
    id: Id,
    key: StringRef,
    ty: c_int,
    count: usize,
    data: *const u8,
) {
    let Some(session) = session() else { return };
    let Some((size, _)) = layout(ty) else {
        return arg_left_out();
    };
    if data.is_null() || count == 0 {
        return;
    }
    let mut args = Args::new();
    for i in 0..count.min(MAX_VALUES) {
        // SAFETY: one of `count`.
        if let Some((ty, bits)) = unsafe { value(ty, data.add(i * size)) } {
            args.add(name(session, &key, (count > 1).then_some(i)), ty, bits);
        }
    }
    if count > MAX_VALUES {
        arg_left_out();
    }
    attach(session, domain, id, key, &mut args);
}

fn string(domain: DomainRef, id: Id, key: StringRef, text: &[u8]) {
    let Some(session) = session() else { return };
    let mut args = Args::new();
    args.string(session, name(session, &key, None), text);
    attach(session, domain, id, key, &mut args);
}

/// The text of a callback's parameters: a length of 0 means that a zero ends it.
fn text<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    let length = if length == 0 { usize::MAX } else { length };
    // SAFETY: parameters of a callback: the program's string, and its length.
    unsafe { ascii_n(data, length) }
}

unsafe extern "C" fn add(
    domain: DomainRef,
    id: Id,
    key: StringRef,
    ty: c_int,
    count: usize,
    data: *const c_void,
) {
    guard((), || {
        // SAFETY: parameters of a callback: so many values of the program's.
        unsafe { numbers(domain, id, key, ty, count, data.cast()) }
    });
}

unsafe extern "C" fn add_with_scope(
    domain: DomainRef,
    _scope: c_int,
    key: StringRef,
    ty: c_int,
    count: usize,
    data: *const c_void,
) {
    guard((), || {
        // SAFETY: parameters of a callback: so many values of the program's.
        unsafe { numbers(domain, Id::default(), key, ty, count, data.cast()) }
    });
}

unsafe extern "C" fn str_add(
    domain: DomainRef,
    id: Id,
    key: StringRef,
    data: *const c_char,
    length: usize,
) {
    guard((), || string(domain, id, key, text(data, length)));
}

unsafe extern "C" fn str_add_with_scope(
    domain: DomainRef,
    _scope: c_int,
    key: StringRef,
    data: *const c_char,
    length: usize,
) {
    guard((), || string(domain, Id::default(), key, text(data, length)));
}

unsafe extern "C" fn str_add_w(
    domain: DomainRef,
    id: Id,
    key: StringRef,
    data: WideText,
    _length: usize,
) {
    guard((), || string(domain, id, key, &data.utf8()));
}

unsafe extern "C" fn str_add_with_scope_w(
    domain: DomainRef,
    _scope: c_int,
    key: StringRef,
    data: WideText,
    _length: usize,
) {
    guard((), || string(domain, Id::default(), key, &data.utf8()));
}
