//! Calls of Python functions, on request: slices on their threads, named as PyTorch's profiler
//! names them (`file.py(12): function`).
//!
//! The interpreter tells us of each (`PyEval_SetProfile`), thread by thread: the main thread's
//! from where its program begins, another's from where `threading` starts it. A program that sets
//! a profiler of its own has that one from then on, and its calls are not recorded any more.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use kymograph_protos::record::OPERATOR;
use kymograph_protos::{ColdRecorder, Kind, Record, Recorder, StrId};

use super::{Object, find};
use crate::guard::guard;
use crate::recorder::PIPELINE;

/// `Py_tracefunc` of Python's pystate.h.
type Trace = unsafe extern "C" fn(Object, Object, c_int, Object) -> c_int;
/// `PyTrace_CALL` and `PyTrace_RETURN`, which also is told when an exception leaves.
const CALL: c_int = 0;
const RETURN: c_int = 3;

/// Before the program itself runs, by each way in which it may be given.
const PROGRAM: &[u8] = b"cpython.run_";

/// What the names of our own functions begin with.
const OURS: &[u8] = b"<kymograph>(";

/// Functions whose ids are kept, at most; and places for them.
const MAX: usize = 1 << 14;
const SLOTS: usize = 1 << 15;
/// Places looked at.
const PROBES: usize = 16;

/// Code objects and the ids of their names: an address of 48 bits, and an id of 16. Those that
/// are here are never freed, so that no other has the address.
static KNOWN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Whether calls are to be recorded.
static WANTED: AtomicBool = AtomicBool::new(false);
static CALLS: OnceLock<Calls> = OnceLock::new();

/// The part of Python's C interface that this needs, from Python 3.9 on.
struct Calls {
    category: StrId,
    set_profile: unsafe extern "C" fn(Option<Trace>, Object),
    code: unsafe extern "C" fn(Object) -> Object,
    attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    utf8: unsafe extern "C" fn(Object) -> *const c_char,
    long: unsafe extern "C" fn(Object) -> c_long,
    release: unsafe extern "C" fn(Object),
    clear: unsafe extern "C" fn(),
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
            attribute: symbol!(c"PyObject_GetAttrString"),
            utf8: symbol!(c"PyUnicode_AsUTF8"),
            long: symbol!(c"PyLong_AsLong"),
            release: symbol!(c"Py_DecRef"),
            clear: symbol!(c"PyErr_Clear"),
            folder: std::env::current_dir().map_or(Vec::new(), |folder| {
                let mut folder = folder.into_os_string().into_encoded_bytes();
                folder.push(b'/');
                folder
            }),
        })
    }
}

/// Calls are to be recorded. To be called before `main`.
pub(super) fn watch() {
    WANTED.store(true, Ordering::Release);
}

/// Calls are not to be recorded any more: threads let go of us with their next one.
pub(super) fn forget() {
    WANTED.store(false, Ordering::Release);
}

/// An audit event, in the main interpreter or another.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn observe(event: &CStr) {
    if WANTED.load(Ordering::Relaxed) && event.to_bytes().starts_with(PROGRAM) {
        // SAFETY: the caller's promise.
        unsafe { follow_thread() };
    }
}

/// Follows the calling thread from here on.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn follow_thread() {
    if !WANTED.load(Ordering::Relaxed) {
        return;
    }
    if !crate::inject::start() {
        return;
    }
    let calls = match CALLS.get() {
        Some(calls) => calls,
        None => match Calls::find() {
            Some(calls) => CALLS.get_or_init(|| calls),
            None => return,
        },
    };
    // What was open when it was followed before is not known any more.
    DEPTH.with(|thread| thread.depth.set(0));
    // SAFETY: the caller's promise; the callback stays.
    unsafe { (calls.set_profile)(Some(traced), ptr::null_mut()) };
}

/// How deep a thread's calls are, and which of the outermost were recorded.
struct Depth {
    depth: Cell<usize>,
    recorded: [Cell<u64>; WORDS],
}

const WORDS: usize = 8;

thread_local! {
    static DEPTH: Depth =
        const { Depth { depth: Cell::new(0), recorded: [const { Cell::new(0) }; WORDS] } };
}

/// The interpreter calls or leaves a function.
unsafe extern "C" fn traced(_: Object, frame: Object, what: c_int, _: Object) -> c_int {
    guard((), || match what {
        // SAFETY: called by the interpreter, with a frame.
        CALL => unsafe { called(frame) },
        RETURN => returned(),
        _ => {}
    });
    0
}

/// # Safety
/// `frame` is the frame that begins, and the interpreter's lock is held.
unsafe fn called(frame: Object) {
    let Some(calls) = CALLS.get() else { return };
    DEPTH.with(|thread| {
        let depth = thread.depth.get();
        if depth == 0 && !WANTED.load(Ordering::Relaxed) {
            // SAFETY: the caller's promise.
            return unsafe { (calls.set_profile)(None, ptr::null_mut()) };
        }
        thread.depth.set(depth + 1);
        let Some(word) = thread.recorded.get(depth / 64) else {
            return PIPELINE.lost(1);
        };
        let mut recorded = false;
        if PIPELINE.enabled(calls.category) {
            // SAFETY: the caller's promise.
            let site = unsafe { calls.site(frame) };
            if !site.is_none() {
                let (kind, tag) = (Kind::Begin as u8, OPERATOR);
                let head = Record { time: PIPELINE.now(), site, kind, tag, ..Record::default() };
                recorded = PIPELINE.push(head, &[]);
            }
        }
        let bit = 1 << (depth % 64);
        word.set(if recorded { word.get() | bit } else { word.get() & !bit });
    });
}

fn returned() {
    DEPTH.with(|thread| {
        // Of one that began before it was followed, nothing is known.
        let Some(depth) = thread.depth.get().checked_sub(1) else { return };
        thread.depth.set(depth);
        let word = thread.recorded.get(depth / 64);
        if word.is_some_and(|word| word.get() >> (depth % 64) & 1 != 0) {
            let (time, kind) = (PIPELINE.now(), Kind::End as u8);
            PIPELINE.push(Record { time, kind, ..Record::default() }, &[]);
        }
    });
}

impl Calls {
    /// The id of what a frame runs; none if that is not recorded.
    ///
    /// # Safety
    /// `frame` is a frame, and the interpreter's lock is held.
    #[inline]
    unsafe fn site(&self, frame: Object) -> StrId {
        // SAFETY: the caller's promise; a reference is given, and taken back below or kept.
        let code = unsafe { (self.code)(frame) };
        let address = code.addr() as u64;
        let home = (address >> 4 ^ address >> 19) as usize;
        for slot in (0..PROBES).map(|n| &KNOWN[(home + n) % SLOTS]) {
            let known = slot.load(Ordering::Acquire);
            if known >> 16 == address {
                // SAFETY: the reference from above.
                unsafe { (self.release)(code) };
                return StrId((known & 0xffff) as u32);
            }
            if known == 0 {
                // SAFETY: as the caller says.
                return unsafe { self.look_up(code, Some(slot)) };
            }
        }
        // SAFETY: as above.
        unsafe { self.look_up(code, None) }
    }

    /// # Safety
    /// `code` is a reference of ours to a code object, which is taken; the lock is held.
    #[cold]
    unsafe fn look_up(&self, code: Object, slot: Option<&AtomicU64>) -> StrId {
        let address = code.addr() as u64;
        // SAFETY: the caller's promise.
        unsafe {
            let name = self.name(code);
            let ours = name.as_ref().is_some_and(|name| name.starts_with(OURS));
            let id = match name {
                Some(name) if !ours => PIPELINE.intern_or_wait(self.category, &name),
                _ => StrId::NONE,
            };
            if id.is_none() && !ours {
                PIPELINE.lost(1);
            }
            let keep = (ours || !id.is_none()) && id.0 < 1 << 16 && address < 1 << 48;
            if let Some(slot) = slot.filter(|_| keep)
                && KEPT.fetch_add(1, Ordering::Relaxed) < MAX
            {
                // Under the interpreter's lock; without one (free threading) the last one stays,
                // and the other's reference as well, which is what matters.
                slot.store(address << 16 | u64::from(id.0), Ordering::Release);
            } else {
                (self.release)(code);
            }
            id
        }
    }

    /// `file.py(12): function`.
    ///
    /// # Safety
    /// `code` is a code object, and the lock is held.
    unsafe fn name(&self, code: Object) -> Option<Vec<u8>> {
        // SAFETY: the caller's promise; references are given back after use.
        unsafe {
            let file = (self.attribute)(code, c"co_filename".as_ptr());
            let line = (self.attribute)(code, c"co_firstlineno".as_ptr());
            let function = (self.attribute)(code, c"co_name".as_ptr());
            let mut name = None;
            if !file.is_null() && !line.is_null() && !function.is_null() {
                let (path, called) = ((self.utf8)(file), (self.utf8)(function));
                if !path.is_null() && !called.is_null() {
                    let mut text = self.short(CStr::from_ptr(path).to_bytes()).to_vec();
                    text.extend_from_slice(format!("({}): ", (self.long)(line)).as_bytes());
                    text.extend_from_slice(CStr::from_ptr(called).to_bytes());
                    name = Some(text);
                }
            }
            for object in [file, line, function].into_iter().filter(|object| !object.is_null()) {
                (self.release)(object);
            }
            if name.is_none() {
                (self.clear)();
            }
            name
        }
    }

    /// A file's path without the folder that modules are in.
    fn short<'a>(&self, path: &'a [u8]) -> &'a [u8] {
        const FOLDERS: [&[u8]; 2] = [b"/site-packages/", b"/dist-packages/"];
        let after = |folder: &[u8]| {
            let at = path.windows(folder.len()).rposition(|part| part == folder)?;
            Some(&path[at + folder.len()..])
        };
        let library = || {
            let at = path.windows(11).rposition(|part| part == b"/lib/python")?;
            let rest = &path[at + 11..];
            Some(&rest[rest.iter().position(|byte| *byte == b'/')? + 1..])
        };
        let found = FOLDERS.iter().find_map(|folder| after(folder)).or_else(library);
        found.or_else(|| path.strip_prefix(&*self.folder)).unwrap_or(path)
    }
}
