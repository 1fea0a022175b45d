//! What a Python program calls its threads (`threading.Thread(name=…)`): threads.py says how it
//! is found out, this file where that goes.
//!
//! Only threads of the main interpreter are followed.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

use kymograph_backends::environment::gettid;

use super::{BUSY, DONE, METH_O, MethodDef, Object, Owned, PYTHON, Python, WATCHING, calls};
use crate::api::names;
use crate::guard::guard;
use crate::recorder::names::remember_name;

/// What runs in the program.
const SOURCE: &str = concat!(include_str!("threads.py"), "\0");

/// Events at the start of a thread, from Python 3.12 on.
const STARTS: &[u8] = b"_thread.start_";

/// Whether there is something to do in the hook.
static STATE: AtomicU8 = AtomicU8::new(WATCHING);

/// The globals of threads.py; a reference of ours, kept for good.
static GLOBALS: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

/// `tell(text)` of threads.py.
static TELL: MethodDef =
    MethodDef { name: c"tell".as_ptr(), function: Some(tell), flags: METH_O, doc: ptr::null() };

/// `threading` is about to be imported: its code is executed next, or after other code.
static EXPECTED: AtomicBool = AtomicBool::new(false);

/// Part of the hook. Returns what that returns.
///
/// # Safety
/// Called by the interpreter, which holds its lock, with the arguments of the event.
pub(super) unsafe fn observe(python: &Python, event: &CStr, args: Object) -> i32 {
    if STATE.load(Ordering::Acquire) != WATCHING {
        return 0;
    }
    // SAFETY: the lock is held, and these are the event's arguments.
    unsafe {
        let due = match event.to_bytes() {
            b"import" => {
                let import = || python.first_text(args) == Some(c"threading") && python.is_main();
                if !EXPECTED.load(Ordering::Relaxed) && import() {
                    EXPECTED.store(true, Ordering::Relaxed);
                }
                false
            }
            b"exec" => EXPECTED.load(Ordering::Relaxed),
            event => event.starts_with(STARTS),
        };
        let change = |from, to| {
            STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if !due || !python.is_main() || !change(WATCHING, BUSY) {
            return 0;
        }
        let attached = python.attach(&GLOBALS, || load(python));
        change(BUSY, if attached == Some(false) { WATCHING } else { DONE });
        if attached.is_none() { python.forgive() } else { 0 }
    }
}

/// Follows the threads of an interpreter that runs, without waiting for an event. Those that
/// run already are named as well.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn attach_now(python: &Python) {
    let change =
        |from, to| STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !change(WATCHING, BUSY) {
        return;
    }
    // SAFETY: the caller holds the lock.
    unsafe {
        let attached = python.attach(&GLOBALS, || load(python));
        change(BUSY, if attached == Some(false) { WATCHING } else { DONE });
        if attached.is_none() {
            (python.clear)();
        }
    }
}

/// Runs threads.py.
///
/// # Safety
/// The interpreter's lock is held.
unsafe fn load(python: &Python) -> Option<Object> {
    // SAFETY: the caller holds the lock.
    unsafe {
        let tell = (python.new_function)(&raw const TELL, ptr::null_mut(), ptr::null_mut());
        let tell = Owned::new(python, tell)?;
        python.run(SOURCE, &[(c"tell", tell.0)])
    }
}

/// What threads.py has to say: what happens, the id of a thread or 0 for this one, and its name.
unsafe extern "C" fn tell(_: Object, text: Object) -> Object {
    let Some((python, _)) = PYTHON.get() else {
        return ptr::null_mut();
    };
    guard((), || {
        // SAFETY: called by the interpreter, which holds its lock, with an object; the text
        // lives as long as that.
        unsafe {
            let text = (python.utf8)(text);
            if text.is_null() {
                // A name that no UTF-8 stands for.
                (python.clear)();
            } else if let Ok(text) = CStr::from_ptr(text).to_str() {
                hear(text);
            }
        }
    });
    // SAFETY: the lock is held.
    unsafe { (python.new_long)(0) }
}

fn hear(text: &str) {
    if text.starts_with("starts 0 ") {
        // SAFETY: the thread that starts says so, with the interpreter's lock.
        unsafe { calls::follow_thread() };
    }
    let mut words = text.splitn(3, ' ');
    let (what, id) = (words.next(), words.next().and_then(|id| id.parse().ok()));
    let (Some(what), Some(id), Some(name)) = (what, id, words.next()) else {
        return;
    };
    let tid = match id {
        0 => gettid() as u32,
        id => id,
    };
    // Greenlets run on the main thread as if they were threads of their own.
    let is_thread = what == "main" || tid != std::process::id();
    if name.is_empty() || !is_thread {
        return;
    }
    // The engine looks a name up when a thread records its first event: one that records
    // nothing does not get into the trace for its name. One that may have to be renamed.
    let known = remember_name(tid, name.as_bytes());
    if known || what != "starts" {
        names::rename(tid, name.as_bytes());
    }
}
