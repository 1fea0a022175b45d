//! Calls as `sys.monitoring` reports them, from Python 3.12 on: those of all threads, without a
//! frame object for each.
//!
//! Tools have numbers. The debugger's, the coverage's, the profiler's and the optimizer's are left
//! to those; ours is one of the two that are nobody's. What tools ask for is kept apart, so a
//! program's own use of `sys.monitoring`, `sys.setprofile` and `sys.settrace` is as before.

use std::ffi::{CStr, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, Ordering};

use super::super::MethodDef;
use super::{
    Calls, Count, METH_FASTCALL, MODULES, Object, asked_for, modules, state, thread, wanted,
};
use crate::guard::guard;
use crate::inject::python::find;

/// Numbers that belong to no kind of tool.
const TOOLS: [c_long; 2] = [4, 3];

/// The number that is ours; -1: none yet.
static TOOL: AtomicI32 = AtomicI32::new(-1);
static STATE: AtomicU8 = AtomicU8::new(NEW);
const NEW: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;
const FAILED: u8 = 3;

/// What callbacks return: `None`, and what makes the interpreter report this place no more.
static NOTHING: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static NO_MORE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Whether calls are reported.
pub(super) fn is_on() -> bool {
    STATE.load(Ordering::Acquire) == ON
}

pub(super) enum Started {
    Yes,
    /// Not, and what the trace says of that.
    Missing(&'static str),
}

type FastCall = unsafe extern "C" fn(Object, *const Object, Count) -> Object;
type Method = unsafe extern "C" fn(Object, Object) -> Object;

const fn method(name: &'static CStr, function: FastCall) -> MethodDef {
    // SAFETY: the interpreter calls it as the flags say.
    let function = unsafe { std::mem::transmute::<FastCall, Method>(function) };
    MethodDef {
        name: name.as_ptr(),
        function: Some(function),
        flags: METH_FASTCALL,
        doc: ptr::null(),
    }
}

static ENTER: MethodDef = method(c"enter", entered);
static LEAVE: MethodDef = method(c"leave", left);
static UNWIND: MethodDef = method(c"unwind", unwound);
static THROW: MethodDef = method(c"throw", thrown);

/// Events, what is called for them, and whether `modules` needs them.
const EVENTS: [(&CStr, &MethodDef, bool); 6] = [
    (c"PY_START", &ENTER, true),
    (c"PY_RESUME", &ENTER, false),
    (c"PY_THROW", &THROW, false),
    (c"PY_RETURN", &LEAVE, true),
    (c"PY_YIELD", &LEAVE, false),
    (c"PY_UNWIND", &UNWIND, true),
];

/// Takes a number, if this interpreter has the module and one is nobody's.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn prepare(calls: &Calls) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let monitoring = (calls.of_system)(c"monitoring".as_ptr());
        let api = if monitoring.is_null() { None } else { Api::find() };
        api.is_some_and(|api| api.number(calls, monitoring).is_some())
    }
}

/// Has calls reported from here on.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn start(calls: &Calls) -> Started {
    match STATE.load(Ordering::Acquire) {
        ON => return Started::Yes,
        FAILED => return Started::Missing(" (PyEval_SetProfile)"),
        _ => {}
    }
    // SAFETY: the caller's promise.
    unsafe {
        let monitoring = (calls.of_system)(c"monitoring".as_ptr());
        let api = if monitoring.is_null() { None } else { Api::find() };
        let Some(api) = api else {
            STATE.store(FAILED, Ordering::Release);
            return Started::Missing(" (PyEval_SetProfile)");
        };
        let started = api.start(calls, monitoring);
        if started.is_none() {
            (calls.clear)();
            STATE.store(FAILED, Ordering::Release);
            return Started::Missing(
                " (PyEval_SetProfile: other tools have the numbers 3 and 4 of sys.monitoring)",
            );
        }
        STATE.store(ON, Ordering::Release);
        state(&format!("{} (sys.monitoring, tool {})", asked_for(), TOOL.load(Ordering::Relaxed)));
    }
    Started::Yes
}

/// Has no more calls reported.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn stop() {
    if STATE.load(Ordering::Acquire) != ON {
        return;
    }
    let Some(calls) = Calls::get() else { return };
    // SAFETY: the caller's promise.
    unsafe {
        let monitoring = (calls.of_system)(c"monitoring".as_ptr());
        let Some(api) = Api::find().filter(|_| !monitoring.is_null()) else { return };
        let tool = TOOL.load(Ordering::Relaxed).into();
        if api.set_events(calls, monitoring, tool, 0).is_none() {
            (calls.clear)();
        }
    }
    STATE.store(OFF, Ordering::Release);
}

/// More of Python's C interface, for what is done once.
struct Api {
    call: unsafe extern "C" fn(
        Object,
        *const std::ffi::c_char,
        *const std::ffi::c_char,
        ...
    ) -> Object,
    new_function: unsafe extern "C" fn(*const MethodDef, Object, Object) -> Object,
    none: Object,
}

impl Api {
    #[allow(clippy::missing_transmute_annotations, reason = "the fields say the types")]
    fn find() -> Option<Api> {
        // SAFETY: what has these names in a process has these types.
        unsafe {
            Some(Api {
                call: std::mem::transmute::<*mut c_void, _>(find(&[c"PyObject_CallMethod"])?),
                new_function: std::mem::transmute::<*mut c_void, _>(find(&[c"PyCFunction_NewEx"])?),
                none: find(&[c"_Py_NoneStruct"])?,
            })
        }
    }

    /// # Safety
    /// The interpreter's lock is held, and `monitoring` is the module. After none an exception may
    /// be set.
    unsafe fn start(&self, calls: &Calls, monitoring: Object) -> Option<()> {
        // SAFETY: the caller's promise; what calls return is checked, and released after use.
        unsafe {
            let no_more = (calls.attribute)(monitoring, c"DISABLE".as_ptr());
            if no_more.is_null() {
                return None;
            }
            // Both live as long as the interpreter.
            NO_MORE.store(no_more, Ordering::Release);
            NOTHING.store(self.none, Ordering::Release);
            let tool = self.number(calls, monitoring)?;
            let events = (calls.attribute)(monitoring, c"events".as_ptr());
            if events.is_null() {
                return None;
            }
            let mut set = 0;
            for (name, method, of_modules) in EVENTS {
                if wanted() == MODULES && !of_modules {
                    continue;
                }
                let number = (calls.attribute)(events, name.as_ptr());
                let function = (self.new_function)(method, ptr::null_mut(), ptr::null_mut());
                if number.is_null() || function.is_null() {
                    return None;
                }
                let number = (calls.long)(number);
                let format = c"llN".as_ptr();
                let before = (self.call)(
                    monitoring,
                    c"register_callback".as_ptr(),
                    format,
                    tool,
                    number,
                    function,
                );
                self.done(calls, before)?;
                set |= number;
            }
            (calls.release)(events);
            self.set_events(calls, monitoring, tool, set)?;
            // Places that were switched off when this was on before.
            self.done(calls, (self.call)(monitoring, c"restart_events".as_ptr(), ptr::null()))
        }
    }

    /// The number that is ours, taken now if none is; none if all are others'.
    ///
    /// # Safety
    /// As [`Api::start`].
    unsafe fn number(&self, calls: &Calls, monitoring: Object) -> Option<c_long> {
        if TOOL.load(Ordering::Relaxed) < 0 {
            // SAFETY: the caller's promise.
            let tool = TOOLS.iter().find(|tool| unsafe { self.take(calls, monitoring, **tool) })?;
            TOOL.store(*tool as i32, Ordering::Relaxed);
        }
        Some(TOOL.load(Ordering::Relaxed).into())
    }

    /// Takes a number, if it is nobody's.
    ///
    /// # Safety
    /// As [`Api::start`].
    unsafe fn take(&self, calls: &Calls, monitoring: Object, tool: c_long) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let name = c"kymograph".as_ptr();
            let taken =
                (self.call)(monitoring, c"use_tool_id".as_ptr(), c"ls".as_ptr(), tool, name);
            let taken = self.done(calls, taken).is_some();
            if !taken {
                (calls.clear)();
            }
            taken
        }
    }

    /// # Safety
    /// As [`Api::start`].
    unsafe fn set_events(
        &self,
        calls: &Calls,
        monitoring: Object,
        tool: c_long,
        events: c_long,
    ) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let set = (self.call)(monitoring, c"set_events".as_ptr(), c"ll".as_ptr(), tool, events);
            self.done(calls, set)
        }
    }

    /// Whether a call has succeeded.
    ///
    /// # Safety
    /// The interpreter's lock is held, and `result` is what a call returned.
    unsafe fn done(&self, calls: &Calls, result: Object) -> Option<()> {
        (!result.is_null()).then(|| {
            // SAFETY: the caller's promise.
            unsafe { (calls.release)(result) }
        })
    }
}

/// Runs `body` with the code object that an event is of. Returns what the callback returns:
/// `None`, a constant that needs no reference since it is immortal from 3.12 on, or with `may_stop`
/// for calls that are not wanted the request to report this place no more.
///
/// # Safety
/// Called by the interpreter: the first argument is a code object.
unsafe fn with(
    (args, count): (*const Object, Count),
    may_stop: bool,
    body: impl FnOnce(&'static Calls, Object),
) -> Object {
    let wanted = guard(true, || {
        let Some(calls) = Calls::get().filter(|_| count > 0) else { return true };
        // SAFETY: the caller's promise.
        let code = unsafe { *args };
        // SAFETY: as above.
        let wanted = unsafe { calls.is_wanted(code) };
        if wanted {
            body(calls, code);
        }
        wanted
    });
    if wanted || !may_stop {
        return NOTHING.load(Ordering::Relaxed);
    }
    let no_more = NO_MORE.load(Ordering::Relaxed);
    if let Some(calls) = Calls::get() {
        // SAFETY: an object that lives; the caller gets a reference.
        unsafe { (calls.keep)(no_more) };
    }
    no_more
}

unsafe extern "C" fn entered(_: Object, args: *const Object, count: Count) -> Object {
    // SAFETY: called by the interpreter, with a code object, whose frame has begun.
    unsafe {
        with((args, count), true, |calls, code| {
            thread::enter(calls.category, || calls.site(code, || modules::of_frame(calls, None)));
        })
    }
}

unsafe extern "C" fn thrown(_: Object, args: *const Object, count: Count) -> Object {
    // SAFETY: as above.
    unsafe {
        with((args, count), false, |calls, code| {
            thread::enter(calls.category, || calls.site(code, || modules::of_frame(calls, None)));
        })
    }
}

unsafe extern "C" fn left(_: Object, args: *const Object, count: Count) -> Object {
    // SAFETY: as above.
    unsafe { with((args, count), true, |_, _| thread::leave()) }
}

unsafe extern "C" fn unwound(_: Object, args: *const Object, count: Count) -> Object {
    // SAFETY: as above.
    unsafe { with((args, count), false, |_, _| thread::leave()) }
}
