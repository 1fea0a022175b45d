//! Recordings: starting one, asking how it goes, stopping it.

mod active;
mod demand;
mod ground;
pub(crate) mod host;
pub(crate) mod joined;
mod kept;
mod session;
mod stats;
mod window;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::__private::COMPILED_IN;
use crate::clock::{self, Anchor, Converter, Source};
use crate::config::{ClockChoice, Config, ForkPolicy, Policy};
use crate::control::{self, Job};
use crate::engine::{Engine, Origin};
use crate::error::Error;
use crate::flight::{Dump, Order, Ordered, Target};
use crate::queue;
use crate::sink::{self, Sink};
use crate::{category, recorder, sources};
use active::{active, deactivate};
use demand::Program;
pub(crate) use demand::prepare;
pub(crate) use ground::{Request, Shared};
use ground::{lock, lock_until};
pub use session::{Ready, Session};
pub use stats::{Stats, Summary, ThreadStats};
pub(crate) use window::{Bounds, Side, Window};

/// How long [`Recording::stop`] waits for a sink that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How many recordings there were.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Set while a recording starts or stops.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// A recording. It ends with [`Recording::stop`] or when this is dropped.
///
/// ```
/// use kymograph::{Config, Recording, scope};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("hello.pftrace");
/// let recording = Recording::start(Config::to_file(&path))?;
/// {
///     let _scope = scope!("greet", times = 3);
/// }
/// let summary = recording.stop();
/// assert_eq!((summary.events, summary.lost), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There is one at a time in a process. All methods may be called from any thread; none
/// is safe in a signal handler.
#[must_use = "the recording ends when this is dropped"]
pub struct Recording {
    shared: Arc<Shared>,
    pid: u32,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Recording {
    /// Starts recording to the output that `config` names.
    ///
    /// # Errors
    /// The output cannot be written, a recording is running already, or there is no memory
    /// for its buffers. Nothing has started then.
    pub fn start(config: Config) -> Result<Recording, Error> {
        Recording::begin(config, Window::all())
    }

    /// Gets ready to record: sources are on, and what they say is discarded until
    /// [`Recording::open`]. So the beginning of what is to be recorded does not suffer from
    /// what sources do when they start.
    ///
    /// # Errors
    /// As [`Recording::start`].
    pub fn prepare(config: Config) -> Result<Recording, Error> {
        Recording::begin(config, Window::closed())
    }

    fn begin(config: Config, window: Window) -> Result<Recording, Error> {
        if let Some(path) = &config.control {
            // `kymo` alone writes to its output.
            if !crate::collect::join(&config) {
                let (path, source) = (path.clone(), io::ErrorKind::NotConnected.into());
                return Err(Error::Control { path, source });
            }
            return joined::start(config, window);
        }
        let program = Program::begin()?;
        let _changing = Changing::begin()?;
        let sink = sink::open(&config)?;
        let first = choose_clock(&config);
        let output = config.output_path(std::process::id(), false);
        program.records(launch(config, sink, Some(&output), first, window))
    }

    /// Starts recording into `sink`; `config.output` is not used, so that forked children
    /// have nowhere to record to and stay silent.
    ///
    /// # Errors
    /// A recording is running already, or there is no memory for its buffers.
    pub fn start_with(config: Config, sink: impl Sink + 'static) -> Result<Recording, Error> {
        let program = Program::begin()?;
        let _changing = Changing::begin()?;
        let first = choose_clock(&config);
        let config = Config { fork: ForkPolicy::Silent, ..config };
        program.records(launch(config, Box::new(sink), None, first, Window::all()))
    }

    /// After [`Recording::prepare`]: what happens from now on belongs to the trace, by its
    /// timestamps. What began before and has not ended does so too, with its own times, and
    /// an argument `straddles` says so.
    pub fn open(&self) {
        if joined::is_joined() {
            return self.resume();
        }
        self.shared.window.decide(|| (Some(Side::Opens), ()));
    }

    /// Records nothing until [`Recording::resume`]; slices that have begun may end
    /// meanwhile. Costs microseconds: sources stay on. Categories are then as the
    /// configuration says, whatever [`crate::Category::set_enabled`] was told before.
    pub fn pause(&self) {
        self.shared.set_paused(true);
    }

    /// Goes on after [`Recording::pause`].
    pub fn resume(&self) {
        self.shared.set_paused(false);
    }

    /// Has the trace say something of itself: it gets the key `kymograph.<pid>.<key>`. The
    /// key `trace_id` is where tools look for the id of the trace.
    pub fn add_metadata(&self, key: &str, value: &str) {
        self.shared.state(key, value);
    }

    /// Whether this process is being recorded.
    pub fn is_running() -> bool {
        active::is_active()
    }

    /// Keeps it until the process ends, and where who looks for lost memory finds it.
    pub(crate) fn keep(self) {
        struct Kept {
            _recording: Recording,
            _before: *mut Kept,
        }
        static KEPT: AtomicPtr<Kept> = AtomicPtr::new(ptr::null_mut());
        let before = KEPT.load(Ordering::Relaxed);
        let kept = Box::into_raw(Box::new(Kept { _recording: self, _before: before }));
        // Recordings start one at a time; one of a parent is the parent's.
        KEPT.store(kept, Ordering::Relaxed);
    }

    /// Whether this process started it, and not one that it was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// How it is going.
    pub fn stats(&self) -> Stats {
        if self.pid != std::process::id() {
            // A forked child: whoever held the lock does not exist here.
            return Stats::default();
        }
        let queued_bytes = queue::POOL.bytes_in_use();
        Stats { queued_bytes, ..lock(&self.shared.stats).clone() }
    }

    /// Writes everything recorded so far to the sink, and waits until that is done, or for
    /// `patience`. Returns whether it is done.
    pub fn flush(&self, patience: Duration) -> bool {
        self.pid == std::process::id() && flush(&self.shared, patience)
    }

    /// Writes what the flight recorder holds of this process to `path`, while the recording
    /// goes on. Waits until that is done.
    ///
    /// # Errors
    /// The recording is no flight recorder, the file cannot be written, or it took longer
    /// than `patience` (it may still be finished then).
    pub fn dump(&self, path: impl Into<PathBuf>, patience: Duration) -> Result<Dump, Error> {
        self.order(Target::Path(path.into()), "asked by the program", patience)
    }

    /// As [`Recording::dump`], but into the next of the numbered files: `trace.1.pftrace`,
    /// `trace.2.pftrace` and so on for the output `trace.pftrace`. All processes of a
    /// recording under `kymo record` add their part; only this one's is waited for. `why`
    /// is said in the trace.
    ///
    /// # Errors
    /// As [`Recording::dump`].
    pub fn trigger(&self, why: &str, patience: Duration) -> Result<Dump, Error> {
        self.order(Target::Next, why, patience)
    }

    fn order(&self, target: Target, why: &str, patience: Duration) -> Result<Dump, Error> {
        if self.pid != std::process::id() {
            return Err(Error::NoFlight);
        }
        dump(&self.shared, target, why, patience)
    }

    /// Ends the recording: everything recorded so far is written. Waits for the sink for as
    /// long as it takes something, a hundred seconds at most; if it does not answer for ten,
    /// what it has not taken is counted as unwritten.
    pub fn stop(self) -> Summary {
        stop(&self.shared, self.pid, PATIENCE.max(self.shared.config.closing_time()))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        stop(&self.shared, self.pid, PATIENCE.max(self.shared.config.closing_time()));
    }
}

/// Excludes others while a recording starts or stops.
struct Changing;

impl Changing {
    fn begin() -> Result<Changing, Error> {
        if CHANGING.swap(true, Ordering::Acquire) {
            return Err(Error::AlreadyRecording);
        }
        let changing = Changing;
        if Recording::is_running() { Err(Error::AlreadyRecording) } else { Ok(changing) }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.store(false, Ordering::Release);
    }
}

/// Sets the source of ticks and reads the clocks: from here on events belong to the
/// recording.
pub(crate) fn choose_clock(config: &Config) -> Anchor {
    clock::select(match config.clock {
        ClockChoice::Auto => Source::Auto,
        ClockChoice::Tsc => Source::Counter,
        ClockChoice::Boottime => Source::System,
    });
    Anchor::now()
}

fn launch(
    config: Config,
    sink: Box<dyn Sink>,
    output: Option<&Path>,
    first: Anchor,
    window: Window,
) -> Result<Recording, Error> {
    let shared = set_up(config, output, window)?;
    let theirs = shared.clone();
    let run: Job = Box::new(move |attend| run(&theirs, sink, first, attend));
    let started = match control::desk() {
        Some(desk) => desk.hand_over(run).map_err(|_| Error::Ending),
        None => spawn(move || run(&mut || {})),
    };
    if let Err(error) = started {
        shared.recording_ends();
        kept::end();
        deactivate();
        return Err(error);
    }
    sources::start(&shared.config);
    Ok(Recording { shared, pid: std::process::id() })
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
        crate::flight::alarm::arm(&config.dump_on);
    }
    let host = Box::new(host::ThisProcess);
    let shared = Arc::new(Shared::new(config, window, std::process::id(), host));
    kept::state(&shared);
    // Before the engine runs, which may end at once and then takes all this back.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    active::activate(shared.clone());
    recorder::forget_categories();
    category::switch(|name| shared.wants(name.as_bytes()));
    Ok(shared)
}

/// Arms what has to be armed before a process records.
fn get_ready(config: &Config) {
    queue::POOL.set_stall(match config.policy {
        Policy::Drop => 0,
        Policy::Stall(time) => time.as_micros().min(u128::from(u32::MAX)) as u32,
    });
    queue::watch_threads();
    crate::lifecycle::watch_process();
    crate::lifecycle::forget_inherited();
}

/// The engine's whole life, on the background thread.
fn run(shared: &Arc<Shared>, sink: Box<dyn Sink>, first: Anchor, attend: &mut dyn FnMut()) {
    crate::flight::alarm::engine_runs();
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

/// Runs `spawn` with all signals blocked, so that the thread it makes never runs a signal
/// handler of the host and no write of ours raises SIGPIPE in it.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised before they are used, and the mask of this thread
    // is put back.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        result
    }
}

/// Stops the recording of this process if there is one: at exit, before `exec`.
pub(crate) fn stop_active(patience: Duration) -> Option<Summary> {
    let shared = active()?;
    if joined::is_joined() {
        joined::process_ends(patience);
        return None;
    }
    // A flight recorder has more to write than what came since the last flush.
    let patience = patience.max(shared.config.closing_time());
    Some(stop(&shared, shared.pid(), patience))
}

/// Has the flight recorder of this process write what it holds into the next numbered file.
/// Does not wait for it.
pub(crate) fn order_dump(why: &str, patience: Duration) -> Result<Ordered, Error> {
    let ours = active().filter(|shared| shared.is_ours());
    order_dump_of(&*ours.ok_or(Error::NoFlight)?, why, patience)
}

/// As [`order_dump`], of a process that is recorded from this one.
pub(crate) fn order_dump_of(
    shared: &Shared,
    why: &str,
    patience: Duration,
) -> Result<Ordered, Error> {
    order_dump_to(shared, Target::Next, why, patience)
}

/// As [`order_dump_of`], into any file.
pub(crate) fn order_dump_to(
    shared: &Shared,
    target: Target,
    why: &str,
    patience: Duration,
) -> Result<Ordered, Error> {
    let asked = shared.ask(Instant::now() + patience)?;
    shared.order(Order::new(target, why, asked))
}

/// Has the flight recorder of this process write what it holds, and waits for it.
pub(crate) fn dump_active(target: Target, why: &str, patience: Duration) -> Result<Dump, Error> {
    let ours = active().filter(|shared| shared.is_ours());
    ours.map_or(Err(Error::NoFlight), |shared| dump(&shared, target, why, patience))
}

fn dump(shared: &Shared, target: Target, why: &str, patience: Duration) -> Result<Dump, Error> {
    if joined::is_joined() {
        return joined::dump(shared, &target, why, patience);
    }
    let deadline = Instant::now() + patience;
    let asked = shared.ask(deadline)?;
    sources::flush(patience);
    let ordered = shared.order(Order { flushed: true, ..Order::new(target, why, asked) })?;
    let left = deadline.saturating_duration_since(Instant::now());
    ordered.recv_timeout(left).unwrap_or_else(|_| {
        let path = shared.config.output.clone();
        Err(Error::Output { path, source: io::ErrorKind::TimedOut.into() })
    })
}

/// Writes what was recorded so far: before the process becomes another one.
/// Returns whether that is done.
pub(crate) fn flush_active(patience: Duration) -> bool {
    // The child of a vfork runs in its parent's memory, but is not the one to be flushed.
    let ours = active().filter(|shared| shared.is_ours());
    ours.is_some_and(|shared| flush(&shared, patience))
}

/// Writes what was recorded so far: before the process becomes another program, if
/// `succeeds`. A flight recorder writes what it would have written at its end.
#[cfg(feature = "inject")]
pub(crate) fn before_exec(succeeds: impl FnOnce() -> bool, patience: Duration) {
    let ours = active().filter(|shared| shared.is_ours());
    let Some(shared) = ours else { return };
    if joined::is_joined() {
        joined::before_exec(&shared, patience);
    } else if shared.config.flight.is_none() {
        flush(&shared, patience);
    } else if shared.config.dump_on.exit && succeeds() {
        let patience = patience.max(shared.config.closing_time());
        let _ = dump(&shared, Target::Next, "the process becomes another program", patience);
    }
}

/// How the recording of this process is going, as of the last flush.
pub(crate) fn active_summary() -> Option<Summary> {
    active().map(|shared| lock(&shared.stats).total.clone())
}

fn flush(shared: &Shared, patience: Duration) -> bool {
    if joined::is_joined() {
        return joined::flush(patience);
    }
    let deadline = Instant::now() + patience;
    sources::flush(patience);
    shared.flush(deadline.saturating_duration_since(Instant::now()))
}

/// Starts the sources for which there was nothing to record when the recording started.
#[cfg(feature = "inject")]
pub(crate) fn start_sources() {
    if let Some(shared) = active().filter(|shared| shared.is_ours()) {
        sources::start(&shared.config);
    }
}

fn stop(shared: &Arc<Shared>, pid: u32, patience: Duration) -> Summary {
    if pid != std::process::id() {
        // A forked child: the recording is the parent's.
        return Summary::default();
    }
    // The engine ends it.
    crate::api::forget_step();
    if joined::is_joined() {
        return joined::stop(shared, patience);
    }
    // Only a window that somebody opened has an end.
    if shared.window.is_limited() {
        shared.window.decide(|| (Some(Side::Closes), ()));
    }
    // While the engine still empties the queues.
    sources::stop(patience);
    shared.recording_ends();
    let Some(mut inbox) = lock_until(&shared.inbox, Instant::now() + patience) else {
        return Summary::default();
    };
    inbox.stop = true;
    shared.wake.notify_one();
    shared.wait_for_end(inbox, patience);
    lock(&shared.stats).total.clone()
}

/// A number that is different for every recording of this process; 0 while none runs.
pub(crate) fn generation() -> u64 {
    if Recording::is_running() { GENERATION.load(Ordering::Relaxed) } else { 0 }
}

/// Whether this process is being recorded, or is now: a forked child and a program under
/// `kymo record` start their recording when they are about to record something.
pub(crate) fn is_wanted() -> bool {
    if !Recording::is_running() {
        crate::lifecycle::before_first_event();
        #[cfg(feature = "inject")]
        crate::inject::start_if_wanted();
    }
    COMPILED_IN && Recording::is_running()
}

/// Whether the running recording wants a category, or the one that will start with the
/// first event of a forked child; `None` without one.
pub(crate) fn wants(category: &[u8]) -> Option<bool> {
    let running = active();
    #[cfg(feature = "inject")]
    let running = running.or_else(|| crate::inject::start_if_wanted().then(active).flatten());
    let Some(shared) = running else {
        crate::lifecycle::arm_if_inherited();
        let wanted = crate::lifecycle::will_want(category);
        // It may be recorded later; that is said to everybody when it begins.
        return wanted.or_else(|| control::desk().map(|_| false));
    };
    let wanted = || !shared.paused.load(Ordering::Acquire) && shared.wants(category);
    (!shared.ending.load(Ordering::Acquire)).then(wanted)
}

/// In a forked child, on its only thread: the recording is the parent's. Returns how it
/// was configured, if there was one and children are to be recorded too.
pub(crate) fn leave_to_parent() -> Option<&'static Config> {
    CHANGING.store(false, Ordering::Release);
    // Never changed, so no lock of the parent's is involved.
    let config = &active::leave()?.config;
    (config.fork == ForkPolicy::Record).then_some(config)
}

/// In a forked child, when it records its first event: starts a recording of its own,
/// which began at `first`.
pub(crate) fn start_in_child(config: &Config, first: Anchor) -> Result<(), Error> {
    let _changing = Changing::begin()?;
    let path = config.output_path(std::process::id(), true);
    let sink = sink::open_file(config, &path)?;
    let recording = launch(config.clone(), sink, Some(&path), first, Window::all())?;
    // Nobody holds it: it ends with the process.
    recording.keep();
    Ok(())
}
