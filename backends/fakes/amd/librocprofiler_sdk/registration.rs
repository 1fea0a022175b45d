//! Tools are found, configured, initialised and finalised (registration.cpp).

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use crate::settings::{self, toolkit};
use crate::status::{ERROR, SUCCESS, call, locked};
use crate::tables::Table;
use crate::{buffers, contexts, observe};

#[repr(C)]
struct Tool {
    size: usize,
    initialize: Option<unsafe extern "C" fn(*const c_void, *mut c_void) -> c_int>,
    finalize: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
}

type Configure = unsafe extern "C" fn(u32, *const c_char, u32, *mut c_void) -> *mut Tool;

/// 0: not yet, -1: at it, 1: done.
static INITIALIZED: AtomicI32 = AtomicI32::new(0);
static FINALIZED: AtomicBool = AtomicBool::new(false);
static FORCED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// `Tool::finalize`, as numbers, of those that were configured.
static FINALIZERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
static TOOLS: AtomicUsize = AtomicUsize::new(0);

/// As `ROCPROFILER_VERSION` counts.
fn version() -> u32 {
    toolkit() / 100 * 10_000 + toolkit() % 100 * 100
}

/// Whether contexts, buffers and services may be made.
pub(crate) fn is_open() -> bool {
    INITIALIZED.load(Ordering::Acquire) == -1
}

pub(crate) fn is_finalized() -> bool {
    FINALIZED.load(Ordering::Acquire)
}

/// Passed to tools to finalise themselves with.
extern "C" fn finalize_client() {}

/// What `ROCP_TOOL_LIBRARIES` lists; a library that is not there ends the process.
fn listed() -> Vec<*mut c_void> {
    let list = std::env::var("ROCP_TOOL_LIBRARIES").unwrap_or_default();
    let configure = |path: &str| {
        let path = CString::new(path).expect("fake rocprofiler: a path");
        // SAFETY: a string, and a library that is meant to be loaded.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if library.is_null() {
            std::process::abort();
        }
        // SAFETY: a library that stays, and a string.
        unsafe { libc::dlsym(library, c"rocprofiler_configure".as_ptr()) }
    };
    list.split(':').filter(|path| !path.is_empty()).map(configure).collect()
}

fn initialize() {
    if INITIALIZED.compare_exchange(0, -1, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    // SAFETY: a string; null stands for all that the process shares.
    let visible = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"rocprofiler_configure".as_ptr()) };
    let forced = FORCED.load(Ordering::Acquire);
    let mut found = vec![forced];
    found.extend(listed());
    found.push(visible);
    found.dedup();
    found.into_iter().filter(|configure| !configure.is_null()).for_each(take);
    INITIALIZED.store(1, Ordering::Release);
    buffers::start();
    // SAFETY: a function of the right type.
    unsafe { libc::atexit(finalize) };
}

/// Configures and initialises a tool, by its `rocprofiler_configure`.
fn take(configure: *mut c_void) {
    // SAFETY: what has this name has this type.
    let configure = unsafe { std::mem::transmute::<*mut c_void, Configure>(configure) };
    let text = CString::new(format!("{}.0", settings::toolkit() / 100)).unwrap_or_default();
    // `rocprofiler_client_id_t`: {name, handle}, and from 1.0 on {size, name, handle}.
    let mut client = if toolkit() < 100 { [0_u64, 77, 0] } else { [24, 0, 77] };
    // SAFETY: the tool's function, with what it is promised.
    let tool = unsafe { configure(version(), text.as_ptr(), 0, (&raw mut client).cast()) };
    let size_is_whole = toolkit() < 100 || client[0] == 24;
    assert!(size_is_whole && client[if toolkit() < 100 { 1 } else { 2 }] == 77, "client id");
    // SAFETY: null, or the tool's, which the library copies.
    let Some(tool) = (unsafe { tool.as_ref() }) else { return };
    assert_eq!(tool.size, size_of::<Tool>(), "the size of a tool's result");
    TOOLS.fetch_add(1, Ordering::Relaxed);
    if let Some(initialize) = tool.initialize {
        // SAFETY: the tool's function, with what it is promised.
        unsafe { initialize(finalize_client as *const c_void, tool.data) };
    }
    if let Some(finalize) = tool.finalize {
        FINALIZERS.lock().unwrap().push((finalize as usize, tool.data as usize));
    }
}

/// Has librocprofiler-register hand over all tables once more, if it can.
fn register_again() {
    let name = c"rocprofiler_register_invoke_all_registrations";
    // SAFETY: a string; null stands for all that the process shares.
    let again = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if !again.is_null() {
        // SAFETY: the function of this name has this type.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(again)() };
    }
}

/// rocprofv3 attaches (2026): one more tool is loaded, whenever that is, and configured beside
/// those that there are.
///
/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_load_attachment_tool(path: *const c_char) -> c_int {
    call("rocprofiler_load_attachment_tool", || {
        // SAFETY: a string, and a library that is meant to be loaded.
        let library = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if toolkit() < 103 || library.is_null() {
            return ERROR;
        }
        let before = INITIALIZED.swap(-1, Ordering::AcqRel);
        assert_ne!(before, -1, "fake rocprofiler: attached while tools are initialised");
        // SAFETY: a library that stays, and a string.
        take(unsafe { libc::dlsym(library, c"rocprofiler_configure".as_ptr()) });
        INITIALIZED.store(1, Ordering::Release);
        buffers::start();
        if before == 0 {
            // SAFETY: a function of the right type.
            unsafe { libc::atexit(finalize) };
        }
        SUCCESS
    })
}

/// The tool that was loaded so begins.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_attach() -> c_int {
    register_again();
    SUCCESS
}

/// Devices finish; then tools.
extern "C" fn finalize() {
    if TOOLS.load(Ordering::Relaxed) > 0 {
        buffers::finish_all();
    }
    let finalizers = std::mem::take(&mut *FINALIZERS.lock().unwrap());
    for (finalize, data) in finalizers {
        // SAFETY: it was one when it was stored.
        let finalize =
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(finalize) };
        // SAFETY: the tool's function, with its data.
        unsafe { finalize(data as *mut c_void) };
    }
    contexts::stop_all();
    FINALIZED.store(true, Ordering::Release);
}

/// # Safety
/// As rocprofiler-register calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    _name: *const c_char,
    _version: u64,
    _instance: u64,
    tables: *mut *mut c_void,
    count: u64,
) -> c_int {
    initialize();
    if count == 0 || TOOLS.load(Ordering::Relaxed) == 0 {
        return 0;
    }
    for at in 0..count as usize {
        // SAFETY: the fake HIP's tables, which live for ever.
        let table = unsafe { &*(*tables.add(at)).cast::<Table>() };
        table.observe.store(observe::observe as *mut (), Ordering::Release);
    }
    0
}

/// # Safety
/// `configure` is a tool's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_force_configure(configure: *mut c_void) -> c_int {
    call("rocprofiler_force_configure", || {
        let taken = settings::fault("other-tool") || settings::fault("initialized");
        if taken || INITIALIZED.load(Ordering::Acquire) != 0 {
            return locked();
        }
        FORCED.store(configure, Ordering::Release);
        // Like the real one, which so makes rocprofiler-register load it.
        // SAFETY: strings; the fake's programs have no other thread yet.
        unsafe { libc::setenv(c"ROCPROFILER_REGISTER_FORCE_LOAD".as_ptr(), c"1".as_ptr(), 1) };
        initialize();
        // Those that registered before are asked once more, from 1.3 on.
        if toolkit() >= 103 {
            register_again();
        }
        SUCCESS
    })
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_is_initialized(to: *mut c_int) -> c_int {
    call("rocprofiler_is_initialized", || {
        let taken = settings::fault("initialized");
        let state = if taken { 1 } else { INITIALIZED.load(Ordering::Acquire) };
        // SAFETY: the caller's.
        unsafe { to.write(state) };
        SUCCESS
    })
}

/// # Safety
/// All are valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_version(
    major: *mut u32,
    minor: *mut u32,
    patch: *mut u32,
) -> c_int {
    call("rocprofiler_get_version", || {
        if major.is_null() || minor.is_null() || patch.is_null() {
            return ERROR;
        }
        // SAFETY: the caller's.
        unsafe {
            major.write(toolkit() / 100);
            minor.write(toolkit() % 100);
            patch.write(0);
        }
        SUCCESS
    })
}
