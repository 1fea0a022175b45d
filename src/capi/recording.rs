//! Recordings that a C program starts and stops.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use super::failure;
use super::header::{CSummary, bytes, name};
use crate::Config;
use crate::api::Recording;
use crate::error::Error;
use crate::flight::Target;
use crate::guard::{guard, slow_guard};
use crate::hooks::ON_REQUESTED;
use crate::recording;

/// The recording that `kymo_start` started.
static OURS: AtomicPtr<Recording> = AtomicPtr::new(ptr::null_mut());
/// How many threads are doing something with it, one of which may have taken it out.
static BORROWED: AtomicU32 = AtomicU32::new(0);
/// Whether `kymo_start` found the recording of `kymo record` and left it at that.
static ADOPTED: AtomicBool = AtomicBool::new(false);

/// # Safety
/// `options` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_start(options: *const c_char) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        say(start(unsafe { bytes(options) }, Recording::start))
    })
}

/// Whether it went well; remembers why if not.
pub(super) fn say(result: Result<(), String>) -> bool {
    result.inspect_err(|why| failure::set(why)).is_ok()
}

/// The options that a caller gives; none: those of the environment.
pub(super) fn config(options: Option<&[u8]>) -> Result<Config, String> {
    let (config, problems) = match options {
        None => Config::from_env(),
        Some(text) => Config::parse_text(str::from_utf8(text).map_err(|e| e.to_string())?),
    };
    match problems.as_slice() {
        [] => Ok(config),
        _ => Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// Whether this runs under `kymo record`, whose recording comes first.
pub(super) fn is_adopted() -> bool {
    #[cfg(feature = "inject")]
    if crate::inject::start_if_wanted() && Recording::is_running() {
        ADOPTED.store(true, Ordering::Relaxed);
        return true;
    }
    false
}

fn start(
    options: Option<&[u8]>,
    begin: impl FnOnce(Config) -> Result<Recording, Error>,
) -> Result<(), String> {
    let config = config(options)?;
    if is_adopted() {
        return Ok(());
    }
    keep(begin(config).map_err(|error| error.to_string())?);
    ON_REQUESTED.call();
    Ok(())
}

/// Makes a recording the one that `kymo_stop` ends.
fn keep(recording: Recording) {
    let before = OURS.swap(Box::into_raw(Box::new(recording)), Ordering::AcqRel);
    if !before.is_null() {
        // SAFETY: made by `Box::into_raw`, and the thread that swaps a pointer out owns it. That
        // recording ended by itself, or is a parent's.
        drop(unsafe { Box::from_raw(before) });
    }
}

/// Takes the recording out, also if another thread does something with it at the moment.
fn take() -> *mut Recording {
    loop {
        let borrowed = BORROWED.load(Ordering::SeqCst) > 0;
        let ours = OURS.swap(ptr::null_mut(), Ordering::SeqCst);
        if !ours.is_null() || !borrowed {
            return ours;
        }
        std::thread::yield_now();
    }
}

/// What is done with the recording that `kymo_prepare` or `kymo_start` started, or else
/// with the one of `kymo record`. False if there is none.
fn with(f: impl FnOnce(&Recording)) -> bool {
    BORROWED.fetch_add(1, Ordering::SeqCst);
    let ours = OURS.swap(ptr::null_mut(), Ordering::SeqCst);
    if !ours.is_null() {
        // SAFETY: made by `Box::into_raw`, and the thread that swaps a pointer out owns it.
        f(unsafe { &*ours });
        OURS.store(ours, Ordering::SeqCst);
    }
    BORROWED.fetch_sub(1, Ordering::SeqCst);
    if ours.is_null() {
        failure::set("there is no recording that kymo_start or kymo_prepare started");
    }
    !ours.is_null()
}

/// # Safety
/// `options` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_prepare(options: *const c_char) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        say(start(unsafe { bytes(options) }, Recording::prepare))
    })
}

/// # Safety
/// `options` is null or a C string, and the thread holds the lock of the process's Python.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_observe_python(options: *const c_char) -> bool {
    guard(false, || {
        // SAFETY: the caller's promise.
        say(config(unsafe { bytes(options) }).and_then(|config| observe_python(&config)))
    })
}

#[cfg(feature = "inject")]
fn observe_python(config: &Config) -> Result<(), String> {
    // SAFETY: only `kymo_observe_python` calls this, whose caller holds the interpreter's lock.
    let observed = unsafe { crate::inject::observe_python(config) };
    observed
        .then_some(())
        .ok_or_else(|| "this process has no Python that can be observed".to_owned())
}

#[cfg(not(feature = "inject"))]
fn observe_python(_: &Config) -> Result<(), String> {
    Err("this library is built without what observes Python".to_owned())
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_open() -> bool {
    slow_guard(false, || ADOPTED.load(Ordering::Relaxed) || with(Recording::open))
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_pause() -> bool {
    slow_guard(false, || with(Recording::pause))
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_resume() -> bool {
    slow_guard(false, || with(Recording::resume))
}

/// # Safety
/// `key` and `value` are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_metadata(key: *const c_char, value: *const c_char) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        let [key, value] = [key, value].map(|text| unsafe { name(text) });
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        with(|recording| recording.add_metadata(&text(key), &text(value)))
    })
}

/// # Safety
/// `summary` is null or points to a `kymo_summary` whose size is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_stop(summary: *mut CSummary) -> bool {
    slow_guard(false, || {
        let ours = take();
        if ours.is_null() && ADOPTED.swap(false, Ordering::Relaxed) {
            let done = recording::flush_active(recording::TIMEOUT);
            // SAFETY: the caller's promise.
            unsafe { CSummary::write(summary, &recording::active_summary().unwrap_or_default()) };
            return done;
        }
        if ours.is_null() {
            failure::set("there is no recording that kymo_start started");
            return false;
        }
        // SAFETY: as in `start`.
        let recording = unsafe { Box::from_raw(ours) };
        // A forked child has the parent's handle, and perhaps a recording of its own.
        let done = if recording.is_of_this_process() {
            recording.stop()
        } else {
            recording::stop_active(recording::TIMEOUT).unwrap_or_default()
        };
        // SAFETY: the caller's promise.
        unsafe { CSummary::write(summary, &done) };
        if let Some(why) = &done.failure {
            failure::set(format!("the trace is not complete: {why}"));
        }
        done.failure.is_none()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_flush(milliseconds: u32) -> bool {
    slow_guard(false, || recording::flush_active(Duration::from_millis(milliseconds.into())))
}

/// # Safety
/// `path` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_dump(path: *const c_char, milliseconds: u32) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        let path = unsafe { bytes(path) };
        let target = path.map_or(Target::Next, |path| Target::Path(OsStr::from_bytes(path).into()));
        let timeout = Duration::from_millis(milliseconds.into());
        match recording::dump_active(target, "asked by the program", timeout) {
            Ok(_) => true,
            Err(error) => {
                failure::set(error.to_string());
                false
            }
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_is_recording() -> bool {
    guard(false, Recording::is_running)
}
