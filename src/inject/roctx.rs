//! ROCTX, for programs whose calls are not reported by rocprofiler-sdk: see
//! `kymograph_backends::annotate::roctx`. Each function records, unless rocprofiler-sdk reports the call, and then does what the
//! caller asked for: the real one is called, if there is one.
#![allow(non_snake_case, reason = "named as in ROCTX")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::{mem, ptr};

use kymograph_backends::annotate::roctx;

use super::start_if_wanted;
use crate::guard::guard;
use crate::recorder::PIPELINE;
use crate::recording;

/// Libraries that have the functions, for who does not share theirs with the process.
const LIBRARIES: [&CStr; 3] =
    [c"librocprofiler-sdk-roctx.so.1", c"librocprofiler-sdk-roctx.so.0", c"libroctx64.so.4"];

/// A real function, once it was looked for. Before that null, and [`NONE`] if there is none.
struct Real(&'static CStr, AtomicPtr<c_void>);

/// No function has this address.
const NONE: *mut c_void = ptr::without_provenance_mut(1);

impl Real {
    const fn new(name: &'static CStr) -> Real {
        Real(name, AtomicPtr::new(ptr::null_mut()))
    }

    fn find(&self) -> Option<*mut c_void> {
        let known = self.1.load(Ordering::Acquire);
        if !known.is_null() {
            return (known != NONE).then_some(known);
        }
        // SAFETY: C strings; a library that is loaded stays so while its functions are called.
        let found = unsafe {
            let present = |library: &CStr| {
                let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                let library = libc::dlopen(library.as_ptr(), flags);
                if library.is_null() { library } else { libc::dlsym(library, self.0.as_ptr()) }
            };
            let next = libc::dlsym(libc::RTLD_NEXT, self.0.as_ptr());
            let mut all = [next].into_iter().chain(LIBRARIES.into_iter().map(present));
            all.find(|found| !found.is_null())
        };
        self.1.store(found.unwrap_or(NONE), Ordering::Release);
        found
    }
}

static MARK: Real = Real::new(c"roctxMarkA");
static PUSH: Real = Real::new(c"roctxRangePushA");
static POP: Real = Real::new(c"roctxRangePop");
static START: Real = Real::new(c"roctxRangeStartA");
static STOP: Real = Real::new(c"roctxRangeStop");
static PAUSE: Real = Real::new(c"roctxProfilerPause");
static RESUME: Real = Real::new(c"roctxProfilerResume");
static NAME_THREAD: Real = Real::new(c"roctxNameOsThread");

/// Whether rocprofiler-sdk will tell of the call: where it is configured, and the program has
/// the ROCTX that registers with it. (An older one does not.)
fn is_reported() -> bool {
    const REGISTERS: [&CStr; 2] =
        [c"librocprofiler-sdk-roctx.so.1", c"librocprofiler-sdk-roctx.so.0"];
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if REPORTED.load(Ordering::Relaxed) || !roctx::reported() {
        return REPORTED.load(Ordering::Relaxed);
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: C strings; what is there stays there.
    let found =
        REGISTERS.iter().any(|name| !unsafe { libc::dlopen(name.as_ptr(), flags) }.is_null());
    REPORTED.store(found, Ordering::Relaxed);
    found
}

/// Whether we record the call ourselves.
fn ours() -> bool {
    if is_reported() {
        return false;
    }
    start_if_wanted();
    if !recording::is_running() {
        return false;
    }
    roctx::initialize(&PIPELINE);
    true
}

/// # Safety
/// Null, or a C string that lives for the call.
unsafe fn text<'a>(message: *const c_char) -> &'a [u8] {
    if message.is_null() {
        return b"";
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(message) }.to_bytes()
}

/// Marks a moment (roctx.h).
///
/// # Safety
/// `message` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    let real = guard(None, || {
        if ours() {
            // SAFETY: the caller's promise.
            roctx::mark(unsafe { text(message) });
        }
        MARK.find()
    });
    if let Some(real) = real {
        // SAFETY: the function of this name has this type; the caller's own argument.
        unsafe {
            mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char)>(real)(message)
        };
    }
}

/// Opens a nested range; returns its level (roctx.h).
///
/// # Safety
/// `message` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    type Push = unsafe extern "C" fn(*const c_char) -> c_int;
    let (level, real) = guard((-1, None), || {
        // SAFETY: the caller's promise.
        let message = unsafe { text(message) };
        let level = if ours() { roctx::push(message) } else { -1 };
        (level, PUSH.find())
    });
    match real {
        // SAFETY: the function of this name has this type; the caller's own argument.
        Some(real) => unsafe { mem::transmute::<*mut c_void, Push>(real)(message) },
        None => level,
    }
}

/// Closes the innermost nested range; returns its level (roctx.h).
///
/// # Safety
/// As in ROCTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangePop() -> c_int {
    type Pop = unsafe extern "C" fn() -> c_int;
    let (level, real) = guard((-1, None), || (if ours() { roctx::pop() } else { -1 }, POP.find()));
    match real {
        // SAFETY: the function of this name has this type.
        Some(real) => unsafe { mem::transmute::<*mut c_void, Pop>(real)() },
        None => level,
    }
}

/// Opens a range that may end anywhere; returns its id (roctx.h).
///
/// # Safety
/// `message` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    type Start = unsafe extern "C" fn(*const c_char) -> u64;
    /// Ids of ranges where there is no library to give some.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let (range, real) = guard((0, None), || {
        // SAFETY: the caller's promise.
        let message = unsafe { text(message) };
        let range = if ours() { roctx::start(message) } else { 0 };
        (range, START.find())
    });
    let id = match real {
        // SAFETY: the function of this name has this type; the caller's own argument.
        Some(real) => unsafe { mem::transmute::<*mut c_void, Start>(real)(message) },
        None => NEXT.fetch_add(1, Ordering::Relaxed),
    };
    guard((), || roctx::name_range(id, range));
    id
}

/// Closes such a range (roctx.h).
///
/// # Safety
/// As in ROCTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxRangeStop(id: u64) {
    let real = guard(None, || {
        if ours() {
            roctx::stop(id);
        }
        STOP.find()
    });
    if let Some(real) = real {
        // SAFETY: the function of this name has this type; the caller's own argument.
        unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn(u64)>(real)(id) };
    }
}

/// The program is not of interest from here on (roctx.h, since ROCm 6.2).
///
/// # Safety
/// As in ROCTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxProfilerPause(thread: u64) -> c_int {
    // SAFETY: the function of this name has this type.
    unsafe { control(&PAUSE, thread, true) }
}

/// It is again (roctx.h).
///
/// # Safety
/// As in ROCTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxProfilerResume(thread: u64) -> c_int {
    // SAFETY: the function of this name has this type.
    unsafe { control(&RESUME, thread, false) }
}

/// # Safety
/// `real` is one of the two functions above.
unsafe fn control(real: &Real, thread: u64, paused: bool) -> c_int {
    let real = guard(None, || {
        if ours() {
            roctx::pause(thread, paused);
        }
        real.find()
    });
    type Control = unsafe extern "C" fn(u64) -> c_int;
    // SAFETY: the caller's promise, and its own argument.
    real.map_or(0, |real| unsafe { mem::transmute::<*mut c_void, Control>(real)(thread) })
}

/// Names the calling thread (roctx.h).
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctxNameOsThread(name: *const c_char) -> c_int {
    type Name = unsafe extern "C" fn(*const c_char) -> c_int;
    let real = guard(None, || {
        if ours() {
            // SAFETY: the caller's promise.
            roctx::name_thread(unsafe { text(name) });
        }
        NAME_THREAD.find()
    });
    // SAFETY: the function of this name has this type; the caller's own argument.
    real.map_or(0, |real| unsafe { mem::transmute::<*mut c_void, Name>(real)(name) })
}
