//! The last error, for callers that got `false`.

use std::ffi::c_char;
use std::ptr;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// One for the process, and copied out to the caller: a thread-local text would cost
/// every thread memory for what happens once.
static LAST: Mutex<String> = Mutex::new(String::new());

/// Remembers what went wrong.
pub fn set(what: impl std::fmt::Display) {
    let text = what.to_string();
    if let Some(mut last) = lock() {
        *last = text;
    }
}

/// Copies the last error to `buffer`, cut off at a character and terminated; returns its
/// whole length in bytes.
///
/// # Safety
/// `buffer` is null or has `size` writable bytes.
pub unsafe fn copy(buffer: *mut c_char, size: usize) -> usize {
    let last = lock();
    let text = last.as_deref().map_or("", String::as_str);
    if !buffer.is_null() && size > 0 {
        let mut len = text.len().min(size - 1);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: `len` + 1 bytes are writable, as `len` < `size`.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), len);
            *buffer.add(len) = 0;
        }
    }
    text.len()
}

/// In a forked child the lock may be held by a thread that does not exist there: rather no
/// text than a child that hangs.
fn lock() -> Option<MutexGuard<'static, String>> {
    for _ in 0..1000 {
        match LAST.try_lock() {
            Ok(last) => return Some(last),
            Err(TryLockError::Poisoned(last)) => return Some(last.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
