//! Another user of CUPTI in the program (PyTorch's profiler), and we.
//!
//! CUPTI's first interface serves one client: buffers go to the last that registered callbacks,
//! there is one subscriber, one clock, and a kind that one of two disables is gone for the
//! other. Left alone, two users both end up with nothing. But we are preloaded: what the
//! program calls by CUPTI's names comes here first. So CUPTI keeps having one user, us,
//! and the other gets copies:
//!
//! * **buffers** stay ours. When one is complete, the records of the kinds that the other
//!   enabled are copied into buffers of its own before anything else happens
//!   ([`copies`]): its own flush finds all of them there.
//! * **kinds** are enabled while one of both wants them.
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
use std::sync::atomic::Ordering;

use super::clock;
use super::copies;
use super::kinds::kind;
use super::library::present as real;
use super::other::{bit, timestamp};
use super::state::STATE;
use super::subscription;
use super::sys::{
    BufferCompleted, BufferRequested, Code, ERROR_INVALID_PARAMETER, ERROR_NOT_INITIALIZED,
    SUCCESS, TimestampCallback,
};

/// `cuptiActivityRegisterCallbacks`, called by the program.
pub fn register_callbacks(
    request: Option<BufferRequested>,
    complete: Option<BufferCompleted>,
) -> Code {
    let (Some(request), Some(complete)) = (request, complete) else {
        return ERROR_INVALID_PARAMETER;
    };
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    STATE.other.request.store(request as *mut c_void, Ordering::Release);
    STATE.other.complete.store(complete as *mut c_void, Ordering::Release);
    if STATE.other.registered.load(Ordering::Acquire) {
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { (real.register_callbacks)(request, complete) }
}

/// `cuptiActivityEnable`, called by the program.
pub fn enable(kind: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    if STATE.other.kinds.load(Ordering::Acquire) == 0 {
        if STATE.other.registered.load(Ordering::Acquire) {
            // What happened before is none of the other's.
            // SAFETY: the program is in none of CUPTI's callbacks, as it may not enable
            // anything there.
            unsafe { (real.flush_all)(0) };
        }
        STATE.other.delivered.store(0, Ordering::Release);
    }
    // SAFETY: the program's own call.
    let result = unsafe { (real.enable)(kind) };
    if result == SUCCESS {
        STATE.other.kinds.fetch_or(bit(kind), Ordering::AcqRel);
        STATE.other.delivered.fetch_or(bit(kind) | implied(kind), Ordering::AcqRel);
        if STATE.other.registered.load(Ordering::Acquire) {
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
    STATE.other.kinds.fetch_and(!bit(kind), Ordering::AcqRel);
    if STATE.other.ours.load(Ordering::Acquire) & bit(kind) != 0 {
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
    match STATE.other.kinds.load(Ordering::Acquire) {
        0 => STATE.other.delivered.store(0, Ordering::Release),
        _ if STATE.other.registered.load(Ordering::Acquire) => copies::open(),
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
    if STATE.other.registered.load(Ordering::Acquire) {
        let (ours, theirs) = clock::both(callback);
        STATE.other.anchor[0].store(ours, Ordering::Release);
        STATE.other.anchor[1].store(theirs, Ordering::Release);
        STATE.other.timestamp.store(callback as *mut c_void, Ordering::Release);
        return SUCCESS;
    }
    STATE.other.timestamp.store(callback as *mut c_void, Ordering::Release);
    STATE.other.has_clock.store(true, Ordering::Release);
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
    match timestamp().filter(|_| !STATE.other.has_clock.load(Ordering::Acquire)) {
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
    if STATE.other.ours.load(Ordering::Acquire) != 0 {
        // It would end our recording; for the other, everything is over now.
        STATE.other.kinds.store(0, Ordering::Release);
        STATE.other.delivered.store(0, Ordering::Release);
        subscription::end();
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { real() }
}
