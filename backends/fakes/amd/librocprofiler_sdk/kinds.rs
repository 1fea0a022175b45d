//! Kinds and operations, with the numbers of the emulated version (fwd.h).

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::settings::toolkit;
use crate::status::{KIND_NOT_FOUND, SUCCESS, call};
use crate::tables::{LIBRARIES, Library, functions};

/// Kinds 1 to 11 of both lists are the same in all versions.
const FIRST: [&CStr; 9] = [
    c"HSA_CORE_API",
    c"HSA_AMD_EXT_API",
    c"HSA_IMAGE_EXT_API",
    c"HSA_FINALIZE_EXT_API",
    c"HIP_RUNTIME_API",
    c"HIP_COMPILER_API",
    c"MARKER_CORE_API",
    c"MARKER_CONTROL_API",
    c"MARKER_NAME_API",
];
/// `rocprofiler_buffer_tracing_kind_t` from 10 on, in 0.5.0.
const BUFFER_0_5: [&CStr; 6] = [
    c"MEMORY_COPY",
    c"KERNEL_DISPATCH",
    c"PAGE_MIGRATION",
    c"SCRATCH_MEMORY",
    c"CORRELATION_ID_RETIREMENT",
    c"RCCL_API",
];
/// What 0.6.0 has behind those.
const BUFFER_0_6: [&CStr; 4] =
    [c"OMPT", c"MEMORY_ALLOCATION", c"RUNTIME_INITIALIZATION", c"ROCDECODE_API"];
/// In 1.0.0, and at its end what 2026 added.
const BUFFER_1_0: [&CStr; 27] = [
    c"MEMORY_COPY",
    c"KERNEL_DISPATCH",
    c"SCRATCH_MEMORY",
    c"CORRELATION_ID_RETIREMENT",
    c"RCCL_API",
    c"OMPT",
    c"MEMORY_ALLOCATION",
    c"RUNTIME_INITIALIZATION",
    c"ROCDECODE_API",
    c"ROCJPEG_API",
    c"HIP_STREAM",
    c"HIP_RUNTIME_API_EXT",
    c"HIP_COMPILER_API_EXT",
    c"ROCDECODE_API_EXT",
    c"KFD_EVENT_PAGE_MIGRATE",
    c"KFD_EVENT_PAGE_FAULT",
    c"KFD_EVENT_QUEUE",
    c"KFD_EVENT_UNMAP_FROM_GPU",
    c"KFD_EVENT_DROPPED_EVENTS",
    c"KFD_PAGE_MIGRATE",
    c"KFD_PAGE_FAULT",
    c"KFD_QUEUE",
    c"MARKER_CORE_RANGE_API",
    c"HIP_GRAPH",
    c"ROCSHMEM_API",
    c"HIPFILE_API",
    c"HIP_EVENT",
];
const ADDED_IN_2026: usize = 4;
/// `rocprofiler_callback_tracing_kind_t` from 10 on.
const CALLBACK: [&CStr; 12] = [
    c"CODE_OBJECT",
    c"SCRATCH_MEMORY",
    c"KERNEL_DISPATCH",
    c"MEMORY_COPY",
    c"RCCL_API",
    c"OMPT",
    c"MEMORY_ALLOCATION",
    c"RUNTIME_INITIALIZATION",
    c"ROCDECODE_API",
    c"ROCJPEG_API",
    c"HIP_STREAM",
    c"MARKER_CORE_RANGE_API",
];
const CALLBACK_0_5: usize = 5;
const CALLBACK_0_6: usize = 9;

fn buffer_kinds() -> Vec<&'static CStr> {
    let (rest, more): (&[&CStr], &[&CStr]) = match toolkit() {
        ..6 => (&BUFFER_0_5, &[]),
        6..100 => (&BUFFER_0_5, &BUFFER_0_6),
        100..103 => (&BUFFER_1_0[..BUFFER_1_0.len() - ADDED_IN_2026], &[]),
        _ => (&BUFFER_1_0, &[]),
    };
    FIRST.iter().chain(rest).chain(more).copied().collect()
}

fn callback_kinds() -> Vec<&'static CStr> {
    let rest = match toolkit() {
        ..6 => &CALLBACK[..CALLBACK_0_5],
        6..100 => &CALLBACK[..CALLBACK_0_6],
        _ => &CALLBACK[..],
    };
    FIRST.iter().chain(rest).copied().collect()
}

/// The number of a kind of records, if this version has it.
pub(crate) fn buffer(name: &CStr) -> Option<c_int> {
    Some(buffer_kinds().iter().position(|kind| *kind == name)? as c_int + 1)
}

/// Whether buffers may have records of a kind.
pub(crate) fn is_buffer(kind: c_int) -> bool {
    (1..=buffer_kinds().len() as c_int).contains(&kind)
}

/// The number of a kind of callbacks.
pub(crate) fn callback(name: &CStr) -> c_int {
    callback_kinds().iter().position(|kind| *kind == name).expect("a kind") as c_int + 1
}

pub(crate) fn of_library(library: Library) -> c_int {
    callback(match library {
        Library::Hip => c"HIP_RUNTIME_API",
        Library::Rccl => c"RCCL_API",
        Library::Roctx => c"MARKER_CORE_API",
        Library::RoctxControl => c"MARKER_CONTROL_API",
        Library::RoctxName => c"MARKER_NAME_API",
        Library::Hsa => c"HSA_CORE_API",
    })
}

/// Numbers of functions, which are not the same in all versions.
pub(crate) fn operation(library: Library, function: &CStr) -> u32 {
    let at = functions(library).iter().position(|name| *name == function).expect("a function");
    at as u32 + toolkit() / 100 * 3
}

fn operations(kind: c_int) -> Option<Vec<(c_int, &'static CStr)>> {
    if toolkit() >= 100 && kind == callback(c"HIP_STREAM") {
        let names =
            [c"HIP_STREAM_NONE", c"HIP_STREAM_CREATE", c"HIP_STREAM_DESTROY", c"HIP_STREAM_SET"];
        return Some((0..).zip(names).collect());
    }
    let library = LIBRARIES.into_iter().find(|library| of_library(*library) == kind)?;
    let named = |name: &&'static CStr| (operation(library, name) as c_int, *name);
    Some(functions(library).iter().map(named).collect())
}

type EachKind = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
type EachOperation = unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int;

/// # Safety
/// `each` takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_buffer_tracing_kinds(
    each: EachKind,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_iterate_buffer_tracing_kinds", || {
        for kind in 1..=buffer_kinds().len() {
            // SAFETY: the caller's.
            unsafe { each(kind as c_int, data) };
        }
        SUCCESS
    })
}

/// # Safety
/// `each` takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kinds(
    each: EachKind,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_iterate_callback_tracing_kinds", || {
        for kind in 1..=callback_kinds().len() {
            // SAFETY: the caller's.
            unsafe { each(kind as c_int, data) };
        }
        SUCCESS
    })
}

/// # Safety
/// `each` takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kind_operations(
    kind: c_int,
    each: EachOperation,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_iterate_callback_tracing_kind_operations", || {
        let Some(operations) = operations(kind) else { return KIND_NOT_FOUND };
        for (operation, _) in operations {
            // SAFETY: the caller's.
            unsafe { each(kind, operation, data) };
        }
        SUCCESS
    })
}

/// # Safety
/// Both are null or valid for a write.
unsafe fn give(name: Option<&CStr>, to: *mut *const c_char, length: *mut u64) -> c_int {
    let Some(name) = name else { return KIND_NOT_FOUND };
    // SAFETY: the caller's.
    unsafe {
        if !to.is_null() {
            to.write(name.as_ptr());
        }
        if !length.is_null() {
            length.write(name.count_bytes() as u64);
        }
    }
    SUCCESS
}

fn at<'a>(kinds: &[&'a CStr], kind: c_int) -> Option<&'a CStr> {
    kinds.get((kind as usize).wrapping_sub(1)).copied()
}

/// # Safety
/// `name` and `length` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_buffer_tracing_kind_name(
    kind: c_int,
    name: *mut *const c_char,
    length: *mut u64,
) -> c_int {
    call("rocprofiler_query_buffer_tracing_kind_name", || {
        // SAFETY: the caller's.
        unsafe { give(at(&buffer_kinds(), kind), name, length) }
    })
}

/// # Safety
/// `name` and `length` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_callback_tracing_kind_name(
    kind: c_int,
    name: *mut *const c_char,
    length: *mut u64,
) -> c_int {
    call("rocprofiler_query_callback_tracing_kind_name", || {
        // SAFETY: the caller's.
        unsafe { give(at(&callback_kinds(), kind), name, length) }
    })
}

/// # Safety
/// `name` and `length` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_callback_tracing_kind_operation_name(
    kind: c_int,
    operation: c_int,
    name: *mut *const c_char,
    length: *mut u64,
) -> c_int {
    call("rocprofiler_query_callback_tracing_kind_operation_name", || {
        let operations = operations(kind).unwrap_or_default();
        let found = operations.iter().find(|(number, _)| *number == operation);
        // SAFETY: the caller's.
        unsafe { give(found.map(|(_, name)| *name), name, length) }
    })
}
