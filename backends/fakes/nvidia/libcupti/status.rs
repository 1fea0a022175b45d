//! What CUPTI answers (`cupti_result.h`), and the faults that make it answer something else.

use std::ffi::{CStr, c_int};

use crate::{driver, settings};

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const INVALID_PARAMETER: c_int = 1;
pub(crate) const INVALID_OPERATION: c_int = 7;
pub(crate) const PARAMETER_SIZE: c_int = 10;
pub(crate) const MAX_LIMIT_REACHED: c_int = 12;
pub(crate) const NOT_READY: c_int = 13;
pub(crate) const NOT_INITIALIZED: c_int = 15;
pub(crate) const QUEUE_EMPTY: c_int = 18;
pub(crate) const INVALID_KIND: c_int = 21;
pub(crate) const MULTIPLE_SUBSCRIBERS: c_int = 39;
pub(crate) const UNKNOWN: c_int = 999;

pub(crate) fn name(status: c_int) -> Option<&'static CStr> {
    Some(match status {
        SUCCESS => c"CUPTI_SUCCESS",
        INVALID_PARAMETER => c"CUPTI_ERROR_INVALID_PARAMETER",
        INVALID_OPERATION => c"CUPTI_ERROR_INVALID_OPERATION",
        PARAMETER_SIZE => c"CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
        MAX_LIMIT_REACHED => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        14 => c"CUPTI_ERROR_NOT_COMPATIBLE",
        NOT_INITIALIZED => c"CUPTI_ERROR_NOT_INITIALIZED",
        QUEUE_EMPTY => c"CUPTI_ERROR_QUEUE_EMPTY",
        INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        35 => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        MULTIPLE_SUBSCRIBERS => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        UNKNOWN => c"CUPTI_ERROR_UNKNOWN",
        _ => return None,
    })
}

/// The body of an exported function, which answers with a fault's status instead if one
/// is set for it, or that there is no driver.
pub(crate) fn call(function: &str, body: impl FnOnce() -> c_int) -> c_int {
    match faulty(function).or_else(driver::absent) {
        Some(status) => status,
        None => body(),
    }
}

/// The same for what works without a driver, up to 13.1.
pub(crate) fn call_anywhere(function: &str, body: impl FnOnce() -> c_int) -> c_int {
    if settings::toolkit() >= 1302 {
        return call(function, body);
    }
    faulty(function).unwrap_or_else(body)
}

fn faulty(function: &str) -> Option<c_int> {
    if settings::fault("errors") {
        return Some(UNKNOWN);
    }
    settings::error(function)
}
