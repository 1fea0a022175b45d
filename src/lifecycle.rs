//! What becomes of a recording when the process forks, ends, or turns into another.
//!
//! | event | under `kymo record` | in a program that records by itself, or under `kymo record --wait` |
//! |---|---|---|
//! | `exit`, return from `main`, from any thread | sources push what they hold; `kymo` reads on until the process is gone | the recording is stopped: all is written |
//! | `_exit`, `exec…` | the same | the same, where these calls reach us (the injected library); otherwise up to one flush interval is lost |
//! | `fork`, `_Fork`, `clone` | the child records into the memory that it inherits, as a process of its own, or stays silent | the parent goes on; the child of a `fork` starts afresh with its first event, or stays silent; it can be asked for traces, from then on, if its parent could |
//! | `vfork` | the child records as the thread that it came from, and ends without us | the same |
//! | a thread ends | its queue is drained and used again | the same |
//! | a signal kills the process | nothing is lost of what was pushed: `kymo` reads it, and says what the process died of | what was flushed is a valid trace; with `RECOVER`, `kymo recover` makes one of everything |

use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Anchor;
use crate::config::Config;
use crate::guard::{guard, slow_guard, uninterrupted};
use crate::intern::INTERNER;
use crate::{category, control, queue, recorder, recording};

/// How long the end of the process may be delayed by a sink that does not answer; by one that
/// does, ten times as long.
pub(crate) const EXIT_PATIENCE: Duration = Duration::from_secs(2);

/// In a forked child that has recorded nothing yet: how its parent was recorded.
static INHERITED: AtomicPtr<Config> = AtomicPtr::new(ptr::null_mut());
/// In a forked child that has recorded nothing yet: how its parent could be asked for
/// traces.
static ARMED: AtomicPtr<Config> = AtomicPtr::new(ptr::null_mut());
/// When it was forked, on both clocks.
static FORKED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Arms the handlers, once.
pub(crate) fn watch_process() {
    static ARMED: Once = Once::new();
    ARMED.call_once(|| {
        // SAFETY: the handlers are functions of the right type that never unwind. The
        // library is never unloaded (it is linked with `-z nodelete`).
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

extern "C" fn at_exit() {
    slow_guard((), || control::process_ends(EXIT_PATIENCE));
}

/// In the child of a fork, on its only thread. Takes no lock and allocates nothing: other
/// threads of the parent may have held any lock there is.
extern "C" fn in_child() {
    guard((), || {
        queue::after_fork();
        INTERNER.after_fork();
        if recording::joined::in_child() {
            return;
        }
        let armed = control::leave_to_parent();
        match recording::leave_to_parent() {
            Some(config) => {
                let now = Anchor::now();
                FORKED[0].store(now.ticks, Ordering::Relaxed);
                FORKED[1].store(now.nanos, Ordering::Relaxed);
                INHERITED.store(ptr::from_ref(config).cast_mut(), Ordering::Release);
            }
            None if INHERITED.load(Ordering::Acquire).is_null() => stay_silent(),
            // Forked again before it recorded anything.
            None => {}
        }
        if let Some(config) = armed {
            ARMED.store(ptr::from_ref(config).cast_mut(), Ordering::Release);
            if INHERITED.load(Ordering::Acquire).is_null() {
                // So that its first event comes here.
                category::forget();
                recorder::forget_categories();
            }
        }
    });
}

/// In a forked child that has recorded nothing yet: whether it will record a category.
/// `None` elsewhere.
pub(crate) fn will_want(category: &[u8]) -> Option<bool> {
    let config = INHERITED.load(Ordering::Acquire);
    // SAFETY: a config that the child inherited is never freed in it.
    let config = unsafe { config.as_ref() }?;
    Some(config.categories.matches(category))
}

/// A thread of a forked child may want to record: the child can be asked for traces if its
/// parent could.
pub(crate) fn arm_if_inherited() {
    if ARMED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let config = ARMED.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null, or a config that the child inherited, which is never freed in it.
    if let Some(config) = unsafe { config.as_ref() } {
        let _ = uninterrupted(|| control::arm(config.clone()));
    }
}

/// A thread of a forked child is about to record: starts the child's own recording if it
/// has none yet.
pub(crate) fn before_first_event() {
    arm_if_inherited();
    if INHERITED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let config = INHERITED.swap(ptr::null_mut(), Ordering::AcqRel);
    if config.is_null() {
        return;
    }
    let forked = Anchor {
        ticks: FORKED[0].load(Ordering::Relaxed),
        nanos: FORKED[1].load(Ordering::Relaxed),
    };
    // SAFETY: a config that the child inherited is never freed in it.
    let config = unsafe { &*config };
    if uninterrupted(|| recording::start_in_child(config, forked)).is_err() {
        stay_silent();
    }
}

/// A forked child has a recording: the one it inherited is not to be started any more.
pub(crate) fn forget_inherited() {
    INHERITED.store(ptr::null_mut(), Ordering::Release);
}

/// Nothing is recorded in this process any more.
fn stay_silent() {
    category::switch(|_| false);
    recorder::forget_categories();
}
