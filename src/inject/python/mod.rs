//! Python programs that import PyTorch are made to tell of its operators: pytorch.py says
//! how, this file how that comes to run. And what their threads are called ([`names`]), and the
//! functions that they call ([`calls`], [`sampled`]).
//!
//! An interpreter that the process has when we are loaded, before `main`, gets an audit
//! hook (PEP 578, Python 3.8). The hook compares a few bytes until a part of PyTorch is
//! about to be imported; before that no Python code of ours runs, and a program that does
//! not import PyTorch has nothing of ours but the hook. An interpreter that is loaded later
//! (`dlopen` of a libpython) is not found.
//!
//! Only the main interpreter is looked at; PyTorch cannot be imported in others.

mod audit;
mod calls;
mod names;
mod sampled;
mod snapshot;

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Once, OnceLock};

use super::torch;
use crate::config::{self, Config, PyTorch};
use crate::guard::guard;
use crate::hooks::MEMORY_SNAPSHOT;
use crate::page::LeftOut;
use crate::queue;

/// What runs in the program.
const SOURCE: &str = concat!(include_str!("pytorch.py"), "\0");

/// `Py_file_input` of Python's compile.h.
const FILE_INPUT: c_int = 257;
/// `METH_O` of Python's methodobject.h.
const METH_O: c_int = 8;

/// A `PyObject *`.
type Object = *mut c_void;

/// `PyMethodDef` of Python's methodobject.h.
#[repr(C)]
struct MethodDef {
    name: *const c_char,
    function: Option<unsafe extern "C" fn(Object, Object) -> Object>,
    flags: c_int,
    doc: *const c_char,
}

// SAFETY: it is only read, and points to constants.
unsafe impl Sync for MethodDef {}

const _: () = assert!(size_of::<MethodDef>() == 32);

macro_rules! python {
    ($($field:ident: $($symbol:literal)|+ $ty:ty,)*) => {
        /// The part of Python's C interface that is used: all of it is there, under one of
        /// these names, from Python 3.8 on.
        struct Python { $($field: $ty,)* }

        impl Python {
            fn find() -> Option<Python> {
                Some(Python { $($field: {
                    let found = find(&[$($symbol),+])?;
                    // SAFETY: what has this name in a process has this type.
                    unsafe { std::mem::transmute::<*mut c_void, $ty>(found) }
                },)* })
            }
        }
    };
}

python! {
    main_interpreter: c"PyInterpreterState_Main" unsafe extern "C" fn() -> *mut c_void,
    // The second name is that of Python 3.8.
    this_interpreter: c"PyInterpreterState_Get" | c"_PyInterpreterState_Get"
        unsafe extern "C" fn() -> *mut c_void,
    tuple_item: c"PyTuple_GetItem" unsafe extern "C" fn(Object, isize) -> Object,
    utf8: c"PyUnicode_AsUTF8" unsafe extern "C" fn(Object) -> *const c_char,
    new_text: c"PyUnicode_FromString" unsafe extern "C" fn(*const c_char) -> Object,
    new_long: c"PyLong_FromLong" unsafe extern "C" fn(c_long) -> Object,
    new_function: c"PyCFunction_NewEx" unsafe extern "C" fn(*const MethodDef, Object, Object) -> Object,
    new_dict: c"PyDict_New" unsafe extern "C" fn() -> Object,
    dict_set: c"PyDict_SetItemString" unsafe extern "C" fn(Object, *const c_char, Object) -> c_int,
    dict_get: c"PyDict_GetItemString" unsafe extern "C" fn(Object, *const c_char) -> Object,
    builtins: c"PyEval_GetBuiltins" unsafe extern "C" fn() -> Object,
    compile: c"Py_CompileString" unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> Object,
    evaluate: c"PyEval_EvalCode" unsafe extern "C" fn(Object, Object, Object) -> Object,
    call: c"PyObject_CallObject" unsafe extern "C" fn(Object, Object) -> Object,
    is_true: c"PyObject_IsTrue" unsafe extern "C" fn(Object) -> c_int,
    release: c"Py_DecRef" unsafe extern "C" fn(Object),
    matches: c"PyErr_ExceptionMatches" unsafe extern "C" fn(Object) -> c_int,
    clear: c"PyErr_Clear" unsafe extern "C" fn(),
}

/// Observes the interpreter of a program that records by itself: names of threads, PyTorch whether
/// it is imported by now or later, and calls. The program says by itself where iterations end.
/// False if there is no interpreter, or another than the main one runs.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn attach(config: &Config) -> bool {
    let wanted = || Wanted::of(config).map(|wanted| Wanted { steps: false, ..wanted });
    let first = PYTHON.get().is_none()
        && Python::find().is_some_and(|python| PYTHON.set((python, wanted())).is_ok());
    let Some((python, _)) = PYTHON.get() else {
        return false;
    };
    // SAFETY: the caller holds the lock.
    unsafe {
        if !python.is_main() {
            return false;
        }
        if first {
            MEMORY_SNAPSHOT.register(snapshot::order);
            audit::add_late(on_event);
        }
        names::attach_now(python);
        match config.python {
            config::Python::Off => calls::forget(),
            wanted => {
                calls::watch(wanted);
                calls::follow_thread();
            }
        }
    }
    torch::watch(config);
    true
}

/// The first of these symbols that the process has.
fn find(names: &[&CStr]) -> Option<*mut c_void> {
    names.iter().find_map(|name| {
        // SAFETY: the name is a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    })
}

/// The interpreter, and what is wanted of PyTorch in it, if anything is.
static PYTHON: OnceLock<(Python, Option<Wanted>)> = OnceLock::new();

struct Wanted {
    /// Whether operators are observed, if that is possible.
    observer: bool,
    /// Names of the mechanisms that may be used otherwise: a C string.
    mechanisms: &'static CStr,
    shapes: bool,
    /// In daemon threads too.
    daemons: bool,
    /// Whether optimizers and profilers say where iterations end.
    steps: bool,
}

/// Whether there is something to do in the hook.
static STATE: AtomicU8 = AtomicU8::new(WATCHING);
/// A part of PyTorch may be imported.
const WATCHING: u8 = 0;
/// A thread is looking into that.
const BUSY: u8 = 1;
/// Nothing to do, for now or for good.
const DONE: u8 = 2;

/// The globals of pytorch.py; a reference of ours, kept for good.
static GLOBALS: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// `tell(text)` of pytorch.py.
static TELL: MethodDef =
    MethodDef { name: c"tell".as_ptr(), function: Some(tell), flags: METH_O, doc: ptr::null() };

/// `observe(text)` of pytorch.py.
static OBSERVE: MethodDef = MethodDef {
    name: c"observe".as_ptr(),
    function: Some(observe),
    flags: METH_O,
    doc: ptr::null(),
};

/// `step(_)` of pytorch.py.
static STEP: MethodDef =
    MethodDef { name: c"step".as_ptr(), function: Some(step), flags: METH_O, doc: ptr::null() };

/// Looks for an interpreter in this process, and waits in it for PyTorch if `config` says so.
/// To be called before `main`.
pub(super) fn watch(config: &Config) {
    let Some(python) = Python::find() else {
        return;
    };
    calls::watch(config.python);
    if PYTHON.set((python, Wanted::of(config))).is_ok() {
        MEMORY_SNAPSHOT.register(snapshot::order);
        // SAFETY: before `main` there is no other thread, and the hook is made for this.
        unsafe { audit::add(on_event) };
    }
}

impl Wanted {
    /// None if nothing is.
    fn of(config: &Config) -> Option<Wanted> {
        let heard = |category: &str| {
            config.pytorch != PyTorch::Auto || config.categories.matches(category.as_bytes())
        };
        // NVTX's default domain, and PyTorch's domain of ITT.
        let nvtx = heard("nvtx") && is_ours(c"NVTX_INJECTION64_PATH");
        let itt = heard("PyTorch") && is_ours(c"INTEL_LIBITTNOTIFY64");
        let observer = torch::is_wanted(config);
        let mechanisms = match (nvtx, itt) {
            _ if config.pytorch == PyTorch::Off => return None,
            (true, true) => c"nvtx itt",
            (true, false) => c"nvtx",
            (false, true) => c"itt",
            (false, false) if observer => c"",
            (false, false) => return None,
        };
        Some(Wanted {
            observer,
            mechanisms,
            shapes: config.pytorch == PyTorch::Shapes,
            daemons: config.pytorch != PyTorch::Auto,
            steps: true,
        })
    }
}

/// Whether the collector that a variable of the environment names is this library: another
/// tool has not asked for PyTorch's ranges.
fn is_ours(variable: &CStr) -> bool {
    // SAFETY: no other thread exists that could change the environment, and `dladdr` fills
    // what it is given when it succeeds; its strings live as long as the library.
    unsafe {
        let theirs = libc::getenv(variable.as_ptr());
        let mut info: libc::Dl_info = std::mem::zeroed();
        if theirs.is_null() || libc::dladdr((&raw const TELL).cast(), &mut info) == 0 {
            return false;
        }
        let identity = identity(theirs);
        identity.is_some() && identity == self::identity(info.dli_fname)
    }
}

/// Device and inode of a file.
///
/// # Safety
/// `path` is a C string.
unsafe fn identity(path: *const c_char) -> Option<(u64, u64)> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `path` is a C string, and `stat` is filled when the call succeeds.
    unsafe {
        (libc::stat(path, stat.as_mut_ptr()) == 0).then(|| {
            let stat = stat.assume_init();
            (stat.st_dev, stat.st_ino)
        })
    }
}

/// The audit hook. Not zero, with an exception set, if the event must not happen.
unsafe extern "C" fn on_event(event: *const c_char, args: Object, _: *mut c_void) -> c_int {
    guard(0, || {
        // SAFETY: the interpreter passes a C string, and holds its lock.
        let event = unsafe { CStr::from_ptr(event) };
        // SAFETY: as above.
        unsafe {
            audit::observe(event);
            calls::observe(event);
        }
        let Some((python, wanted)) = PYTHON.get() else {
            return 0;
        };
        // SAFETY: as above.
        let answer = unsafe { names::observe(python, event, args) };
        if answer != 0 || STATE.load(Ordering::Acquire) != WATCHING || event != c"import" {
            return answer;
        }
        let Some(wanted) = wanted else {
            return 0;
        };
        // SAFETY: as above.
        unsafe {
            let name = python.first_text(args);
            let is_part = name.is_some_and(|name| name.to_bytes().starts_with(b"torch."));
            if !is_part || !python.is_main() {
                return 0;
            }
            if STATE.compare_exchange(WATCHING, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_err()
            {
                return 0;
            }
            let attached = python.attach(&GLOBALS, || load(python, wanted));
            let state = if attached == Some(false) { WATCHING } else { DONE };
            // Unless `tell` has said something newer.
            let _ = STATE.compare_exchange(BUSY, state, Ordering::AcqRel, Ordering::Relaxed);
            if attached.is_none() {
                torch::note("off: pytorch.py failed".to_owned());
                return python.forgive();
            }
            0
        }
    })
}

impl Python {
    /// Whether the main interpreter runs.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn is_main(&self) -> bool {
        // SAFETY: the caller holds the lock.
        unsafe { (self.this_interpreter)() == (self.main_interpreter)() }
    }

    /// The text that is the first argument of an event, if one is.
    ///
    /// # Safety
    /// The interpreter's lock is held, and `args` is a tuple, which the text lives as long as.
    unsafe fn first_text<'a>(&self, args: Object) -> Option<&'a CStr> {
        // SAFETY: the caller's promise.
        unsafe {
            let item = (self.tuple_item)(args, 0);
            let text = if item.is_null() { ptr::null() } else { (self.utf8)(item) };
            if text.is_null() {
                (self.clear)();
                return None;
            }
            Some(CStr::from_ptr(text))
        }
    }

    /// A text; none if the object is none that UTF-8 stands for.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn text(&self, object: Object) -> Option<String> {
        // SAFETY: the caller holds the lock; the text lives as long as the object.
        unsafe {
            let text = (self.utf8)(object);
            if text.is_null() {
                (self.clear)();
                return None;
            }
            Some(CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    }

    /// Calls `attach` of a program of ours, which `load` runs the first time; none with an
    /// exception set if that failed.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn attach(
        &self,
        globals: &AtomicPtr<c_void>,
        load: impl FnOnce() -> Option<Object>,
    ) -> Option<bool> {
        // SAFETY: the caller holds the lock; each object is what Python's documentation
        // says, and null is not passed on.
        unsafe {
            if globals.load(Ordering::Acquire).is_null() {
                globals.store(load()?, Ordering::Release);
            }
            let attach = (self.dict_get)(globals.load(Ordering::Acquire), c"attach".as_ptr());
            if attach.is_null() {
                return Some(true);
            }
            let result = Owned::new(self, (self.call)(attach, ptr::null_mut()))?;
            Some((self.is_true)(result.0) == 1)
        }
    }

    /// Runs a program, which ends with a NUL, in a dictionary of its own with these entries.
    /// The dictionary is returned; none with an exception set if that failed.
    ///
    /// # Safety
    /// The interpreter's lock is held.
    unsafe fn run(&self, source: &str, entries: &[(&CStr, Object)]) -> Option<Object> {
        // SAFETY: as in `attach`.
        unsafe {
            let globals = Owned::new(self, (self.new_dict)())?;
            let name = Owned::new(self, (self.new_text)(c"kymograph".as_ptr()))?;
            let common = [(c"__builtins__", (self.builtins)()), (c"__name__", name.0)];
            for (key, value) in common.iter().chain(entries) {
                if (self.dict_set)(globals.0, key.as_ptr(), *value) != 0 {
                    return None;
                }
            }
            let code = (self.compile)(source.as_ptr().cast(), c"<kymograph>".as_ptr(), FILE_INPUT);
            let code = Owned::new(self, code)?;
            Owned::new(self, (self.evaluate)(code.0, globals.0, globals.0))?;
            Some(globals.keep())
        }
    }

    /// After a failure: what the hook returns. Our own exceptions end here; what somebody
    /// else wants the program to get (KeyboardInterrupt by Ctrl-C) goes on.
    ///
    /// # Safety
    /// The interpreter's lock is held, and an exception is set.
    unsafe fn forgive(&self) -> c_int {
        let exception = find(&[c"PyExc_Exception"]);
        // SAFETY: as the caller says; the symbol is a variable, set since the interpreter is.
        unsafe {
            if exception.is_some_and(|e| (self.matches)(*e.cast::<Object>()) == 0) {
                return -1;
            }
            (self.clear)();
        }
        0
    }
}

/// Runs pytorch.py.
///
/// # Safety
/// The interpreter's lock is held.
unsafe fn load(python: &Python, wanted: &Wanted) -> Option<Object> {
    // SAFETY: as in `Python::attach`.
    unsafe {
        let function = |of| (python.new_function)(of, ptr::null_mut(), ptr::null_mut());
        let tell = Owned::new(python, function(&raw const TELL))?;
        let observe = Owned::new(python, function(&raw const OBSERVE))?;
        let step = Owned::new(python, function(&raw const STEP))?;
        let observer = Owned::new(python, (python.new_long)(wanted.observer.into()))?;
        let mechanisms = Owned::new(python, (python.new_text)(wanted.mechanisms.as_ptr()))?;
        let shapes = Owned::new(python, (python.new_long)(wanted.shapes.into()))?;
        let daemons = Owned::new(python, (python.new_long)(wanted.daemons.into()))?;
        let steps = Owned::new(python, (python.new_long)(wanted.steps.into()))?;
        let entries = [
            (c"tell", tell.0),
            (c"observe", observe.0),
            (c"step", step.0),
            (c"observer", observer.0),
            (c"mechanisms", mechanisms.0),
            (c"shapes", shapes.0),
            (c"daemons", daemons.0),
            (c"steps", steps.0),
        ];
        python.run(SOURCE, &entries)
    }
}

/// A reference that is released.
struct Owned<'p>(Object, &'p Python);

impl<'p> Owned<'p> {
    /// None for null.
    fn new(python: &'p Python, object: Object) -> Option<Owned<'p>> {
        (!object.is_null()).then_some(Owned(object, python))
    }

    fn keep(self) -> Object {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: a reference of ours; those who make one hold the interpreter's lock for
        // as long as they have it.
        unsafe { (self.1.release)(self.0) };
    }
}

/// A daemon thread is not recorded: `kymo` is told, once, though there may be no recording in
/// this process yet, and never be one.
fn leave_out_daemons() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        if let Some(arena) = queue::arena() {
            arena.leave_out(LeftOut::DaemonThread.bit());
        }
    });
}

/// What pytorch.py has to say: `again` if PyTorch may be imported later, `daemon` of a thread
/// that is not recorded, else what became of it.
unsafe extern "C" fn tell(_: Object, text: Object) -> Object {
    let Some((python, _)) = PYTHON.get() else {
        return ptr::null_mut();
    };
    guard((), || {
        // SAFETY: called by the interpreter, which holds its lock, with an object.
        match unsafe { python.text(text) }.as_deref() {
            None => {}
            Some("again") => STATE.store(WATCHING, Ordering::Release),
            Some("daemon") => leave_out_daemons(),
            Some(text) => torch::note(text.to_owned()),
        }
    });
    // SAFETY: the lock is held.
    unsafe { (python.new_long)(0) }
}

/// PyTorch of this version is there: observes its operators. True if that is done, false if it
/// is to be made to tell of them in another way.
unsafe extern "C" fn observe(_: Object, version: Object) -> Object {
    let Some((python, _)) = PYTHON.get() else {
        return ptr::null_mut();
    };
    let observed = guard(false, || {
        // SAFETY: called by the interpreter, which holds its lock, with an object.
        let version = unsafe { python.text(version) };
        torch::attach(&version.map_or(String::new(), |version| format!("; PyTorch {version}")))
    });
    // SAFETY: the lock is held.
    unsafe { (python.new_long)(observed.into()) }
}

/// An iteration ends, and the next begins.
unsafe extern "C" fn step(_: Object, _: Object) -> Object {
    guard((), crate::step);
    match PYTHON.get() {
        // SAFETY: called by the interpreter, which holds its lock.
        Some((python, _)) => unsafe { (python.new_long)(0) },
        None => ptr::null_mut(),
    }
}
