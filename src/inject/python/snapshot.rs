//! Snapshots of PyTorch's memory on request: what `torch.cuda.memory._dump_snapshot` writes.
//!
//! The program's main thread takes them, between two steps of its Python code
//! (`Py_AddPendingCall`): no thread of ours takes the interpreter's lock, which would end it where
//! the interpreter ends meanwhile. snapshot.py is what runs there.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use super::{METH_O, MethodDef, Object, Owned, PYTHON, find};
use crate::guard::guard;
use crate::hooks::{Snapshot, Step};

const SOURCE: &str = concat!(include_str!("snapshot.py"), "\0");

static ANSWER: MethodDef =
    MethodDef { name: c"answer".as_ptr(), function: Some(answer), flags: METH_O, doc: ptr::null() };

struct Job {
    path: PathBuf,
    step: Step,
    sender: Sender<Result<bool, String>>,
}

/// What is to be done by the main thread, and what it says of the one that it is at.
static JOBS: Mutex<Vec<Job>> = Mutex::new(Vec::new());
static SAID: Mutex<Option<String>> = Mutex::new(None);

fn jobs() -> std::sync::MutexGuard<'static, Vec<Job>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn said() -> std::sync::MutexGuard<'static, Option<String>> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the main thread do this when it next can. What comes: whether something was changed, or why
/// it was not done.
pub(super) fn order(path: &Path, step: Step) -> Result<Snapshot, String> {
    let add = find(&[c"Py_AddPendingCall"]).filter(|_| PYTHON.get().is_some());
    let add = add.ok_or("it runs no Python")?;
    let (sender, receiver): (_, Receiver<_>) = channel();
    jobs().push(Job { path: path.to_owned(), step, sender });
    type Pending = unsafe extern "C" fn(*mut c_void) -> c_int;
    // SAFETY: what has this name in a process has this type, and may be called on any thread; the
    // function stays.
    let added = unsafe {
        let add: unsafe extern "C" fn(Pending, *mut c_void) -> c_int = std::mem::transmute(add);
        add(run, ptr::null_mut())
    };
    if added != 0 {
        jobs().pop();
        return Err("its interpreter has too much to do; try again".to_owned());
    }
    Ok(receiver)
}

/// On the main thread, which holds the interpreter's lock.
unsafe extern "C" fn run(_: *mut c_void) -> c_int {
    guard((), || {
        loop {
            let Some(job) = jobs().pop() else { return };
            *said() = None;
            // SAFETY: as above.
            let ran = unsafe { execute(&job) };
            let result = match (ran, said().take()) {
                (Some(()), Some(text)) if text.is_empty() => Ok(false),
                (Some(()), Some(text)) if text == "changed" => Ok(true),
                (Some(()), Some(text)) => Err(text),
                _ => Err("Python refused to take it".to_owned()),
            };
            let _ = job.sender.send(result);
        }
    });
    0
}

/// # Safety
/// The interpreter's lock is held.
unsafe fn execute(job: &Job) -> Option<()> {
    let (python, _) = PYTHON.get()?;
    let path = std::ffi::CString::new(job.path.to_str()?).ok()?;
    let (begin, end) = match job.step {
        Step::Begin => (true, false),
        Step::Take { end } => (false, end),
    };
    // SAFETY: the caller's promise; what is made is released.
    unsafe {
        let answer = (python.new_function)(&raw const ANSWER, ptr::null_mut(), ptr::null_mut());
        let answer = Owned::new(python, answer)?;
        let path = Owned::new(python, (python.new_text)(path.as_ptr()))?;
        let begin = Owned::new(python, (python.new_long)(begin.into()))?;
        let end = Owned::new(python, (python.new_long)(end.into()))?;
        let entries =
            [(c"answer", answer.0), (c"path", path.0), (c"begin", begin.0), (c"end", end.0)];
        match python.run(SOURCE, &entries) {
            Some(globals) => (python.release)(globals),
            None => {
                (python.clear)();
                return None;
            }
        }
    }
    Some(())
}

/// What snapshot.py has to say.
unsafe extern "C" fn answer(_: Object, text: Object) -> Object {
    let Some((python, _)) = PYTHON.get() else { return ptr::null_mut() };
    guard((), || {
        // SAFETY: called by the interpreter, which holds its lock, with an object.
        *said() = unsafe { python.text(text) };
    });
    // SAFETY: the lock is held.
    unsafe { (python.new_long)(0) }
}
