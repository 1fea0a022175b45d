//! Programs that use Level Zero, by themselves or through SYCL: how they are noticed.
//!
//! | | by |
//! |---|---|
//! | Level Zero | its first call, `zeInit` or `zeInitDrivers`, which dynamic linking finds here |
//! | SYCL | `xptiTraceInit`: SYCL's tracing framework calls it in every library that `XPTI_SUBSCRIBERS` names, before SYCL looks for devices |
//! | PyTorch | it has PTI; recordings ask for that when they start |
//!
//! SYCL's runtime does not find our `zeInit`: it loads its adapters so that their own
//! libraries come first. PTI names itself in `XPTI_SUBSCRIBERS` when it is loaded, which is
//! before `main` here; we add ourselves behind it. Nothing else of the environment is touched,
//! and nothing at all where another tool is named there.
#![allow(non_snake_case, reason = "named as in Level Zero and XPTI")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::{mem, ptr};

use kymograph_backends::intel;

use super::behind;
use crate::config::Config;
use crate::guard::guard;
use crate::{recording, sources};

/// Where SYCL's tracing framework looks for tools (xptifw/doc/XPTI_Framework.md).
const SUBSCRIBERS: &CStr = c"XPTI_SUBSCRIBERS";

/// Gets a program that links SYCL ready to be recorded. To be called before `main`.
pub(super) fn prepare(config: &Config) {
    // SAFETY: no other thread exists that could change the environment; the texts are C
    // strings, which setenv copies.
    unsafe {
        let Some(own) = own_path() else { return };
        let value = || {
            let value = libc::getenv(SUBSCRIBERS.as_ptr());
            (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes().to_vec())
        };
        // Of a parent: PTI takes it for that of another tool.
        if value().is_some_and(|value| value.ends_with(&[b",", own.to_bytes()].concat())) {
            libc::unsetenv(SUBSCRIBERS.as_ptr());
        }
        if !intel::before_main(&sources::settings(config)) {
            return;
        }
        let pti = value().filter(|value| !value.contains(&b','));
        let Some(pti) = pti.filter(|v| v.windows(6).any(|w| w == b"libpti")) else { return };
        if let Ok(both) = CString::new([&pti, b",".as_slice(), own.to_bytes()].concat()) {
            libc::setenv(SUBSCRIBERS.as_ptr(), both.as_ptr(), 1);
        }
    }
}

/// The file that we were loaded from, by the same path in every program.
fn own_path() -> Option<CString> {
    // Not one that is exported: its address may be that of another library's.
    let function: fn(&Config) = prepare;
    // SAFETY: an address of our own; what it is told of lives as long as we do.
    let path = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let found = libc::dladdr(function as *const c_void, &mut info);
        (found != 0 && !info.dli_fname.is_null()).then(|| CStr::from_ptr(info.dli_fname))
    };
    let path = Path::new(OsStr::from_bytes(path?.to_bytes())).canonicalize().ok()?;
    CString::new(path.into_os_string().into_vec()).ok()
}

/// The program uses Level Zero: starts the recording, if one is wanted.
fn noticed() {
    // PTI itself initialises Level Zero while it is started.
    if intel::is_idle() && super::WANTED.get().is_some() {
        intel::initialised();
        if super::start() {
            recording::start_sources();
        }
    }
}

/// Level Zero, as its loader is called.
const LOADER: &CStr = c"libze_loader.so.1";

/// The program's own call, and what follows from it. Without any Level Zero the answer is that
/// of a loader that finds no driver.
fn pass_on(name: &CStr, call: impl FnOnce(*mut c_void) -> c_int) -> c_int {
    let real = guard(ptr::null_mut(), || behind::definition(name, LOADER));
    let result = if real.is_null() { intel::UNINITIALISED } else { call(real) };
    guard((), || {
        if result == 0 {
            noticed();
        }
    });
    result
}

/// `zeInit` (ze_api.h).
#[unsafe(no_mangle)]
pub extern "C" fn zeInit(flags: u32) -> c_int {
    type Init = unsafe extern "C" fn(u32) -> c_int;
    // SAFETY: the function of this name has this type; the program's own call.
    pass_on(c"zeInit", |real| unsafe { mem::transmute::<*mut c_void, Init>(real)(flags) })
}

/// `zeInitDrivers` (ze_api.h, from 1.10 on).
///
/// # Safety
/// As in Level Zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zeInitDrivers(
    count: *mut u32,
    drivers: *mut *mut c_void,
    which: *mut c_void,
) -> c_int {
    type Init = unsafe extern "C" fn(*mut u32, *mut *mut c_void, *mut c_void) -> c_int;
    // SAFETY: the function of this name has this type; the program's own arguments.
    pass_on(c"zeInitDrivers", |real| unsafe {
        mem::transmute::<*mut c_void, Init>(real)(count, drivers, which)
    })
}

/// SYCL begins (xpti_trace_framework.h: `xptiTraceInit`).
#[unsafe(no_mangle)]
pub extern "C" fn xptiTraceInit(_: u32, _: u32, _: *const c_char, _: *const c_char) {
    guard((), noticed);
}

/// SYCL ends. Its framework takes a library without this function for no tool.
#[unsafe(no_mangle)]
pub extern "C" fn xptiTraceFinish(_: *const c_char) {}
