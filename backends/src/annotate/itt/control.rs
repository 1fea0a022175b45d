//! Pause, resume, detach: the program says what part of itself is of interest.
//!
//! While paused, neither ITT's nor NVTX's events are recorded; what was recorded before
//! ends as usual. An instant marks each change, so that the gap explains itself.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::guard::guard;
use super::super::session::{ITT, session, set_paused};
use super::sys::Function;

pub(crate) fn functions() -> [(&'static str, Function); 5] {
    [
        ("pause", pause as Function),
        ("resume", resume as Function),
        ("pause_scoped", pause_scoped as Function),
        ("resume_scoped", resume_scoped as Function),
        ("detach", detach as Function),
    ]
}

static DETACHED: AtomicBool = AtomicBool::new(false);

/// `__itt_collection_scope_host` in ittnotify.h: this process, not a device.
const SCOPE_HOST: c_int = 1;

fn change(paused: bool, what: &str) {
    let Some(session) = session() else { return };
    if DETACHED.load(Ordering::Relaxed) || set_paused(paused) == paused {
        return;
    }
    let category = session.key(&ITT);
    session.instant(category, what.as_bytes());
}

unsafe extern "C" fn pause() {
    guard((), || change(true, "annotations paused"));
}

unsafe extern "C" fn resume() {
    guard((), || change(false, "annotations resumed"));
}

unsafe extern "C" fn pause_scoped(scope: c_int) {
    guard((), || {
        if scope & SCOPE_HOST != 0 {
            change(true, "annotations paused");
        }
    });
}

unsafe extern "C" fn resume_scoped(scope: c_int) {
    guard((), || {
        if scope & SCOPE_HOST != 0 {
            change(false, "annotations resumed");
        }
    });
}

/// For good, says ITT.
unsafe extern "C" fn detach() {
    guard((), || {
        change(true, "annotations detached");
        DETACHED.store(true, Ordering::Relaxed);
    });
}
