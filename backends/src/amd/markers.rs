//! ROCTX, as rocprofiler-sdk reports it: with callbacks, since buffered records of markers
//! have no message.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use super::stream_names;
use super::sys::{CallbackRecord, PHASE_ENTER, PHASE_EXIT};
use crate::annotate::{guarded, roctx};

/// What a function of ROCTX does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Mark,
    Push,
    Pop,
    Start,
    Stop,
    Pause,
    Resume,
    NameThread,
    NameStream,
}

/// The kinds of ROCTX's functions: each numbers them for itself.
pub(crate) const KINDS: [&str; 3] = ["MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API"];

type Verbs = (u32, Box<[Option<Verb>]>);

/// Functions by kind and operation, and the library's version.
static VERBS: [OnceLock<Verbs>; KINDS.len()] = [const { OnceLock::new() }; KINDS.len()];

/// Operations of the kind at most.
const MAX_OPERATIONS: usize = 1 << 10;
/// Where a payload has its first argument: after its size (marker/api_args.h).
const ARGUMENT: usize = 8;
/// Its result is the last 8 bytes (`rocprofiler_marker_api_retval_t`).
const RESULT: usize = 8;

/// Learns the functions of a kind, once. Returns the operations to ask for.
pub(crate) fn learn(version: u32, kind: usize, operations: &[(c_int, String)]) -> Vec<c_int> {
    let (_, verbs) = VERBS[kind].get_or_init(|| {
        let mut verbs = Vec::new();
        for (operation, name) in
            operations.iter().filter(|(number, _)| (*number as usize) < MAX_OPERATIONS)
        {
            let at = *operation as usize;
            verbs.resize(verbs.len().max(at + 1), None);
            verbs[at] = verb(name);
        }
        (version, verbs.into())
    });
    let verbs = verbs.iter().enumerate();
    verbs.filter(|(_, verb)| verb.is_some()).map(|(at, _)| at as c_int).collect()
}

fn verb(name: &str) -> Option<Verb> {
    Some(match name {
        "roctxMarkA" => Verb::Mark,
        "roctxRangePushA" => Verb::Push,
        "roctxRangePop" => Verb::Pop,
        "roctxRangeStartA" => Verb::Start,
        "roctxRangeStop" => Verb::Stop,
        "roctxProfilerPause" => Verb::Pause,
        "roctxProfilerResume" => Verb::Resume,
        "roctxNameOsThread" => Verb::NameThread,
        "roctxNameHipStream" => Verb::NameStream,
        _ => return None,
    })
}

/// What the library calls before and after a function.
pub(crate) unsafe extern "C" fn callback(
    record: CallbackRecord,
    user: *mut u64,
    kind: *mut c_void,
) {
    guarded((), || {
        let Some((version, verbs)) = VERBS[kind as usize % KINDS.len()].get() else { return };
        let parts = record.parts(*version);
        let Some(Some(verb)) = verbs.get(parts.operation as usize) else { return };
        if parts.payload.is_null() {
            return;
        }
        // SAFETY: passed on from the library: a payload begins with its size, its arguments
        // follow, and its result ends it.
        unsafe {
            let argument = || parts.payload.add(ARGUMENT).cast::<u64>().read_unaligned();
            let message = || text(argument() as usize as *const c_char);
            match (verb, parts.phase) {
                (Verb::Mark, PHASE_ENTER) => roctx::mark(message()),
                (Verb::Push, PHASE_ENTER) => drop(roctx::push(message())),
                (Verb::Pop, PHASE_EXIT) => drop(roctx::pop()),
                // Its id is the library's, which only knows it at the end of the call; the
                // range began with it.
                (Verb::Start, PHASE_ENTER) => {
                    if let Some(word) = user.as_mut() {
                        *word = roctx::start(message());
                    }
                }
                (Verb::Start, PHASE_EXIT) => {
                    let size = parts.payload.cast::<u64>().read_unaligned() as usize;
                    let at = size.saturating_sub(RESULT).clamp(ARGUMENT, 4096);
                    let theirs = parts.payload.add(at).cast::<u64>().read_unaligned();
                    roctx::name_range(theirs, user.as_ref().copied().unwrap_or(0));
                }
                (Verb::Stop, PHASE_ENTER) => roctx::stop(argument()),
                (Verb::Pause, PHASE_ENTER) => roctx::pause(argument(), true),
                (Verb::Resume, PHASE_EXIT) => roctx::pause(argument(), false),
                (Verb::NameThread, PHASE_ENTER) => roctx::name_thread(message()),
                (Verb::NameStream, PHASE_ENTER) => {
                    let stream = parts.payload.add(ARGUMENT + 8).cast::<u64>().read_unaligned();
                    stream_names::name(stream, message());
                }
                _ => {}
            }
        }
    });
}

/// # Safety
/// Null, or a C string that lives for the call.
unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
