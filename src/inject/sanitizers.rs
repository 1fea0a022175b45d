//! What sanitizers of the program's are told about us: their runtimes ask these functions, if
//! there are any, when they start.
//!
//! They see our calls of the C library, and not the atomic operations between them, which
//! order what our threads do: what they report of us is not so. And memory that is kept for
//! good looks lost where a thread-local or a shared mapping leads to it.
//!
//! A program built with Clang has the runtime, and these functions, in itself.

use std::ffi::{CStr, c_char};

const RACES: &CStr =
    c"called_from_lib:libkymograph\nrace:libkymograph\ndeadlock:libkymograph\nmutex:libkymograph\n\
                       thread:libkymograph\nsignal:libkymograph\n";
const LEAKS: &CStr = c"leak:libkymograph\n";

/// ThreadSanitizer (compiler-rt's tsan_interface.h).
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_default_suppressions() -> *const c_char {
    RACES.as_ptr()
}

/// LeakSanitizer, also as a part of AddressSanitizer (compiler-rt's lsan_interface.h).
#[unsafe(no_mangle)]
pub extern "C" fn __lsan_default_suppressions() -> *const c_char {
    LEAKS.as_ptr()
}
