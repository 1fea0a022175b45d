//! Calls that wait, and calls that record what is waited for, from their arguments.
//!
//! CUPTI has activities for this (`CUPTI_ACTIVITY_KIND_SYNCHRONIZATION`), but once they are
//! enabled every launch costs more than all the rest of a recording adds to it (1.2 us, H200,
//! CUDA 13.0). The calls say the same, and we are called for them anyway:
//!
//! ```text
//!  program's threads ─ end of such a call ─► queue ─► the thread that reads buffers: waits
//! ```

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crossbeam_queue::ArrayQueue;

use super::library;
use super::state::STATE;
use super::sys::{CallbackData, SUCCESS};
use crate::device::clock;

/// Calls that wait to be read, which happens a hundred times a second.
const MAX_QUEUED: usize = 1 << 14;

/// No stream, or one that CUPTI does not know.
pub(crate) const NO_STREAM: u32 = u32::MAX;

/// What a function has to do with waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// An event is recorded into a stream.
    Record,
    /// A thread waits for an event.
    Event,
    /// A stream waits for an event.
    StreamWaitsEvent,
    /// A thread waits for a stream.
    Stream,
    /// A thread waits for a context.
    Context,
}

/// A function that waits or records events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Function {
    action: Action,
    /// Whether no stream means the thread's own.
    per_thread: bool,
}

/// Such a call, when it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Called {
    pub(crate) action: Action,
    /// In nanoseconds of `CLOCK_BOOTTIME`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) correlation: u32,
    pub(crate) context: u32,
    /// As CUPTI numbers them.
    pub(crate) stream: u32,
    /// The program's handle.
    pub(crate) event: u64,
}

static QUEUE: OnceLock<ArrayQueue<Called>> = OnceLock::new();

thread_local! {
    /// The mark of the call that this thread is in, and when it began.
    static BEGUN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// What a function of either API does, by its name without a version.
pub(crate) fn function(name: &str) -> Option<Function> {
    let plain = name.strip_suffix("_ptsz");
    let action = match plain.unwrap_or(name) {
        "cudaEventRecord"
        | "cudaEventRecordWithFlags"
        | "cuEventRecord"
        | "cuEventRecordWithFlags" => Action::Record,
        "cudaEventSynchronize" | "cuEventSynchronize" => Action::Event,
        "cudaStreamWaitEvent" | "cuStreamWaitEvent" => Action::StreamWaitsEvent,
        "cudaStreamSynchronize" | "cuStreamSynchronize" => Action::Stream,
        "cudaDeviceSynchronize"
        | "cudaThreadSynchronize"
        | "cuCtxSynchronize"
        | "cuCtxSynchronize_v2" => Action::Context,
        _ => return None,
    };
    Some(Function { action, per_thread: plain.is_some() })
}

/// Makes room, and forgets what came after an earlier recording.
pub(crate) fn begin() {
    QUEUE.get_or_init(|| ArrayQueue::new(MAX_QUEUED));
    while take().is_some() {}
    lost();
}

/// Such a call begins on this thread. `mark` tells it from all others, also from the
/// driver's that it makes.
pub(crate) fn enter(mark: u64) {
    BEGUN.set((mark, clock::boottime()));
}

/// It is over. Calls that failed, or that we did not see begin, are none.
///
/// # Safety
/// `data` is what CUPTI passes at the end of a call of this function.
pub(crate) unsafe fn exit(function: Function, mark: u64, data: &CallbackData) {
    let (begun, start) = BEGUN.get();
    if begun != mark {
        return;
    }
    BEGUN.set((0, 0));
    // SAFETY: the caller's promise: null or the result of the call, which is an enum.
    if unsafe { data.return_value.cast::<c_int>().as_ref() } != Some(&SUCCESS) {
        return;
    }
    // SAFETY: the caller's promise.
    let (stream, event) = unsafe { arguments(function.action, data.params.cast()) };
    let called = Called {
        action: function.action,
        start,
        end: clock::boottime(),
        correlation: data.correlation_id,
        context: data.context_uid,
        stream: stream.map_or(NO_STREAM, |handle| number(data.context, handle, function)),
        event,
    };
    if QUEUE.get().is_none_or(|queue| queue.push(called).is_err()) {
        STATE.calls.lost_waits.fetch_add(1, Ordering::Relaxed);
    }
}

/// The stream and the event of a call. All of these take pointers first, so they lie in a
/// row (generated_cuda_runtime_api_meta.h, generated_cuda_meta.h).
///
/// # Safety
/// `params` points to the parameters of such a function, or is null.
unsafe fn arguments(action: Action, params: *const usize) -> (Option<usize>, u64) {
    let nth = |n| match params.is_null() {
        true => 0,
        // SAFETY: the caller's promise; nothing is read that the function has not.
        false => unsafe { params.add(n).read() },
    };
    match action {
        Action::Record => (Some(nth(1)), nth(0) as u64),
        Action::StreamWaitsEvent => (Some(nth(0)), nth(1) as u64),
        Action::Event => (None, nth(0) as u64),
        Action::Stream => (Some(nth(0)), 0),
        Action::Context => (None, 0),
    }
}

/// CUPTI's number of a stream. It may be asked in a callback.
fn number(context: *mut c_void, stream: usize, function: Function) -> u32 {
    let mut number = NO_STREAM;
    if let Some(ask) = library::present().and_then(|cupti| cupti.stream_id) {
        // SAFETY: the handles are those of a call that succeeded just now.
        unsafe { ask(context, stream as *mut c_void, function.per_thread.into(), &mut number) };
    }
    number
}

/// The next call that is over.
pub(crate) fn take() -> Option<Called> {
    QUEUE.get()?.pop()
}

/// How many there was no room for since this was last asked.
pub(crate) fn lost() -> u64 {
    STATE.calls.lost_waits.swap(0, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn data(correlation_id: u32, params: &[usize], code: &c_int) -> CallbackData {
        CallbackData {
            site: 1,
            function_name: ptr::null(),
            params: params.as_ptr().cast(),
            return_value: ptr::from_ref(code).cast(),
            symbol_name: ptr::null(),
            context: ptr::null_mut(),
            context_uid: 1,
            correlation_data: ptr::null_mut(),
            correlation_id,
        }
    }

    #[test]
    fn functions_are_known_by_name() {
        let action = |name| function(name).map(|f| (f.action, f.per_thread));
        assert_eq!(action("cudaStreamWaitEvent_ptsz"), Some((Action::StreamWaitsEvent, true)));
        assert_eq!(action("cuCtxSynchronize"), Some((Action::Context, false)));
        assert_eq!(action("cudaEventQuery"), None);
        assert_eq!(action("cudaLaunchKernel"), None);
    }

    #[test]
    fn a_call_is_told_if_it_began_and_succeeded() {
        begin();
        let wait = function("cudaStreamWaitEvent").unwrap();
        // SAFETY: made as CUPTI makes it.
        let left = |number, code| unsafe {
            exit(wait, u64::from(number) | 1 << 40, &data(number, &[13, 0xe0, 0], &code));
        };
        let over = |entered: u64, number, code| {
            enter(entered | 1 << 40);
            left(number, code);
            take()
        };
        let called = over(5, 5, 0).unwrap();
        assert!(called.start > 0 && called.start <= called.end);
        // No CUPTI here that knows streams.
        assert_eq!((called.correlation, called.stream, called.event), (5, NO_STREAM, 0xe0));
        assert_eq!((over(6, 7, 0), over(8, 8, 400)), (None, None));
        left(8, 0);
        assert_eq!(take(), None, "its beginning was not seen");
        for correlation in 1..=MAX_QUEUED as u32 + 3 {
            enter(u64::from(correlation) | 1 << 40);
            left(correlation, 0);
        }
        assert_eq!((lost(), lost(), take().is_some()), (3, 0, true));
        begin();
        assert_eq!(take(), None);
    }
}
