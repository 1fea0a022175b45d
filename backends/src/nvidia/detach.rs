//! CUPTI's way out of the process after a recording.
//!
//! With nothing enabled and no subscriber, a launch still costs up to a tenth more than
//! before there was a CUPTI (H200, CUDA 13.0); only `cuptiFinalize` ends that. It may be
//! called where a call of the CUDA API ends (cupti_activity.h). So after a recording we
//! stay subscribed until the next such call of the program, and go there, on its thread. A
//! program that makes no more calls is not slowed either.
//!
//! CUPTI stays
//! * before 12.6: programs with graphs crashed when it was initialised again;
//! * if the program has ever used it: it would be gone for the program, too;
//! * when the process ends: there would be no difference.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::buffers::BUFFERS;
use super::library;
use super::other;
use super::relay;
use super::state::STATE;
use super::sys::{CAPTURE_MODE_RELAXED, Cupti, FLUSH_FORCED};
use crate::device::thread::wait;

/// CUPTI of CUDA 12.6.
const SAFE_FROM: u32 = 24;

const STAYING: u8 = 0;
const ASKED: u8 = 1;
const GOING: u8 = 2;

/// How long a recording that starts waits for a CUPTI that is just going.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Ends our subscription, and CUPTI with it if that can be. `watch_ends` has us called when
/// calls end, whatever was recorded.
pub(crate) fn ask(
    cupti: &Cupti,
    version: u32,
    subscriber: *mut c_void,
    watch_ends: fn(&Cupti, *mut c_void),
) {
    if version < SAFE_FROM || cupti.finalize.is_none() || other::is_used() {
        relay::give_up(subscriber);
        return;
    }
    watch_ends(cupti, subscriber);
    STATE.setup.leaving.store(ASKED, Ordering::Release);
}

/// A recording is about to start: CUPTI does not leave now.
pub(crate) fn stay() {
    let asked =
        STATE.setup.leaving.compare_exchange(ASKED, STAYING, Ordering::AcqRel, Ordering::Acquire);
    if asked == Err(GOING) {
        wait(TIMEOUT, || STATE.setup.leaving.load(Ordering::Acquire) != GOING);
    }
}

/// In a forked child, nothing is left to go.
pub(crate) fn after_fork() {
    STATE.setup.leaving.store(STAYING, Ordering::Relaxed);
}

/// A call of the CUDA API ends on this thread.
#[inline]
pub(crate) fn at_end_of_call() {
    if STATE.setup.leaving.load(Ordering::Relaxed) == ASKED {
        go();
    }
}

#[cold]
fn go() {
    if STATE
        .setup
        .leaving
        .compare_exchange(ASKED, GOING, Ordering::AcqRel, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    if let (Some(cupti), Some(subscriber)) = (library::present(), relay::ours()) {
        match cupti.finalize.filter(|_| !other::is_used()) {
            None => relay::give_up(subscriber),
            Some(finalize) => {
                // It synchronises, which must not break a capture that is under way.
                let mode = exchange_capture_mode(CAPTURE_MODE_RELAXED);
                relay::forget_ours();
                // SAFETY: where cupti_activity.h wants it, and we use CUPTI no more.
                unsafe {
                    (cupti.flush_all)(FLUSH_FORCED);
                    (cupti.unsubscribe)(subscriber);
                    finalize();
                }
                exchange_capture_mode(mode);
                other::gone();
                STATE.setup.prepared.store(false, Ordering::Release);
                // What came after the recording.
                BUFFERS.discard();
            }
        }
    }
    STATE.setup.leaving.store(STAYING, Ordering::Release);
}

/// Sets this thread's mode and returns the one before.
fn exchange_capture_mode(mut mode: c_int) -> c_int {
    if let Some(exchange) = library::driver(false).and_then(|cuda| cuda.exchange_capture_mode) {
        // SAFETY: exchanges a number.
        unsafe { exchange(&mut mode) };
    }
    mode
}
