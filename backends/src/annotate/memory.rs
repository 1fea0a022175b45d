//! Memory and locks as a guest may use them: there may be none left, and a signal handler of
//! the program may interrupt us, annotate in its turn, or leave by a jump.

use std::ffi::CString;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::guard::without_signals;

/// Calls `body` with what is behind a lock, while no signal handler runs on this thread.
pub(crate) fn locked<T, R>(mutex: &Mutex<T>, body: impl FnOnce(&mut T) -> R) -> R {
    without_signals(|| body(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The parts in a row, if there is memory for that.
pub(crate) fn concat(parts: &[&[u8]]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    all.try_reserve_exact(parts.iter().map(|part| part.len()).sum()).ok()?;
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Some(all)
}

/// As [`concat`], with a zero at the end, if there is none in it.
pub(crate) fn c_string(text: &[u8]) -> Option<CString> {
    CString::from_vec_with_nul(concat(&[text, b"\0"])?).ok()
}

/// Keeps a value for good, if there is memory for it.
pub(crate) fn keep<T>(value: T) -> Option<*mut T> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).ok()?;
    one.push(value);
    Some(one.leak().as_mut_ptr())
}

/// Appends, if there is memory for it.
pub(crate) fn push<T>(list: &mut Vec<T>, value: T) -> Option<()> {
    list.try_reserve(1).ok()?;
    list.push(value);
    Some(())
}

/// Appends as much as there is memory for: all or nothing.
pub(crate) fn append(list: &mut Vec<u8>, more: &[u8]) {
    if list.try_reserve(more.len()).is_ok() {
        list.extend_from_slice(more);
    }
}

/// What is formatted, if there is memory for it.
pub(crate) fn format(text: fmt::Arguments<'_>) -> Option<Vec<u8>> {
    struct Fallible(Vec<u8>);
    impl fmt::Write for Fallible {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.try_reserve(text.len()).map_err(|_| fmt::Error)?;
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    let mut all = Fallible(Vec::new());
    fmt::Write::write_fmt(&mut all, text).ok()?;
    Some(all.0)
}
