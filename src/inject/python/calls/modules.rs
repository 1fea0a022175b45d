//! Calls of PyTorch's modules, named as its profiler names them: `nn.Module: Linear_0`, by the
//! class and how many of that class were called before this one was first.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kymograph_protos::{ColdRecorder, StrId};

use super::{Calls, Object};
use crate::recorder::PIPELINE;

/// Modules that have names, at most.
const MAX: usize = 1 << 15;

/// Names by a module's address and its class's; how many modules each class has.
struct Names {
    names: Option<HashMap<(usize, usize), StrId>>,
    counts: Option<HashMap<usize, usize>>,
}

static NAMES: Mutex<Names> = Mutex::new(Names { names: None, counts: None });

/// The files that define what every module's call runs, and every optimizer's step.
const MODULE: &[u8] = b"torch/nn/modules/module.py";
const OPTIMIZER: &[u8] = b"torch/optim/optimizer.py";

/// Whether this is the code of `torch.nn.Module.__call__`.
///
/// # Safety
/// `code` is a code object, and the interpreter's lock is held.
pub(super) unsafe fn is_call(calls: &Calls, code: Object) -> bool {
    // SAFETY: the caller's promise; references are given back after use, and the modules are a
    // dictionary.
    unsafe {
        if !calls.text(code, c"co_filename").is_some_and(|file| file.ends_with(MODULE)) {
            return false;
        }
        let loaded = (calls.of_system)(c"modules".as_ptr());
        let module = match loaded.is_null() {
            true => return false,
            false => (calls.item)(loaded, c"torch.nn.modules.module".as_ptr()),
        };
        if module.is_null() {
            return false;
        }
        let mut at = module;
        (calls.keep)(at);
        for name in [c"Module", c"__call__", c"__code__"] {
            let next = (calls.attribute)(at, name.as_ptr());
            (calls.release)(at);
            if next.is_null() {
                (calls.clear)();
                return false;
            }
            at = next;
        }
        (calls.release)(at);
        at == code
    }
}

/// Whether this is the function that PyTorch puts around every optimizer's step.
///
/// # Safety
/// As [`is_call`].
pub(super) unsafe fn is_step(calls: &Calls, code: Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        calls.text(code, c"co_filename").is_some_and(|file| file.ends_with(OPTIMIZER))
            && calls.text(code, c"co_name").is_some_and(|name| name == b"wrapper")
    }
}

/// The name of a module, whose reference this gives back.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn name(calls: &Calls, module: Object) -> Option<StrId> {
    // SAFETY: the caller's promise; references are given back after use.
    unsafe {
        let class = (calls.class)(module);
        let key = (module.addr(), class.addr());
        let known = names().names.as_ref().and_then(|names| names.get(&key).copied());
        let id = known.or_else(|| add(calls, key, class));
        (calls.release)(class);
        (calls.release)(module);
        id
    }
}

fn names() -> std::sync::MutexGuard<'static, Names> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reference to the `self` of `frame`, else of the thread's innermost.
///
/// # Safety
/// The interpreter's lock is held, and the frame has begun.
pub(super) unsafe fn of_frame(calls: &Calls, frame: Option<Object>) -> Option<Object> {
    // SAFETY: the caller's promise; references are given back after use.
    unsafe {
        let frame = frame.unwrap_or_else(|| (calls.frame)());
        if frame.is_null() {
            return None;
        }
        if let Some(variable) = calls.variable {
            let module = variable(frame, c"self".as_ptr());
            if module.is_null() {
                (calls.clear)();
            }
            return (!module.is_null()).then_some(module);
        }
        let locals = (calls.attribute)(frame, c"f_locals".as_ptr());
        if locals.is_null() {
            (calls.clear)();
            return None;
        }
        let module = (calls.item)(locals, c"self".as_ptr());
        if !module.is_null() {
            (calls.keep)(module);
        }
        (calls.release)(locals);
        (!module.is_null()).then_some(module)
    }
}

/// Names a module that is called for the first time.
///
/// # Safety
/// The interpreter's lock is held, and `class` is a class.
#[cold]
unsafe fn add(calls: &Calls, key: (usize, usize), class: Object) -> Option<StrId> {
    // SAFETY: the caller's promise.
    let name = unsafe { calls.text(class, c"__name__") }?;
    // Not while Python may run: a thread that waits here holds the interpreter's lock.
    let mut all = names();
    let Names { names, counts } = &mut *all;
    let (names, counts) = (names.get_or_insert_default(), counts.get_or_insert_default());
    if names.len() >= MAX || names.try_reserve(1).is_err() || counts.try_reserve(1).is_err() {
        return None;
    }
    let count = counts.entry(key.1).or_insert(0);
    let text = [b"nn.Module: ", &*name, format!("_{count}").as_bytes()].concat();
    let id = PIPELINE.intern_or_wait(calls.category, &text);
    if id.is_none() {
        return None;
    }
    *count += 1;
    names.insert(key, id);
    Some(id)
}
