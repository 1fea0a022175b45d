//! Being asked for traces, iterations, and sessions around them.

use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::header::{CSummary, bytes};
use super::recording::{config, is_adopted, say};
use crate::api::{Ready, Session};
use crate::guard::slow_guard;
use crate::session::Schedule;
use crate::{api, control};

/// The session that `kymo_session_start` began.
static SESSION: Mutex<Option<Session>> = Mutex::new(None);
/// Whether there is one.
static IN_SESSION: AtomicBool = AtomicBool::new(false);

/// `kymo_schedule`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CSchedule {
    size: usize,
    skip_first: u64,
    wait: u64,
    warmup: u64,
    active: u64,
    repeat: u64,
    skip_first_wait: u64,
}

const _: () = assert!(size_of::<CSchedule>() == 56 && offset_of!(CSchedule, skip_first_wait) == 48);

/// `kymo_trace_ready`.
type OnTraceReady = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const CSummary)>;

/// What the callback is called with first.
struct User(*mut c_void);

// SAFETY: the caller promises that the callback may be called on any thread.
unsafe impl Send for User {}

fn session() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `options` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_arm(options: *const c_char) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        let config = config(unsafe { bytes(options) });
        say(config.and_then(|config| control::arm(config).map_err(|error| error.to_string())))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_step() {
    slow_guard((), || {
        if !IN_SESSION.load(Ordering::Acquire) {
            return api::step();
        }
        // Not under the lock: the callback may come back to us.
        let Some(mut taken) = session().take() else {
            return api::step();
        };
        say(taken.step().map_err(|error| error.to_string()));
        if IN_SESSION.load(Ordering::Acquire) {
            *session() = Some(taken);
        }
    });
}

/// # Safety
/// `options` is null or a C string, `schedule` is null or points to a `kymo_schedule` whose
/// size is set, and `on_trace_ready` may be called with `user` on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kymo_session_start(
    options: *const c_char,
    schedule: *const CSchedule,
    on_trace_ready: OnTraceReady,
    user: *mut c_void,
) -> bool {
    slow_guard(false, || {
        // SAFETY: the caller's promise.
        let (options, schedule) = unsafe { (bytes(options), read(schedule)) };
        let user = User(user);
        let ready = move |ready: &Ready| tell(on_trace_ready, &user, ready);
        say(config(options).and_then(|config| {
            if is_adopted() {
                // `kymo record` records all of it.
                return Ok(());
            }
            // One at a time: the one before ends first.
            let before = session().take();
            drop(before);
            let new = Session::new(config, schedule, ready).map_err(|error| error.to_string())?;
            *session() = Some(new);
            IN_SESSION.store(true, Ordering::Release);
            Ok(())
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kymo_session_finish() -> u64 {
    slow_guard(0, || {
        IN_SESSION.store(false, Ordering::Release);
        let session = session().take();
        session.map_or(0, Session::finish)
    })
}

/// # Safety
/// `schedule` is null, or points to as many readable bytes as its first field says.
unsafe fn read(schedule: *const CSchedule) -> Schedule {
    let mut all = CSchedule {
        size: 0,
        skip_first: 0,
        wait: 0,
        warmup: 0,
        active: 1,
        repeat: 0,
        skip_first_wait: 0,
    };
    if !schedule.is_null() {
        // SAFETY: not null, and its first field is set; no more than that many bytes are
        // read, and any bits are a `CSchedule`.
        unsafe {
            let size = (&raw const (*schedule).size).read_unaligned().min(size_of::<CSchedule>());
            let to = (&raw mut all).cast::<u8>();
            std::ptr::copy_nonoverlapping(schedule.cast::<u8>(), to, size);
        }
    }
    Schedule {
        skip_first: all.skip_first,
        wait: all.wait,
        warmup: all.warmup,
        active: all.active,
        repeat: all.repeat,
        skip_first_wait: all.skip_first_wait != 0,
    }
}

fn tell(callback: OnTraceReady, user: &User, ready: &Ready) {
    let Some(callback) = callback else {
        return;
    };
    let mut path = ready.path.as_os_str().as_bytes().to_vec();
    path.push(0);
    let summary = CSummary::of(&ready.summary);
    // SAFETY: the caller of `kymo_session_start` promised that it may be called so.
    unsafe { callback(user.0, path.as_ptr().cast(), &summary) };
}
