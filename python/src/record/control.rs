//! Recordings: starting, stopping and what there is in between. What may wait does so without the
//! interpreter's lock.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::library::{Library, Summary, adopt, last_error, library, load};
use crate::Error;

/// The library, which is loaded from `path` unless the process has one.
fn needed(path: &Path) -> PyResult<&'static Library> {
    load(path).map_err(Error::new_err)
}

fn text(what: &str, text: &str) -> PyResult<CString> {
    CString::new(text).map_err(|_| PyValueError::new_err(format!("{what} has a NUL in it")))
}

fn done(library: &Library, done: bool) -> PyResult<()> {
    if done { Ok(()) } else { Err(Error::new_err(last_error(library))) }
}

/// Whether the recording that was just started is `kymo record`'s, which the program cannot pause.
fn is_adopted(library: &Library) -> bool {
    // SAFETY: takes nothing. A recording that has just started is not paused, so that this does
    // nothing to it.
    unsafe { !(library.resume)() }
}

/// Starts a recording, or (`closed`) gets ready for one that `open` opens. Returns whether it is
/// the one of `kymo record`.
#[pyfunction]
pub fn start(py: Python<'_>, path: PathBuf, options: &str, closed: bool) -> PyResult<bool> {
    let library = needed(&path)?;
    let options = text("an option", options)?;
    // What it cannot do is not recorded; a wrong option is said by the next call.
    // SAFETY: a C string, and this thread holds the interpreter's lock.
    unsafe { (library.observe_python)(options.as_ptr()) };
    py.detach(move || {
        let begin = if closed { library.prepare } else { library.start };
        // SAFETY: a C string.
        done(library, unsafe { begin(options.as_ptr()) })?;
        Ok(is_adopted(library))
    })
}

/// Calls of functions are not recorded any more.
#[pyfunction]
pub fn forget_calls() {
    if let Some(library) = library() {
        // SAFETY: a C string, and this thread holds the interpreter's lock.
        unsafe { (library.observe_python)(c"PYTHON=off".as_ptr()) };
    }
}

/// What became of a recording, as a dictionary.
#[pyfunction]
pub fn stop(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let mut summary = Summary { size: size_of::<Summary>(), ..Summary::default() };
    if let Some(library) = library() {
        py.detach(|| {
            // SAFETY: the size is set.
            done(library, unsafe { (library.stop)(&raw mut summary) })
        })?;
    }
    let dict = PyDict::new(py);
    for (key, value) in [
        ("events", summary.events),
        ("lost", summary.lost),
        ("truncated", summary.truncated),
        ("threads", summary.threads),
        ("bytes", summary.bytes),
        ("discarded", summary.discarded),
    ] {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}

/// Opens the window of a recording that was prepared; pauses it; goes on. Returns whether there is
/// one that the program may do this to.
#[pyfunction]
pub fn change(py: Python<'_>, how: &str) -> bool {
    let Some(library) = library() else { return false };
    let change = match how {
        "open" => library.open,
        "pause" => library.pause,
        _ => library.resume,
    };
    // SAFETY: takes nothing.
    py.detach(|| unsafe { change() })
}

/// Has the trace say something of itself. Whether there is one that the program may add to.
#[pyfunction]
pub fn metadata(py: Python<'_>, key: &str, value: &str) -> PyResult<bool> {
    let Some(library) = library() else { return Ok(false) };
    let (key, value) = (text("the key", key)?, text("the value", value)?);
    // SAFETY: C strings.
    Ok(py.detach(|| unsafe { (library.metadata)(key.as_ptr(), value.as_ptr()) }))
}

/// Writes what was recorded so far; whether that is done.
#[pyfunction]
pub fn flush(py: Python<'_>, milliseconds: u32) -> bool {
    // SAFETY: takes a number.
    library().is_some_and(|library| py.detach(|| unsafe { (library.flush)(milliseconds) }))
}

/// Has a flight recorder write what it holds.
#[pyfunction]
pub fn dump(py: Python<'_>, path: Option<&str>, milliseconds: u32) -> PyResult<()> {
    let Some(library) = library() else {
        return Err(Error::new_err("no flight recorder runs in this process"));
    };
    let path = path.map(|path| text("the path", path)).transpose()?;
    py.detach(|| {
        let path = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
        // SAFETY: null or a C string.
        done(library, unsafe { (library.dump)(path, milliseconds) })
    })
}

/// Lets this process be asked for traces.
#[pyfunction]
pub fn arm(py: Python<'_>, path: PathBuf, options: &str) -> PyResult<()> {
    let library = needed(&path)?;
    let options = text("an option", options)?;
    // SAFETY: a C string, and this thread holds the interpreter's lock.
    unsafe { (library.observe_python)(options.as_ptr()) };
    // SAFETY: a C string.
    py.detach(|| done(library, unsafe { (library.arm)(options.as_ptr()) }))
}

/// An iteration ends, and the next begins.
#[pyfunction]
pub fn step(py: Python<'_>) {
    if let Some(library) = library() {
        // A trace may be written here, if one was asked for.
        // SAFETY: takes nothing.
        py.detach(|| unsafe { (library.step)() });
    }
}

/// Whether this process is being recorded.
#[pyfunction]
pub fn is_recording() -> bool {
    // SAFETY: takes nothing.
    library().is_some_and(|library| unsafe { (library.is_recording)() })
}

/// Takes the library that the process has. Whether it has one.
#[pyfunction]
pub fn adopted() -> bool {
    adopt().is_some()
}
