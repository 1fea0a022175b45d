//! Calls of Python functions, on request: slices on their threads, named as PyTorch's profiler
//! names them (`file.py(12): function`, and `nn.Module: Linear_0` for the call of a module).
//!
//! ```text
//!  frames      the interpreter runs frames of all threads through us (PEP 523, from 3.12 on)
//!  monitoring  or reports calls of all threads (sys.monitoring, from 3.12 on)
//!  profiler    or those of threads that are followed (PyEval_SetProfile, before)
//!  code        code objects → ids of their names
//!  modules     modules of PyTorch → ids of their names
//!  thread      which calls are open on a thread
//! ```
//! A program that sets a profiler of its own has that one from then on. With `sys.monitoring` its
//! calls are still recorded, since tools do not share what they ask for; before 3.12 they are not.

mod code;
mod frames;
mod modules;
mod monitoring;
mod profiler;
mod thread;

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Once, OnceLock};

use kymograph_protos::{ColdRecorder, StrId};

use super::{Object, find, sampled};
use crate::config::Python as Wanted;
use crate::recorder::PIPELINE;
pub(super) use code::function_name;
use profiler::Trace;

/// Before the program itself runs, by each way in which it may be given.
const PROGRAM: &[u8] = b"cpython.run_";

/// Which calls are to be recorded.
static WANTED: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const FUNCTIONS: u8 = 1;
const MODULES: u8 = 2;

static CALLS: OnceLock<Option<Calls>> = OnceLock::new();

type Take = unsafe extern "C" fn() -> Object;
type Raise = unsafe extern "C" fn(Object);

/// The part of Python's C interface that this needs, from Python 3.9 on.
struct Calls {
    category: StrId,
    set_profile: unsafe extern "C" fn(Option<Trace>, Object),
    code: unsafe extern "C" fn(Object) -> Object,
    frame: unsafe extern "C" fn() -> Object,
    /// From 3.12 on.
    variable: Option<unsafe extern "C" fn(Object, *const c_char) -> Object>,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    of_system: unsafe extern "C" fn(*const c_char) -> Object,
    item: unsafe extern "C" fn(Object, *const c_char) -> Object,
    class: unsafe extern "C" fn(Object) -> Object,
    utf8: unsafe extern "C" fn(Object) -> *const c_char,
    long: unsafe extern "C" fn(Object) -> c_long,
    keep: unsafe extern "C" fn(Object),
    release: unsafe extern "C" fn(Object),
    clear: unsafe extern "C" fn(),
    /// Take the exception that is set, and set one. From 3.12 on.
    raised: Option<(Take, Raise)>,
    /// Where the program was started.
    folder: Vec<u8>,
}

impl Calls {
    #[allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]
    fn find() -> Option<Calls> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: what has this name in a process has the type of the field.
                unsafe { std::mem::transmute::<*mut c_void, _>(find(&[$name])?) }
            };
        }
        Some(Calls {
            category: PIPELINE.intern_or_wait(StrId::NONE, b"python_function"),
            set_profile: symbol!(c"PyEval_SetProfile"),
            code: symbol!(c"PyFrame_GetCode"),
            frame: symbol!(c"PyEval_GetFrame"),
            // SAFETY: as above.
            variable: find(&[c"PyFrame_GetVarString"])
                .map(|found| unsafe { std::mem::transmute::<*mut c_void, _>(found) }),
            attribute: symbol!(c"PyObject_GetAttrString"),
            of_system: symbol!(c"PySys_GetObject"),
            item: symbol!(c"PyDict_GetItemString"),
            class: symbol!(c"PyObject_Type"),
            utf8: symbol!(c"PyUnicode_AsUTF8"),
            long: symbol!(c"PyLong_AsLong"),
            keep: symbol!(c"Py_IncRef"),
            release: symbol!(c"Py_DecRef"),
            clear: symbol!(c"PyErr_Clear"),
            // SAFETY: as above.
            raised: find(&[c"PyErr_GetRaisedException"])
                .zip(find(&[c"PyErr_SetRaisedException"]))
                .map(|(take, raise)| unsafe {
                    (
                        std::mem::transmute::<*mut c_void, Take>(take),
                        std::mem::transmute::<*mut c_void, Raise>(raise),
                    )
                }),
            folder: folder(),
        })
    }

    fn get() -> Option<&'static Calls> {
        CALLS.get_or_init(Calls::find).as_ref()
    }
}

/// The folder that the program was started in, with a `/` at its end.
pub(super) fn folder() -> Vec<u8> {
    std::env::current_dir().map_or(Vec::new(), |folder| {
        let mut folder = folder.into_os_string().into_encoded_bytes();
        folder.push(b'/');
        folder
    })
}

/// What `config` asks for is to be recorded. To be called before `main`, or with the interpreter's
/// lock.
pub(super) fn watch(wanted: Wanted) {
    let (calls, hertz) = match wanted {
        Wanted::Off => (NONE, 0),
        Wanted::Functions => (FUNCTIONS, 0),
        Wanted::Modules => (MODULES, 0),
        Wanted::Sampled(hertz) => (NONE, hertz),
    };
    WANTED.store(calls, Ordering::Release);
    sampled::want(hertz);
}

/// Calls are not to be recorded any more.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn forget() {
    watch(Wanted::Off);
    // SAFETY: the caller's promise.
    unsafe {
        frames::stop();
        monitoring::stop();
    }
}

fn wanted() -> u8 {
    WANTED.load(Ordering::Relaxed)
}

/// An audit event, in the main interpreter or another.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn observe(event: &CStr) {
    // SAFETY: the caller's promise.
    unsafe {
        if event.to_bytes().starts_with(PROGRAM) {
            follow_thread();
        } else {
            sampled::go_on_after_fork();
        }
    }
}

/// Follows the calling thread from here on, and where the interpreter can, all others.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn follow_thread() {
    // SAFETY: the caller's promise.
    unsafe {
        sampled::start();
        if wanted() == NONE || !crate::inject::start() {
            return;
        }
        static STATED: Once = Once::new();
        let Some(calls) = Calls::get() else {
            let old = "not recorded: this Python is older than 3.9";
            return STATED.call_once(|| state(old));
        };
        if wanted() == FUNCTIONS && !monitoring::is_on() && frames::start(calls) {
            return;
        }
        match monitoring::start(calls) {
            monitoring::Started::Yes => {}
            monitoring::Started::Missing(why) => {
                STATED.call_once(|| state(&format!("{}{why}", asked_for())));
                profiler::follow_thread(calls);
            }
        }
    }
}

fn asked_for() -> &'static str {
    if wanted() == MODULES { "modules" } else { "functions" }
}

/// States in the trace how calls are recorded.
pub(super) fn state(text: &str) {
    crate::recorder::state(&format!("kymograph.{}.python", std::process::id()), text);
}

/// Whether a call of our own Python code, or of the interpreter's own start, is left out.
const OURS: &CStr = c"<kymograph>";

/// The number of arguments that a call of `METH_FASTCALL` has.
type Count = isize;
/// `METH_FASTCALL` of Python's methodobject.h.
const METH_FASTCALL: c_int = 0x80;
