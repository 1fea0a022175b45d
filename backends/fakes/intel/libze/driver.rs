//! Level Zero, of `ze_api.h`: drivers and devices.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::settings;

pub(crate) const SUCCESS: c_int = 0;
const UNINITIALIZED: c_int = 0x7800_0001;
const UNSUPPORTED: c_int = 0x7800_0003;
const INVALID: c_int = 0x7800_0004;
/// What scripts get without an initialised driver.
pub(crate) const NOT_INITIALIZED: c_int = UNINITIALIZED;

static READY: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}

fn devices() -> u32 {
    if settings::fault("no-device") {
        return 0;
    }
    std::env::var("FAKE_XPU_DEVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[unsafe(no_mangle)]
pub extern "C" fn zeInit(_flags: u32) -> c_int {
    if settings::fault("no-driver") {
        return UNINITIALIZED;
    }
    READY.store(true, Ordering::Release);
    SUCCESS
}

/// Says how many there are, or gives them: their handles are their numbers and one.
///
/// # Safety
/// `count` is valid; `to` is null or has that many places.
unsafe fn list(most: u32, first: usize, count: *mut u32, to: *mut *mut c_void) -> c_int {
    if !is_ready() {
        return UNINITIALIZED;
    }
    // SAFETY: the caller says so.
    unsafe {
        if !to.is_null() {
            let given = (*count).min(most);
            for i in 0..given {
                to.add(i as usize).write(ptr::without_provenance_mut(first + i as usize));
            }
            count.write(given);
        } else {
            count.write(most);
        }
    }
    SUCCESS
}

/// # Safety
/// As Level Zero says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeInitDrivers(
    count: *mut u32,
    drivers: *mut *mut c_void,
    _which: *mut c_void,
) -> c_int {
    if settings::fault("no-driver") {
        return UNINITIALIZED;
    }
    READY.store(true, Ordering::Release);
    // SAFETY: the caller's.
    unsafe { list(1, 1, count, drivers) }
}

/// # Safety
/// As Level Zero says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeDriverGet(count: *mut u32, drivers: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { list(1, 1, count, drivers) }
}

/// # Safety
/// As Level Zero says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeDeviceGet(
    _driver: *mut c_void,
    count: *mut u32,
    to: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { list(devices(), 1, count, to) }
}

/// # Safety
/// As Level Zero says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeDeviceGetSubDevices(
    _device: *mut c_void,
    count: *mut u32,
    to: *mut *mut c_void,
) -> c_int {
    if settings::fault("no-sub-devices") {
        return UNSUPPORTED;
    }
    // SAFETY: the caller's.
    unsafe { list(0, 0, count, to) }
}

/// The UUID of a device: its number, 16 times.
#[unsafe(no_mangle)]
pub extern "C" fn fake_ze_uuid(device: u32) -> u8 {
    0x10 + device as u8
}

/// Offsets are those of `ze_device_properties_t`, ze_api.h 1.0.
///
/// # Safety
/// As Level Zero says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeDeviceGetProperties(device: *mut c_void, to: *mut c_void) -> c_int {
    let Some(number) = device.addr().checked_sub(1) else { return INVALID };
    let name = format!("Fake Intel GPU {number}\0");
    let numbers = [(16, 1_u32), (20, 0x8086), (36, 1600), (64, 8), (68, 4), (72, 2)];
    // SAFETY: the caller has a struct of 368 bytes there.
    unsafe {
        let to = to.cast::<u8>();
        for (at, value) in numbers {
            to.add(at).cast::<u32>().write(value);
        }
        to.add(96).write_bytes(fake_ze_uuid(number as u32), 16);
        to.add(112).copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    SUCCESS
}

/// What a wait of the program's needs here, too (see `run::synchronize`).
#[unsafe(no_mangle)]
pub extern "C" fn fake_ze_synchronize() {
    crate::run::synchronize();
}
