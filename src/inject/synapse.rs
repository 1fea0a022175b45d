//! Programs that use Gaudi: when they open and give back its devices. Dynamic linking finds
//! these functions here; each does what the recording needs, and what the program asked for.
#![allow(non_snake_case, reason = "named as in Synapse")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::{mem, ptr};

use kymograph_backends::gaudi;

use super::behind;
use crate::guard::guard;
use crate::recording;

const LIBRARY: &CStr = c"libSynapse.so";
/// `synFail`: what is said where there is no Synapse at all.
const FAIL: c_int = 26;

/// Whether `kymo record` runs this process.
fn is_wanted() -> bool {
    super::WANTED.get().is_some()
}

/// Starts the recording when a device was acquired.
fn acquired(result: c_int, device: *const u32) -> c_int {
    guard((), || {
        // SAFETY: Synapse stored a number there, since it succeeded.
        if let (0, Some(device)) = (result, unsafe { device.as_ref() })
            && is_wanted()
        {
            gaudi::acquired(*device);
            if gaudi::is_idle() && super::start() {
                recording::start_sources();
            }
        }
    });
    result
}

/// Before a device is given back, its trace is fetched; then the others are recorded on.
fn released(device: Option<u32>) {
    guard((), || {
        if is_wanted() {
            gaudi::released(device);
        }
    });
}

/// The program's own calls, passed on to the function that it would have reached without us.
macro_rules! real {
    ($name:literal ($($arg:ident: $ty:ty),*)) => {{
        type Real = unsafe extern "C" fn($($ty),*) -> c_int;
        let real = guard(ptr::null_mut(), || behind::definition($name, LIBRARY));
        match real.is_null() {
            true => FAIL,
            // SAFETY: synapse_api.h declares it so; the program's own arguments.
            false => unsafe { mem::transmute::<*mut c_void, Real>(real)($($arg),*) },
        }
    }};
}

/// `synInitialize` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synInitialize() -> c_int {
    guard((), || {
        if is_wanted() {
            gaudi::opening();
        }
    });
    real!(c"synInitialize"())
}

/// `synDestroy` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synDestroy() -> c_int {
    released(None);
    real!(c"synDestroy"())
}

/// `synDeviceAcquire` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquire(device: *mut u32, bus: *const c_char) -> c_int {
    acquired(real!(c"synDeviceAcquire" (device: *mut u32, bus: *const c_char)), device)
}

/// `synDeviceAcquireByDeviceType` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByDeviceType(device: *mut u32, ty: c_int) -> c_int {
    acquired(real!(c"synDeviceAcquireByDeviceType" (device: *mut u32, ty: c_int)), device)
}

/// `synDeviceAcquireByModuleId` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByModuleId(device: *mut u32, module: u32) -> c_int {
    acquired(real!(c"synDeviceAcquireByModuleId" (device: *mut u32, module: u32)), device)
}

/// `synDeviceRelease` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synDeviceRelease(device: u32) -> c_int {
    released(Some(device));
    let result = real!(c"synDeviceRelease" (device: u32));
    guard((), || {
        if is_wanted() {
            recording::start_sources();
        }
    });
    result
}
