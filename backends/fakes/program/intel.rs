//! The same program on Level Zero, by itself (`--xpu`) or through SYCL (`--sycl`).
//!
//! Through SYCL, what names itself in `XPTI_SUBSCRIBERS` is called first, as SYCL's tracing
//! framework (xptifw) does, and Level Zero is found by its handle, as SYCL's adapters do.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use crate::{Run, load, symbol};

type Init = unsafe extern "C" fn(u32) -> c_int;

pub(crate) fn start(sycl: bool) -> Option<Run> {
    if sycl {
        tell_subscribers();
    }
    let library = load(c"libze_loader.so.1")?;
    let from = if sycl { library } else { ptr::null_mut() };
    // SAFETY: ze_api.h declares it so; null stands for all that is loaded.
    let init: Init = unsafe { symbol(from, c"zeInit")? };
    // SAFETY: zero: all kinds of drivers.
    if unsafe { init(0) } != 0 {
        return None;
    }
    // SAFETY: the fake declares it so.
    unsafe { symbol(library, c"fake_cuda_run") }
}

fn tell_subscribers() {
    type TraceInit = unsafe extern "C" fn(u32, u32, *const c_char, *const c_char);
    let value = subscribers();
    for path in value.split(',').filter(|path| !path.is_empty()) {
        let Some(library) = CString::new(path).ok().and_then(|path| load(&path)) else { continue };
        // SAFETY: xpti_trace_framework.h declares it so.
        if let Some(init) = unsafe { symbol::<TraceInit>(library, c"xptiTraceInit") } {
            // SAFETY: version numbers and C strings.
            unsafe { init(0, 0, c"1.0".as_ptr(), c"sycl".as_ptr()) };
        }
    }
}

/// As C programs read it: libraries may have set it meanwhile.
fn subscribers() -> String {
    // SAFETY: a C string; nobody changes the environment now.
    unsafe {
        let value = libc::getenv(c"XPTI_SUBSCRIBERS".as_ptr());
        if value.is_null() {
            return String::new();
        }
        CStr::from_ptr(value).to_string_lossy().into_owned()
    }
}
