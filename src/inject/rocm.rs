//! How ROCm finds us: HIP, HSA, RCCL and ROCTX hand their tables to librocprofiler-register,
//! which has librocprofiler-sdk loaded if it sees a `rocprofiler_configure` in the process.
//! That asks every such function whether it is interested.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use kymograph_backends::amd::{self, ConfigureResult};

use super::start_if_wanted;
use crate::guard::guard;
use crate::recorder::PIPELINE;
use crate::recording;

/// Whether it was said that there is no library to record with.
static SAID: AtomicBool = AtomicBool::new(false);

/// Asks whether this process shall be recorded (registration.h). Null is no: then the library
/// does nothing.
///
/// # Safety
/// Called by rocprofiler-sdk with what it passes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    version: u32,
    runtime_version: *const c_char,
    priority: u32,
    client: *mut c_void,
) -> *mut ConfigureResult {
    guard(ptr::null_mut(), || {
        if start_if_wanted() {
            // It may be that nothing runs yet, and a trace is requested later.
            amd::prepare(&PIPELINE);
        } else if !recording::is_running() {
            return ptr::null_mut();
        }
        // SAFETY: passed on.
        unsafe { amd::configure(version, runtime_version, priority, client) }
    })
}

type RegisterTable = unsafe extern "C" fn(
    *const c_char,
    *const c_void,
    u32,
    *mut *mut c_void,
    u64,
    *mut c_void,
) -> c_int;

/// `ROCP_REG_NO_TOOLS` (rocprofiler-register.h).
const NO_TOOLS: c_int = 1;

/// A library of ROCm hands its tables over (rocprofiler-register.h). Passed on, but where
/// there is no librocprofiler-sdk: librocprofiler-register would look for it because it sees
/// our [`rocprofiler_configure`], and end the process because it does not find it.
///
/// # Safety
/// As in librocprofiler-register.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_library_api_table(
    name: *const c_char,
    import: *const c_void,
    version: u32,
    tables: *mut *mut c_void,
    count: u64,
    id: *mut c_void,
) -> c_int {
    let real = guard(None, || {
        if amd::can_be_loaded() {
            return real(c"rocprofiler_register_library_api_table");
        }
        if start_if_wanted() && !SAID.swap(true, Ordering::Relaxed) {
            amd::without_library();
        }
        None
    });
    match real {
        None => NO_TOOLS,
        Some(real) => {
            // SAFETY: the function of this name has this type.
            let real = unsafe { std::mem::transmute::<*mut c_void, RegisterTable>(real) };
            // SAFETY: the caller's own arguments.
            unsafe { real(name, import, version, tables, count, id) }
        }
    }
}

/// The function of librocprofiler-register that the caller meant.
fn real(name: &CStr) -> Option<*mut c_void> {
    const LIBRARY: &CStr = c"librocprofiler-register.so.0";
    // SAFETY: C strings. What is loaded already stays loaded: the caller needs it.
    let found = unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        if !next.is_null() {
            return Some(next);
        }
        // The library of a Python module is not among those that the process shares.
        let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() { ptr::null_mut() } else { libc::dlsym(library, name.as_ptr()) }
    };
    let ours: RegisterTable = rocprofiler_register_library_api_table;
    (!found.is_null() && found != ours as *mut c_void).then_some(found)
}
