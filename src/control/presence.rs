//! Whether this process can be asked for traces: it has a desk then.

use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::background::Background;
use super::desk::Desk;
use super::dynolog;
use super::signal::Signal;
use super::socket::Socket;
use super::trigger::Trigger;
use crate::config::Config;
use crate::error::Error;
use crate::recording;

/// How long the answers to what was asked for may take at the end, however long the rest took.
const LEAST: Duration = Duration::from_millis(200);

/// The desk. Never freed: there is one in the life of a process.
static DESK: AtomicPtr<Arc<Desk>> = AtomicPtr::new(ptr::null_mut());

/// The process whose desk it is: the child of a `vfork` shares the memory, and ends first.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The desk of this process, if it can be asked for traces.
pub fn desk() -> Option<&'static Arc<Desk>> {
    // SAFETY: null, or leaked.
    unsafe { DESK.load(Ordering::Acquire).as_ref() }
}

/// Lets this process be asked for traces from now on: by `kymo trigger` and by whatever
/// else `config` allows. `config` is also how traces are recorded unless a request says
/// otherwise. Does nothing the second time.
///
/// # Errors
/// The background thread cannot be started, or no socket can be made.
pub fn arm(config: Config) -> Result<(), Error> {
    if desk().is_some() {
        return Ok(());
    }
    let failed = |source| Error::Socket { source };
    let mut config = config;
    let problems = super::kineto::apply(&mut config);
    let new = Arc::new(Desk::new(config, problems).map_err(failed)?);
    let leaked = Box::into_raw(Box::new(new.clone()));
    let taken = DESK.compare_exchange(ptr::null_mut(), leaked, Ordering::AcqRel, Ordering::Acquire);
    if taken.is_err() {
        // SAFETY: made above, and nobody else has seen it.
        drop(unsafe { Box::from_raw(leaked) });
        return Ok(());
    }
    OWNER.store(std::process::id(), Ordering::Release);
    crate::lifecycle::watch_process();
    let triggers = triggers(new.config()).map_err(failed);
    triggers.and_then(|triggers| Background::start(new, triggers)).inspect_err(|_| {
        DESK.store(ptr::null_mut(), Ordering::Release);
    })
}

/// All who may ask, as far as `config` wants them. One line for each.
fn triggers(config: &Config) -> io::Result<Vec<Box<dyn Trigger>>> {
    let mut triggers: Vec<Box<dyn Trigger>> = vec![Box::new(Socket::open(config)?)];
    if !config.daemon.name.is_empty() {
        triggers.push(Box::new(dynolog::Client::new(config.daemon.clone(), Instant::now())));
    }
    if let Some(signal) = config.signal.and_then(Signal::handle) {
        triggers.push(Box::new(signal));
    }
    Ok(triggers)
}

/// The process ends: so does what is recorded of it.
pub(crate) fn process_ends(patience: Duration) {
    let deadline = Instant::now() + patience;
    let left = || deadline.saturating_duration_since(Instant::now());
    let desk = desk().filter(|_| OWNER.load(Ordering::Acquire) == std::process::id());
    if let Some(desk) = desk {
        desk.close();
    }
    recording::stop_active(left());
    if let Some(desk) = desk {
        desk.wait_until_closed(left().max(LEAST));
    }
}

/// In a forked child, on its only thread: the desk is the parent's. Returns how the
/// parent could be asked for traces, if it could.
pub(crate) fn leave_to_parent() -> Option<&'static Config> {
    let desk = DESK.swap(ptr::null_mut(), Ordering::AcqRel);
    super::close_inherited();
    // SAFETY: null, or leaked. The config is never changed, so no lock is involved.
    unsafe { desk.as_ref() }.map(|desk| desk.config())
}
