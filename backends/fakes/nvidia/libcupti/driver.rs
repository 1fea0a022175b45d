//! The fake driver, if the process has it.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::seam::Observe;
use crate::{observe, settings, status};

type FakeCudaObserve = extern "C" fn(Observe) -> c_int;

/// The status of calls without an initialised driver.
pub(crate) fn absent() -> Option<c_int> {
    if attach().is_some_and(|attach| attach(observe::observe) != 0) {
        return None;
    }
    match settings::toolkit() {
        ..1300 => Some(status::NOT_INITIALIZED),
        // It calls itself until the stack ends.
        1302 => std::process::abort(),
        _ => Some(status::UNKNOWN),
    }
}

/// Whether the driver is past its initialisation.
pub(crate) fn has_finished() -> bool {
    let Some(symbol) = symbol(c"fake_cuda_has_finished") else { return false };
    // SAFETY: the fake driver declares it so.
    let has_finished =
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol) };
    has_finished() != 0
}

fn attach() -> Option<FakeCudaObserve> {
    static ATTACH: OnceLock<Option<FakeCudaObserve>> = OnceLock::new();
    if let Some(Some(found)) = ATTACH.get() {
        return Some(*found);
    }
    let symbol = symbol(c"fake_cuda_observe")?;
    // SAFETY: the fake driver declares it so.
    let found = unsafe { std::mem::transmute::<*mut c_void, FakeCudaObserve>(symbol) };
    *ATTACH.get_or_init(|| Some(found))
}

/// What the fake driver exports, if it is there.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a string; nothing is loaded that is not there.
    let cuda =
        unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if cuda.is_null() {
        return None;
    }
    // SAFETY: a library and a string.
    let symbol = unsafe { libc::dlsym(cuda, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}
