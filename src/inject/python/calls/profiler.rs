//! Calls as `PyEval_SetProfile` reports them, before Python 3.12: thread by thread, the main
//! thread's from where its program begins, another's from where `threading` starts it.

use std::ffi::c_int;
use std::ptr;

use super::{Calls, NONE, Object, modules, thread, wanted};
use crate::guard::guard;

/// `Py_tracefunc` of Python's pystate.h.
pub(super) type Trace = unsafe extern "C" fn(Object, Object, c_int, Object) -> c_int;
/// `PyTrace_CALL` and `PyTrace_RETURN`, which also reports that an exception leaves.
const CALL: c_int = 0;
const RETURN: c_int = 3;

/// Follows the calling thread from here on.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn follow_thread(calls: &Calls) {
    // What was open when it was followed before is not known any more.
    thread::forget();
    // SAFETY: the caller's promise; the callback stays.
    unsafe { (calls.set_profile)(Some(traced), ptr::null_mut()) };
}

/// The interpreter calls or leaves a function.
unsafe extern "C" fn traced(_: Object, frame: Object, what: c_int, _: Object) -> c_int {
    guard((), || {
        let Some(calls) = Calls::get().filter(|_| what == CALL || what == RETURN) else { return };
        // SAFETY: called by the interpreter, with a frame.
        unsafe {
            if what == CALL && thread::depth() == 0 && wanted() == NONE {
                return (calls.set_profile)(None, ptr::null_mut());
            }
            let code = (calls.code)(frame);
            if calls.is_wanted(code) {
                match what {
                    CALL => thread::enter(calls.category, || {
                        calls.site(code, || modules::of_frame(calls, Some(frame)))
                    }),
                    _ => thread::leave(),
                }
            }
            (calls.release)(code);
        }
    });
    0
}
