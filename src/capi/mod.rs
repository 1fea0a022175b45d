//! The C ABI: every `kymo_*` symbol. `include/kymograph.h` is its documentation and says of
//! each function what it does, from which threads it may be called, and what happens when
//! it is called wrongly.
//!
//! Functions here read their arguments and call what Rust programs call. Each goes through
//! [`guard`]; none trusts a pointer to be non-null, a string to be UTF-8 or a handle to be
//! one that it gave.

mod failure;
mod header;
mod pushes;
mod recording;
mod session;

use std::ffi::{c_char, c_int};
use std::ptr;

use kymograph_protos::record::{ArgType, Kind, Record};
use kymograph_protos::{Recorder, StrId};

use crate::__private::COMPILED_IN;
use crate::api::draft::Draft;
use crate::api::range::unique;
use crate::api::{Flow, Track, names};
use crate::guard::guard;
use crate::intern::INTERNER;
use crate::recorder::PIPELINE;
use crate::recorder::category;
use crate::{clock, queue};

use header::{Arg, add, bytes, category as category_of, name, registered};
use pushes::Pushes;

thread_local! {
    /// Apart from the queue's own thread-local, which the fast path of the Rust API must
    /// reach in one step; only C callers need this one. Constant and without a destructor
    /// like that, so that it can be used while a thread ends.
    static PUSHES: Pushes = const { Pushes::new() };
}

/// # Safety
/// `buffer` is null or has `size` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_last_error(buffer: *mut c_char, size: usize) -> usize {
    // SAFETY: the caller's promise.
    guard(0, || unsafe { failure::copy(buffer, size) })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_version_number() -> u32 {
    const fn number(text: &str) -> u32 {
        let (mut n, mut at) = (0, 0);
        while at < text.len() {
            n = n * 10 + (text.as_bytes()[at] - b'0') as u32;
            at += 1;
        }
        n
    }
    const NUMBER: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
        | number(env!("CARGO_PKG_VERSION_PATCH"));
    NUMBER
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_category_register(text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { kymo_intern(text) }
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_category_is_enabled(category: u32) -> bool {
    guard(false, || wanted(category_of(category)))
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_category_set_enabled(category: u32, on: bool) {
    guard((), || category::set_enabled(category_of(category), on));
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_register(category: u32, text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    guard(0, || unsafe { bytes(text) }.map_or(0, |text| keep(category_of(category), text)))
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_intern(text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    guard(0, || unsafe { bytes(text) }.map_or(0, |text| keep(StrId::NONE, text)))
}

/// A handle of a text.
fn keep(category: StrId, text: &[u8]) -> u32 {
    let id = INTERNER.intern_or_wait(category, text);
    if id.is_none() {
        failure::set("there is no room for another name");
    }
    id.0
}

/// # Safety
/// As [`add`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_push(name: u32, args: *const Arg, count: usize) {
    guard((), || {
        let (site, category) = registered(name);
        // SAFETY: the caller's promise.
        push(category, || unsafe { event(Kind::Begin, site, args, count) });
    });
}

/// # Safety
/// As [`add`], and `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_push_str(
    category: u32,
    text: *const c_char,
    args: *const Arg,
    count: usize,
) {
    guard((), || {
        let category = category_of(category);
        push(category, || {
            // SAFETY: the caller's promise.
            unsafe {
                let mut draft = Draft::called(Kind::Begin, category, name(text));
                add(&mut draft, args, count);
                draft.push()
            }
        });
    });
}

fn push(category: StrId, record: impl FnOnce() -> bool) {
    PUSHES.with(|pushes| {
        pushes.enter(|may| {
            if !wanted(category) {
                false
            } else if may {
                record()
            } else {
                queue::PRODUCER.with(queue::Producer::refuse);
                false
            }
        });
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_pop() {
    // SAFETY: no arguments are passed.
    unsafe { kymo_pop_args(ptr::null(), 0) };
}

/// # Safety
/// As [`add`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_pop_args(args: *const Arg, count: usize) {
    guard((), || {
        if PUSHES.with(Pushes::leave) {
            // SAFETY: the caller's promise.
            unsafe { event(Kind::End, StrId::NONE, args, count) };
        }
    });
}

/// # Safety
/// As [`add`], and `track` is null or was made by [`kymo_track_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_instant(
    name: u32,
    track: *const Track,
    args: *const Arg,
    count: usize,
) {
    guard((), || {
        let (site, category) = registered(name);
        if wanted(category) {
            // SAFETY: the caller's promise.
            unsafe { on_track(Draft::new(Kind::Instant, site), track, args, count) };
        }
    });
}

/// # Safety
/// As [`kymo_instant`], and `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_instant_str(
    category: u32,
    text: *const c_char,
    track: *const Track,
    args: *const Arg,
    count: usize,
) {
    guard((), || {
        let category = category_of(category);
        if wanted(category) {
            // SAFETY: the caller's promise.
            unsafe {
                on_track(Draft::called(Kind::Instant, category, name(text)), track, args, count)
            };
        }
    });
}

/// # Safety
/// As [`kymo_instant`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_range_begin(
    name: u32,
    track: *const Track,
    args: *const Arg,
    count: usize,
) -> u64 {
    guard(0, || {
        let (site, category) = registered(name);
        let id = if wanted(category) { unique() } else { return 0 };
        let draft = Draft::new(Kind::RangeBegin, site).other(id);
        // SAFETY: the caller's promise.
        if unsafe { on_track(draft, track, args, count) } { id } else { 0 }
    })
}

/// # Safety
/// As [`kymo_instant_str`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_range_begin_str(
    category: u32,
    text: *const c_char,
    track: *const Track,
    args: *const Arg,
    count: usize,
) -> u64 {
    guard(0, || {
        let category = category_of(category);
        let id = if wanted(category) { unique() } else { return 0 };
        // SAFETY: the caller's promise.
        unsafe {
            let draft = Draft::called(Kind::RangeBegin, category, name(text)).other(id);
            if on_track(draft, track, args, count) { id } else { 0 }
        }
    })
}

/// # Safety
/// As [`add`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_range_end(range: u64, args: *const Arg, count: usize) {
    guard((), || {
        if range != 0 {
            let draft = Draft::new(Kind::RangeEnd, StrId::NONE).other(range);
            // SAFETY: the caller's promise.
            unsafe { on_track(draft, ptr::null(), args, count) };
        }
    });
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_counter_register(
    category: u32,
    text: *const c_char,
    unit: c_int,
) -> u64 {
    // SAFETY: the caller's promise.
    guard(0, || match unsafe { kymo_register(category, text) } {
        0 => 0,
        site => u64::from(unit as u32) << 32 | u64::from(site),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_counter_i64(counter: u64, value: i64) {
    guard((), || count(counter, ArgType::I64, value as u64));
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_counter_f64(counter: u64, value: f64) {
    guard((), || count(counter, ArgType::F64, value.to_bits()));
}

fn count(counter: u64, ty: ArgType, bits: u64) {
    let (site, category) = registered(counter as u32);
    if wanted(category) {
        let mut draft = Draft::new(Kind::Counter, site).other(counter >> 32);
        draft.first_arg(ty, bits);
        draft.push();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_flow_new() -> u64 {
    guard(0, || Flow::new().id())
}

/// # Safety
/// `text` is null or a C string; `parent` is null or was made by this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_track_create(
    text: *const c_char,
    parent: *const Track,
    rank: i32,
) -> *const Track {
    guard(ptr::null(), || {
        // SAFETY: the caller's promise; tracks made here are never freed.
        let (text, parent) = unsafe { (name(text), parent.as_ref()) };
        let rank = (rank != i32::MIN).then_some(rank);
        Box::leak(Box::new(Track::with(text, parent.cloned(), rank)))
    })
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_thread_name(text: *const c_char) {
    // SAFETY: the caller's promise.
    guard((), || names::set(Kind::ThreadName, unsafe { name(text) }));
}

/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_process_name(text: *const c_char) {
    // SAFETY: the caller's promise.
    guard((), || names::set(Kind::ProcessName, unsafe { name(text) }));
}

fn wanted(category: StrId) -> bool {
    COMPILED_IN && PIPELINE.enabled(category)
}

/// Records an event on the thread's track, by the short way if it has no arguments.
///
/// # Safety
/// As [`add`].
unsafe fn event(kind: Kind, site: StrId, args: *const Arg, count: usize) -> bool {
    if args.is_null() || count == 0 {
        let head = Record { time: clock::ticks(), site, kind: kind as u8, ..Record::default() };
        return PIPELINE.push(head, &[]);
    }
    // SAFETY: passed on.
    unsafe { on_track(Draft::new(kind, site), ptr::null(), args, count) }
}

/// Records an event, on a track if there is one.
///
/// # Safety
/// As [`kymo_instant`].
unsafe fn on_track(
    mut draft: Draft<'_>,
    track: *const Track,
    args: *const Arg,
    count: usize,
) -> bool {
    // SAFETY: the caller's promise.
    if let Some(track) = unsafe { track.as_ref() } {
        draft.track(track.id());
    }
    // SAFETY: passed on.
    unsafe { add(&mut draft, args, count) };
    draft.push()
}
