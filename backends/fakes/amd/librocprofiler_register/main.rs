//! A `librocprofiler-register.so.0`: keeps to what the real one does
//! (rocprofiler_register.cpp). If it sees a tool, it loads librocprofiler-sdk.so and hands
//! the tables on; if there is a tool but no library, it ends the process.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

const NO_TOOLS: c_int = 1;
/// Of this fake: the number is not looked at.
const ATTACHMENT_NOT_AVAILABLE: c_int = 100;

/// How many libraries have registered, and what.
static REGISTERED: AtomicU32 = AtomicU32::new(0);
static TABLES: Mutex<Vec<Tables>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Tables {
    name: usize,
    version: u32,
    tables: Vec<usize>,
}

type SetTable = unsafe extern "C" fn(*const c_char, u64, u64, *mut *mut c_void, u64) -> c_int;

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn find(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a library, or null for all, and a string.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

/// # Safety
/// As rocprofiler-register.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_library_api_table(
    name: *const c_char,
    _import: *const c_void,
    version: u32,
    tables: *mut *mut c_void,
    count: u64,
    _id: *mut c_void,
) -> c_int {
    if set("ROCPROFILER_REGISTER_ENABLED").is_some_and(|value| value == "0") {
        return NO_TOOLS;
    }
    REGISTERED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's tables.
    let given = unsafe { std::slice::from_raw_parts(tables, count as usize) };
    let given = given.iter().map(|table| *table as usize).collect();
    TABLES.lock().unwrap_or_else(PoisonError::into_inner).push(Tables {
        name: name as usize,
        version,
        tables: given,
    });
    let tool = !find(libc::RTLD_DEFAULT, c"rocprofiler_configure").is_null()
        || set("ROCP_TOOL_LIBRARIES").is_some()
        || set("ROCPROFILER_REGISTER_FORCE_LOAD").is_some();
    if !tool {
        return NO_TOOLS;
    }
    // SAFETY: the caller's tables.
    unsafe { hand_on(name, version, tables, count) }
}

/// # Safety
/// As for the caller.
unsafe fn hand_on(
    name: *const c_char,
    version: u32,
    tables: *mut *mut c_void,
    count: u64,
) -> c_int {
    let mut entry = find(libc::RTLD_DEFAULT, c"rocprofiler_set_api_table");
    if entry.is_null() {
        let flags = libc::RTLD_GLOBAL | libc::RTLD_LAZY;
        // SAFETY: a string, and a library that is meant to be loaded.
        let library = unsafe { libc::dlopen(c"librocprofiler-sdk.so".as_ptr(), flags) };
        if !library.is_null() {
            entry = find(library, c"rocprofiler_set_api_table");
        }
    }
    if entry.is_null() {
        eprintln!("fake rocprofiler-register: rocprofiler_set_api_table not found");
        std::process::abort();
    }
    // SAFETY: the function of this name has this type.
    let entry = unsafe { std::mem::transmute::<*mut c_void, SetTable>(entry) };
    // SAFETY: the caller's tables.
    unsafe { entry(name, version.into(), 0, tables, count) }
}

/// Hands all tables on once more: what a library of ROCm 7.13 does for a tool that comes late.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_invoke_all_registrations() -> c_int {
    let all = TABLES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for Tables { name, version, tables } in all {
        let mut tables: Vec<_> = tables.into_iter().map(|table| table as *mut c_void).collect();
        let (list, count) = (tables.as_mut_ptr(), tables.len() as u64);
        // SAFETY: tables that live for ever.
        unsafe { hand_on(name as *const c_char, version, list, count) };
    }
    0
}

/// What rocprofv3 has a thread of the process call to attach to it (by ptrace): refused unless the
/// process was started with `ROCP_TOOL_ATTACH=1`.
///
/// # Safety
/// `tool` is a C string: the path of a library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_attach(
    _environment: *const c_char,
    tool: *const c_char,
) -> c_int {
    if set("ROCP_TOOL_ATTACH").is_none_or(|value| value != "1") {
        return ATTACHMENT_NOT_AVAILABLE;
    }
    let library = match find(libc::RTLD_DEFAULT, c"rocprofiler_load_attachment_tool").is_null() {
        false => libc::RTLD_DEFAULT,
        true => {
            let flags = libc::RTLD_GLOBAL | libc::RTLD_LAZY;
            // SAFETY: a string, and a library that is meant to be loaded.
            unsafe { libc::dlopen(c"librocprofiler-sdk.so".as_ptr(), flags) }
        }
    };
    let load = find(library, c"rocprofiler_load_attachment_tool");
    let attach = find(library, c"rocprofiler_attach");
    if load.is_null() || attach.is_null() {
        return NO_TOOLS;
    }
    type Load = unsafe extern "C" fn(*const c_char) -> c_int;
    // SAFETY: the functions of these names have these types.
    unsafe {
        match std::mem::transmute::<*mut c_void, Load>(load)(tool) {
            0 => std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(attach)(),
            error => error,
        }
    }
}

/// # Safety
/// `each` takes a struct, which nobody here looks into, and `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_iterate_registration_info(
    each: unsafe extern "C" fn(*const c_void, *mut c_void) -> c_int,
    data: *mut c_void,
) -> c_int {
    for _ in 0..REGISTERED.load(Ordering::Relaxed) {
        // SAFETY: the caller's.
        unsafe { each(std::ptr::null(), data) };
    }
    0
}
