//! The functions of HIP that others look up.

use std::ffi::{c_int, c_uint};

use crate::{run, timeline};

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;

pub(crate) fn devices() -> c_int {
    let text = std::env::var("FAKE_HIP_DEVICES").unwrap_or_default();
    text.parse().unwrap_or(1)
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> c_int {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; the caller says the rest.
    unsafe { to.write(value) };
    SUCCESS
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceCount(to: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(to, devices()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipSetDevice(device: c_int) -> c_int {
    run::set_device(device as u32);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceSynchronize() -> c_int {
    run::synchronize();
    SUCCESS
}

/// # Safety
/// `flags` and `active` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        give(flags, 0);
        give(active, timeline::is_used(device as u32).into())
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn hipInit(_flags: c_uint) -> c_int {
    if devices() > 0 { SUCCESS } else { 100 }
}
