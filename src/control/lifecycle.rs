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
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use super::presence;
use crate::config::Config;
use crate::engine::window::Window;
use crate::error::Error;
use crate::guard::{guard, slow_guard, uninterrupted};
use crate::hooks::{DECIDE, ON_CLOSED, ON_FIRST_EVENT, START_IF_DUE, START_INJECTED};
use crate::intern::INTERNER;
use crate::recorder::{self, COMPILED_IN, armed, category};
use crate::recording::{self, active, inherited};
use crate::{join, queue, sink};

/// How long the end of the process may be delayed by a sink that does not answer; by one that
/// does, ten times as long.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// In a forked child that has recorded nothing yet: how its parent could be asked for
/// traces.
static ARMED: AtomicPtr<Config> = AtomicPtr::new(ptr::null_mut());

/// Arms the handlers, once.
pub(crate) fn watch_process() {
    static ARMED: Once = Once::new();
    ARMED.call_once(|| {
        register_hooks();
        // SAFETY: the handlers are functions of the right type that never unwind. The
        // library is never unloaded (it is linked with `-z nodelete`).
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// Registers what lower floors ask of this one.
pub(crate) fn register_hooks() {
    ON_FIRST_EVENT.register(on_first_event);
    START_IF_DUE.register(start_if_due);
    DECIDE.register(decide);
    ON_CLOSED.register(recording::joined::closed);
}

/// Joins the recording that `config` names, once: see [`join::join`].
pub(crate) fn join(config: &Config) -> bool {
    let joined = join::join(config);
    if joined {
        watch_process();
    }
    joined
}

extern "C" fn at_exit() {
    slow_guard((), || presence::process_ends(EXIT_TIMEOUT));
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
        let armed = presence::detach_from_parent();
        match recording::detach_from_parent() {
            Some(config) => inherited::inherit(config),
            None if inherited::inherited().is_none() => stay_silent(),
            // Forked again before it recorded anything.
            None => {}
        }
        if let Some(config) = armed {
            ARMED.store(ptr::from_ref(config).cast_mut(), Ordering::Release);
            if inherited::inherited().is_none() {
                // So that its first event comes here.
                category::forget();
                recorder::forget_categories();
            }
        }
    });
}

/// Starts the recording that is due when a program is about to record something, if none runs: of
/// a forked child, and of a program under `kymo record`. Returns whether a recording runs now.
pub(crate) fn start_if_due() -> bool {
    if !recording::is_running() {
        on_first_event();
        start_injected();
    }
    COMPILED_IN && recording::is_running()
}

fn start_injected() -> bool {
    START_INJECTED.get().is_some_and(|start| start())
}

/// Whether the running recording wants a category, or the one that will start with the first
/// event of a forked child; `None` without one. Starts the recording of a program under `kymo
/// record`.
fn decide(category: &[u8]) -> Option<bool> {
    let running = active::active().or_else(|| start_injected().then(active::active).flatten());
    let Some(running) = running else {
        arm_if_inherited();
        let inherited = inherited::inherited();
        let wanted = inherited.map(|config| config.categories.matches(category));
        // It may be recorded later; that is said to everybody when it begins. Only the recording of
        // an injected program may still begin with an event.
        let later = armed::armed().is_some() || START_INJECTED.get().is_none();
        return wanted.or_else(|| later.then_some(false));
    };
    running.wants_now(category)
}

/// A thread of a forked child may want to record: the child can be asked for traces if its
/// parent could.
fn arm_if_inherited() {
    if ARMED.load(Ordering::Relaxed).is_null() {
        return;
    }
    let config = ARMED.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null, or a config that the child inherited, which is never freed in it.
    if let Some(config) = unsafe { config.as_ref() } {
        let _ = uninterrupted(|| presence::arm(config.clone()));
    }
}

/// A thread of a forked child is about to record: starts the child's own recording if it
/// has none yet.
fn on_first_event() {
    arm_if_inherited();
    let Some((config, forked)) = inherited::take_inherited() else { return };
    let started = || {
        let changing = recording::Changing::begin()?;
        let path = config.output_path(std::process::id(), true);
        let sink = sink::open_file(config, &path)?;
        let config = config.clone();
        let shared = recording::launch(
            &changing,
            config,
            sink,
            Some(&path),
            forked,
            Window::all(),
            presence::run,
        )?;
        // It has no handle: it ends with the process.
        recording::keep(shared);
        Ok::<(), Error>(())
    };
    if uninterrupted(started).is_err() {
        stay_silent();
    }
}

/// Nothing is recorded in this process any more.
fn stay_silent() {
    category::switch(|_| false);
    recorder::forget_categories();
}
