//! Another tool of rocprofiler-sdk's, which `ROCP_TOOL_LIBRARIES` names: it counts kernels, and
//! prints how many there were when it is finalised.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

static KERNELS: AtomicU64 = AtomicU64::new(0);
static BUFFER: AtomicU64 = AtomicU64::new(0);

#[repr(C)]
struct Tool {
    size: usize,
    initialize: extern "C" fn(*const c_void, *mut c_void) -> c_int,
    finalize: extern "C" fn(*mut c_void),
    data: *mut c_void,
}

type Done = extern "C" fn(u64, u64, *mut *mut c_void, usize, *mut c_void, u64);

/// A function of the library that called us.
///
/// # Safety
/// `F` is the type of the function with this name.
unsafe fn function<F: Copy>(name: &std::ffi::CStr) -> F {
    // SAFETY: a string; null stands for all that the process shares.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!found.is_null(), "fake tool: no {name:?}");
    // SAFETY: the caller says so.
    unsafe { std::mem::transmute_copy(&found) }
}

extern "C" fn done(
    _context: u64,
    _buffer: u64,
    _headers: *mut *mut c_void,
    count: usize,
    _data: *mut c_void,
    _dropped: u64,
) {
    KERNELS.fetch_add(count as u64, Ordering::Relaxed);
}

extern "C" fn initialize(_finalizer: *const c_void, _data: *mut c_void) -> c_int {
    let (mut context, mut buffer) = (0_u64, 0_u64);
    type Create = unsafe extern "C" fn(*mut u64) -> c_int;
    type Buffer =
        unsafe extern "C" fn(u64, usize, usize, c_int, Done, *mut c_void, *mut u64) -> c_int;
    type Configure = unsafe extern "C" fn(u64, c_int, *const c_int, usize, u64) -> c_int;
    type Start = unsafe extern "C" fn(u64) -> c_int;
    const KERNEL_DISPATCH: c_int = 11;
    // SAFETY: the headers declare them so.
    unsafe {
        let create: Create = function(c"rocprofiler_create_context");
        let make: Buffer = function(c"rocprofiler_create_buffer");
        let configure: Configure = function(c"rocprofiler_configure_buffer_tracing_service");
        let start: Start = function(c"rocprofiler_start_context");
        assert_eq!(create(&mut context), 0);
        assert_eq!(make(context, 4096, 64, 2, done, ptr::null_mut(), &mut buffer), 0);
        assert_eq!(configure(context, KERNEL_DISPATCH, ptr::null(), 0, buffer), 0);
        assert_eq!(start(context), 0);
    }
    BUFFER.store(buffer, Ordering::Relaxed);
    0
}

extern "C" fn finalize(_data: *mut c_void) {
    // SAFETY: the header declares it so; a buffer of ours.
    unsafe {
        let flush: unsafe extern "C" fn(u64) -> c_int = function(c"rocprofiler_flush_buffer");
        flush(BUFFER.load(Ordering::Relaxed));
    }
    println!("the other tool: {} kernels", KERNELS.load(Ordering::Relaxed));
}

/// # Safety
/// Called by rocprofiler-sdk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    _version: u32,
    _text: *const c_char,
    _priority: u32,
    _client: *mut c_void,
) -> *mut c_void {
    let tool = Tool { size: size_of::<Tool>(), initialize, finalize, data: ptr::null_mut() };
    Box::into_raw(Box::new(tool)).cast()
}
