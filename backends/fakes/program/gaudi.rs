//! The same program on Gaudi (`--hpu`): it acquires all devices that `FAKE_HPU_DEVICES` says,
//! and gives them back (`--release`) or leaves that to the end of the process.

use std::ffi::{CStr, c_int};
use std::ptr;

use crate::{Run, load, symbol};

pub(crate) fn start() -> Option<Run> {
    let library = load(c"libSynapse.so")?;
    // SAFETY: synapse_api.h declares them so; null stands for all that is loaded, as dynamic
    // linking would find them.
    let (initialize, acquire) = unsafe {
        type Initialize = unsafe extern "C" fn() -> c_int;
        type Acquire = unsafe extern "C" fn(*mut u32, u32) -> c_int;
        (
            symbol::<Initialize>(ptr::null_mut(), c"synInitialize")?,
            symbol::<Acquire>(ptr::null_mut(), c"synDeviceAcquireByModuleId")?,
        )
    };
    let devices = std::env::var("FAKE_HPU_DEVICES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    // SAFETY: takes nothing.
    if unsafe { initialize() } != 0 {
        return None;
    }
    for module in 0..devices {
        let mut device = 0;
        // SAFETY: a place for the answer.
        if unsafe { acquire(&mut device, module) } != 0 {
            return None;
        }
    }
    // SAFETY: the fake declares it so.
    unsafe { symbol(library, c"fake_cuda_run") }
}

pub(crate) fn release() {
    one(c"synDeviceRelease", 0);
    // SAFETY: takes nothing.
    unsafe {
        if let Some(destroy) =
            symbol::<unsafe extern "C" fn() -> c_int>(ptr::null_mut(), c"synDestroy")
        {
            destroy();
        }
    }
}

fn one(name: &CStr, argument: u32) {
    // SAFETY: synapse_api.h declares those that are called with this so.
    unsafe {
        if let Some(call) = symbol::<unsafe extern "C" fn(u32) -> c_int>(ptr::null_mut(), name) {
            call(argument);
        }
    }
}
