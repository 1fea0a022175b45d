//! ITT: tasks, frames, events, markers, counters and metadata.
//!
//! | ITT | record |
//! |---|---|
//! | domain | category |
//! | task | push, pop |
//! | overlapped task, region, frame, event | range |
//! | marker | instant |
//! | metadata | arguments on the end of its task or range; an instant if there is none |
//! | counter | counter, in its domain's category |
//! | pause, resume, detach | an instant; between them, annotations are not recorded |
//!
//! A static part lists its functions by name, which makes this independent of its version:
//! we take the ones that we know, and set the others to what it does without a tool. Not
//! recorded: relations, clock domains (such timestamps are replaced by the present time),
//! histograms, synchronisation, memory and module events, formatted metadata.

mod control;
mod counters;
mod known;
mod metadata;
mod names;
mod ranges;
mod sys;
mod tasks;

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use kymograph_protos::ColdRecorder;

use super::{guard::guard, session};
pub use sys::IttGlobal;
use sys::{ApiInfo, Function};

/// The body of `__itt_api_init`: attaches one static part. `_group` are the groups of
/// functions that the user asked for by an environment variable of Intel's; we take all.
///
/// # Safety
/// `global` is what a static part of the ITT API passes to its tool, and this is called
/// from within that call.
pub unsafe fn initialize(
    global: *mut IttGlobal,
    _group: c_int,
    recorder: &'static dyn ColdRecorder,
) {
    guard((), || {
        if global.is_null() {
            return;
        }
        session::start(recorder);
        // SAFETY: the caller's promise. The static part holds its lock meanwhile.
        unsafe {
            // By field: the structure may be shorter than the newest one we know.
            adopt(global);
            attach((&raw const (*global).api_list).read());
        }
    });
}

/// The function of ours for an ITT function.
fn function(name: &[u8]) -> Option<Function> {
    let name = name.strip_prefix(b"__itt_")?;
    let tables: [&[(&str, Function)]; 6] = [
        &names::functions(),
        &tasks::functions(),
        &ranges::functions(),
        &metadata::functions(),
        &counters::functions(),
        &control::functions(),
    ];
    let mut all = tables.iter().flat_map(|table| table.iter());
    all.find(|(ours, _)| ours.as_bytes() == name).map(|found| found.1)
}

/// Sets every function of a list that ends with a NULL name.
///
/// # Safety
/// `list` is NULL or a static part's list, not in use by others.
unsafe fn attach(mut list: *mut ApiInfo) {
    // The longest list known has 160 functions; a list without end is none.
    for _ in 0..4096 {
        // SAFETY: an element of the list, up to the one without a name.
        let Some(info) = (unsafe { list.as_ref() }) else {
            return;
        };
        if info.name.is_null() {
            return;
        }
        if !info.function.is_null() {
            // SAFETY: names are C strings.
            let name = unsafe { CStr::from_ptr(info.name) }.to_bytes();
            // SAFETY: a variable of the static part that holds a function of this name.
            unsafe { info.function.write(function(name).unwrap_or(info.null)) };
        }
        // SAFETY: not the last one.
        list = unsafe { list.add(1) };
    }
}

/// Takes over what the program created before: it keeps those pointers.
///
/// # Safety
/// `global` is a static part whose lists are not in use by others.
unsafe fn adopt(global: *mut IttGlobal) {
    // SAFETY: lists of the static part, linked by `next`; `extra` fields are the tool's
    // and may not have been initialised.
    unsafe {
        let mut domain = (*global).domain_list;
        while let Some(found) = domain.as_ref() {
            found.flags.store(1, Ordering::Relaxed);
            found.extra1.store(0, Ordering::Relaxed);
            domain = found.next;
        }
        let mut string = (*global).string_list;
        while let Some(found) = string.as_ref() {
            found.extra2.store(0, Ordering::Relaxed);
            string = found.next;
        }
        if (*global).version_build < sys::COUNTER_LIST_BUILD {
            return;
        }
        let mut counter = (*global).counter_list;
        while let Some(found) = counter.as_ref() {
            found.extra1.store(0, Ordering::Relaxed);
            found.extra2.store(0, Ordering::Relaxed);
            counter = found.next;
        }
    }
}
