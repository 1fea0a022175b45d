//! Synapse, if the process has it, and the calls of the program's that we pass on to it.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;

use super::sys::{FAIL, Status, Synapse};
use crate::load::Library;

pub(crate) const NAME: &CStr = c"libSynapse.so";

/// Synapse, or the function that it lacks. `None` if the process does not have it (and may
/// not have it: `load`).
pub(crate) fn synapse(load: bool) -> Option<Result<&'static Synapse, String>> {
    static FOUND: OnceLock<Synapse> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(Ok(found));
    }
    let library = if load { Library::load(NAME) } else { Library::present(NAME) }?;
    Some(match Synapse::find(library) {
        Ok(found) => Ok(FOUND.get_or_init(|| found)),
        Err(missing) => Err(format!("libSynapse.so has no {}", missing.to_string_lossy())),
    })
}

macro_rules! pass_on {
    ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        $(
            /// The program's own call, passed on to Synapse.
            ///
            /// # Safety
            /// As Synapse says.
            pub unsafe fn $name($($arg: $ty),*) -> Status {
                // Also of a library that cannot be used for recording.
                let Some(found) = Library::present(NAME).and_then(|l| l.symbol($symbol)) else {
                    return FAIL;
                };
                type Real = unsafe extern "C" fn($($ty),*) -> Status;
                // SAFETY: synapse_api.h declares it so.
                let real = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Real>(found.as_ptr()) };
                // SAFETY: the program's own arguments.
                unsafe { real($($arg),*) }
            }
        )*
    };
}

pass_on! {
    initialize = c"synInitialize" ();
    destroy = c"synDestroy" ();
    acquire = c"synDeviceAcquire" (device: *mut u32, bus: *const c_char);
    acquire_by_type = c"synDeviceAcquireByDeviceType" (device: *mut u32, ty: c_int);
    acquire_by_module = c"synDeviceAcquireByModuleId" (device: *mut u32, module: u32);
    release = c"synDeviceRelease" (device: u32);
}
