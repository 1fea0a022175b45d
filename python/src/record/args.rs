//! Python's values as arguments of events.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::library::Arg;

/// `kymo_type` of kymograph.h.
mod ty {
    pub const BOOL: u32 = 1;
    pub const I64: u32 = 2;
    pub const U64: u32 = 3;
    pub const F64: u32 = 4;
    pub const STRING: u32 = 5;
    pub const FLOW: u32 = 7;
    pub const FLOW_END: u32 = 8;
}

/// As many as an event takes, and one, by which the library sees that there are more.
const MAX: usize = 33;

unsafe extern "C" {
    /// In every Python 3, but in the stable interface only from 3.10 on.
    fn PyUnicode_AsUTF8AndSize(text: *mut ffi::PyObject, size: *mut isize) -> *const c_char;
}

/// An arrow through events: `ky.flow()`.
#[pyclass(frozen, module = "kymograph")]
#[derive(Debug)]
pub struct Flow {
    id: u64,
    ends: bool,
}

impl Flow {
    pub fn new(id: u64) -> Flow {
        Flow { id, ends: false }
    }
}

#[pymethods]
impl Flow {
    /// The same arrow, for the event at which it ends.
    #[getter]
    fn end(&self) -> Flow {
        Flow { id: self.id, ends: true }
    }

    /// Its number; 0 if nothing was recorded when it was made.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    fn __repr__(&self) -> String {
        format!("<Flow {}{}>", self.id, if self.ends { ", end" } else { "" })
    }
}

/// The text of a `str` in UTF-8, with a NUL at its end; it lives as long as the object. Null if
/// it has lone surrogates, which no UTF-8 stands for; no exception is set then.
///
/// # Safety
/// The interpreter's lock is held, and `object` is an object.
pub unsafe fn text(object: *mut ffi::PyObject) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe {
        let text = PyUnicode_AsUTF8AndSize(object, ptr::null_mut());
        if text.is_null() {
            ffi::PyErr_Clear();
        }
        text
    }
}

/// Arguments, as the library takes them, and what keeps their texts alive.
pub struct Args {
    list: [MaybeUninit<Arg>; MAX],
    count: usize,
    kept: Vec<*mut ffi::PyObject>,
}

impl Args {
    pub fn new() -> Args {
        Args { list: [const { MaybeUninit::uninit() }; MAX], count: 0, kept: Vec::new() }
    }

    pub fn list(&self) -> (*const Arg, usize) {
        (self.list.as_ptr().cast(), self.count)
    }

    fn push(&mut self, name: *const c_char, ty: u32, value: u64) {
        if let Some(slot) = self.list.get_mut(self.count) {
            slot.write(Arg { name, name_id: 0, ty, value });
            self.count += 1;
        }
    }

    /// Adds one that has a text.
    pub fn text(&mut self, name: *const c_char, value: *const c_char) {
        self.push(name, ty::STRING, value as usize as u64);
    }

    /// Adds an argument. False with an exception set if there is one that the program is to get
    /// (Ctrl-C); what has no value gets the name of its type.
    ///
    /// # Safety
    /// The interpreter's lock is held; `name` and `value` are objects that outlive this.
    pub unsafe fn add(&mut self, name: *mut ffi::PyObject, value: *mut ffi::PyObject) -> bool {
        // SAFETY: the caller's promise; types of Python's are compared by address.
        unsafe {
            let label = text(name);
            let label = if label.is_null() { c"?".as_ptr() } else { label };
            let kind = ffi::Py_TYPE(value);
            let bits = |value: u64| value;
            if kind == &raw mut ffi::PyUnicode_Type {
                let value = text(value);
                let value = if value.is_null() { c"?".as_ptr() } else { value };
                self.text(label, value);
            } else if kind == &raw mut ffi::PyLong_Type {
                let mut overflow = 0;
                let small = ffi::PyLong_AsLongLongAndOverflow(value, &mut overflow);
                if overflow == 0 {
                    self.push(label, ty::I64, bits(small as u64));
                } else {
                    let large = ffi::PyLong_AsUnsignedLongLong(value);
                    if large == u64::MAX && !ffi::PyErr_Occurred().is_null() {
                        ffi::PyErr_Clear();
                        return self.describe(label, value);
                    }
                    self.push(label, ty::U64, large);
                }
            } else if kind == &raw mut ffi::PyFloat_Type {
                self.push(label, ty::F64, ffi::PyFloat_AsDouble(value).to_bits());
            } else if kind == &raw mut ffi::PyBool_Type {
                self.push(label, ty::BOOL, u64::from(value == ffi::Py_True()));
            } else {
                let py = Python::assume_attached();
                let object = Bound::from_borrowed_ptr(py, value);
                if let Ok(flow) = object.cast::<Flow>() {
                    let flow = flow.get();
                    self.push(label, if flow.ends { ty::FLOW_END } else { ty::FLOW }, flow.id);
                } else {
                    return self.describe(label, value);
                }
            }
            true
        }
    }

    /// Adds a value of any other type, as a text or number that stands for it.
    ///
    /// # Safety
    /// As [`Args::add`].
    #[cold]
    unsafe fn describe(&mut self, label: *const c_char, value: *mut ffi::PyObject) -> bool {
        static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        // SAFETY: the caller's promise; the result is kept until this is dropped.
        unsafe {
            let py = Python::assume_attached();
            let described = DESCRIBE
                .get_or_try_init(py, || {
                    Ok(py.import("kymograph._record")?.getattr("_describe")?.unbind())
                })
                .and_then(|function| function.call1(py, (Bound::from_borrowed_ptr(py, value),)));
            match described {
                Ok(object) => {
                    let object = object.into_ptr();
                    self.kept.push(object);
                    let described = text(object);
                    let described = if described.is_null() { c"?".as_ptr() } else { described };
                    self.text(label, described);
                    true
                }
                Err(error) => {
                    error.restore(py);
                    false
                }
            }
        }
    }

    /// Adds what a function was called with by name: names in a tuple, and as many values.
    ///
    /// # Safety
    /// The interpreter's lock is held; `names` is null or a tuple, `values` has as many objects.
    pub unsafe fn add_all(
        &mut self,
        names: *mut ffi::PyObject,
        value: impl Fn(isize) -> *mut ffi::PyObject,
    ) -> bool {
        if names.is_null() {
            return true;
        }
        // SAFETY: the caller's promise; the indices are those of the tuple.
        unsafe {
            let count = ffi::PyTuple_Size(names);
            (0..count).all(|index| self.add(ffi::PyTuple_GetItem(names, index), value(index)))
        }
    }

    /// Those of a dictionary.
    pub fn of(dict: Option<&Bound<'_, pyo3::types::PyDict>>) -> PyResult<Args> {
        use pyo3::types::PyDictMethods;
        let mut args = Args::new();
        for (name, value) in dict.iter().flat_map(|dict| dict.iter()) {
            let (name, value) = (name.into_ptr(), value.into_ptr());
            args.kept.extend([name, value]);
            // SAFETY: a `Bound` shows that the lock is held; both live as long as `args`.
            if !unsafe { args.add(name, value) } {
                return Err(PyErr::fetch(dict.expect("it has an item").py()));
            }
        }
        Ok(args)
    }
}

impl Drop for Args {
    fn drop(&mut self) {
        for object in self.kept.drain(..) {
            // SAFETY: references of ours; those who make one of these hold the lock.
            unsafe { ffi::Py_DecRef(object) };
        }
    }
}
