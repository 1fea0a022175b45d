//! Programs that use Gaudi: when they open and give back its devices. Dynamic linking finds
//! these functions here; each does what the recording needs, and what the program asked for.
#![allow(non_snake_case, reason = "named as in Synapse")]

use std::ffi::{c_char, c_int};

use kymograph_backends::hpu;

use crate::guard::guard;
use crate::recording;

/// `synFail`.
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
            hpu::acquired(*device);
            if hpu::is_idle() {
                super::start();
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
            hpu::released(device);
        }
    });
}

/// `synInitialize` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synInitialize() -> c_int {
    guard((), || {
        if is_wanted() {
            hpu::opening();
        }
    });
    // SAFETY: the program's own call.
    guard(FAIL, || unsafe { hpu::initialize() })
}

/// `synDestroy` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synDestroy() -> c_int {
    released(None);
    // SAFETY: the program's own call.
    guard(FAIL, || unsafe { hpu::destroy() })
}

/// `synDeviceAcquire` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquire(device: *mut u32, bus: *const c_char) -> c_int {
    // SAFETY: the program's own arguments.
    acquired(guard(FAIL, || unsafe { hpu::acquire(device, bus) }), device)
}

/// `synDeviceAcquireByDeviceType` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByDeviceType(device: *mut u32, ty: c_int) -> c_int {
    // SAFETY: the program's own arguments.
    acquired(guard(FAIL, || unsafe { hpu::acquire_by_type(device, ty) }), device)
}

/// `synDeviceAcquireByModuleId` (synapse_api.h).
///
/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByModuleId(device: *mut u32, module: u32) -> c_int {
    // SAFETY: the program's own arguments.
    acquired(guard(FAIL, || unsafe { hpu::acquire_by_module(device, module) }), device)
}

/// `synDeviceRelease` (synapse_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn synDeviceRelease(device: u32) -> c_int {
    released(Some(device));
    // SAFETY: the program's own call.
    let result = guard(FAIL, || unsafe { hpu::release(device) });
    guard((), || {
        if is_wanted() {
            recording::start_sources();
        }
    });
    result
}
