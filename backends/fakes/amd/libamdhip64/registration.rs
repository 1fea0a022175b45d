//! HIP, RCCL and ROCTX register with librocprofiler-register, once.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::tables::{Event, LIBRARIES, Library, Observe, Table};

static TABLES: [Table; LIBRARIES.len()] =
    [const { Table { observe: AtomicPtr::new(ptr::null_mut()) } }; LIBRARIES.len()];

type Register = unsafe extern "C" fn(
    *const c_char,
    *const c_void,
    u32,
    *mut *mut c_void,
    u64,
    *mut c_void,
) -> c_int;

/// As in the first call of any function of HIP.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The real library is linked with it.
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
        // SAFETY: a string, and a library that is meant to be loaded.
        unsafe { libc::dlopen(c"librocprofiler-register.so.0".as_ptr(), flags) };
        let name = c"rocprofiler_register_library_api_table";
        // Where the dynamic linker finds it for a library that is linked with it.
        // SAFETY: a string; null stands for all that the process shares.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if found.is_null() {
            return;
        }
        // SAFETY: the function of this name has this type.
        let register = unsafe { std::mem::transmute::<*mut c_void, Register>(found) };
        let names: [(&CStr, Library, u64); 4] = [
            (c"hsa", Library::Hsa, 1),
            (c"hip", Library::Hip, 1),
            (c"rccl", Library::Rccl, 1),
            // It has three tables.
            (c"roctx", Library::Roctx, 3),
        ];
        for (name, library, count) in names {
            let table = |at: usize| {
                let table = TABLES.get(library as usize + at).unwrap_or(&TABLES[0]);
                ptr::from_ref(table).cast_mut().cast::<c_void>()
            };
            let mut tables = [table(0), table(1), table(2)];
            let mut id = 0_u64;
            // SAFETY: tables that live for ever, and a place for the id.
            unsafe {
                let id = (&raw mut id).cast();
                register(name.as_ptr(), ptr::null(), 60_300, tables.as_mut_ptr(), count, id);
            }
        }
    });
}

/// What a function does, as far as others see it.
pub(crate) fn tell(library: Library, event: &Event<'_>) {
    let observe = TABLES[library as usize].observe.load(Ordering::Acquire);
    if !observe.is_null() {
        // SAFETY: only an `Observe` is stored there.
        let observe = unsafe { std::mem::transmute::<*mut (), Observe>(observe) };
        observe(event);
    }
}
