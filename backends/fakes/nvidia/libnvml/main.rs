//! `libnvidia-ml.so.1` of a machine whose devices are the fake driver's (`../libcuda`): a
//! device's numbers follow from its place and from how often they were asked for.
//!
//! Faults, in `FAKE_CUPTI_FAULT`: `nvml-init` fails, `nvml-old` devices have no performance
//! monitor and say nothing of their power.
//!
//! Layouts and numbers are those of nvml.h.

#![allow(non_snake_case, missing_docs, reason = "named as in NVML, which documents them")]

#[path = "../../settings.rs"]
mod settings;

/// What the fake CUDA driver is asked by, too.
const VARIABLES: settings::Variables = settings::Variables::CUPTI;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

const SUCCESS: c_int = 0;
const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;
const DRIVER_NOT_LOADED: c_int = 9;

/// A device: its place, from 1, as a handle.
type Device = *mut c_void;

static ASKED: AtomicU32 = AtomicU32::new(0);

fn old() -> c_int {
    if settings::fault("nvml-old") { NOT_SUPPORTED } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    if settings::fault("nvml-init") { DRIVER_NOT_LOADED } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    SUCCESS
}

/// # Safety
/// `uuid` is a string, `device` valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    device: *mut Device,
) -> c_int {
    // SAFETY: the caller's.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_bytes();
    let place = uuid.strip_prefix(b"GPU-6b796d6f-2d66-616b-652d-6770752d303");
    let Some([digit]) = place else { return NOT_FOUND };
    // SAFETY: the caller's.
    unsafe { device.write(std::ptr::without_provenance_mut(usize::from(digit - b'0') + 1)) };
    SUCCESS
}

/// # Safety
/// `to` is valid for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: Device,
    to: *mut [c_uint; 2],
) -> c_int {
    let times = ASKED.fetch_add(1, Ordering::Relaxed) % 50;
    // SAFETY: the caller's.
    unsafe { to.write([50 * device.addr() as c_uint, times]) };
    SUCCESS
}

/// # Safety
/// `to` is valid for `nvmlMemory_v2_t`: version, total, reserved, free, used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, to: *mut [u64; 5]) -> c_int {
    const GIB: u64 = 1 << 30;
    let used = device.addr() as u64 * GIB;
    // SAFETY: the caller's.
    unsafe { to.write([0, 80 * GIB, GIB, 79 * GIB - used, used]) };
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(_: Device, to: *mut c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { to.write(345_500) };
    old()
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(_: Device, _: c_int, to: *mut c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { to.write(61) };
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(_: Device, of: c_int, to: *mut c_uint) -> c_int {
    const SM: c_int = 1;
    // SAFETY: the caller's.
    unsafe { to.write(if of == SM { 1980 } else { 3201 }) };
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(to: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's.
    unsafe { to.write(Box::into_raw(Box::new(0_u32)).cast()) };
    SUCCESS
}

/// # Safety
/// `sample` is one of ours, which nobody uses afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    drop(unsafe { Box::from_raw(sample.cast::<u32>()) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(_: Device, _: *mut c_void) -> c_int {
    old()
}

#[derive(Debug)]
#[repr(C)]
struct Metric {
    id: c_uint,
    result: c_int,
    value: f64,
    texts: [*const c_char; 3],
}

/// The beginning of `nvmlGpmMetricsGet_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Metrics {
    version: c_uint,
    count: c_uint,
    samples: [*mut c_void; 2],
    metrics: [Metric; 0],
}

/// In MiB/s: the metric's own number.
///
/// # Safety
/// `metrics` is valid, with as many metrics as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(metrics: *mut Metrics) -> c_int {
    // SAFETY: the caller's; the metrics follow.
    unsafe {
        let first = (&raw mut (*metrics).metrics).cast::<Metric>();
        for at in 0..(*metrics).count as usize {
            let metric = &mut *first.add(at);
            metric.value = f64::from(metric.id);
            metric.result = SUCCESS;
        }
    }
    SUCCESS
}
