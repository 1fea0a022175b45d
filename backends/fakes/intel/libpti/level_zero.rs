//! The fake Level Zero, if the process has it.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use crate::seam::Observe;
use crate::{observe, settings};

/// Ends the process, as the real library does, unless Level Zero works.
pub(crate) fn require() {
    static WORKS: OnceLock<bool> = OnceLock::new();
    let works = *WORKS.get_or_init(|| {
        type Init = extern "C" fn(u32) -> c_int;
        // SAFETY: ze_api.h and the fake declare them so.
        let (init, attach) = unsafe {
            (
                symbol::<Init>(c"zeInit"),
                symbol::<extern "C" fn(Observe) -> c_int>(c"fake_cuda_observe"),
            )
        };
        let (Some(init), Some(attach)) = (init, attach) else { return false };
        init(0) == 0 && !settings::fault("no-sub-devices") && attach(observe::observe) != 0
    });
    if !works {
        eprintln!("fake PTI: Condition status == ZE_RESULT_SUCCESS failed");
        std::process::abort();
    }
}

/// # Safety
/// `F` is the type of the function with this name.
unsafe fn symbol<F: Copy>(name: &CStr) -> Option<F> {
    // SAFETY: strings; nothing is loaded that is not there.
    let symbol = unsafe {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        let library = libc::dlopen(c"libze_loader.so.1".as_ptr(), flags);
        if library.is_null() { std::ptr::null_mut() } else { libc::dlsym(library, name.as_ptr()) }
    };
    // SAFETY: a function pointer, of the type that the caller says.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&symbol) })
}
