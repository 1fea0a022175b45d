//! What is recorded less often than scopes: moments, counters, ranges, names.

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use super::args::{Args, Flow};
use super::library::{Library, library};
use super::tasks;

/// `kymo_unit` of kymograph.h, by the words that the package has for them.
const UNITS: [(&str, i32); 4] = [("", 0), ("ns", 1), ("count", 2), ("bytes", 3)];

/// Handles of counters by category, name and unit. Names of counters are few: the library keeps
/// them as well.
static COUNTERS: Mutex<Option<HashMap<Name, u64>>> = Mutex::new(None);

/// Category, name and unit.
type Name = (String, String, i32);

fn c_string(text: &str) -> CString {
    // What is behind a NUL is cut off, as everywhere in the library.
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// The library, if events of the category are recorded, and the category's handle.
fn wanted(category: &str) -> Option<(&'static Library, u32)> {
    let library = library()?;
    let name = c_string(category);
    let category = match category {
        "app" => 0,
        // SAFETY: a C string.
        _ => unsafe { (library.category)(name.as_ptr()) },
    };
    // SAFETY: any number may be asked.
    unsafe { (library.is_enabled)(category) }.then_some((library, category))
}

/// Something happens, on this thread or in the asyncio task that runs.
#[pyfunction]
#[pyo3(signature = (name, /, *, category="app", **args))]
pub fn instant(
    py: Python<'_>,
    name: &str,
    category: &str,
    args: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let _ = py;
    let Some((library, category)) = wanted(category) else { return Ok(()) };
    let args = Args::of(args)?;
    let (list, count) = args.list();
    let name = c_string(name);
    // SAFETY: the lock is held; texts live until the call returns.
    unsafe {
        let task = tasks::current();
        let mut track = ptr::null();
        if !task.is_null() {
            track = tasks::track(library, task);
            pyo3::ffi::Py_DecRef(task);
        }
        (library.instant_str)(category, name.as_ptr(), track, list, count);
    }
    Ok(())
}

/// A counter has a value from now on: a whole number or a float. `unit` is "", "ns", "count" or
/// "bytes".
#[pyfunction]
#[pyo3(signature = (name, value, /, *, unit="", category="app"))]
pub fn counter(name: &str, value: &Bound<'_, PyAny>, unit: &str, category: &str) -> PyResult<()> {
    let known = UNITS.iter().find(|(word, _)| *word == unit).map(|(_, number)| *number);
    let Some(number) = known else {
        return Err(PyValueError::new_err(format!(
            "unit is \"\", \"ns\", \"count\" or \"bytes\", not {unit:?}"
        )));
    };
    let Some((library, handle)) = wanted(category) else { return Ok(()) };
    let key = (category.to_owned(), name.to_owned(), number);
    let mut counters = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = counters.get_or_insert_default().entry(key).or_insert_with(|| {
        // SAFETY: a C string.
        unsafe { (library.counter)(handle, c_string(name).as_ptr(), number) }
    });
    let counter = *known;
    drop(counters);
    // SAFETY: any numbers may be given.
    unsafe {
        if value.is_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(value) => (library.counter_i64)(counter, value),
                Err(_) => (library.counter_f64)(counter, value.extract()?),
            }
        } else if value.is_instance_of::<PyFloat>() {
            (library.counter_f64)(counter, value.extract()?);
        } else {
            // numpy's, Decimal and so on.
            let value: f64 = value
                .extract()
                .map_err(|_| PyTypeError::new_err("the value of a counter is a number"))?;
            (library.counter_f64)(counter, value);
        }
    }
    Ok(())
}

/// An arrow: give it to events as an argument, to the last one as `flow.end`.
#[pyfunction]
pub fn flow() -> Flow {
    // SAFETY: takes nothing, returns a number.
    Flow::new(library().map_or(0, |library| unsafe { (library.flow_new)() }))
}

/// Begins a range in the asyncio task that runs, or on a track of its category; returns its
/// number, 0 if it is not recorded.
#[pyfunction]
pub fn range_begin(name: &str, category: &str, args: Option<&Bound<'_, PyDict>>) -> PyResult<u64> {
    let Some((library, category)) = wanted(category) else { return Ok(0) };
    let args = Args::of(args)?;
    // SAFETY: the lock is held; texts live until the call returns.
    Ok(unsafe { tasks::begin_range(library, category, c_string(name).as_ptr(), args.list()) })
}

/// Ends a range, on any thread.
#[pyfunction]
#[pyo3(signature = (range, args=None))]
pub fn range_end(range: u64, args: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    if let Some(library) = library().filter(|_| range != 0) {
        let args = Args::of(args)?;
        let (list, count) = args.list();
        // SAFETY: texts live until the call returns.
        unsafe { (library.range_end)(range, list, count) };
    }
    Ok(())
}

/// Whether events of a category are recorded at this moment.
#[pyfunction]
#[pyo3(signature = (category="app"))]
pub fn is_enabled(category: &str) -> bool {
    wanted(category).is_some()
}

/// Names the thread that calls it in the trace.
#[pyfunction]
pub fn thread_name(name: &str) {
    if let Some(library) = library() {
        // SAFETY: a C string.
        unsafe { (library.thread_name)(c_string(name).as_ptr()) };
    }
}

/// Names this process in the trace.
#[pyfunction]
pub fn process_name(name: &str) {
    if let Some(library) = library() {
        // SAFETY: a C string.
        unsafe { (library.process_name)(c_string(name).as_ptr()) };
    }
}
