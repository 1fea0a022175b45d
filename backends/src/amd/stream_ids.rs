//! The stream of the call that a thread is in, as rocprofiler-sdk reports it (`HIP_STREAM`).
//!
//! Before and after each function that takes a stream it says which one that is, by a number
//! that no other stream ever has: a handle may be another's, once its stream is destroyed.
//! The report of streams is wrapped around that of calls (registration.cpp), so that a
//! call knows it when it begins.
//!
//! Asked for from 1.3.0 on. Before, the library looks a stream up by `std::map::at`: one that
//! was made before it was asked, and `hipStreamPerThread`, end the program (hip/stream.cpp of
//! 1.0.0, `get_stream_id`).

use std::cell::Cell;
use std::ffi::c_void;

use super::sys::{CallbackRecord, PHASE_ENTER, PHASE_EXIT};
use crate::annotate::guarded;

/// The oldest version of which streams are asked.
pub(crate) const OLDEST: u32 = 10_300;
/// The operation that is asked for.
pub(crate) const SET: &str = "HIP_STREAM_SET";
/// Where a payload has the number (`rocprofiler_callback_tracing_hip_stream_data_t`).
pub(crate) const ID: usize = 8;

thread_local! {
    /// The number and one; 0 outside of such a call.
    static STREAM: Cell<u64> = const { Cell::new(0) };
}

/// The number of the stream that this thread's call is about; 0 is the null stream.
#[inline]
pub(crate) fn stream() -> Option<u64> {
    STREAM.get().checked_sub(1)
}

/// What the library calls before and after a function with a stream.
///
/// # Safety
/// Called by the library: the record's payload is that of a stream, and the word belongs to
/// the invocation and outlives it.
pub(crate) unsafe extern "C" fn callback(
    record: CallbackRecord,
    user: *mut u64,
    _data: *mut c_void,
) {
    guarded((), || {
        // Only versions whose records have this form are asked.
        let parts = record.parts(OLDEST);
        // SAFETY: the caller's promise.
        let (word, payload) = unsafe { (user.as_mut(), parts.payload.as_ref()) };
        let (Some(word), Some(payload)) = (word, payload) else { return };
        match parts.phase {
            PHASE_ENTER => {
                let id = std::ptr::from_ref(payload).wrapping_add(ID).cast::<u64>();
                // SAFETY: the caller's promise.
                let id = unsafe { id.read_unaligned() };
                *word = STREAM.replace(id.saturating_add(1));
            }
            PHASE_EXIT => STREAM.set(*word),
            _ => {}
        }
    });
}
