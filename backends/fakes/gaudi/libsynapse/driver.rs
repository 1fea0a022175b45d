//! Synapse's devices (`synapse_api.h`).

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::{profiler, run, settings, work};

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const INVALID_ARGUMENT: c_int = 1;
/// `synOutOfDeviceMemory`.
const OUT_OF_MEMORY: c_int = 4;
/// `synFail`.
pub(crate) const FAIL: c_int = 26;
pub(crate) const NOT_INITIALIZED: c_int = 8;

static READY: AtomicBool = AtomicBool::new(false);
static PROFILED: AtomicBool = AtomicBool::new(false);
static ACQUIRED: AtomicU32 = AtomicU32::new(0);

/// Scripts need a device.
pub(crate) fn is_ready() -> bool {
    ACQUIRED.load(Ordering::Acquire) != 0
}

pub(crate) fn has(device: u32) -> bool {
    ACQUIRED.load(Ordering::Acquire) >> device & 1 != 0
}

pub(crate) fn is_profiled() -> bool {
    PROFILED.load(Ordering::Acquire)
}

fn devices() -> u32 {
    std::env::var("FAKE_HPU_DEVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Reads the environment, as the real one does.
#[unsafe(no_mangle)]
pub extern "C" fn synInitialize() -> c_int {
    if !READY.swap(true, Ordering::AcqRel) {
        let on = std::env::var("HABANA_PROFILE").is_ok_and(|value| value != "0");
        PROFILED.store(on, Ordering::Release);
        run::attach(profiler::observe);
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn synDestroy() -> c_int {
    ACQUIRED.store(0, Ordering::Release);
    SUCCESS
}

/// # Safety
/// `count` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceGetCount(count: *mut u32) -> c_int {
    // SAFETY: the caller says so.
    unsafe { count.write(devices()) };
    SUCCESS
}

/// # Safety
/// `device` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByModuleId(device: *mut u32, module: u32) -> c_int {
    if !READY.load(Ordering::Acquire) {
        return NOT_INITIALIZED;
    }
    if settings::fault("no-device") || module >= devices() {
        return FAIL;
    }
    ACQUIRED.fetch_or(1 << module, Ordering::AcqRel);
    // SAFETY: the caller says so.
    unsafe { device.write(module) };
    SUCCESS
}

/// # Safety
/// `device` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquireByDeviceType(device: *mut u32, _ty: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { synDeviceAcquireByModuleId(device, 0) }
}

/// # Safety
/// `device` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceAcquire(device: *mut u32, _bus: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { synDeviceAcquireByModuleId(device, 0) }
}

#[unsafe(no_mangle)]
pub extern "C" fn synDeviceRelease(device: u32) -> c_int {
    let bit = 1 << device;
    if ACQUIRED.fetch_and(!bit, Ordering::AcqRel) & bit == 0 { INVALID_ARGUMENT } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn synDeviceSynchronize(device: u32) -> c_int {
    crate::timeline::sleep_until(crate::timeline::done(device + 1, None));
    SUCCESS
}

/// # Safety
/// `to` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceGetName(to: *mut c_char, len: c_int, device: u32) -> c_int {
    let name = format!("Fake Gaudi {device}\0");
    if name.len() > len as usize {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller says so.
    unsafe { to.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len()) };
    SUCCESS
}

/// # Safety
/// Both are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceGetMemoryInfo(
    _device: u32,
    free: *mut u64,
    total: *mut u64,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        free.write(90 << 30);
        total.write(96 << 30);
    }
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synDeviceMalloc(
    device: u32,
    size: u64,
    _wanted: u64,
    _flags: u32,
    to: *mut u64,
) -> c_int {
    if !has(device) {
        return INVALID_ARGUMENT;
    }
    if settings::fault("full") {
        return OUT_OF_MEMORY;
    }
    // SAFETY: the caller says so.
    unsafe { work::allocate(to, size as usize) }
}
