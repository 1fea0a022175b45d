//! What a program finds in us when we are injected into it: the symbols by which NVTX, ITT
//! and CUDA attach a tool, and the calls that end a process without `atexit` handlers.
//!
//! `kymo record` preloads the library into a command and all that it starts. A process
//! that never annotates anything loads it and nothing more: the recording starts with the
//! first NVTX or ITT call, with CUDA, or with the first event of the C ABI.
//!
//! The interposed calls do the one thing that the recording needs, then what the caller
//! asked for. They serve only the process that is being recorded: the child of a `vfork`
//! shares its memory, but not its pid.

use std::ffi::c_int;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use kymograph_backends::annotate::{itt, nvtx};
use kymograph_backends::nvidia;

use crate::config::Config;
use crate::guard::guard;
use crate::lifecycle::EXIT_PATIENCE;
use crate::recorder::PIPELINE;
use crate::recording::{self, Recording};

/// How long `exec` may be delayed.
const EXEC_PATIENCE: Duration = Duration::from_millis(500);

/// How this process asked to be recorded, by its environment, when the library was loaded.
static WANTED: OnceLock<Config> = OnceLock::new();

/// Runs when the library is loaded, before the program's own threads exist: the only
/// moment at which its environment can be read safely.
extern "C" fn on_load() {
    guard((), || {
        // SAFETY: no other thread exists that could change the environment.
        if unsafe { !libc::getenv(c"KYMOGRAPH_CONTROL".as_ptr()).is_null() } {
            let _ = WANTED.set(Config::from_env().0);
        }
        exec::find_real();
    });
}

// SAFETY: the loader calls functions in `.init_array` with (argc, argv, envp), which
// `on_load` does not read; it neither unwinds nor needs anything of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// Starts the recording that the environment asks for, once per process image. A program
/// that cannot be recorded runs as if we were not there.
fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let config = WANTED.get().cloned().unwrap_or_else(|| Config::from_env().0);
        if let Ok(recording) = Recording::start(config) {
            // It ends with the process.
            std::mem::forget(recording);
        }
    });
}

/// Starts the recording if `kymo record` runs this process and it has not started yet:
/// for events that come by another way than an annotation library.
pub(crate) fn start_if_wanted() {
    if WANTED.get().is_some() {
        start();
    }
}

/// Attaches one copy of NVTX (nvtx3/nvtxDetail/nvtxInit.h: `NvtxInitializeInjectionNvtxFunc_t`).
///
/// # Safety
/// Called by an NVTX copy, as its tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(exports: Option<nvtx::GetExportTable>) -> c_int {
    guard(0, || {
        start();
        // SAFETY: passed on from the NVTX copy.
        unsafe { nvtx::initialize(exports, &PIPELINE) }
    })
}

/// Attaches an extension (payloads, counters) of one copy of NVTX
/// (nvtx3/nvtxDetail/nvtxExtInit.h).
///
/// # Safety
/// Called by an NVTX copy, as its tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut nvtx::ExtModule) -> c_int {
    guard(0, || {
        start();
        // SAFETY: passed on from the NVTX copy.
        unsafe { nvtx::initialize_extension(module, &PIPELINE) }
    })
}

/// Called by the CUDA driver while it initialises (`CUDA_INJECTION64_PATH`; CUPTI's
/// documentation calls the function so).
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    guard(1, || {
        nvidia::injected();
        start();
        recording::start_sources();
        1
    })
}

/// Attaches one static part of ITT (ittnotify_static.c: protocol 2).
///
/// # Safety
/// Called by a static part of ITT, as its tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut itt::IttGlobal, group: c_int) {
    guard((), || {
        start();
        // SAFETY: passed on from the static part.
        unsafe { itt::initialize(global, group, &PIPELINE) };
    });
}

/// `_exit`: writes what was recorded, then ends the process (exit_group(2)).
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    guard((), || recording::stop_active(EXIT_PATIENCE));
    loop {
        // SAFETY: does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// `_Exit`: another name of `_exit` (C11 7.22.4.5).
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// What the program itself calls of CUPTI: see [`nvidia::share`]. (Dynamic linking finds a
/// function without a version, in an object that was preloaded, for one that is asked for
/// with a version.) The functions that take pointers do with them what CUPTI says.
#[allow(non_snake_case, reason = "named as in CUPTI")]
mod cupti {
    use std::ffi::{c_int, c_void};

    use kymograph_backends::nvidia::{
        BufferCompleted, BufferRequested, Callback, Code, TimestampCallback, share, subscription,
    };

    use crate::guard::guard;

    /// `CUPTI_ERROR_UNKNOWN`.
    const UNKNOWN: Code = 999;

    macro_rules! export {
        ($($name:ident($($arg:ident: $ty:ty),*) => $serve:path;)*) => {
            $(
                /// As in CUPTI.
                ///
                /// # Safety
                /// As in CUPTI.
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> Code {
                    #[allow(unused_unsafe, reason = "some take no pointers")]
                    // SAFETY: the caller's own arguments.
                    guard(UNKNOWN, || unsafe { $serve($($arg),*) })
                }
            )*
        };
    }

    export! {
        cuptiActivityRegisterCallbacks(
            request: Option<BufferRequested>, complete: Option<BufferCompleted>
        ) => share::register_callbacks;
        cuptiActivityEnable(kind: u32) => share::enable;
        cuptiActivityDisable(kind: u32) => share::disable;
        cuptiActivityFlushAll(flag: u32) => share::flush_all;
        cuptiActivityRegisterTimestampCallback(callback: Option<TimestampCallback>)
            => share::register_timestamp;
        cuptiGetTimestamp(to: *mut u64) => share::get_timestamp;
        cuptiFinalize() => share::finalize;
        cuptiSubscribe(to: *mut *mut c_void, callback: Option<Callback>, user: *mut c_void)
            => subscription::subscribe;
        cuptiUnsubscribe(subscriber: *mut c_void) => subscription::unsubscribe;
        cuptiEnableCallback(on: u32, subscriber: *mut c_void, domain: c_int, id: u32)
            => subscription::enable_callback;
        cuptiEnableDomain(on: u32, subscriber: *mut c_void, domain: c_int)
            => subscription::enable_domain;
        cuptiEnableAllDomains(on: u32, subscriber: *mut c_void)
            => subscription::enable_all_domains;
    }
}

/// The `exec` calls, except those that take a variable number of arguments: the C library
/// ends them in code of its own, and up to a flush interval may be lost there.
mod exec {
    use std::ffi::{c_char, c_int};
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::EXEC_PATIENCE;
    use crate::guard::guard;
    use crate::recording;

    type Arguments = *const *const c_char;

    macro_rules! interpose {
        ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
            /// The C library's own functions. Looked up when the library is loaded, since
            /// the child of a `vfork` must not.
            #[allow(non_upper_case_globals, reason = "named after the functions")]
            mod real {
                use super::{AtomicPtr, ptr};
                $(pub(super) static $name: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());)*
            }

            pub(super) fn find_real() {
                $(
                    // SAFETY: the name is a C string.
                    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, $symbol.as_ptr()) };
                    real::$name.store(found, Ordering::Relaxed);
                )*
            }

            $(
                /// Writes what was recorded, then becomes another program: exec(3).
                ///
                /// # Safety
                /// As exec(3) says.
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                    guard((), || recording::flush_active(EXEC_PATIENCE));
                    let real = real::$name.load(Ordering::Relaxed);
                    // SAFETY: what `dlsym` found under this name has this type; null is `None`.
                    let real: Option<unsafe extern "C" fn($($ty),*) -> c_int> =
                        unsafe { std::mem::transmute(real) };
                    match real {
                        // SAFETY: the caller's own arguments.
                        Some(real) => unsafe { real($($arg),*) },
                        None => {
                            // SAFETY: errno is this thread's.
                            unsafe { *libc::__errno_location() = libc::ENOSYS };
                            -1
                        }
                    }
                }
            )*
        };
    }

    interpose! {
        execve = c"execve" (path: *const c_char, argv: Arguments, envp: Arguments);
        execv = c"execv" (path: *const c_char, argv: Arguments);
        execvp = c"execvp" (file: *const c_char, argv: Arguments);
        execvpe = c"execvpe" (file: *const c_char, argv: Arguments, envp: Arguments);
        fexecve = c"fexecve" (fd: c_int, argv: Arguments, envp: Arguments);
    }
}
