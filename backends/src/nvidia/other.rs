//! What another user of CUPTI in the program has asked for. See [`super::share`].

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

use super::relay;
use super::state::STATE;
use super::sys::{BufferCompleted, BufferRequested, TimestampCallback};

/// The other's clock, if CUPTI itself runs on it.
pub(crate) fn their_clock() -> Option<TimestampCallback> {
    if STATE.other.has_clock.load(Ordering::Acquire) { timestamp() } else { None }
}

/// Whether another user in the process uses CUPTI, or has.
pub(crate) fn is_used() -> bool {
    callbacks().is_some() || timestamp().is_some() || relay::is_used()
}

/// CUPTI was finalised: it knows us no more.
pub(crate) fn gone() {
    STATE.other.registered.store(false, Ordering::Release);
}

/// We are about to register buffer callbacks.
pub(crate) fn registering() {
    STATE.other.registered.store(true, Ordering::Release);
}

pub(crate) fn bit(kind: u32) -> u64 {
    1_u64.checked_shl(kind).unwrap_or(0)
}

/// We enabled a kind.
pub(crate) fn enabled(kind: u32) {
    STATE.other.ours.fetch_or(bit(kind), Ordering::AcqRel);
}

/// We want a kind no longer. Returns whether no other user does.
pub(crate) fn disabled(kind: u32) -> bool {
    STATE.other.ours.fetch_and(!bit(kind), Ordering::AcqRel);
    STATE.other.kinds.load(Ordering::Acquire) & bit(kind) == 0
}

/// The kinds whose records the other gets.
pub(crate) fn delivered() -> u64 {
    STATE.other.delivered.load(Ordering::Acquire)
}

/// The clock that the other asked for and CUPTI does not run on, and the same moment on
/// CUPTI's and on it.
pub(crate) fn wanted_clock() -> Option<(TimestampCallback, (u64, u64))> {
    let callback = timestamp().filter(|_| !STATE.other.has_clock.load(Ordering::Acquire))?;
    Some((
        callback,
        (
            STATE.other.anchor[0].load(Ordering::Acquire),
            STATE.other.anchor[1].load(Ordering::Acquire),
        ),
    ))
}

/// The clock that the other asked for.
pub(crate) fn timestamp() -> Option<TimestampCallback> {
    // SAFETY: null, or stored from a function of this type.
    unsafe {
        std::mem::transmute::<*mut c_void, Option<TimestampCallback>>(
            STATE.other.timestamp.load(Ordering::Acquire),
        )
    }
}

/// The other's, if it has registered any.
pub(crate) fn callbacks() -> Option<(BufferRequested, BufferCompleted)> {
    // SAFETY: null, or stored from functions of these types.
    unsafe {
        let request = std::mem::transmute::<*mut c_void, Option<BufferRequested>>(
            STATE.other.request.load(Ordering::Acquire),
        );
        let complete = std::mem::transmute::<*mut c_void, Option<BufferCompleted>>(
            STATE.other.complete.load(Ordering::Acquire),
        );
        Some((request?, complete?))
    }
}

/// CUPTI wants a buffer and we record nothing: asks the other. `None` if there is none.
pub(crate) fn request() -> Option<(*mut u8, usize)> {
    let (request, _) = callbacks().filter(|_| STATE.other.ours.load(Ordering::Acquire) == 0)?;
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
