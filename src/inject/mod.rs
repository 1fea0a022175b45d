//! What a program finds in us when we are injected into it: the symbols by which NVTX, ITT,
//! CUDA and ROCm attach a tool, and the calls that end a process without `atexit` handlers.
//!
//! `kymo record` preloads the library into a command and all that it starts. A process
//! that never annotates anything loads it and nothing more: the recording starts with the
//! first NVTX or ITT call, with CUDA or Level Zero, or with the first event of the C ABI.
//!
//! The interposed calls do the one thing that the recording needs, then what the caller
//! asked for. They serve only the process that is being recorded: the child of a `vfork`
//! shares its memory, but not its pid.
//!
//! A privileged process (setuid and the like) that was led here by its environment is left
//! alone: the user who set that must not make it write files.

mod behind;
mod cupti;
mod exec;
mod host;
mod levelzero;
mod memory;
mod pti;
mod python;
mod rocm;
mod roctx;
mod sanitizers;
mod synapse;
mod torch;

use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use kymograph_backends::annotate::{itt, nvtx};
use kymograph_backends::environment::is_privileged;
use kymograph_backends::nvidia;

use crate::api::Recording;
use crate::config::Config;
use crate::control::lifecycle::{self, EXIT_TIMEOUT};
use crate::control::{self, presence};
use crate::engine::window::Window;
use crate::guard::{guard, slow_guard, uninterrupted};
use crate::hooks::{ON_REQUESTED, START_INJECTED};
use crate::join;
use crate::page::LeftOut;
use crate::queue;
use crate::recorder::PIPELINE;
use crate::recording;

/// How long `exec` may be delayed.
const EXEC_TIMEOUT: Duration = Duration::from_millis(500);

/// How this process asked to be recorded, by its environment, when the library was loaded.
static WANTED: OnceLock<Config> = OnceLock::new();

/// Whether the program records by itself and has asked for its interpreter to be observed: what is
/// observed then starts no recording.
static BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// Observes the Python interpreter of this process, as `config` says, unless `kymo record` runs
/// it and has done so. False if there is none.
///
/// # Safety
/// The interpreter's lock is held.
pub(crate) unsafe fn observe_python(config: &Config) -> bool {
    if WANTED.get().is_some() {
        return true;
    }
    BY_ITSELF.store(true, Ordering::Relaxed);
    ON_REQUESTED.register(torch::state_metadata);
    // SAFETY: the caller's promise.
    unsafe { python::attach(config) }
}

/// Runs when the library is loaded, before the program's own threads exist: the only
/// moment at which its environment can be read safely.
extern "C" fn on_load() {
    if host::is_static() {
        return;
    }
    guard((), || {
        // SAFETY: no other thread exists that could change the environment.
        let set = |name: &CStr| unsafe { !libc::getenv(name.as_ptr()).is_null() };
        if !is_privileged() && (set(c"KYMOGRAPH_CONTROL") || set(c"KYMOGRAPH_WAIT")) {
            let config = WANTED.get_or_init(|| Config::from_env().0);
            // While the process may still do all that this takes.
            host::answer_to_our_path();
            // Before anything can happen that is to start the recording.
            lifecycle::register_hooks();
            START_INJECTED.register(start_if_wanted);
            ON_REQUESTED.register(torch::state_metadata);
            lifecycle::join(config);
            levelzero::prepare(config);
            python::watch(config);
            torch::watch(config);
        }
        exec::find_real();
    });
}

// The loader calls functions in `.init_array` with (argc, argv, envp), which `on_load` does
// not read; it neither unwinds nor needs anything of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

/// Starts the recording that the environment asks for, once per process image. A program
/// that cannot be recorded runs as if we were not there. False if it has no memory left for that:
/// then nothing may be attached to it either.
fn start() -> bool {
    static STARTED: Once = Once::new();
    if BY_ITSELF.load(Ordering::Relaxed) {
        return true;
    }
    if !STARTED.is_completed() {
        if !host::has_memory() {
            if let Some(arena) = queue::arena() {
                arena.leave_out(LeftOut::Memory.bit());
            }
            return false;
        }
        uninterrupted(|| STARTED.call_once(start_once));
    }
    true
}

fn start_once() {
    let config = WANTED.get().cloned().unwrap_or_else(|| Config::from_env().0);
    if lifecycle::join(&config) {
        if let Ok(recording) = recording::joined::start(config, Window::all()) {
            // It ends with the process.
            recording::keep(recording);
            torch::state_metadata();
        }
        return;
    }
    if config.control.is_some() && !config.wait {
        // `kymo` is gone, or this process may not reach it. It alone writes to its output.
        join::tell_left_out(&config);
        return;
    }
    // Best effort: it can be recorded all the same.
    let _ = control::arm(config.clone());
    // Not started by `kymo`, but with a daemon: as Kineto, it is there to be asked.
    let asked = config.control.is_none() && !config.daemon.name.is_empty();
    if config.wait || asked {
        return;
    }
    if let Ok(recording) = Recording::start(config) {
        // It ends with the process.
        recording.keep();
        torch::state_metadata();
    }
}

/// Starts the recording if `kymo record` runs this process and it has not started yet:
/// for events that come by another way than an annotation library. Returns whether `kymo
/// record` runs this process.
pub(crate) fn start_if_wanted() -> bool {
    WANTED.get().is_some() && start()
}

/// Attaches one copy of NVTX (nvtx3/nvtxDetail/nvtxInit.h: `NvtxInitializeInjectionNvtxFunc_t`).
///
/// # Safety
/// Called by an NVTX copy, as its tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(exports: Option<nvtx::GetExportTable>) -> c_int {
    if host::is_static() {
        return 0;
    }
    guard(0, || {
        if is_privileged() {
            return 0;
        }
        if !start() {
            return 0;
        }
        torch::attach_if_there();
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
    if host::is_static() {
        return 0;
    }
    guard(0, || {
        if is_privileged() {
            return 0;
        }
        if !start() {
            return 0;
        }
        // SAFETY: passed on from the NVTX copy.
        unsafe { nvtx::initialize_extension(module, &PIPELINE) }
    })
}

/// Called by the CUDA driver while it initialises (`CUDA_INJECTION64_PATH`; CUPTI's
/// documentation calls the function so).
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    if host::is_static() {
        return 0;
    }
    slow_guard(1, || {
        if is_privileged() {
            return 1;
        }
        nvidia::injected(|| {
            if start() {
                recording::start_sources();
                torch::attach_if_there();
            }
        });
        1
    })
}

/// Attaches one static part of ITT (ittnotify_static.c: protocol 2).
///
/// # Safety
/// Called by a static part of ITT, as its tool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut itt::IttGlobal, group: c_int) {
    if host::is_static() {
        return;
    }
    guard((), || {
        if is_privileged() {
            return;
        }
        if start() {
            // SAFETY: passed on from the static part.
            unsafe { itt::initialize(global, group, &PIPELINE) };
        }
    });
}

/// `_exit`: writes what was recorded, then ends the process (exit_group(2)).
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    slow_guard((), || presence::process_ends(EXIT_TIMEOUT));
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
