//! The function that a call would have reached without us.
//!
//! Dynamic linking finds our functions before all others. A caller may have had one of its
//! own: wrappers that are linked into a library and load the vendor's on their first call
//! (PyTorch's bridge for Gaudi, the static loader of Level Zero). So the places are looked
//! through as the dynamic linker does it (ld.so(8)), and only then further:
//!
//! | | |
//! |---|---|
//! | behind us in the process's scope | the program and what it is linked with |
//! | the caller's own scope | the library that calls, and what that is linked with |
//! | the vendor's library, if it is loaded | for who asked by name (`dlsym`) |
//! | whatever else defines it | a library that was opened for all (`RTLD_GLOBAL`) |
//! | the vendor's library, loaded now | no loaded library has one: what a static loader would do |

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

/// The definition of `name` behind ours; `vendor` is the library that it belongs to. Null if
/// there is none.
pub(super) fn definition(name: &CStr, vendor: &CStr) -> *mut c_void {
    // SAFETY: a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let places: [&dyn Fn() -> *mut c_void; 5] = [
        &|| next,
        &|| caller().map_or(ptr::null_mut(), |library| defined_in(&library, name)),
        &|| defined_in(vendor, name),
        &|| anywhere(name),
        &|| loaded(vendor, name),
    ];
    let mut found = places.iter().map(|place| place());
    found.find(|found| !found.is_null() && !is_ours(*found)).unwrap_or(ptr::null_mut())
}

/// What a library that is loaded, or one that it needs, defines.
fn defined_in(library: &CStr, name: &CStr) -> *mut c_void {
    // SAFETY: C strings. What is loaded already stays so: it is about to be used.
    unsafe {
        let library = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return ptr::null_mut();
        }
        let found = libc::dlsym(library, name.as_ptr());
        libc::dlclose(library);
        found
    }
}

/// As [`defined_in`], of one that is loaded for it.
fn loaded(library: &CStr, name: &CStr) -> *mut c_void {
    // SAFETY: C strings; a library that is meant to be loaded, and stays.
    unsafe {
        let library = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() { library } else { libc::dlsym(library, name.as_ptr()) }
    }
}

/// The first definition, in the order in which libraries were loaded.
fn anywhere(name: &CStr) -> *mut c_void {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        names: *mut c_void,
    ) -> c_int {
        // SAFETY: what dl_iterate_phdr(3) passes: a C string, and the list below.
        unsafe {
            let name = CStr::from_ptr((*info).dlpi_name).to_owned();
            (*names.cast::<Vec<CString>>()).push(name);
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: calls back with the list, within the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut names).cast()) };
    let named = names.iter().filter(|library| !library.is_empty());
    let mut found = named.map(|library| defined_in(library, name));
    found.find(|found| !found.is_null() && !is_ours(*found)).unwrap_or(ptr::null_mut())
}

/// The library that called us: that of the first function on the stack that is not ours.
fn caller() -> Option<CString> {
    let mut address = 0_usize;
    // SAFETY: walks over this thread's stack, and calls back with the place for the answer.
    unsafe { _Unwind_Backtrace(frame, (&raw mut address).cast()) };
    if address == 0 {
        return None;
    }
    let (_, name) = object(ptr::without_provenance(address))?;
    // SAFETY: a C string of the loader's; the library is in the middle of a call.
    Some(unsafe { CStr::from_ptr(name) }.to_owned())
}

/// # Safety
/// `found` is the place that was passed with it.
unsafe extern "C" fn frame(context: *mut Context, found: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 4;
    // SAFETY: the context of this frame, for the call. A return address is one after its call.
    let address = unsafe { _Unwind_GetIP(context) }.wrapping_sub(1);
    if is_ours(ptr::without_provenance_mut(address)) {
        return GO_ON;
    }
    // SAFETY: the caller's promise.
    unsafe { found.cast::<usize>().write(address) };
    STOP
}

/// Whether an address lies in the library that this is.
fn is_ours(address: *mut c_void) -> bool {
    let own: fn(*mut c_void) -> bool = is_ours;
    let base = |address: *const c_void| object(address).map(|(base, _)| base);
    base(address) == base(own as *const c_void)
}

/// What is loaded at an address: where it begins, and its name.
fn object(address: *const c_void) -> Option<(*mut c_void, *const c_char)> {
    // SAFETY: any address may be asked for; all zero is a valid value of the struct.
    let (found, info) = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        (libc::dladdr(address, &mut info), info)
    };
    (found != 0 && !info.dli_fname.is_null()).then_some((info.dli_fbase, info.dli_fname))
}

/// `_Unwind_Context` (the C++ ABI's unwind.h), which is only passed back.
#[repr(C)]
struct Context(u8);

// Of libgcc, which Rust's runtime is linked with.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        trace: unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}
