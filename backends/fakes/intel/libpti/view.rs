//! The functions of `pti_view.h` and `pti_version.h`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::buffers::{self, Complete, Request, UNKNOWN_SIZE};
use crate::seam::Call;
use crate::settings::{self, version};
use crate::sizes::size_of;
use crate::{level_zero, sizes::kind};

const SUCCESS: c_int = 0;
const END_OF_BUFFER: c_int = 1;
const NOT_IMPLEMENTED: c_int = 2;
const BAD_ARGUMENT: c_int = 3;
const NO_CALLBACKS_SET: c_int = 4;
const INTERNAL: c_int = 200;

static KINDS: [AtomicBool; 16] = [const { AtomicBool::new(false) }; 16];
/// Whether all functions of an API are recorded, or those that ask for work.
static ALL_RUNTIME: AtomicBool = AtomicBool::new(true);
static ALL_DRIVER: AtomicBool = AtomicBool::new(true);

/// Names itself in the environment when it is loaded, as the real one does.
extern "C" fn on_load() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: strings; the address is one of this library's.
        unsafe {
            if !libc::getenv(c"XPTI_SUBSCRIBERS".as_ptr()).is_null() {
                return;
            }
            let mut info: libc::Dl_info = std::mem::zeroed();
            let own: extern "C" fn() = on_load;
            if libc::dladdr(own as *const c_void, &mut info) != 0 {
                libc::setenv(c"XPTI_SUBSCRIBERS".as_ptr(), info.dli_fname, 1);
                libc::setenv(c"XPTI_TRACE_ENABLE".as_ptr(), c"1".as_ptr(), 1);
            }
        }
    });
}

#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// SYCL begins: the real one subscribes to its queues here.
#[unsafe(no_mangle)]
pub extern "C" fn xptiTraceInit(_: u32, _: u32, _: *const c_char, _: *const c_char) {}

#[unsafe(no_mangle)]
pub extern "C" fn xptiTraceFinish(_: *const c_char) {}

pub(crate) fn is_enabled(kind: u32) -> bool {
    KINDS[kind as usize].load(Ordering::Relaxed)
}

pub(crate) fn is_any_enabled() -> bool {
    KINDS.iter().any(|kind| kind.load(Ordering::Relaxed))
}

pub(crate) fn is_call_enabled(call: &Call) -> bool {
    let (kind, all) = match call.domain {
        1 => (kind::DRIVER_API, &ALL_DRIVER),
        _ => (kind::RUNTIME_API, &ALL_RUNTIME),
    };
    let name = call.function.to_string_lossy();
    // `PTI_API_CLASS_GPU_OPERATION_CORE`.
    let core = [
        "KernelLaunch",
        "LaunchKernel",
        "USM",
        "MemoryCopy",
        "MemoryFill",
        "Execute",
        "CommandBuffer",
    ];
    is_enabled(kind) && (all.load(Ordering::Relaxed) || core.iter().any(|part| name.contains(part)))
}

fn faulty(function: &str) -> Option<c_int> {
    if settings::fault("not-implemented") {
        return Some(NOT_IMPLEMENTED);
    }
    if settings::fault("errors") {
        return Some(INTERNAL);
    }
    settings::error(function)
}

/// The body of a function that needs Level Zero.
fn call(function: &str, body: impl FnOnce() -> c_int) -> c_int {
    if let Some(status) = faulty(function) {
        return status;
    }
    level_zero::require();
    body()
}

#[repr(C)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiVersion() -> Version {
    let (major, minor) = version();
    Version { major, minor, patch: 0 }
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiResultTypeToString(status: c_int) -> *const c_char {
    let text = match status {
        SUCCESS => c"PTI_SUCCESS",
        END_OF_BUFFER => c"PTI_STATUS_END_OF_BUFFER",
        NOT_IMPLEMENTED => c"PTI_ERROR_NOT_IMPLEMENTED",
        BAD_ARGUMENT => c"PTI_ERROR_BAD_ARGUMENT",
        NO_CALLBACKS_SET => c"PTI_ERROR_NO_CALLBACKS_SET",
        INTERNAL => c"PTI_ERROR_INTERNAL",
        _ => c"INVALID",
    };
    text.as_ptr()
}

/// # Safety
/// The functions are buffer callbacks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptiViewSetCallbacks(
    request: Option<Request>,
    complete: Option<Complete>,
) -> c_int {
    call("ptiViewSetCallbacks", || match (request, complete) {
        (Some(request), Some(complete)) if buffers::set_client(request, complete) => SUCCESS,
        _ => BAD_ARGUMENT,
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiViewEnable(kind: u32) -> c_int {
    call("ptiViewEnable", || match size_of(kind, version()) {
        _ if !buffers::has_client() => NO_CALLBACKS_SET,
        None => BAD_ARGUMENT,
        Some(_) => {
            KINDS[kind as usize].store(true, Ordering::Relaxed);
            SUCCESS
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiViewDisable(kind: u32) -> c_int {
    call("ptiViewDisable", || match size_of(kind, version()) {
        None => BAD_ARGUMENT,
        Some(_) => {
            KINDS[kind as usize].store(false, Ordering::Relaxed);
            SUCCESS
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiFlushAllViews() -> c_int {
    call("ptiFlushAllViews", || {
        buffers::flush();
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiViewGPULocalAvailable() -> c_int {
    call("ptiViewGPULocalAvailable", || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiViewEnableRuntimeApiClass(on: u32, class: c_int, _group: c_int) -> c_int {
    call("ptiViewEnableRuntimeApiClass", || choose(&ALL_RUNTIME, on, class))
}

#[unsafe(no_mangle)]
pub extern "C" fn ptiViewEnableDriverApiClass(on: u32, class: c_int, _group: c_int) -> c_int {
    call("ptiViewEnableDriverApiClass", || choose(&ALL_DRIVER, on, class))
}

fn choose(all: &AtomicBool, on: u32, class: c_int) -> c_int {
    match (on, class) {
        (1, 1) => all.store(false, Ordering::Relaxed),
        (1, 0x7fff_ffff) => all.store(true, Ordering::Relaxed),
        _ => return BAD_ARGUMENT,
    }
    SUCCESS
}

/// Works without a driver.
///
/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptiViewGetApiIdName(group: u32, id: u32, to: *mut *const c_char) -> c_int {
    if let Some(status) = faulty("ptiViewGetApiIdName") {
        return status;
    }
    let names: [(u32, &CStr, &CStr); 14] = [
        (1, c"urEnqueueKernelLaunch", c"zeCommandListAppendLaunchKernel"),
        (2, c"urEnqueueUSMMemcpy", c"zeCommandListAppendMemoryCopy"),
        (3, c"urEnqueueUSMMemcpy", c"zeCommandListAppendMemoryCopy"),
        (4, c"urEnqueueUSMFill", c"zeCommandListAppendMemoryFill"),
        (5, c"urEnqueueCommandBufferExp", c"zeCommandQueueExecuteCommandLists"),
        (6, c"urQueueFinish", c"zeCommandQueueSynchronize"),
        (7, c"urQueueFinish", c"zeCommandListHostSynchronize"),
        (8, c"urEventWait", c"zeEventHostSynchronize"),
        (9, c"urEnqueueEventsWait", c"zeCommandListAppendSignalEvent"),
        (10, c"urEnqueueEventsWaitWithBarrier", c"zeCommandListAppendBarrier"),
        (20, c"urUSMDeviceAlloc", c""),
        (22, c"urDeviceGet", c""),
        (23, c"", c"zeContextGetStatus"),
        (21, c"urUSMFree", c""),
    ];
    let Some((_, runtime, driver)) = names.iter().find(|(known, ..)| *known == id) else {
        return BAD_ARGUMENT;
    };
    // SAFETY: the caller's place.
    unsafe { to.write(if group == 1 { driver.as_ptr() } else { runtime.as_ptr() }) };
    SUCCESS
}

/// Works without a driver.
///
/// # Safety
/// `buffer` has `used` bytes; `record` is null, or one that was found there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptiViewGetNextRecord(
    buffer: *mut u8,
    used: usize,
    record: *mut *mut u8,
) -> c_int {
    if let Some(status) = faulty("ptiViewGetNextRecord") {
        return status;
    }
    let size = |kind: u32| match kind {
        200 => Some(UNKNOWN_SIZE),
        _ => size_of(kind, version()),
    };
    // SAFETY: the caller says so.
    unsafe {
        let next = if (*record).is_null() {
            buffer
        } else {
            let Some(size) = size((*record).cast::<u32>().read_unaligned()) else {
                return INTERNAL;
            };
            (*record).add(size)
        };
        let at = next.addr() - buffer.addr();
        if at + 4 > used {
            return END_OF_BUFFER;
        }
        if size(next.cast::<u32>().read_unaligned()).is_none() {
            return INTERNAL;
        }
        record.write(next);
    }
    SUCCESS
}

/// As the real ones of 1.1 and 1.2 say.
#[unsafe(no_mangle)]
pub extern "C" fn ptiViewMemoryTypeToString(memory: u32) -> *const c_char {
    let names = [c"Host (User Allocated)", c"Host (Driver Allocated)", c"Device", c"Shared"];
    names.get(memory as usize).copied().unwrap_or(c"INVALID").as_ptr()
}

/// Strings that live as long as the library: for tests that look.
#[unsafe(no_mangle)]
pub extern "C" fn ptiVersionString() -> *const c_char {
    let (major, minor) = version();
    CString::new(format!("{major}.{minor}.0")).unwrap_or_default().into_raw()
}
