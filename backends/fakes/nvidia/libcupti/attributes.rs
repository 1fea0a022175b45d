//! What clients set: attributes, clock, thread ids.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::seam::{Nanos, ahead, realtime};
use crate::settings::toolkit;
use crate::status::{self, INVALID_PARAMETER, PARAMETER_SIZE, SUCCESS};

type Clock = extern "C" fn() -> u64;

static CLOCK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static THREADS: AtomicU32 = AtomicU32::new(0);
static EVENT_TIMES: AtomicBool = AtomicBool::new(false);
/// The value of every attribute plus one; zero while it has its default.
static VALUES: [AtomicU64; 11] = [const { AtomicU64::new(0) }; 11];

pub(crate) fn forget() {
    CLOCK.store(ptr::null_mut(), Ordering::SeqCst);
}

/// `CUpti_ActivityAttribute`: buffers come zeroed, and are a thread's own.
const ZEROED: usize = 5;
const PER_THREAD: usize = 9;

fn get(attribute: usize) -> u64 {
    let default = match attribute {
        0 | 1 => 3_200_000,
        2 | 4 => 250,
        6 => 3,
        PER_THREAD if toolkit() >= 1300 => 1,
        _ => 0,
    };
    VALUES[attribute].load(Ordering::Relaxed).checked_sub(1).unwrap_or(default)
}

pub(crate) fn per_thread() -> bool {
    get(PER_THREAD) != 0
}

pub(crate) fn zeroed() -> bool {
    get(ZEROED) != 0
}

/// Its size, if this version has the attribute.
fn size(attribute: u32) -> Option<usize> {
    match attribute as usize {
        PER_THREAD if toolkit() < 1203 => None,
        ZEROED | 8 | PER_THREAD => Some(1),
        0..=10 => Some(8),
        _ => None,
    }
}

/// # Safety
/// `size` is null or valid for reads, `value` for as many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(
    attribute: u32,
    given: *mut usize,
    value: *const c_void,
) -> c_int {
    status::call("cuptiActivitySetAttribute", || {
        let Some(size) = size(attribute) else {
            return INVALID_PARAMETER;
        };
        // SAFETY: not null; the caller says the rest.
        if given.is_null() || value.is_null() || unsafe { given.read() } < size {
            return PARAMETER_SIZE;
        }
        let mut bytes = [0; 8];
        // SAFETY: it has that many bytes.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(value.cast(), size) };
        let value = u64::from_le_bytes(bytes).saturating_add(1);
        VALUES[attribute as usize].store(value, Ordering::Relaxed);
        SUCCESS
    })
}

/// # Safety
/// `size` is null or valid for reads, `value` for as many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetAttribute(
    attribute: u32,
    given: *mut usize,
    value: *mut c_void,
) -> c_int {
    status::call("cuptiActivityGetAttribute", || {
        let Some(size) = size(attribute) else {
            return INVALID_PARAMETER;
        };
        // SAFETY: not null; the caller says the rest.
        if given.is_null() || value.is_null() || unsafe { given.read() } < size {
            return PARAMETER_SIZE;
        }
        let bytes = get(attribute as usize).to_le_bytes();
        // SAFETY: it has room for that many bytes.
        unsafe { value.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), size) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(clock: Option<Clock>) -> c_int {
    status::call("cuptiActivityRegisterTimestampCallback", || {
        let Some(clock) = clock else {
            return INVALID_PARAMETER;
        };
        CLOCK.store(clock as *mut (), Ordering::Release);
        SUCCESS
    })
}

/// The time of records made at this moment.
pub(crate) fn now() -> Nanos {
    let clock = CLOCK.load(Ordering::Acquire);
    if clock.is_null() {
        return realtime();
    }
    // SAFETY: only `cuptiActivityRegisterTimestampCallback` stores here.
    let clock = unsafe { std::mem::transmute::<*mut (), Clock>(clock) };
    clock()
}

/// Times of the driver, in the client's clock. It is taken to be in nanoseconds.
pub(crate) fn clock_of(start: Nanos, end: Nanos) -> (Nanos, Nanos) {
    let offset = ahead(now);
    (start.wrapping_add(offset), end.wrapping_add(offset))
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(to: *mut u64) -> c_int {
    status::call_anywhere("cuptiGetTimestamp", || {
        if to.is_null() {
            return INVALID_PARAMETER;
        }
        // SAFETY: not null; the caller says the rest.
        unsafe { to.write(now()) };
        SUCCESS
    })
}

/// 0 is what `pthread_self` returns, cut to 32 bits; 1 what `gettid` does.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(kind: u32) -> c_int {
    status::call("cuptiSetThreadIdType", || {
        if kind > 1 {
            return INVALID_PARAMETER;
        }
        THREADS.store(kind, Ordering::Relaxed);
        SUCCESS
    })
}

/// # Safety
/// `to` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetThreadIdType(to: *mut u32) -> c_int {
    status::call("cuptiGetThreadIdType", || {
        if to.is_null() {
            return INVALID_PARAMETER;
        }
        // SAFETY: not null; the caller says the rest.
        unsafe { to.write(THREADS.load(Ordering::Relaxed)) };
        SUCCESS
    })
}

pub(crate) fn system_threads() -> bool {
    THREADS.load(Ordering::Relaxed) == 1
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableCudaEventDeviceTimestamps(enable: u8) -> c_int {
    status::call("cuptiActivityEnableCudaEventDeviceTimestamps", || {
        EVENT_TIMES.store(enable != 0, Ordering::Relaxed);
        SUCCESS
    })
}

pub(crate) fn event_times() -> bool {
    EVENT_TIMES.load(Ordering::Relaxed)
}
