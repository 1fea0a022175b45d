//! The driver API, of `cuda.h`: devices and contexts, but nothing that does work.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::run::{self, tell};
use crate::seam::Event;
use crate::{settings, timeline, work};

pub(crate) const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
pub(crate) const NOT_INITIALIZED: c_int = 3;
const NO_DEVICE: c_int = 100;
const INVALID_DEVICE: c_int = 101;
const NOT_FOUND: c_int = 500;

static READY: AtomicBool = AtomicBool::new(false);
/// It no longer is in the middle of `cuInit`.
static FINISHED: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_ready() -> bool {
    READY.load(Ordering::Acquire)
}

/// For the fake CUPTI, which is not ready for everything before.
#[unsafe(no_mangle)]
pub extern "C" fn fake_cuda_has_finished() -> c_int {
    FINISHED.load(Ordering::Acquire).into()
}

fn devices() -> c_int {
    std::env::var("FAKE_CUDA_DEVICES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Writes a result, if there is a place and the driver and device are there.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn give<T>(to: *mut T, device: c_int, value: T) -> c_int {
    if !is_ready() {
        return NOT_INITIALIZED;
    }
    if !(0..devices()).contains(&device) {
        return INVALID_DEVICE;
    }
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; the caller says the rest.
    unsafe { to.write(value) };
    SUCCESS
}

/// Loads the injection library the first time that there is a device.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    if settings::fault("no-driver") {
        return NO_DEVICE;
    }
    if !READY.swap(true, Ordering::AcqRel) {
        inject();
        FINISHED.store(true, Ordering::Release);
        tell(&Event::Ready);
    }
    SUCCESS
}

/// What `CUDA_INJECTION64_PATH` means: a library with `int InitializeInjection(void)`.
fn inject() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else {
        return;
    };
    let path = std::ffi::CString::new(path.into_encoded_bytes()).unwrap_or_default();
    // SAFETY: running this library's code is what was asked for.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return;
    }
    // SAFETY: the library was just loaded, and the name is a string.
    let symbol = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if !symbol.is_null() {
        // SAFETY: libraries that are named there have it with this signature.
        let initialize =
            unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol) };
        initialize();
    }
}

/// # Safety
/// `version` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    if version.is_null() {
        return INVALID_VALUE;
    }
    let toolkit = settings::toolkit();
    // SAFETY: not null; the caller says the rest.
    unsafe { version.write((toolkit / 100 * 1000 + toolkit % 100 * 10) as c_int) };
    SUCCESS
}

/// # Safety
/// `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(count, 0, devices()) }
}

/// # Safety
/// `device` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(device, ordinal, ordinal) }
}

/// # Safety
/// `name` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> c_int {
    let mut text = [0; 32];
    for (to, from) in text.iter_mut().zip(format!("Fake GPU {device}").bytes()) {
        *to = from as c_char;
    }
    if len < text.len() as c_int {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's, and it is long enough.
    unsafe { give(name.cast(), device, text) }
}

fn uuid(device: c_int) -> [u8; 16] {
    let mut uuid = *b"kymo-fake-gpu-00";
    uuid[15] += device as u8;
    uuid
}

/// # Safety
/// `to` is null or valid for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(to: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(to, device, uuid(device)) }
}

/// # Safety
/// `to` is null or valid for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(to, device, uuid(device)) }
}

/// # Safety
/// `bytes` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(bytes, device, 80 << 30) }
}

/// # Safety
/// `to` is null or valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetPCIBusId(to: *mut c_char, len: c_int, device: c_int) -> c_int {
    if len < 13 {
        return INVALID_VALUE;
    }
    let mut id = *b"0000:17:00.0\0";
    id[6] = b'0' + device as u8;
    // SAFETY: the caller's, and it is long enough.
    unsafe { give(to.cast(), device, id) }
}

/// Attributes as `CUdevice_attribute` numbers them; those of an H100 where tracers look.
fn attribute(number: c_int, device: c_int) -> c_int {
    match number {
        1..=3 => 1024,     // threads per block, and its x and y
        4 => 64,           // block z
        5 => c_int::MAX,   // grid x
        6 | 7 => 65_535,   // grid y and z
        8 => 49_152,       // shared memory per block
        10 => 32,          // warp
        12 | 82 => 65_536, // registers per block and multiprocessor
        13 => 1_980_000,   // clock, kHz
        16 => 132,         // multiprocessors
        33 => 17 + device, // PCI bus
        34 | 50 => 0,      // PCI device and domain
        36 => 2_619_000,   // memory clock, kHz
        37 => 5120,        // memory bus, bits
        38 => 50 << 20,    // L2
        39 => 2048,        // threads per multiprocessor
        40 => 3,           // copy engines
        75 => 9,           // compute capability
        76 => 0,           //
        81 => 233_472,     // shared memory per multiprocessor
        97 => 232_448,     // shared memory per block, opted in
        106 => 32,         // blocks per multiprocessor
        111 => 1024,       // shared memory reserved per block
        _ => 0,
    }
}

/// # Safety
/// `value` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    number: c_int,
    device: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(value, device, attribute(number, device)) }
}

/// # Safety
/// `context` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's. The handle of a context is its number.
    unsafe { give(context, 0, ptr::without_provenance_mut(1)) }
}

/// Contexts need not be current here: statements say which they mean.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> c_int {
    if !is_ready() {
        return NOT_INITIALIZED;
    }
    // The driver would follow the pointer.
    if let Some(device) = context.addr().checked_sub(1) {
        work::set_device(device as u32);
    }
    let gone = !context.is_null() && timeline::is_destroyed(context.addr() as u32);
    assert!(!gone, "a context that was destroyed");
    SUCCESS
}

/// Waits for the first device.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    if !is_ready() {
        return NOT_INITIALIZED;
    }
    run::synchronize();
    SUCCESS
}

/// # Safety
/// `flags` and `active` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxGetState(
    device: c_int,
    flags: *mut c_uint,
    active: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    let status = unsafe { give(flags, device, 0) };
    if status != SUCCESS {
        return status;
    }
    // SAFETY: the caller's.
    unsafe { give(active, device, timeline::is_used(device as u32).into()) }
}

/// # Safety
/// `context` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(
    context: *mut *mut c_void,
    device: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(context, device, ptr::without_provenance_mut(device as usize + 1)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    SUCCESS
}

/// # Safety
/// `mode` is null or valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> c_int {
    static MODE: AtomicI32 = AtomicI32::new(0);
    if mode.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null; the caller says the rest.
    unsafe { mode.write(MODE.swap(mode.read(), Ordering::Relaxed)) };
    SUCCESS
}

/// # Safety
/// `device` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(device, 0, 0) }
}

fn error(code: c_int) -> Option<&'static CStr> {
    match code {
        SUCCESS => Some(c"CUDA_SUCCESS"),
        INVALID_VALUE => Some(c"CUDA_ERROR_INVALID_VALUE"),
        NOT_INITIALIZED => Some(c"CUDA_ERROR_NOT_INITIALIZED"),
        NO_DEVICE => Some(c"CUDA_ERROR_NO_DEVICE"),
        INVALID_DEVICE => Some(c"CUDA_ERROR_INVALID_DEVICE"),
        NOT_FOUND => Some(c"CUDA_ERROR_NOT_FOUND"),
        _ => None,
    }
}

/// # Safety
/// `text` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    let (Some(name), false) = (error(code), text.is_null()) else {
        return INVALID_VALUE;
    };
    // SAFETY: not null; the caller says the rest.
    unsafe { text.write(name.as_ptr()) };
    SUCCESS
}

/// # Safety
/// `text` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { cuGetErrorName(code, text) }
}

/// The fake has no tables.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetExportTable(_table: *mut *const c_void, _id: *const c_void) -> c_int {
    NOT_FOUND
}
