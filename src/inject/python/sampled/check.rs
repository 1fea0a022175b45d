//! Whether stacks of this interpreter can be read: has it call functions of ours, and compares
//! what is read of that with what it says itself.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;

use kymograph_backends::environment::gettid;

use super::super::calls::folder;
use super::super::{METH_O, MethodDef, PYTHON, find};
use super::Object;
use super::layout::{self, Layout, Number};
use super::memory::read;
use super::stack::Reader;
use crate::guard::guard;

const SOURCE: &CStr = c"def outer():
 def inner(): look(None)
 inner()
outer()
";
/// What must come out.
const STACK: [&[u8]; 3] =
    [b"<kymograph>(2): inner", b"<kymograph>(1): outer", b"<kymograph>(1): <module>"];

static LOOK: MethodDef =
    MethodDef { name: c"look".as_ptr(), function: Some(look), flags: METH_O, doc: ptr::null() };

/// What is to be checked, and then what has come of it.
static SUBJECT: Mutex<Option<Result<Reader, &'static str>>> = Mutex::new(None);

fn subject() -> std::sync::MutexGuard<'static, Option<Result<Reader, &'static str>>> {
    SUBJECT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What reads the stacks of this interpreter.
///
/// # Errors
/// They cannot be read; the text says why.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn reader() -> Result<Reader, &'static str> {
    let Some((python, _)) = PYTHON.get() else { return Err("there is no interpreter") };
    // SAFETY: the caller's promise.
    if !unsafe { python.is_main() } {
        return Err("another interpreter than the main one runs");
    }
    *subject() = Some(Ok(unchecked()?));
    // SAFETY: the caller's promise; what is made is released.
    unsafe {
        let function = (python.new_function)(&raw const LOOK, ptr::null_mut(), ptr::null_mut());
        if function.is_null() {
            (python.clear)();
            return Err("it has no memory");
        }
        let ran = python.run(SOURCE.to_str().unwrap_or_default(), &[(c"look", function)]);
        (python.release)(function);
        match ran {
            Some(globals) => (python.release)(globals),
            None => (python.clear)(),
        }
    }
    subject().take().unwrap_or(Err("the check did not run"))
}

/// For the version that this is.
fn unchecked() -> Result<Reader, &'static str> {
    let symbol = |name: &CStr| find(&[name]).ok_or("it lacks a function");
    // SAFETY: what has these names in a process has these types.
    unsafe {
        let version = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(
            symbol(c"Py_GetVersion")?,
        );
        let version = CStr::from_ptr(version()).to_str().unwrap_or_default();
        let layout = layout::of(version).ok_or("this version of Python is none that is known")?;
        let interpreter = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(
            symbol(c"PyInterpreterState_Main")?,
        );
        Ok(Reader {
            layout,
            interpreter: interpreter(),
            threads: std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_void) -> *mut c_void,
            >(symbol(c"PyInterpreterState_ThreadHead")?),
            code: symbol(c"PyCode_Type")?.expose_provenance(),
            number: number_of_thread(layout).ok_or("threads have no numbers")?,
            folder: folder(),
            names: HashMap::new(),
        })
    }
}

/// Where the system's number of a thread lies in its `pthread_t`, if that is needed.
fn number_of_thread(layout: &Layout) -> Option<usize> {
    let Number::Posix(_) = layout.thread else { return Some(0) };
    // SAFETY: takes nothing and returns a number.
    let (thread, number) = (unsafe { libc::pthread_self() } as usize, gettid() as u32);
    (0..1024).step_by(4).find(|at| read(thread + at) == Some(number))
}

/// Inside of the functions: compares.
unsafe extern "C" fn look(_: Object, _: Object) -> Object {
    guard((), || {
        let mut subject = subject();
        if let Some(Ok(reader)) = &mut *subject
            && let Err(why) = comes_out(reader)
        {
            *subject = Some(Err(why));
        }
    });
    match PYTHON.get() {
        // SAFETY: called by the interpreter, which holds its lock.
        Some((python, _)) => unsafe { (python.new_long)(0) },
        None => ptr::null_mut(),
    }
}

fn comes_out(reader: &mut Reader) -> Result<(), &'static str> {
    let here = gettid() as u32;
    if read::<usize>(reader.interpreter.addr()).is_none() {
        return Err("the system does not let the process read its own memory (process_vm_readv)");
    }
    let threads = reader.threads();
    let this = threads.iter().find(|thread| reader.number(**thread) == Some(here));
    let this = this.ok_or("its threads are laid out in an unknown way")?;
    let stack = reader.stack(*this).ok_or("its frames are laid out in an unknown way")?;
    let names = reader.names(&stack).ok_or("its functions are laid out in an unknown way")?;
    match names.get(..STACK.len()) == Some(&STACK) {
        true => Ok(()),
        false => Err("another stack comes out than the one that is there"),
    }
}
