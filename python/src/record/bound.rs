//! Bound methods that an object keeps.
//!
//! `with` looks up `__enter__` and `__exit__` on the type and binds both to the object: up to
//! Python 3.13 two objects are allocated and freed each time, which takes longer than a scope does.
//! The descriptors here bind once: an object that lives as long as the process keeps what they
//! gave. On the class they are what they replace, which `contextlib.ExitStack` calls.

use std::ffi::{c_int, c_void};
use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

type Object = *mut ffi::PyObject;
type Get = unsafe extern "C" fn(Object, Object, Object) -> Object;

/// Says where an object keeps its methods; None if it is not of the type.
type Find = unsafe fn(Object) -> Option<&'static Kept>;

/// In an object: its `__enter__` and `__exit__`. Zeroed memory is one that keeps nothing.
#[repr(C)]
pub struct Kept {
    methods: [AtomicPtr<ffi::PyObject>; 2],
    keeps: AtomicBool,
}

impl Kept {
    /// From now on the object keeps its methods, which hold references to it: it is never freed.
    pub fn keep(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }
}

/// `__enter__` or `__exit__` in the dictionary of the type.
#[repr(C)]
struct Descriptor {
    base: ffi::PyObject,
    which: usize,
    method: *mut ffi::PyMethodDef,
    /// What stood there before: Python's own descriptor of the method.
    plain: Object,
    find: Option<Find>,
}

unsafe extern "C" fn get(this: Object, object: Object, _: Object) -> Object {
    // SAFETY: called by the interpreter, which holds its lock, with a `Descriptor`, and with an
    // object or null for the class.
    unsafe {
        let descriptor = &*this.cast::<Descriptor>();
        let kept = match descriptor.find {
            Some(find) if !object.is_null() => find(object),
            _ => None,
        };
        let Some(kept) = kept else {
            ffi::Py_INCREF(descriptor.plain);
            return descriptor.plain;
        };
        let place = &kept.methods[descriptor.which];
        let method = place.load(Ordering::Acquire);
        if !method.is_null() {
            ffi::Py_INCREF(method);
            return method;
        }
        let method = ffi::PyCFunction_NewEx(descriptor.method, object, ptr::null_mut());
        if !method.is_null() && kept.keeps.load(Ordering::Relaxed) {
            ffi::Py_INCREF(method);
            place.store(method, Ordering::Release);
        }
        method
    }
}

/// Replaces `__enter__` and `__exit__` of a type by descriptors that bind once.
///
/// # Errors
/// Whatever Python raises.
///
/// # Safety
/// `kind` is a type with these methods, whose definitions are `methods`, which live for ever.
pub unsafe fn replace(
    py: Python<'_>,
    kind: Object,
    methods: [*mut ffi::PyMethodDef; 2],
    find: Find,
) -> PyResult<()> {
    let slot = |slot, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots =
        [slot(ffi::Py_tp_descr_get, get as Get as *mut c_void), slot(0, ptr::null_mut())];
    let mut spec = ffi::PyType_Spec {
        name: c"kymograph.ScopeMethod".as_ptr(),
        basicsize: size_of::<Descriptor>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    let failed = || PyErr::take(py).unwrap_or_else(|| PyMemoryError::new_err("no memory"));
    // SAFETY: the lock is held, and the specification is read during the call. The two descriptors
    // are ours for good; of a new one only the head is written.
    unsafe {
        let of_descriptors = ffi::PyType_FromSpec(&raw mut spec);
        if of_descriptors.is_null() {
            return Err(failed());
        }
        for (which, name) in [c"__enter__", c"__exit__"].into_iter().enumerate() {
            let plain = ffi::PyObject_GetAttrString(kind, name.as_ptr());
            let object = ffi::PyType_GenericAlloc(of_descriptors.cast(), 0);
            let Some(descriptor) = object.cast::<Descriptor>().as_mut() else {
                return Err(failed());
            };
            descriptor.which = which;
            descriptor.method = methods[which];
            descriptor.plain = plain;
            descriptor.find = Some(find);
            if plain.is_null() || ffi::PyObject_SetAttrString(kind, name.as_ptr(), object) != 0 {
                return Err(failed());
            }
        }
    }
    Ok(())
}
