//! ROCTX, as a program calls it that is linked with it (roctx.h): the first in the process that
//! has the functions serves.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use crate::symbol;

type Text<R> = unsafe extern "C" fn(*const c_char) -> R;

/// Ranges around what `body` does. Prints the levels that the calls return.
pub(crate) fn around(name: &CStr, body: impl FnOnce()) {
    // SAFETY: roctx.h declares them so; null stands for all that is loaded.
    let (mark, push, pop, start, stop) = unsafe {
        (
            symbol::<Text<()>>(ptr::null_mut(), c"roctxMarkA"),
            symbol::<Text<c_int>>(ptr::null_mut(), c"roctxRangePushA"),
            symbol::<unsafe extern "C" fn() -> c_int>(ptr::null_mut(), c"roctxRangePop"),
            symbol::<Text<u64>>(ptr::null_mut(), c"roctxRangeStartA"),
            symbol::<unsafe extern "C" fn(u64)>(ptr::null_mut(), c"roctxRangeStop"),
        )
    };
    let (Some(mark), Some(push), Some(pop), Some(start), Some(stop)) =
        (mark, push, pop, start, stop)
    else {
        println!("no ROCTX");
        return body();
    };
    // SAFETY: strings, and an id that was returned.
    unsafe {
        let free = start(c"free".as_ptr());
        let (outer, inner) = (push(name.as_ptr()), push(c"inner".as_ptr()));
        mark(c"mark".as_ptr());
        body();
        println!("levels {outer} {inner} {} {}", pop(), pop());
        stop(free);
    }
}
