//! Whether this process can be asked for traces: it has a broker then.

use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::background::Background;
use super::broker::Broker;
use super::dynolog;
use super::held;
use super::lifecycle;
use super::signal::Signal;
use super::socket::Socket;
use super::trigger::Trigger;
use crate::config::Config;
use crate::error::Error;
use crate::recorder::armed;
use crate::recording::{self, Job};

/// How long the answers to what was asked for may take at the end, however long the rest took.
const LEAST: Duration = Duration::from_millis(200);

/// The broker. Never freed: there is one in the life of a process.
static BROKER: AtomicPtr<Arc<Broker>> = AtomicPtr::new(ptr::null_mut());

/// The process whose broker it is: the child of a `vfork` shares the memory, and ends first.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// The broker of this process, if it can be asked for traces.
pub fn broker() -> Option<&'static Arc<Broker>> {
    // SAFETY: null, or leaked.
    unsafe { BROKER.load(Ordering::Acquire).as_ref() }
}

/// Lets this process be asked for traces from now on: by `kymo trigger` and by whatever
/// else `config` allows. `config` is also how traces are recorded unless a request says
/// otherwise. Does nothing the second time.
///
/// # Errors
/// The background thread cannot be started, or no socket can be made.
pub fn arm(config: Config) -> Result<(), Error> {
    if broker().is_some() {
        return Ok(());
    }
    let failed = |source| Error::Socket { source };
    let mut config = config;
    let problems = super::kineto::apply(&mut config);
    let new = Arc::new(Broker::new(config, problems).map_err(failed)?);
    let leaked = Box::into_raw(Box::new(new.clone()));
    let taken =
        BROKER.compare_exchange(ptr::null_mut(), leaked, Ordering::AcqRel, Ordering::Acquire);
    if taken.is_err() {
        // SAFETY: made above, and not published.
        drop(unsafe { Box::from_raw(leaked) });
        return Ok(());
    }
    OWNER.store(std::process::id(), Ordering::Release);
    armed::arm(new.config().categories.clone());
    lifecycle::watch_process();
    let triggers = triggers(new.config()).map_err(failed);
    triggers.and_then(|triggers| Background::start(new, triggers)).inspect_err(|_| {
        BROKER.store(ptr::null_mut(), Ordering::Release);
        armed::disarm();
    })
}

/// All ways to request traces that `config` allows. One line for each.
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
pub(crate) fn process_ends(timeout: Duration) {
    let deadline = Instant::now() + timeout;
    let left = || deadline.saturating_duration_since(Instant::now());
    let broker = broker().filter(|_| OWNER.load(Ordering::Acquire) == std::process::id());
    if let Some(broker) = broker {
        broker.close();
    }
    recording::stop_active(left());
    if let Some(broker) = broker {
        broker.wait_until_closed(left().max(LEAST));
    }
}

/// In a forked child, on its only thread: the broker is the parent's. Returns how the
/// parent could be asked for traces, if it could.
pub(crate) fn detach_from_parent() -> Option<&'static Config> {
    let broker = BROKER.swap(ptr::null_mut(), Ordering::AcqRel);
    armed::disarm();
    held::close_inherited();
    // SAFETY: null, or leaked. The config is never changed, so no lock is involved.
    unsafe { broker.as_ref() }.map(|broker| broker.config())
}

/// Runs the engine of a recording: on the background thread, if the process has one, or else on one
/// of its own.
///
/// # Errors
/// There can be no further thread, or the background thread is about to end.
pub(crate) fn run(job: Job) -> Result<(), Error> {
    match broker() {
        Some(broker) => broker.hand_over(job).map_err(|_| Error::Ending),
        None => recording::spawn(move || job(&mut || {})),
    }
}
