//! Runs `tests/oracle/setup`, at most once per process and part.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory `tests/.tools`, complete: trace_processor and the Python environment.
///
/// # Panics
///
/// When something is missing that cannot be fetched, with setup's one line about it.
#[track_caller]
pub fn tools() -> PathBuf {
    let ready = trace_processor().and_then(|_| python());
    ready.unwrap_or_else(|error| panic!("{error}"));
    directory()
}

/// A Python that has the packages of `tests/oracle/requirements.txt`.
///
/// # Panics
///
/// When it is missing and cannot be made, with setup's one line about it.
#[track_caller]
pub fn venv_python() -> PathBuf {
    python().unwrap_or_else(|error| panic!("{error}"))
}

/// A Python that has the packages of `tests/oracle/requirements-readers.txt`: tools that read
/// Kineto's JSON, and pyarrow.
///
/// # Panics
///
/// When it is missing and cannot be made, with setup's one line about it.
#[track_caller]
pub fn readers_python() -> PathBuf {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let ready = DONE.get_or_init(|| setup("readers")).clone();
    ready.unwrap_or_else(|error| panic!("{error}"));
    directory().join("readers/bin/python")
}

/// The folder with the modules of `tests/oracle/requirements-dataset.txt`, engines that read data
/// sets, for [`readers_python`].
///
/// # Panics
///
/// When it is missing and cannot be made, with setup's one line about it.
#[track_caller]
pub fn dataset_modules() -> PathBuf {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let ready = DONE.get_or_init(|| setup("dataset")).clone();
    ready.unwrap_or_else(|error| panic!("{error}"));
    directory().join("dataset")
}

/// A Python that has the packages of `tests/oracle/requirements-s3.txt`: a server that speaks S3.
///
/// # Panics
///
/// When it is missing and cannot be made, with setup's one line about it.
#[track_caller]
pub fn s3_python() -> PathBuf {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let ready = DONE.get_or_init(|| setup("s3")).clone();
    ready.unwrap_or_else(|error| panic!("{error}"));
    directory().join("s3/bin/python")
}

/// The include directory with NVTX's C and C++ headers (`nvtx3/nvToolsExt.h`).
///
/// # Panics
///
/// When they are missing and cannot be fetched, with setup's one line about it.
#[track_caller]
pub fn nvtx_headers() -> PathBuf {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let ready = DONE.get_or_init(|| setup("nvtx")).clone();
    ready.unwrap_or_else(|error| panic!("{error}"));
    directory().join("nvtx")
}

/// The directory that holds trace_processor.
pub(crate) fn trace_processor() -> Result<PathBuf, String> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| setup("trace")).clone()?;
    Ok(directory().join("trace-processor"))
}

fn python() -> Result<PathBuf, String> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| setup("python")).clone()?;
    Ok(directory().join("venv/bin/python"))
}

fn directory() -> PathBuf {
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR"));
    oracle.with_file_name(".tools")
}

fn setup(part: &str) -> Result<(), String> {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/setup"))
        .arg(part)
        .output()
        .map_err(|error| format!("cannot run tests/oracle/setup: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
}
