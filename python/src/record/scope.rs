//! `scope(name, **args)`, the one thing that a program does often: written against Python's C
//! interface, because a generic call costs more than what it records.
//!
//! A scope without arguments has no state: one object per name serves all threads, so that
//! nothing is allocated. The library knows which of a thread's scopes were recorded; of those that
//! begin while they are not, it never hears ([`super::levels`]). Only a scope inside a task of
//! asyncio has state, which is kept with the task ([`super::tasks`]).
//!
//! `with` makes a bound method of each of `__enter__` and `__exit__`, which costs more than all
//! else; [`super::bound`] has a scope keep its own.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

use super::args::{Args, text};
use super::bound;
use super::levels;
use super::library::{Arg, Library, library};
use super::tasks;

/// Python's `METH_FASTCALL`: part of the stable interface from 3.10 on, and the same in 3.9.
const METH_FASTCALL: c_int = 0x80;

type Object = *mut ffi::PyObject;
type Fast = unsafe extern "C" fn(Object, *const Object, isize) -> Object;
type FastWithKeywords = unsafe extern "C" fn(Object, *const Object, isize, Object) -> Object;

/// Names that get a handle in the library, which has room for 65,536 texts.
const MAX_NAMES: usize = 1 << 14;

/// A name gets one when it comes for the second time: names that are made at run time
/// (`f"step {i}"`) would use them up. Here is what the first time leaves: the name's hash.
static SEEN: [AtomicUsize; 4096] = [const { AtomicUsize::new(0) }; 4096];
static NAMES: AtomicUsize = AtomicUsize::new(0);

/// From a name to its scope: a dictionary, ours for good, like the type.
static KNOWN: AtomicPtr<ffi::PyObject> = AtomicPtr::new(ptr::null_mut());
/// Scopes of `KNOWN` by the address of their name, which a literal has for as long as it lives.
static RECENT: [AtomicPtr<ffi::PyObject>; 256] = [const { AtomicPtr::new(ptr::null_mut()) }; 256];
static TYPE: AtomicPtr<ffi::PyTypeObject> = AtomicPtr::new(ptr::null_mut());
/// The word `category`, which is no argument.
static CATEGORY: AtomicPtr<ffi::PyObject> = AtomicPtr::new(ptr::null_mut());

#[repr(C)]
struct Scope {
    base: ffi::PyObject,
    /// The library's handle of the name; 0 while it has none.
    site: AtomicU32,
    /// The library's handle of the category; 0 is the usual one.
    category: u32,
    /// How often it is open in tasks.
    in_tasks: AtomicU32,
    /// Whether its name is one that may have a handle.
    lasting: bool,
    name: Object,
    /// The arguments: a tuple of names, and one of values; or null.
    keys: Object,
    values: Object,
    /// What a scope in `KNOWN` keeps: it lives as long as the process.
    methods: bound::Kept,
}

/// `scope(name, /, *, category="app", **args)`
unsafe extern "C" fn scope(_: Object, args: *const Object, count: isize, keys: Object) -> Object {
    // SAFETY: called by the interpreter, which holds its lock, with `count` positional
    // arguments and after them one for each name in the tuple `keys`, unless that is null.
    unsafe {
        if count != 1 {
            return refuse("scope() takes one positional argument: its name");
        }
        let known = find(*args);
        if keys.is_null() || known.is_null() {
            return known;
        }
        with_args(known, args.add(1), keys)
    }
}

/// The scope of a name, without arguments: a new reference. Null with an exception set if the
/// name is no text.
#[inline]
unsafe fn find(name: Object) -> Object {
    // SAFETY: the lock is held, `name` is an object, and `KNOWN` a dictionary. What is in `RECENT`
    // is in it, too, and lives as long as the process.
    unsafe {
        let recent = &RECENT[(name.addr() >> 4) % RECENT.len()];
        let scope = recent.load(Ordering::Acquire);
        if !scope.is_null() && (*scope.cast::<Scope>()).name == name {
            ffi::Py_INCREF(scope);
            return scope;
        }
        let known = ffi::PyDict_GetItemWithError(KNOWN.load(Ordering::Relaxed), name);
        if !known.is_null() {
            if (*known.cast::<Scope>()).name == name {
                recent.store(known, Ordering::Release);
            }
            ffi::Py_INCREF(known);
            return known;
        }
        first(name)
    }
}

#[cold]
unsafe fn first(name: Object) -> Object {
    // SAFETY: as in `find`.
    unsafe {
        if !ffi::PyErr_Occurred().is_null() || ffi::PyUnicode_Check(name) == 0 {
            return refuse("the name of a scope is a str");
        }
        // Cannot fail for a text.
        let hash = ffi::PyObject_Hash(name) as usize | 1;
        let seen = &SEEN[(hash >> 1) % SEEN.len()];
        if seen.swap(hash, Ordering::Relaxed) != hash || NAMES.load(Ordering::Relaxed) >= MAX_NAMES
        {
            return new(name, false);
        }
        NAMES.fetch_add(1, Ordering::Relaxed);
        let object = new(name, true);
        if let Some(scope) = object.cast::<Scope>().as_ref() {
            if ffi::PyDict_SetItem(KNOWN.load(Ordering::Relaxed), name, object) == 0 {
                scope.methods.keep();
            } else {
                ffi::PyErr_Clear();
            }
        }
        object
    }
}

unsafe fn new(name: Object, lasting: bool) -> Object {
    // SAFETY: the lock is held; the type is ours, and its instances are `Scope`s, of which only
    // the head is written so far.
    unsafe {
        let object = ffi::PyType_GenericAlloc(TYPE.load(Ordering::Relaxed), 0);
        if let Some(scope) = object.cast::<Scope>().as_mut() {
            ffi::Py_INCREF(name);
            scope.name = name;
            scope.lasting = lasting;
        }
        object
    }
}

/// A scope with arguments, of which `values` has as many as `keys` has names. While nothing is
/// recorded they are not looked at. Takes the reference `plain`.
unsafe fn with_args(plain: Object, values: *const Object, keys: Object) -> Object {
    // SAFETY: the lock is held, `plain` is a `Scope`, and the caller says the rest.
    unsafe {
        let Some(library) = library() else { return plain };
        let count = ffi::PyTuple_Size(keys);
        let category = match category(library, keys, values, count) {
            Ok(category) => category,
            Err(()) => {
                ffi::Py_DecRef(plain);
                return ptr::null_mut();
            }
        };
        if !(library.is_enabled)(category.map_or(0, |(_, category)| category)) {
            return plain;
        }
        let source = &*plain.cast::<Scope>();
        let object = new(source.name, source.lasting && category.is_none());
        let Some(scope) = object.cast::<Scope>().as_mut() else {
            ffi::Py_DecRef(plain);
            return object;
        };
        let kept = category.map_or(count, |_| count - 1);
        let tuple = ffi::PyTuple_New(kept);
        let names = if category.is_some() { ffi::PyTuple_New(kept) } else { keys };
        if tuple.is_null() || names.is_null() {
            ffi::Py_DecRef(plain);
            ffi::Py_DecRef(object);
            return ptr::null_mut();
        }
        let mut to = 0;
        for index in 0..count {
            if category.is_some_and(|(at, _)| at == index) {
                continue;
            }
            let value = *values.offset(index);
            ffi::Py_INCREF(value);
            ffi::PyTuple_SetItem(tuple, to, value);
            if names != keys {
                let name = ffi::PyTuple_GetItem(keys, index);
                ffi::Py_INCREF(name);
                ffi::PyTuple_SetItem(names, to, name);
            }
            to += 1;
        }
        if names == keys {
            ffi::Py_INCREF(keys);
        }
        scope.keys = names;
        scope.values = tuple;
        scope.category = category.map_or(0, |(_, category)| category);
        let site = source.site.load(Ordering::Relaxed);
        scope.site = AtomicU32::new(if scope.lasting { site } else { 0 });
        ffi::Py_DecRef(plain);
        object
    }
}

/// Where the argument `category` is, and the library's handle of it.
unsafe fn category(
    library: &Library,
    keys: Object,
    values: *const Object,
    count: isize,
) -> Result<Option<(isize, u32)>, ()> {
    // SAFETY: as in `with_args`.
    unsafe {
        let word = CATEGORY.load(Ordering::Relaxed);
        for index in 0..count {
            let key = ffi::PyTuple_GetItem(keys, index);
            // Names of arguments are interned, but for those of a dictionary.
            if key != word && ffi::PyUnicode_Compare(key, word) != 0 {
                continue;
            }
            let value = *values.offset(index);
            if ffi::PyUnicode_Check(value) == 0 {
                refuse("category is a str");
                return Err(());
            }
            let text = text(value);
            let handle = if text.is_null() { 0 } else { (library.category)(text) };
            return Ok(Some((index, handle)));
        }
        Ok(None)
    }
}

unsafe extern "C" fn enter(this: Object, _: Object) -> Object {
    // SAFETY: called by the interpreter, which holds its lock, with a `Scope`.
    unsafe {
        if let Some(library) = library()
            && !begin(library, this)
        {
            return ptr::null_mut();
        }
        ffi::Py_INCREF(this);
        this
    }
}

/// False with an exception set if the program is to get one.
#[inline]
unsafe fn begin(library: &Library, this: Object) -> bool {
    // SAFETY: the lock is held, and `this` is a `Scope`.
    unsafe {
        let scope = &*this.cast::<Scope>();
        if !(library.is_enabled)(scope.category) {
            levels::begin_unknown();
            return true;
        }
        if scope.keys.is_null() {
            // Nothing to convert.
            let task = tasks::current();
            if !task.is_null() {
                return begin_in(library, scope, task, (ptr::null(), 0));
            }
            push(library, scope, (ptr::null(), 0));
            return true;
        }
        let mut args = Args::new();
        if !args.add_all(scope.keys, |index| ffi::PyTuple_GetItem(scope.values, index)) {
            return false;
        }
        let task = tasks::current();
        if !task.is_null() {
            return begin_in(library, scope, task, args.list());
        }
        push(library, scope, args.list());
        true
    }
}

/// Begins it on the thread. `args` are as the library wants them.
#[inline]
unsafe fn push(library: &Library, scope: &Scope, (args, count): (*const Arg, usize)) {
    if !levels::begin_known() {
        return;
    }
    // SAFETY: the lock is held, and the caller says the rest.
    unsafe {
        match scope.site(library) {
            0 => (library.push_str)(scope.category, scope.text(), args, count),
            site => (library.push)(site, args, count),
        }
    }
}

/// Begins it in a task, whose reference is taken.
#[cold]
unsafe fn begin_in(
    library: &Library,
    scope: &Scope,
    task: Object,
    (args, count): (*const Arg, usize),
) -> bool {
    // SAFETY: as in `push`, and `task` is a task.
    unsafe {
        let track = tasks::track(library, task);
        let range = (library.range_begin_str)(scope.category, scope.text(), track, args, count);
        tasks::entered(task, ptr::from_ref(scope).addr(), range);
        scope.in_tasks.fetch_add(1, Ordering::Relaxed);
        ffi::Py_DecRef(task);
    }
    true
}

unsafe extern "C" fn exit(this: Object, args: *const Object, count: isize) -> Object {
    // SAFETY: called by the interpreter, which holds its lock, with a `Scope` and an exception's
    // type, value and traceback, or None.
    unsafe {
        let none = ffi::Py_None();
        if let Some(library) = library() {
            let scope = &*this.cast::<Scope>();
            let kind = if count > 0 { *args } else { none };
            let range =
                if scope.in_tasks.load(Ordering::Relaxed) == 0 { None } else { end_in_task(scope) };
            match range {
                None if !levels::end() => {}
                _ if kind != none => failed(library, range, kind),
                None => (library.pop)(),
                Some(range) => (library.range_end)(range, ptr::null(), 0),
            }
        }
        ffi::Py_INCREF(none);
        none
    }
}

/// The range of a scope that ends in a task, unless it began outside of one.
#[cold]
unsafe fn end_in_task(scope: &Scope) -> Option<u64> {
    // SAFETY: the lock is held; the reference is given back.
    unsafe {
        let task = tasks::current();
        if task.is_null() {
            return None;
        }
        let range = tasks::left(task, ptr::from_ref(scope).addr());
        ffi::Py_DecRef(task);
        if range.is_some() {
            scope.in_tasks.fetch_sub(1, Ordering::Relaxed);
        }
        range
    }
}

/// An exception leaves the scope: its type is an argument.
#[cold]
unsafe fn failed(library: &Library, range: Option<u64>, kind: Object) {
    // SAFETY: the lock is held; the texts live until the calls return.
    unsafe {
        let name = ffi::PyObject_GetAttrString(kind, c"__name__".as_ptr());
        let mut args = Args::new();
        let shown = if name.is_null() { ptr::null() } else { text(name) };
        if name.is_null() {
            ffi::PyErr_Clear();
        }
        if !shown.is_null() {
            args.text(c"exception".as_ptr(), shown);
        }
        let (list, count) = args.list();
        match range {
            None => (library.pop_args)(list, count),
            Some(range) => (library.range_end)(range, list, count),
        }
        ffi::Py_XDECREF(name);
    }
}

impl Scope {
    /// The library's handle of its name; 0 if it has none.
    #[inline]
    unsafe fn site(&self, library: &Library) -> u32 {
        match self.site.load(Ordering::Relaxed) {
            // SAFETY: the lock is held.
            0 if self.lasting && self.category == 0 => unsafe {
                let site = (library.name)(0, self.text());
                self.site.store(site, Ordering::Relaxed);
                site
            },
            site => site,
        }
    }

    /// # Safety
    /// The interpreter's lock is held; the text lives as long as the scope.
    unsafe fn text(&self) -> *const c_char {
        if self.name.is_null() {
            return c"(unnamed)".as_ptr();
        }
        // SAFETY: the caller's promise.
        let text = unsafe { text(self.name) };
        if text.is_null() { c"?".as_ptr() } else { text }
    }
}

unsafe extern "C" fn free(this: Object) {
    // SAFETY: called by the interpreter with a `Scope` that nobody has any more. A type that is
    // made at run time counts its instances.
    unsafe {
        let scope = &*this.cast::<Scope>();
        for object in [scope.name, scope.keys, scope.values] {
            ffi::Py_XDECREF(object);
        }
        let kind = ffi::Py_TYPE(this);
        ffi::PyObject_Free(this.cast());
        ffi::Py_DecRef(kind.cast());
    }
}

unsafe extern "C" fn repr(this: Object) -> Object {
    // SAFETY: called by the interpreter with a `Scope`, whose text ends with a NUL.
    unsafe {
        let scope = &*this.cast::<Scope>();
        ffi::PyUnicode_FromFormat(c"<Scope %s>".as_ptr(), scope.text())
    }
}

unsafe fn refuse(why: &'static str) -> Object {
    // SAFETY: the lock is held.
    let py = unsafe { Python::assume_attached() };
    PyTypeError::new_err(why).restore(py);
    ptr::null_mut()
}

/// The methods that a scope keeps.
///
/// # Safety
/// `object` is an object, of any type.
unsafe fn kept<'a>(object: Object) -> Option<&'a bound::Kept> {
    // SAFETY: the caller's promise; instances of our type are `Scope`s.
    unsafe {
        let ours = ffi::Py_TYPE(object) == TYPE.load(Ordering::Relaxed);
        ours.then(|| &(*object.cast::<Scope>()).methods)
    }
}

/// A method that takes its arguments as the interpreter has them.
const fn fast(name: &'static std::ffi::CStr, function: Fast) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            // SAFETY: with this flag the interpreter calls it as what it is.
            PyCFunction: unsafe { std::mem::transmute::<Fast, ffi::PyCFunction>(function) },
        },
        ml_flags: METH_FASTCALL,
        ml_doc: ptr::null(),
    }
}

/// Constants, but for a name that is interned: made once, under the interpreter's lock.
struct Methods([ffi::PyMethodDef; 3]);
// SAFETY: only read, by the interpreter.
unsafe impl Sync for Methods {}

static METHODS: Methods = Methods([
    ffi::PyMethodDef {
        ml_name: c"__enter__".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: enter },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: ptr::null(),
    },
    fast(c"__exit__", exit),
    ffi::PyMethodDef::zeroed(),
]);

static FUNCTION: Methods = Methods([
    ffi::PyMethodDef {
        ml_name: c"scope".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer {
            // SAFETY: as in `fast`.
            PyCFunction: unsafe {
                std::mem::transmute::<FastWithKeywords, ffi::PyCFunction>(scope)
            },
        },
        ml_flags: METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: c"scope(name, /, **args)\n--\n\n\
            A slice from where a `with` block begins to where it ends, with arguments.\n\n\
            It lies on the thread's track, or on that of the asyncio task that runs, inside the\n\
            scopes around it. `category` is no argument but what the event is switched on and\n\
            off by, \"app\" without it. Values are numbers, texts, a Flow (an arrow from here to\n\
            the next event with it), or what str() makes of them. An exception that leaves the\n\
            block is an argument, too. While nothing is recorded it does nothing."
            .as_ptr(),
    },
    ffi::PyMethodDef::zeroed(),
    ffi::PyMethodDef::zeroed(),
]);

/// Adds `scope` to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let slot = |slot, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(ffi::Py_tp_methods, (&raw const METHODS.0).cast_mut().cast()),
        slot(ffi::Py_tp_dealloc, free as unsafe extern "C" fn(Object) as *mut c_void),
        slot(ffi::Py_tp_repr, repr as unsafe extern "C" fn(Object) -> Object as *mut c_void),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"kymograph.Scope".as_ptr(),
        basicsize: size_of::<Scope>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as u32,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the lock is held; the specification is read during the call, the methods are
    // static. What is stored is ours for good.
    unsafe {
        let kind = ffi::PyType_FromSpec(&raw mut spec);
        let known = ffi::PyDict_New();
        let word = ffi::PyUnicode_InternFromString(c"category".as_ptr());
        let function = ffi::PyCFunction_NewEx(
            (&raw const FUNCTION.0).cast_mut().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
        );
        if kind.is_null() || known.is_null() || word.is_null() || function.is_null() {
            return Err(PyErr::take(py).unwrap_or_else(|| PyMemoryError::new_err("no memory")));
        }
        TYPE.store(kind.cast(), Ordering::Release);
        let methods = (&raw const METHODS.0).cast_mut().cast::<ffi::PyMethodDef>();
        bound::replace(py, kind, [methods, methods.add(1)], kept)?;
        KNOWN.store(known, Ordering::Release);
        CATEGORY.store(word, Ordering::Release);
        module.add("Scope", Bound::from_borrowed_ptr(py, kind))?;
        module.add("scope", Bound::from_owned_ptr(py, function))
    }
}
