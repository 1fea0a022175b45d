//! The library that records (`libkymograph.so`), found when it is needed.
//!
//! The one that the process has comes first: `kymo record` has loaded it, or the program is linked
//! with it. So everything that records in a process does so into one trace. Without one, the
//! library of the wheel is loaded, when a program asks for a recording for the first time. Nothing
//! is loaded, and nothing is recorded, in a program that only imports the package.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `kymo_arg` of kymograph.h.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Arg {
    pub name: *const c_char,
    pub name_id: u32,
    pub ty: u32,
    pub value: u64,
}

const _: () = assert!(size_of::<Arg>() == 24);

/// `kymo_summary` of kymograph.h.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Summary {
    pub size: usize,
    pub events: u64,
    pub lost: u64,
    pub reentrant: u64,
    pub unwritten: u64,
    pub truncated: u64,
    pub unmatched_ends: u64,
    pub misnested: u64,
    pub clamped: u64,
    pub threads: u64,
    pub bytes: u64,
    pub write_errors: u64,
    pub discarded: u64,
}

macro_rules! library {
    ($($field:ident: $symbol:literal fn($($arg:ty),*) $(-> $result:ty)?,)*) => {
        /// The functions of kymograph.h that are used.
        #[derive(Debug)]
        pub struct Library { $(pub $field: unsafe extern "C" fn($($arg),*) $(-> $result)?,)* }

        impl Library {
            /// Those of the library that `find` looks symbols up in; the first that is missing
            /// if one is.
            fn of(find: impl Fn(&CStr) -> *mut c_void) -> Result<Library, &'static str> {
                Ok(Library { $($field: {
                    let found = find($symbol);
                    if found.is_null() {
                        return Err(stringify!($field));
                    }
                    // SAFETY: what has this name is the function that kymograph.h declares.
                    unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($arg),*) $(-> $result)?,
                        >(found)
                    }
                },)* })
            }
        }
    };
}

library! {
    version: c"kymo_version_number" fn() -> u32,
    start: c"kymo_start" fn(*const c_char) -> bool,
    stop: c"kymo_stop" fn(*mut Summary) -> bool,
    prepare: c"kymo_prepare" fn(*const c_char) -> bool,
    open: c"kymo_open" fn() -> bool,
    pause: c"kymo_pause" fn() -> bool,
    resume: c"kymo_resume" fn() -> bool,
    metadata: c"kymo_metadata" fn(*const c_char, *const c_char) -> bool,
    flush: c"kymo_flush" fn(u32) -> bool,
    dump: c"kymo_dump" fn(*const c_char, u32) -> bool,
    is_recording: c"kymo_is_recording" fn() -> bool,
    last_error: c"kymo_last_error" fn(*mut c_char, usize) -> usize,
    observe_python: c"kymo_observe_python" fn(*const c_char) -> bool,
    arm: c"kymo_arm" fn(*const c_char) -> bool,
    step: c"kymo_step" fn(),
    category: c"kymo_category_register" fn(*const c_char) -> u32,
    name: c"kymo_register" fn(u32, *const c_char) -> u32,
    is_enabled: c"kymo_category_is_enabled" fn(u32) -> bool,
    flow_new: c"kymo_flow_new" fn() -> u64,
    push: c"kymo_push" fn(u32, *const Arg, usize),
    push_str: c"kymo_push_str" fn(u32, *const c_char, *const Arg, usize),
    pop: c"kymo_pop" fn(),
    pop_args: c"kymo_pop_args" fn(*const Arg, usize),
    track: c"kymo_track_create" fn(*const c_char, *const c_void, i32) -> *const c_void,
    instant_str: c"kymo_instant_str" fn(u32, *const c_char, *const c_void, *const Arg, usize),
    range_begin_str: c"kymo_range_begin_str"
        fn(u32, *const c_char, *const c_void, *const Arg, usize) -> u64,
    range_end: c"kymo_range_end" fn(u64, *const Arg, usize),
    counter: c"kymo_counter_register" fn(u32, *const c_char, c_int) -> u64,
    counter_i64: c"kymo_counter_i64" fn(u64, i64),
    counter_f64: c"kymo_counter_f64" fn(u64, f64),
    thread_name: c"kymo_thread_name" fn(*const c_char),
    process_name: c"kymo_process_name" fn(*const c_char),
}

static FOUND: AtomicPtr<Library> = AtomicPtr::new(ptr::null_mut());

/// The library, if there is one by now.
#[inline]
pub fn library() -> Option<&'static Library> {
    // SAFETY: null, or what `keep` has leaked.
    unsafe { FOUND.load(Ordering::Acquire).as_ref() }
}

fn keep(library: Library) -> &'static Library {
    let library: &'static Library = Box::leak(Box::new(library));
    FOUND.store(ptr::from_ref(library).cast_mut(), Ordering::Release);
    library
}

/// Takes the library that the process has, if it has one of this version. Loads none.
pub fn adopt() -> Option<&'static Library> {
    if let Some(library) = library() {
        return Some(library);
    }
    // Preloaded, or linked with the program: in the global scope.
    let global = |name: &CStr| {
        // SAFETY: the name is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    let loaded = || {
        // SAFETY: loads nothing; the library is never unloaded, so that its handle stays good.
        let handle = unsafe {
            libc::dlopen(c"libkymograph.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD)
        };
        if handle.is_null() { Err("") } else { of_handle(handle) }
    };
    let found = Library::of(global).or_else(|_| loaded()).ok()?;
    is_of_this_version(&found).then(|| keep(found))
}

/// The library of the process, or else the one at `path`, which is loaded.
///
/// # Errors
/// It cannot be loaded, or is another version's: a sentence.
pub fn load(path: &Path) -> Result<&'static Library, String> {
    if let Some(library) = adopt() {
        return Ok(library);
    }
    let failed = |why: &str| format!("cannot load {}: {why}", path.display());
    let text =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| failed("a NUL in its path"))?;
    // SAFETY: loading it runs nothing but what kymograph.h says of the library: until something
    // is called, it does nothing in a process that `kymo record` has not started.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: null, or a C string of the loader's that lives until its next error.
        let why = unsafe { libc::dlerror().as_ref().map(|text| CStr::from_ptr(text)) };
        return Err(failed(&why.unwrap_or_default().to_string_lossy()));
    }
    let found =
        of_handle(handle).map_err(|symbol| failed(&format!("it has no function {symbol}")))?;
    if !is_of_this_version(&found) {
        return Err(failed("it is another version's; install kymograph anew"));
    }
    Ok(keep(found))
}

fn of_handle(handle: *mut c_void) -> Result<Library, &'static str> {
    // SAFETY: the handle is open, the name a C string.
    Library::of(|name| unsafe { libc::dlsym(handle, name.as_ptr()) })
}

/// Whether it is the library that this module was built with: its structs may differ otherwise.
fn is_of_this_version(library: &Library) -> bool {
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let ours = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
        | number(env!("CARGO_PKG_VERSION_MINOR")) << 8;
    // SAFETY: takes nothing, returns a number.
    unsafe { (library.version)() & !0xff == ours }
}

/// Why the last call that failed did so.
pub fn last_error(library: &Library) -> String {
    let mut text = [0_u8; 1024];
    // SAFETY: as many bytes are writable.
    let len = unsafe { (library.last_error)(text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8_lossy(&text[..len.min(text.len() - 1)]).into_owned()
}
