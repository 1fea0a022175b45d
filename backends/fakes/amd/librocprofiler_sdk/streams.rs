//! `HIP_STREAM`: which stream a call is about (hip/stream.cpp), from 1.0 on.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Mutex;

use crate::observe::{ENTER, EXIT, callback_record, invoke};
use crate::settings::toolkit;
use crate::tables::{Argument, Call, Library};
use crate::{contexts, kinds};

/// `rocprofiler_hip_stream_operation_t`.
const CREATE: u32 = 1;
const DESTROY: u32 = 2;
const SET: u32 = 3;
/// `hipStreamLegacy` and `hipStreamPerThread`.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// Ids by handle, and the next one. The null stream has 0.
static IDS: Mutex<Option<(HashMap<u64, u64>, u64)>> = Mutex::new(None);

thread_local! {
    /// Words of the invocations that this thread is in, and what they were told.
    static OPEN: RefCell<Vec<(u64, [u64; 3])>> = const { RefCell::new(Vec::new()) };
}

fn with<R>(f: impl FnOnce(&mut HashMap<u64, u64>, &mut u64) -> R) -> R {
    let mut ids = IDS.lock().unwrap();
    let (ids, next) = ids.get_or_insert_with(|| (HashMap::new(), 1));
    f(ids, next)
}

/// A stream is made: a handle that was another's before gets a new id.
fn add(handle: u64) -> u64 {
    with(|ids, next| {
        *next += 1;
        ids.insert(handle, *next - 1);
        *next - 1
    })
}

fn id(handle: u64) -> u64 {
    if toolkit() < 103 {
        let known = with(|ids, _| ids.get(&handle).copied());
        return known.filter(|_| handle != 0).unwrap_or_else(|| match handle {
            0 => 0,
            _ => {
                eprintln!("fake rocprofiler: std::out_of_range: _Map_base::at");
                std::process::abort()
            }
        });
    }
    match handle {
        0 | LEGACY => 0,
        PER_THREAD => {
            thread_local! {
                static OWN: u64 = add(PER_THREAD);
            }
            OWN.with(|own| *own)
        }
        _ => with(|ids, _| ids.get(&handle).copied()).unwrap_or_else(|| add(handle)),
    }
}

fn value(argument: &Argument) -> u64 {
    u64::from_ne_bytes(argument.bytes[..8].try_into().unwrap())
}

fn argument(call: &Call<'_>, ty: &std::ffi::CStr) -> Option<u64> {
    call.arguments.iter().find(|argument| argument.ty == ty).map(value)
}

/// Whether any tool wants to know.
fn wanted(call: &Call<'_>) -> Option<c_int> {
    if toolkit() < 100 || call.library != Library::Hip {
        return None;
    }
    let kind = kinds::callback(c"HIP_STREAM");
    let any = [CREATE, DESTROY, SET].map(|operation| contexts::callbacks(kind, operation as c_int));
    any.iter().any(|all| !all.is_empty()).then_some(kind)
}

pub(crate) fn enter(call: &Call<'_>) {
    let Some(kind) = wanted(call) else { return };
    if call.function == c"hipStreamDestroy" {
        return;
    }
    let Some(handle) = argument(call, c"P12ihipStream_t") else { return };
    let data = [24, id(handle), handle];
    let mut word = 0x5a5a;
    tell(kind, SET, ENTER, &data, &mut word);
    OPEN.with_borrow_mut(|open| open.push((word, data)));
}

pub(crate) fn exit(call: &Call<'_>) {
    let Some(kind) = wanted(call) else { return };
    let mut word = 0;
    if let Some(place) = argument(call, c"PP12ihipStream_t") {
        // SAFETY: the fake HIP's, which stays.
        let handle = unsafe { *(place as usize as *const u64) };
        return tell(kind, CREATE, 0, &[24, add(handle), handle], &mut word);
    }
    let Some(handle) = argument(call, c"P12ihipStream_t") else { return };
    if call.function == c"hipStreamDestroy" {
        return tell(kind, DESTROY, 0, &[24, id(handle), handle], &mut word);
    }
    if let Some((mut word, data)) = OPEN.with_borrow_mut(Vec::pop) {
        tell(kind, SET, EXIT, &data, &mut word);
    }
}

fn tell(kind: c_int, operation: u32, phase: u32, data: &[u64; 3], word: &mut u64) {
    for (context, service) in contexts::callbacks(kind, operation as c_int) {
        let record = callback_record(context, 0, kind, operation, phase, data.as_ptr().cast());
        // SAFETY: the tool's function; all lives for the call.
        unsafe { invoke(service.callback, record, word, service.data) };
    }
}
