//! A tool for NVTX and ITT that appends what it is told, line by line, to the file that
//! the environment variable `KYMO_PROBE_LINES` names.

use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::io::Write as _;

use kymograph_backends::annotate::{itt, nvtx};

#[path = "../tests/lines/mod.rs"]
mod lines;

static LINES: lines::Lines = lines::Lines::new(Some(append));

fn append(line: &str) {
    let Some(path) = std::env::var_os("KYMO_PROBE_LINES") else {
        return;
    };
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

/// NVTX's entry.
///
/// # Safety
/// Called by NVTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    get_export_table: Option<unsafe extern "C" fn(u32) -> *const c_void>,
) -> c_int {
    // SAFETY: NVTX's own argument.
    unsafe { nvtx::initialize(get_export_table, &LINES) }
}

/// The entry of NVTX's extensions.
///
/// # Safety
/// Called by NVTX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(module: *mut nvtx::ExtModule) -> c_int {
    // SAFETY: NVTX's own argument.
    unsafe { nvtx::initialize_extension(module, &LINES) }
}

/// ITT's entry.
///
/// # Safety
/// Called by ITT's static part.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut itt::IttGlobal, group: c_int) {
    // SAFETY: ITT's own arguments.
    unsafe { itt::initialize(global, group, &LINES) };
}
