//! Tasks of asyncio: each has a track of its own, on which its scopes lie. They would cross on
//! the thread's, where tasks take turns.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::library::{Arg, Library};

/// Tasks that get a track with their own name. Tracks are never freed: the tasks of a program
/// that makes more of them share what others have left.
const MAX_TRACKS: usize = 4096;

/// `KYMO_NO_RANK`.
const NO_RANK: i32 = i32::MIN;

/// How asyncio is asked which task runs: references of ours, for good.
struct Asyncio {
    running_loop: *mut ffi::PyObject,
    /// A dictionary from loop to task (before Python 3.12), or a function.
    current: *mut ffi::PyObject,
    is_dict: bool,
}

static ASYNCIO: AtomicPtr<Asyncio> = AtomicPtr::new(ptr::null_mut());
/// How many modules were imported when asyncio was not among them.
static MODULES: AtomicIsize = AtomicIsize::new(-1);

/// A track of the library's.
#[derive(Clone, Copy)]
struct Track(*const c_void);

// SAFETY: tracks may be used on any thread, and live for ever.
unsafe impl Send for Track {}

struct Task {
    track: Track,
    /// Whether others may have the track afterwards.
    pooled: bool,
    /// The scopes that are open: which, and their ranges.
    open: Vec<(usize, u64)>,
    /// Has the task forgotten when it is gone.
    _weak: Option<Py<PyAny>>,
}

#[derive(Default)]
struct Tasks {
    /// By address.
    all: HashMap<usize, Task>,
    parent: Option<Track>,
    tracks: usize,
    free: Vec<Track>,
}

static TASKS: Mutex<Option<Tasks>> = Mutex::new(None);

/// Never held while Python code runs, so that it is free whenever the interpreter's lock is given
/// away, and in a forked child.
fn with<R>(f: impl FnOnce(&mut Tasks) -> R) -> R {
    let mut tasks: MutexGuard<'_, Option<Tasks>> =
        TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    f(tasks.get_or_insert_default())
}

/// The task that runs on this thread; null if none does. A new reference.
///
/// # Safety
/// The interpreter's lock is held, and no exception is set.
#[inline]
pub unsafe fn current() -> *mut ffi::PyObject {
    // SAFETY: the caller's promise; `ASYNCIO` is null or leaked.
    unsafe {
        match ASYNCIO.load(Ordering::Acquire).as_ref() {
            Some(asyncio) => asyncio.current(),
            // A program that has not imported asyncio has no tasks.
            None => match ffi::PyDict_Size(ffi::PyImport_GetModuleDict()) {
                size if size == MODULES.load(Ordering::Relaxed) => ptr::null_mut(),
                size => look(size),
            },
        }
    }
}

#[cold]
unsafe fn look(size: isize) -> *mut ffi::PyObject {
    // SAFETY: the caller of `current` holds the lock.
    let py = unsafe { Python::assume_attached() };
    let found = || -> PyResult<Option<Asyncio>> {
        let modules = py.import("sys")?.getattr("modules")?;
        let Some(tasks) = modules.cast::<PyDict>()?.get_item("asyncio.tasks")? else {
            return Ok(None);
        };
        let is_dict = py.version_info() < (3, 12);
        let name = if is_dict { "_current_tasks" } else { "current_task" };
        let events = tasks.getattr("events")?;
        Ok(Some(Asyncio {
            running_loop: events.getattr("_get_running_loop")?.into_ptr(),
            current: tasks.getattr(name)?.into_ptr(),
            is_dict,
        }))
    };
    // While it is being imported, something may be missing yet.
    match found() {
        Ok(Some(asyncio)) => {
            let asyncio = Box::into_raw(Box::new(asyncio));
            ASYNCIO.store(asyncio, Ordering::Release);
            // SAFETY: leaked above.
            unsafe { (*asyncio).current() }
        }
        Ok(None) => {
            MODULES.store(size, Ordering::Relaxed);
            ptr::null_mut()
        }
        Err(_) => ptr::null_mut(),
    }
}

impl Asyncio {
    /// # Safety
    /// As [`current`].
    #[inline]
    unsafe fn current(&self) -> *mut ffi::PyObject {
        // SAFETY: the lock is held; both objects are ours.
        unsafe {
            let running = ffi::PyObject_CallObject(self.running_loop, ptr::null_mut());
            if running.is_null() {
                ffi::PyErr_Clear();
                return ptr::null_mut();
            }
            let mut task = ptr::null_mut();
            if running != ffi::Py_None() {
                task = if self.is_dict {
                    let task = ffi::PyObject_GetItem(self.current, running);
                    if task.is_null() {
                        ffi::PyErr_Clear();
                    }
                    task
                } else {
                    let py = Python::assume_attached();
                    let running = Bound::from_borrowed_ptr(py, running);
                    let current = Bound::from_borrowed_ptr(py, self.current);
                    current.call1((running,)).map_or(ptr::null_mut(), Bound::into_ptr)
                };
            }
            ffi::Py_DecRef(running);
            if task == ffi::Py_None() {
                ffi::Py_DecRef(task);
                return ptr::null_mut();
            }
            task
        }
    }
}

/// The track of a task, which gets one if it has none.
///
/// # Safety
/// The interpreter's lock is held, and `task` is a task.
pub unsafe fn track(library: &Library, task: *mut ffi::PyObject) -> *const c_void {
    let key = task.addr();
    if let Some(track) = with(|tasks| tasks.all.get(&key).map(|task| task.track)) {
        return track.0;
    }
    // SAFETY: the caller's promise.
    let (py, object) = unsafe {
        let py = Python::assume_attached();
        (py, Bound::from_borrowed_ptr(py, task))
    };
    let name = object.call_method0("get_name").and_then(|name| name.extract::<String>());
    let name = CString::new(name.unwrap_or_default()).unwrap_or_default();
    let weak = watch(py, &object, key);
    with(|tasks| {
        let create = |name: &CString, parent: *const c_void| {
            // SAFETY: a C string, and null or a track.
            Track(unsafe { (library.track)(name.as_ptr(), parent, NO_RANK) })
        };
        let parent =
            *tasks.parent.get_or_insert_with(|| create(&c"asyncio".to_owned(), ptr::null()));
        let pooled = tasks.tracks >= MAX_TRACKS;
        let left = if pooled { tasks.free.pop() } else { None };
        let track = match left {
            Some(track) => track,
            None => {
                tasks.tracks += 1;
                create(if pooled { &POOLED } else { &name }, parent.0)
            }
        };
        let new = Task { track, pooled, open: Vec::new(), _weak: weak.ok() };
        tasks.all.insert(key, new);
        track.0
    })
}

/// What the tracks are called that tasks share.
static POOLED: std::sync::LazyLock<CString> = std::sync::LazyLock::new(|| c"task".to_owned());

/// Has a task forgotten when it is gone.
fn watch(py: Python<'_>, task: &Bound<'_, PyAny>, key: usize) -> PyResult<Py<PyAny>> {
    let gone = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        let before = with(|tasks| {
            let before = tasks.all.remove(&key);
            if let Some(task) = before.as_ref().filter(|task| task.pooled) {
                tasks.free.push(task.track);
            }
            before
        });
        // Its weak reference is Python's, and goes without our lock.
        drop(before);
    };
    let callback = PyCFunction::new_closure(py, None, None, gone)?;
    Ok(py.import("weakref")?.getattr("ref")?.call1((task, callback))?.unbind())
}

/// A scope begins in a task.
///
/// # Safety
/// The interpreter's lock is held, and `task` is a task.
pub unsafe fn entered(task: *mut ffi::PyObject, scope: usize, range: u64) {
    with(|tasks| {
        if let Some(task) = tasks.all.get_mut(&task.addr()) {
            task.open.push((scope, range));
        }
    });
}

/// A scope ends in a task, or in none (null), in which case another's is looked for: a generator
/// may be finished elsewhere. Its range, if it began in a task.
pub fn left(task: *mut ffi::PyObject, scope: usize) -> Option<u64> {
    let take = |task: &mut Task| {
        let at = task.open.iter().rposition(|(open, _)| *open == scope)?;
        Some(task.open.remove(at).1)
    };
    with(|tasks| {
        let own = tasks.all.get_mut(&task.addr()).and_then(take);
        own.or_else(|| tasks.all.values_mut().find_map(take))
    })
}

/// Begins a range on the track of the task that runs on this thread, or (without one) on one that
/// is named after its category.
///
/// # Safety
/// The interpreter's lock is held; `name` and `args` are as the library wants them.
pub unsafe fn begin_range(
    library: &Library,
    category: u32,
    name: *const std::ffi::c_char,
    (args, count): (*const Arg, usize),
) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let task = current();
        let mut place = ptr::null();
        if !task.is_null() {
            place = track(library, task);
            ffi::Py_DecRef(task);
        }
        (library.range_begin_str)(category, name, place, args, count)
    }
}
