//! Recordings of this process: starting one, asking how it goes, stopping it.
//!
//! The handles that programs hold are in `api`; here is what they, `control` and the injected
//! library do with them.

pub(crate) mod active;
pub(crate) mod inherited;
pub(crate) mod joined;
mod kept;
pub(crate) mod requested;
mod this_process;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::clock::{Anchor, Converter};
use crate::config::{Config, DumpOn, ForkPolicy, Policy};
use crate::engine::Engine;
use crate::engine::control_block::{Shared, lock, lock_until};
use crate::engine::origin::Origin;
use crate::engine::stats::{Stats, Summary};
use crate::engine::window::{Side, Window};
use crate::error::Error;
use crate::flight::alarm::{self, Alarm};
use crate::flight::{Dump, Order, Ordered, Target};
use crate::queue;
use crate::recorder::{self, category, steps};
use crate::sink::Sink;
use crate::sources;
use active::{active, deactivate};
use kymograph_backends::guard::without_signals;

/// How long [`stop`] waits for a sink that does not answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Something that runs for as long as a recording does. While it waits it calls what it is given,
/// which attends to whatever else its thread has to look after.
pub(crate) type Job = Box<dyn FnOnce(&mut dyn FnMut()) + Send>;

/// How many recordings there were.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Set while a recording starts or stops.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// Excludes others while a recording starts or stops.
pub(crate) struct Changing;

impl Changing {
    pub fn begin() -> Result<Changing, Error> {
        if CHANGING.swap(true, Ordering::Acquire) {
            return Err(Error::AlreadyRecording);
        }
        let changing = Changing;
        if is_running() { Err(Error::AlreadyRecording) } else { Ok(changing) }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.store(false, Ordering::Release);
    }
}

/// Starts a recording that began at `first`. `run` is given the engine, to run it on a thread.
///
/// # Errors
/// There is no memory for its buffers, or no thread. Nothing has started then.
pub(crate) fn launch(
    _: &Changing,
    config: Config,
    sink: Box<dyn Sink>,
    output: Option<&Path>,
    first: Anchor,
    window: Window,
    run: impl FnOnce(Job) -> Result<(), Error>,
) -> Result<Arc<Shared>, Error> {
    let shared = set_up(config, output, window)?;
    let theirs = shared.clone();
    let job: Job = Box::new(move |attend| run_engine(&theirs, sink, first, attend));
    if let Err(error) = run(job) {
        shared.recording_ends();
        kept::end();
        deactivate();
        return Err(error);
    }
    sources::start(&shared.config);
    Ok(shared)
}

/// Gets everything ready that producers use. From here on they record.
fn set_up(config: Config, output: Option<&Path>, window: Window) -> Result<Arc<Shared>, Error> {
    if queue::arena().is_some() && !queue::is_own() {
        // Its queues are read by `kymo`, and can be read by one only.
        return Err(Error::AlreadyRecording);
    }
    kept::begin(&config, output, &window)?;
    queue::POOL.forget_losses();
    if !queue::is_own() && !queue::POOL.provide(config.buffer as usize) {
        return Err(Error::Memory { bytes: config.buffer });
    }
    get_ready(&config);
    if config.flight.is_some() {
        arm_alarm(&config.dump_on);
    }
    let host = Box::new(this_process::ThisProcess);
    let shared = Arc::new(Shared::new(config, window, std::process::id(), host));
    kept::state(&shared);
    // Before the engine runs, which may end at once and then takes all this back.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    active::activate(shared.clone());
    recorder::forget_categories();
    category::switch(|name| shared.wants(name.as_bytes()));
    Ok(shared)
}

/// Arms what has to be armed before a process records, but for the handlers of its forks and its
/// end.
fn get_ready(config: &Config) {
    queue::POOL.set_stall(match config.policy {
        Policy::Drop => 0,
        Policy::Stall(time) => time.as_micros().min(u128::from(u32::MAX)) as u32,
    });
    queue::watch_threads();
    inherited::forget_inherited();
}

fn arm_alarm(on: &DumpOn) {
    let dump = |timeout| drop(dump_active(Target::Next, "a panic", timeout));
    alarm::arm(on, Alarm { dump, is_running });
}

/// The engine's whole life, on the background thread.
fn run_engine(shared: &Arc<Shared>, sink: Box<dyn Sink>, first: Anchor, attend: &mut dyn FnMut()) {
    alarm::engine_runs();
    let engine = || {
        let origin = Origin::of_this_process(&shared.config);
        let converter = Converter::calibrate(first, origin.counter);
        Engine::new(shared.clone(), origin, sink, None, first, converter).run(attend);
    };
    // The sink may be the program's own, and panic.
    if catch_unwind(AssertUnwindSafe(engine)).is_err() {
        shared.recording_ends();
        shared.broke();
    }
}

/// Starts the background thread.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let builder = std::thread::Builder::new().name("kymograph".into()).stack_size(1 << 20);
    let spawned = without_signals(|| builder.spawn(body));
    spawned.map(drop).map_err(|source| Error::Thread { source })
}

/// Stops the recording of this process if there is one: at exit, before `exec`.
pub(crate) fn stop_active(timeout: Duration) -> Option<Summary> {
    let shared = active()?;
    if joined::is_joined() {
        joined::process_ends(timeout);
        return None;
    }
    // A flight recorder has more to write than what came since the last flush.
    let timeout = timeout.max(shared.config.closing_time());
    Some(stop(&shared, shared.pid(), timeout))
}

/// Has the flight recorder of this process write what it holds into the next numbered file.
/// Does not wait for it.
pub(crate) fn order_dump(why: &str, timeout: Duration) -> Result<Ordered, Error> {
    let ours = active().filter(|shared| shared.is_ours());
    order_dump_of(&*ours.ok_or(Error::NoFlight)?, why, timeout)
}

/// As [`order_dump`], of a process that is recorded from this one.
pub(crate) fn order_dump_of(
    shared: &Shared,
    why: &str,
    timeout: Duration,
) -> Result<Ordered, Error> {
    order_dump_to(shared, Target::Next, why, timeout)
}

/// As [`order_dump_of`], into any file.
pub(crate) fn order_dump_to(
    shared: &Shared,
    target: Target,
    why: &str,
    timeout: Duration,
) -> Result<Ordered, Error> {
    let asked = shared.ask(Instant::now() + timeout)?;
    shared.order(Order::new(target, why, asked))
}

/// Has the flight recorder of this process write what it holds, and waits for it.
pub(crate) fn dump_active(target: Target, why: &str, timeout: Duration) -> Result<Dump, Error> {
    let ours = active().filter(|shared| shared.is_ours());
    ours.map_or(Err(Error::NoFlight), |shared| dump(&shared, target, why, timeout))
}

pub(crate) fn dump(
    shared: &Shared,
    target: Target,
    why: &str,
    timeout: Duration,
) -> Result<Dump, Error> {
    if joined::is_joined() {
        return joined::dump(shared, &target, why, timeout);
    }
    let deadline = Instant::now() + timeout;
    let asked = shared.ask(deadline)?;
    sources::flush(timeout);
    let ordered = shared.order(Order { flushed: true, ..Order::new(target, why, asked) })?;
    let left = deadline.saturating_duration_since(Instant::now());
    ordered.recv_timeout(left).unwrap_or_else(|_| {
        let path = shared.config.output.clone();
        Err(Error::Output { path, source: io::ErrorKind::TimedOut.into() })
    })
}

/// Writes what was recorded so far: before the process becomes another one.
/// Returns whether that is done.
pub(crate) fn flush_active(timeout: Duration) -> bool {
    // The child of a vfork runs in its parent's memory, but is not the one to be flushed.
    let ours = active().filter(|shared| shared.is_ours());
    ours.is_some_and(|shared| flush(&shared, timeout))
}

/// Writes what was recorded so far: before the process becomes another program, if
/// `succeeds`. A flight recorder writes what it would have written at its end.
#[cfg(feature = "inject")]
pub(crate) fn before_exec(succeeds: impl FnOnce() -> bool, timeout: Duration) {
    let ours = active().filter(|shared| shared.is_ours());
    let Some(shared) = ours else { return };
    if joined::is_joined() {
        joined::before_exec(&shared, timeout);
    } else if shared.config.flight.is_none() {
        flush(&shared, timeout);
    } else if shared.config.dump_on.exit && succeeds() {
        let timeout = timeout.max(shared.config.closing_time());
        let _ = dump(&shared, Target::Next, "the process becomes another program", timeout);
    }
}

/// How the recording of this process is going, as of the last flush.
pub(crate) fn active_summary() -> Option<Summary> {
    active().map(|shared| lock(&shared.stats).total.clone())
}

pub(crate) fn flush(shared: &Shared, timeout: Duration) -> bool {
    if joined::is_joined() {
        return joined::flush(timeout);
    }
    let deadline = Instant::now() + timeout;
    sources::flush(timeout);
    shared.flush(deadline.saturating_duration_since(Instant::now()))
}

/// Starts the sources for which there was nothing to record when the recording started.
#[cfg(feature = "inject")]
pub(crate) fn start_sources() {
    if let Some(shared) = active().filter(|shared| shared.is_ours()) {
        sources::start(&shared.config);
    }
}

pub(crate) fn stop(shared: &Arc<Shared>, pid: u32, timeout: Duration) -> Summary {
    if pid != std::process::id() {
        // A forked child: the recording is the parent's.
        return Summary::default();
    }
    // The engine ends it.
    steps::forget();
    if joined::is_joined() {
        return joined::stop(shared, timeout);
    }
    // Only a window that was opened has an end.
    if shared.window.is_limited() {
        shared.window.decide(|| (Some(Side::Closes), ()));
    }
    // While the engine still empties the queues.
    sources::stop(timeout);
    shared.recording_ends();
    let Some(mut inbox) = lock_until(&shared.inbox, Instant::now() + timeout) else {
        return Summary::default();
    };
    inbox.stop = true;
    shared.wake.notify_one();
    shared.wait_for_end(inbox, timeout);
    lock(&shared.stats).total.clone()
}

/// A number that is different for every recording of this process; 0 while none runs.
pub(crate) fn generation() -> u64 {
    if is_running() { GENERATION.load(Ordering::Relaxed) } else { 0 }
}

/// Whether this process is being recorded.
pub(crate) fn is_running() -> bool {
    active::is_active()
}

/// In a forked child, on its only thread: the recording is the parent's. Returns how it
/// was configured, if there was one and children are to be recorded too.
pub(crate) fn detach_from_parent() -> Option<&'static Config> {
    CHANGING.store(false, Ordering::Release);
    // Never changed, so no lock of the parent's is involved.
    let config = &active::detach()?.config;
    (config.fork == ForkPolicy::Record).then_some(config)
}

/// Keeps a recording that has no handle until the process ends, where a tool that looks for lost
/// memory finds it.
pub(crate) fn keep(recording: Arc<Shared>) {
    struct Kept {
        _recording: Arc<Shared>,
        _before: *mut Kept,
    }
    static KEPT: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());
    let before = KEPT.load(Ordering::Relaxed);
    let kept = Box::into_raw(Box::new(Kept { _recording: recording, _before: before }));
    // Recordings start one at a time; one of a parent is the parent's.
    KEPT.store(kept, Ordering::Relaxed);
}

/// How a recording is going, if it is of this process.
pub(crate) fn stats(shared: &Shared) -> Stats {
    let queued_bytes = queue::POOL.bytes_in_use();
    Stats { queued_bytes, ..lock(&shared.stats).clone() }
}
