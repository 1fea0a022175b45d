//! What the program itself calls of PTI: see `kymograph_backends::intel::share`.
#![allow(non_snake_case, reason = "named as in PTI")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use kymograph_backends::intel::{BufferCompleted, BufferRequested, share};

use super::behind;
use crate::guard::guard;

const LIBRARY: &CStr = c"libpti_view.so.1";
/// `PTI_ERROR_NOT_IMPLEMENTED`: what is said where there is no PTI.
const NOT_IMPLEMENTED: c_int = 2;

/// PTI's own function of this name; nothing is done without it.
fn serve(name: &CStr, body: impl FnOnce(*mut c_void) -> c_int) -> c_int {
    guard(NOT_IMPLEMENTED, || {
        let real = behind::definition(name, LIBRARY);
        if real.is_null() { NOT_IMPLEMENTED } else { body(real) }
    })
}

/// As in PTI (pti_view.h).
///
/// # Safety
/// As in PTI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ptiViewSetCallbacks(
    request: Option<BufferRequested>,
    complete: Option<BufferCompleted>,
) -> c_int {
    // SAFETY: PTI's function, and the caller's own arguments.
    serve(c"ptiViewSetCallbacks", |real| unsafe { share::set_callbacks(real, request, complete) })
}

/// As in PTI (pti_view.h).
#[unsafe(no_mangle)]
pub extern "C" fn ptiViewEnable(kind: u32) -> c_int {
    let flush = guard(ptr::null_mut(), || behind::definition(c"ptiFlushAllViews", LIBRARY));
    // SAFETY: PTI's functions.
    serve(c"ptiViewEnable", |real| unsafe { share::enable(real, flush, kind) })
}

/// As in PTI (pti_view.h).
#[unsafe(no_mangle)]
pub extern "C" fn ptiViewDisable(kind: u32) -> c_int {
    // SAFETY: PTI's function.
    serve(c"ptiViewDisable", |real| unsafe { share::disable(real, kind) })
}

/// As in PTI (pti_view.h).
#[unsafe(no_mangle)]
pub extern "C" fn ptiFlushAllViews() -> c_int {
    // SAFETY: PTI's function.
    serve(c"ptiFlushAllViews", |real| unsafe { share::flush_all(real) })
}
