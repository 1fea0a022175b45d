//! What the library answers (fwd.h), and the faults that make it answer something else.

use std::ffi::{CStr, c_char, c_int};

use crate::settings;

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const ERROR: c_int = 1;
pub(crate) const CONTEXT_NOT_FOUND: c_int = 2;
pub(crate) const BUFFER_NOT_FOUND: c_int = 3;
pub(crate) const KIND_NOT_FOUND: c_int = 4;

/// From 13 on, the numbers of 0.5 are one less than those of later versions.
pub(crate) fn locked() -> c_int {
    if settings::toolkit() < 100 { 15 } else { 16 }
}

pub(crate) fn finalized() -> c_int {
    locked() + 5
}

/// A call of the function of this name.
pub(crate) fn call(name: &str, body: impl FnOnce() -> c_int) -> c_int {
    if settings::fault("errors") {
        return ERROR;
    }
    settings::error(name).unwrap_or_else(body)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_status_string(status: c_int) -> *const c_char {
    let text: &CStr = match status {
        SUCCESS => c"Success",
        ERROR => c"General error",
        CONTEXT_NOT_FOUND => c"Context ID not found",
        BUFFER_NOT_FOUND => c"Buffer ID not found",
        KIND_NOT_FOUND => c"Kind ID not found",
        _ if status == locked() => c"Configuration has been locked",
        _ if status == finalized() => c"rocprofiler has been finalized",
        _ => return std::ptr::null(),
    };
    text.as_ptr()
}
