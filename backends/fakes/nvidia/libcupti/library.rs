//! What CUPTI says about itself, and names.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::settings::toolkit;
use crate::status::{self, INVALID_PARAMETER, SUCCESS, call, call_anywhere};
use crate::{activity, attributes, buffers, callbacks};

/// The number that goes with the toolkit (`CUPTI_API_VERSION` in `cupti_version.h`).
fn version() -> u32 {
    match toolkit() {
        ..=1201 => 18,
        toolkit @ 1202..=1206 => toolkit - 1202 + 20,
        1208 => 26,
        1209 => 28,
        1302 => 130_202,
        toolkit => toolkit / 100 * 10_000 + toolkit % 100 * 100 + 1,
    }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> c_int {
    if to.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null; the caller says the rest.
    unsafe { to.write(value) };
    SUCCESS
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(to: *mut u32) -> c_int {
    // SAFETY: the caller's.
    call_anywhere("cuptiGetVersion", || unsafe { give(to, version()) })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(status: c_int, to: *mut *const c_char) -> c_int {
    // SAFETY: the caller's.
    call_anywhere("cuptiGetResultString", || unsafe { describe(status, to) })
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn describe(status: c_int, to: *mut *const c_char) -> c_int {
    let Some(name) = status::name(status) else {
        return INVALID_PARAMETER;
    };
    // SAFETY: the caller's.
    unsafe { give(to, name.as_ptr()) }
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetErrorMessage(status: c_int, to: *mut *const c_char) -> c_int {
    // No exported function calls another: each can be taken out of the library.
    // SAFETY: the caller's.
    call_anywhere("cuptiGetErrorMessage", || unsafe { describe(status, to) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiGetLastError() -> c_int {
    SUCCESS
}

/// The name of a function. The real lists have no gaps, so those that no script can call
/// have names as well, which nothing else has.
fn any_name(domain: u32, cbid: u32) -> Option<&'static CStr> {
    static OTHERS: Mutex<BTreeMap<(u32, u32), &'static CStr>> = Mutex::new(BTreeMap::new());
    let (prefix, suffix, count) = match (domain, toolkit()) {
        (1, ..1301) => ("cu", "", 783),
        (1, _) => ("cu", "", 845),
        (2, ..1301) => ("cuda", "_v3020", 486),
        (2, _) => ("cuda", "_v3020", 549),
        _ => return None,
    };
    if !(1..=count).contains(&cbid) {
        return None;
    }
    let other = || {
        let text = CString::new(format!("{prefix}Other{cbid}{suffix}")).unwrap_or_default();
        &*Box::leak(text.into_boxed_c_str())
    };
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    name(domain, cbid).or_else(|| Some(*others.entry((domain, cbid)).or_insert_with(other)))
}

/// Runtime functions carry the version that their signature is of, as in
/// `cupti_runtime_cbid.h`; driver functions do not.
fn name(domain: u32, cbid: u32) -> Option<&'static CStr> {
    Some(match (domain, cbid) {
        (1, 17) => c"cuCtxSynchronize",
        (1, 119) => c"cuEventRecord",
        (1, 121) => c"cuEventSynchronize",
        (1, 126) => c"cuStreamSynchronize",
        (1, 216) => c"cuMemsetD8Async",
        (1, 295) => c"cuStreamWaitEvent",
        (1, 304) => c"cuCtxGetCurrent",
        (1, 306) => c"cuMemcpyAsync",
        (1, 23) => c"cuModuleGetFunction",
        (1, 307) => c"cuLaunchKernel",
        (1, 319) => c"cuMemcpyPeerAsync",
        (1, 377) => c"cuProfilerStart",
        (1, 378) => c"cuProfilerStop",
        (1, 392) => c"cuDevicePrimaryCtxGetState",
        (1, 514) => c"cuGraphLaunch",
        (1, 652) => c"cuLaunchKernelEx",
        (1, 686) => c"cuKernelGetAttribute",
        (2, 10) => c"cudaGetLastError_v3020",
        (2, 16) => c"cudaSetDevice_v3020",
        (2, 17) => c"cudaGetDevice_v3020",
        (2, 20) => c"cudaMalloc_v3020",
        (2, 22) => c"cudaFree_v3020",
        (2, 41) => c"cudaMemcpyAsync_v3020",
        (2, 51) => c"cudaMemsetAsync_v3020",
        (2, 131) => c"cudaStreamSynchronize_v3020",
        (2, 135) => c"cudaEventRecord_v3020",
        (2, 137) => c"cudaEventSynchronize_v3020",
        (2, 138) => c"cudaEventQuery_v3020",
        (2, 147) => c"cudaStreamWaitEvent_v3020",
        (2, 161) => c"cudaMemcpyPeerAsync_v4000",
        (2, 165) => c"cudaDeviceSynchronize_v3020",
        (2, 171) => c"cudaProfilerStart_v4000",
        (2, 172) => c"cudaProfilerStop_v4000",
        (2, 211) => c"cudaLaunchKernel_v7000",
        (2, 311) => c"cudaGraphLaunch_v10000",
        _ => return None,
    })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(
    domain: u32,
    cbid: u32,
    to: *mut *const c_char,
) -> c_int {
    call_anywhere("cuptiGetCallbackName", || {
        let Some(name) = any_name(domain, cbid) else {
            return INVALID_PARAMETER;
        };
        // SAFETY: the caller's.
        unsafe { give(to, name.as_ptr()) }
    })
}

/// A context's handle is its number, which is its device's and one.
///
/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: *mut c_void, to: *mut u32) -> c_int {
    // SAFETY: the caller's.
    call("cuptiGetContextId", || unsafe { give(to, context.addr() as u32) })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: *mut c_void, to: *mut u32) -> c_int {
    // SAFETY: the caller's.
    call("cuptiGetDeviceId", || unsafe { give(to, (context.addr() as u32).max(1) - 1) })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(
    _context: *mut c_void,
    stream: *mut c_void,
    _per_thread: u8,
    to: *mut u32,
) -> c_int {
    let stream = if stream.is_null() { 7 } else { stream.addr() as u32 };
    if !callbacks::is_subscribed() {
        ASKED_WHEN_GONE.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the caller's.
    call("cuptiGetStreamIdEx", || unsafe { give(to, stream) })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiComputeCapabilitySupported(
    major: c_int,
    _minor: c_int,
    to: *mut c_int,
) -> c_int {
    call("cuptiComputeCapabilitySupported", || {
        // SAFETY: the caller's.
        unsafe { give(to, (5..=10).contains(&major).into()) }
    })
}

static FINALIZED: AtomicU32 = AtomicU32::new(0);

/// For tests: how often it left the process.
#[unsafe(no_mangle)]
pub extern "C" fn fake_cupti_finalized() -> u32 {
    FINALIZED.load(Ordering::Relaxed)
}

static ASKED_WHEN_GONE: AtomicU32 = AtomicU32::new(0);

/// For tests: how often a stream was asked for by nobody who is subscribed.
#[unsafe(no_mangle)]
pub extern "C" fn fake_cupti_asked_when_gone() -> u32 {
    ASKED_WHEN_GONE.load(Ordering::Relaxed)
}

/// Nobody is known any more, and nothing enabled.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiFinalize() -> c_int {
    call("cuptiFinalize", || {
        FINALIZED.fetch_add(1, Ordering::Relaxed);
        activity::forget();
        attributes::forget();
        buffers::forget();
        callbacks::forget();
        SUCCESS
    })
}
