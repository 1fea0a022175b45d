//! NVTX 3: marks, ranges, domains, names, extended payloads and counters.
//!
//! | NVTX | record |
//! |---|---|
//! | domain | category: the domain's name, or `nvtx` for the default domain |
//! | mark | instant |
//! | push, pop | push, pop of the domain's category |
//! | start, end | range; its NVTX id is the record's |
//! | category, colour, payload | arguments `category` (name or number), `color` (0xAARRGGBB), `payload` |
//! | extended payload | one argument per schema entry, named after it |
//! | counter | counter, in the domain's category |
//! | thread name, thread resource | thread name |
//!
//! Handles are indices with a tag, so one that was destroyed, belongs to another copy of
//! NVTX or was made up is either still right or taken for the default domain.
//!
//! Not recorded: names of CUDA and OpenCL objects, the synchronisation and memory
//! extensions, deferred events (`nvtxEventSubmit`).

mod attributes;
mod counters;
mod events;
mod flows;
mod names;
mod payload;
mod pytorch;
mod sys;
mod traceme;

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use kymograph_protos::ColdRecorder;

use super::{guard::guard, session};
pub(crate) use events::{pop_innermost, push_message};
pub(crate) use flows::of_process;
pub use sys::{ExtModule, GetExportTable};

/// The body of `InitializeInjectionNvtx2`: attaches one copy of NVTX. Returns 1 if that
/// worked, else 0: the copy then does nothing for the rest of the process.
///
/// The first call's recorder serves all copies.
///
/// # Safety
/// `get_export_table` is what an NVTX copy (any 3.x) passes to its injection library, and
/// this is called from within that call.
pub unsafe fn initialize(
    get_export_table: Option<GetExportTable>,
    recorder: &'static dyn ColdRecorder,
) -> c_int {
    guard(0, || {
        let Some(get) = get_export_table else {
            return 0;
        };
        session::start(recorder);
        // SAFETY: `get` is NVTX's own, valid with any table id.
        let (callbacks, version) =
            unsafe { (get(sys::ETID_CALLBACKS), get(sys::ETID_VERSIONINFO)) };
        // SAFETY: what it returned for this id is NULL or this table.
        let Some(callbacks) = (unsafe { callbacks.cast::<sys::Callbacks>().as_ref() }) else {
            return 0;
        };
        if callbacks.struct_size < size_of::<sys::Callbacks>() {
            return 0;
        }
        let Some(get_table) = callbacks.get_module_function_table else {
            return 0;
        };
        // SAFETY: `get_table` is NVTX's, and the functions have the types of their slots.
        let attached = unsafe {
            attach(get_table, sys::MODULE_CORE, &events::core())
                & attach(get_table, sys::MODULE_CORE2, &events::core2())
        };
        if attached {
            // SAFETY: as with the table of callbacks.
            unsafe { announce(version) };
        }
        c_int::from(attached)
    })
}

/// Tells an NVTX copy for which version of NVTX we were written, as it asks tools to.
///
/// # Safety
/// `table` is NULL or NVTX's table of version information.
unsafe fn announce(table: *const c_void) {
    // SAFETY: the caller's promise.
    let Some(info) = (unsafe { table.cast::<sys::VersionInfo>().as_ref() }) else {
        return;
    };
    if info.struct_size >= size_of::<sys::VersionInfo>()
        && let Some(set) = info.set_injection_version
    {
        // SAFETY: a plain setter of NVTX's, meant to be called at this point.
        unsafe { set(3) };
    }
}

type GetModuleTable =
    unsafe extern "C" fn(c_int, *mut *mut *mut sys::Function, *mut c_uint) -> c_int;

/// Writes `functions` into the slots of a module.
///
/// # Safety
/// `get_table` is NVTX's, and each function has the type of its slot.
unsafe fn attach(
    get_table: GetModuleTable,
    module: c_int,
    functions: &[(usize, sys::Function)],
) -> bool {
    let mut table = ptr::null_mut();
    let mut size: c_uint = 0;
    // SAFETY: both are valid for writes.
    if unsafe { get_table(module, &mut table, &mut size) } == 0 || table.is_null() {
        return false;
    }
    for &(id, function) in functions {
        if id >= size as usize {
            continue;
        }
        // SAFETY: the table has `size` elements, each NULL or the address of a slot, which
        // no one reads before initialisation has ended.
        unsafe {
            let slot = *table.add(id);
            if !slot.is_null() {
                slot.write(function);
            }
        }
    }
    true
}

/// The body of `InitializeInjectionNvtxExtension`: attaches one extension of one copy of
/// NVTX. Returns 1 if it is one that we know.
///
/// # Safety
/// `module` is what an NVTX copy passes to its injection library, and this is called from
/// within that call.
pub unsafe fn initialize_extension(
    module: *mut ExtModule,
    recorder: &'static dyn ColdRecorder,
) -> c_int {
    guard(0, || {
        // SAFETY: the caller's promise.
        let Some(module) = (unsafe { module.as_ref() }) else {
            return 0;
        };
        if usize::from(module.struct_size) < size_of::<ExtModule>() || module.segments.is_null() {
            return 0;
        }
        let (payload, counters) = (payload::functions(), counters::functions());
        let functions = match module.module {
            sys::EXT_PAYLOAD => &payload[..],
            sys::EXT_COUNTERS => &counters[..],
            _ => return 0,
        };
        session::start(recorder);
        for i in 0..module.segment_count {
            // SAFETY: there are `segment_count` of them.
            let segment = unsafe { &*module.segments.add(i) };
            // All slots of the known versions are in the segment with id 0.
            if segment.id != 0 || segment.slots.is_null() {
                continue;
            }
            for &(slot, function) in functions.iter().filter(|f| f.0 < segment.slot_count) {
                // SAFETY: within the segment's slots, which nobody reads before we return.
                unsafe { segment.slots.add(slot).write(function) };
            }
        }
        1
    })
}
