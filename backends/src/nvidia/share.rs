//! Another user of CUPTI in the program (PyTorch's profiler), and we.
//!
//! CUPTI's first interface serves one: buffers go to whoever registered callbacks last,
//! there is one subscriber, one clock, and a kind that one of two disables is gone for the
//! other. Left alone, two users both end up with nothing. But we are preloaded: what the
//! program calls by CUPTI's names comes here first. So CUPTI keeps having one user, us,
//! and the other gets copies:
//!
//! * **buffers** stay ours. When one is complete, the records of the kinds that the other
//!   enabled are copied into buffers of its own before anything else happens
//!   ([`copies`]): its own flush finds all of them there.
//! * **kinds** are enabled while anybody wants them.
//! * **clock**: CUPTI's stays as it is. Times in the copies are converted to the clock that
//!   the other asked for (Kineto's: the processor's counter).
//! * **callbacks**: the other gets a subscription of its own, which ours feeds.
//!
//! Without a recording of ours everything is passed on as it is; it is only remembered, so
//! that a recording that starts later can take over.
//!
//! What reaches CUPTI in other ways (a tool that opened it by itself) does not come here;
//! that is noticed by its effects only.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::copies;
use super::library;
use super::subscription;
use super::sys::{
    BufferCompleted, BufferRequested, Code, Cupti, ERROR_INVALID_PARAMETER, ERROR_NOT_INITIALIZED,
    SUCCESS, TimestampCallback, kind,
};

/// The other's buffer callbacks; both or none.
static REQUEST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static COMPLETE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The clock that the other asked for, and the same moment on CUPTI's clock and on it.
static TIMESTAMP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static ANCHOR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Whether CUPTI itself was given that clock: before we recorded anything.
static THEIR_CLOCK: AtomicBool = AtomicBool::new(false);
/// Kinds that the other has enabled, and those whose records it still gets.
static THEIRS: AtomicU64 = AtomicU64::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);
/// Kinds that we have enabled.
static OURS: AtomicU64 = AtomicU64::new(0);
/// Whether CUPTI calls us for buffers: from our first recording on, for ever.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// CUPTI's own functions, for whoever calls them by name.
pub(crate) fn real() -> Option<&'static Cupti> {
    library::present()
}

/// The other's clock, if CUPTI itself runs on it.
pub(crate) fn their_clock() -> Option<TimestampCallback> {
    if THEIR_CLOCK.load(Ordering::Acquire) { timestamp() } else { None }
}

/// Whether anybody else in the process uses CUPTI, or has.
pub(crate) fn is_used() -> bool {
    callbacks().is_some() || timestamp().is_some() || subscription::is_used()
}

/// CUPTI was finalised: it knows us no more.
pub(crate) fn gone() {
    REGISTERED.store(false, Ordering::Release);
}

/// We are about to register buffer callbacks.
pub(crate) fn registering() {
    REGISTERED.store(true, Ordering::Release);
}

pub(crate) fn bit(kind: u32) -> u64 {
    1_u64.checked_shl(kind).unwrap_or(0)
}

/// We enabled a kind.
pub(crate) fn enabled(kind: u32) {
    OURS.fetch_or(bit(kind), Ordering::AcqRel);
}

/// We want a kind no longer. Returns whether nobody else does.
pub(crate) fn disabled(kind: u32) -> bool {
    OURS.fetch_and(!bit(kind), Ordering::AcqRel);
    THEIRS.load(Ordering::Acquire) & bit(kind) == 0
}

/// `cuptiActivityRegisterCallbacks`, called by the program.
pub fn register_callbacks(
    request: Option<BufferRequested>,
    complete: Option<BufferCompleted>,
) -> Code {
    let (Some(request), Some(complete)) = (request, complete) else {
        return ERROR_INVALID_PARAMETER;
    };
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    REQUEST.store(request as *mut c_void, Ordering::Release);
    COMPLETE.store(complete as *mut c_void, Ordering::Release);
    if REGISTERED.load(Ordering::Acquire) {
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { (real.register_callbacks)(request, complete) }
}

/// `cuptiActivityEnable`, called by the program.
pub fn enable(kind: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    if THEIRS.load(Ordering::Acquire) == 0 {
        if REGISTERED.load(Ordering::Acquire) {
            // What happened before is none of the other's.
            // SAFETY: the program is in none of CUPTI's callbacks, as it may not enable
            // anything there.
            unsafe { (real.flush_all)(0) };
        }
        DELIVERED.store(0, Ordering::Release);
    }
    // SAFETY: the program's own call.
    let result = unsafe { (real.enable)(kind) };
    if result == SUCCESS {
        THEIRS.fetch_or(bit(kind), Ordering::AcqRel);
        DELIVERED.fetch_or(bit(kind) | implied(kind), Ordering::AcqRel);
        if REGISTERED.load(Ordering::Acquire) {
            copies::open();
        }
    }
    result
}

/// Kinds whose records come with others.
fn implied(kind: u32) -> u64 {
    match kind {
        kind::MEMCPY => bit(kind::MEMCPY2),
        kind::SYNCHRONIZATION => bit(kind::CUDA_EVENT),
        _ => 0,
    }
}

/// `cuptiActivityDisable`, called by the program.
pub fn disable(kind: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    // Delivered are its records until its next flush: there they lie.
    THEIRS.fetch_and(!bit(kind), Ordering::AcqRel);
    if OURS.load(Ordering::Acquire) & bit(kind) != 0 {
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { (real.disable)(kind) }
}

/// `cuptiActivityFlushAll`, called by the program.
pub fn flush_all(flag: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    // SAFETY: the program's own call.
    let result = unsafe { (real.flush_all)(flag) };
    copies::complete();
    match THEIRS.load(Ordering::Acquire) {
        0 => DELIVERED.store(0, Ordering::Release),
        _ if REGISTERED.load(Ordering::Acquire) => copies::open(),
        _ => {}
    }
    result
}

/// `cuptiActivityRegisterTimestampCallback`, called by the program.
pub fn register_timestamp(callback: Option<TimestampCallback>) -> Code {
    let Some(register) = real().and_then(|real| real.register_timestamp) else {
        return ERROR_NOT_INITIALIZED;
    };
    let Some(callback) = callback else { return ERROR_INVALID_PARAMETER };
    if REGISTERED.load(Ordering::Acquire) {
        let (ours, theirs) = copies::both(callback);
        ANCHOR[0].store(ours, Ordering::Release);
        ANCHOR[1].store(theirs, Ordering::Release);
        TIMESTAMP.store(callback as *mut c_void, Ordering::Release);
        return SUCCESS;
    }
    TIMESTAMP.store(callback as *mut c_void, Ordering::Release);
    THEIR_CLOCK.store(true, Ordering::Release);
    // SAFETY: the program's own call.
    unsafe { register(callback) }
}

/// `cuptiGetTimestamp`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn get_timestamp(to: *mut u64) -> Code {
    let Some(real) = real().and_then(|real| real.get_timestamp) else {
        return ERROR_NOT_INITIALIZED;
    };
    match timestamp().filter(|_| !THEIR_CLOCK.load(Ordering::Acquire)) {
        Some(callback) if !to.is_null() => {
            // SAFETY: the program's own clock and place.
            unsafe { *to = callback() };
            SUCCESS
        }
        // SAFETY: the program's own call.
        _ => unsafe { real(to) },
    }
}

/// `cuptiFinalize`, called by the program.
pub fn finalize() -> Code {
    let Some(real) = real().and_then(|real| real.finalize) else { return ERROR_NOT_INITIALIZED };
    if OURS.load(Ordering::Acquire) != 0 {
        // It would end our recording; for the other, everything is over now.
        THEIRS.store(0, Ordering::Release);
        DELIVERED.store(0, Ordering::Release);
        subscription::end();
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { real() }
}

/// The kinds whose records the other gets.
pub(crate) fn delivered() -> u64 {
    DELIVERED.load(Ordering::Acquire)
}

/// The clock that the other asked for and CUPTI does not run on, and the same moment on
/// CUPTI's and on it.
pub(crate) fn wanted_clock() -> Option<(TimestampCallback, (u64, u64))> {
    let callback = timestamp().filter(|_| !THEIR_CLOCK.load(Ordering::Acquire))?;
    Some((callback, (ANCHOR[0].load(Ordering::Acquire), ANCHOR[1].load(Ordering::Acquire))))
}

fn timestamp() -> Option<TimestampCallback> {
    // SAFETY: null, or stored from a function of this type.
    unsafe {
        std::mem::transmute::<*mut c_void, Option<TimestampCallback>>(
            TIMESTAMP.load(Ordering::Acquire),
        )
    }
}

/// The other's, if it has registered any.
pub(crate) fn callbacks() -> Option<(BufferRequested, BufferCompleted)> {
    // SAFETY: null, or stored from functions of these types.
    unsafe {
        let request = std::mem::transmute::<*mut c_void, Option<BufferRequested>>(
            REQUEST.load(Ordering::Acquire),
        );
        let complete = std::mem::transmute::<*mut c_void, Option<BufferCompleted>>(
            COMPLETE.load(Ordering::Acquire),
        );
        Some((request?, complete?))
    }
}

/// CUPTI wants a buffer and we record nothing: asks the other. `None` if there is none.
pub(crate) fn request() -> Option<(*mut u8, usize)> {
    let (request, _) = callbacks().filter(|_| OURS.load(Ordering::Acquire) == 0)?;
    let (mut buffer, mut size, mut most) = (ptr::null_mut(), 0, 0);
    // SAFETY: three places to write to.
    unsafe { request(&mut buffer, &mut size, &mut most) };
    Some((buffer, size))
}

/// CUPTI gave back a buffer that is not ours. Returns whether it was the other's.
pub(crate) fn complete(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) -> bool {
    let Some((_, complete)) = callbacks() else { return false };
    // SAFETY: passed on from CUPTI.
    unsafe { complete(context, stream, buffer, size, valid) };
    true
}
