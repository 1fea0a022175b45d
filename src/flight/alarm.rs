//! Dumps when the program is about to die: a Rust panic, a SIGABRT. Armed only if
//! `DUMP_ON` says so, since both change something that is the program's own.
//!
//! The panic hook that was there runs first, as if ours were not. The handler of SIGABRT
//! does nothing but raise a flag, which the engine looks at every few milliseconds, and
//! wait for it to be lowered; then the handler that was there takes over.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use kymograph_backends::environment::gettid;

use crate::clock;
use crate::config::DumpOn;
use crate::guard::guard;

/// How long a dying program is held up by a disk that does not answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// When SIGABRT came, in nanoseconds of `CLOCK_BOOTTIME`; 0 if it has not, or if the dump
/// is written.
static RAISED: AtomicU64 = AtomicU64::new(0);
/// The thread that would have to write it, and must not wait for itself.
static ENGINE: AtomicI32 = AtomicI32::new(0);
/// What was done about SIGABRT before; never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// What is done about a program that is about to die: by the floor of recordings.
#[derive(Clone, Copy)]
pub(crate) struct Alarm {
    /// Dumps what the flight recorder of this process holds, because of a panic; waits this long.
    pub dump: fn(Duration),
    /// Whether this process is being recorded. Async-signal-safe.
    pub is_running: fn() -> bool,
}

static IS_RUNNING: OnceLock<fn() -> bool> = OnceLock::new();

/// Arms what `on` asks for, once per process.
pub(crate) fn arm(on: &DumpOn, alarm: Alarm) {
    static PANIC: Once = Once::new();
    static ABORT: Once = Once::new();
    if on.panic {
        PANIC.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                before(info);
                if gettid() != ENGINE.load(Ordering::Relaxed) {
                    guard((), || (alarm.dump)(TIMEOUT));
                }
            }));
        });
    }
    if on.abort {
        ABORT.call_once(|| catch_abort(alarm.is_running));
    }
}

/// Engine: it runs on this thread.
pub(crate) fn engine_runs() {
    ENGINE.store(gettid(), Ordering::Relaxed);
}

/// Engine: since when a thread waits in the handler.
pub(crate) fn raised() -> Option<u64> {
    Some(RAISED.load(Ordering::Acquire)).filter(|at| *at != 0)
}

/// Engine: it need not wait any longer.
pub(crate) fn lower() {
    RAISED.store(0, Ordering::Release);
}

fn catch_abort(is_running: fn() -> bool) {
    let _ = IS_RUNNING.set(is_running);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both structs are initialised; the handler is a function of the right type
    // that makes only async-signal-safe calls.
    unsafe {
        let mut ours = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        ours.sa_sigaction = on_abort as *const () as libc::sighandler_t;
        libc::sigfillset(&mut ours.sa_mask);
        if libc::sigaction(libc::SIGABRT, std::ptr::null(), before.as_mut_ptr()) == 0 {
            // Before ours can run.
            BEFORE.store(Box::into_raw(Box::new(before.assume_init())), Ordering::Release);
            libc::sigaction(libc::SIGABRT, &ours, std::ptr::null_mut());
        }
    }
}

/// Async-signal-safe: atomics, `gettid`, `clock_gettime`, `nanosleep`, `sigaction`, `raise`.
extern "C" fn on_abort(signal: libc::c_int) {
    let is_running = || IS_RUNNING.get().is_some_and(|is_running| is_running());
    if is_running() && gettid() != ENGINE.load(Ordering::Relaxed) {
        RAISED.store(clock::system(libc::CLOCK_BOOTTIME).max(1), Ordering::Release);
        let nap = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let mut left = TIMEOUT.as_millis();
        while left > 0 && raised().is_some() && is_running() {
            // SAFETY: reads the struct.
            unsafe { libc::nanosleep(&nap, std::ptr::null_mut()) };
            left -= 1;
        }
    }
    // SAFETY: what was stored is never freed. The signal is blocked until we return, and
    // then goes where it would have gone without us.
    unsafe {
        libc::sigaction(libc::SIGABRT, BEFORE.load(Ordering::Acquire), std::ptr::null_mut());
        libc::raise(signal);
    }
}
