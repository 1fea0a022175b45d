//! Recordings: starting one, asking how it goes, stopping it.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::__private::COMPILED_IN;
use crate::clock::{self, Anchor, Source};
use crate::config::{ClockChoice, Config, ForkPolicy, Policy};
use crate::control::Page;
use crate::engine::Engine;
use crate::error::Error;
use crate::flight::{Dump, Order, Target};
use crate::queue;
use crate::sink::{self, Sink};
use crate::{category, recorder, sources};

/// How long [`Recording::stop`] waits for a sink that does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The recording that is running, for those who have no handle: fork and exit handlers.
/// Owned (one strong count) by this pointer while it is not null.
static ACTIVE: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
/// How many are between finding `ACTIVE` and owning a count of it.
static READERS: AtomicU64 = AtomicU64::new(0);
/// How many recordings there were.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Set while a recording starts or stops.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// What a recording amounted to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Slices, ranges, instants and counter values in the trace.
    pub events: u64,
    /// Events that a flight recorder kept for a while and had to let go, as it should.
    pub discarded: u64,
    /// Events that are missing, for whatever reason.
    pub lost: u64,
    /// Of these: events pushed from inside a push (a signal handler, an allocator hook).
    pub reentrant: u64,
    /// Events encoded that the sink has not taken (yet).
    pub unwritten: u64,
    /// Strings that were cut short.
    pub truncated: u64,
    /// Ends without a beginning in this recording.
    pub unmatched_ends: u64,
    /// Scopes ended before scopes inside them; those were ended with them.
    pub misnested: u64,
    /// Times that ran backwards on their thread and were moved up.
    pub clamped: u64,
    /// Records of a kind that the writer does not know.
    pub unknown: u64,
    /// Threads that recorded something.
    pub threads: u64,
    /// Bytes of packets, before compression.
    pub bytes: u64,
    /// Attempts to write that failed.
    pub write_errors: u64,
    /// What the sink said when it last failed.
    pub failure: Option<String>,
}

/// A thread of a running recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ThreadStats {
    /// The kernel's id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Events written.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
}

/// How a running recording is doing, as of the last flush.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Sums.
    pub total: Summary,
    /// The threads that are alive.
    pub threads: Vec<ThreadStats>,
    /// Bytes of records that threads hold or that wait to be encoded, right now.
    pub queued_bytes: usize,
}

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
        let _changing = Changing::begin()?;
        let (sink, page) = match &config.control {
            Some(path) => {
                let page = Arc::new(Page::open(path)?);
                (sink::open_shared(&config, page.clone())?, Some(page))
            }
            None => (sink::open(&config)?, None),
        };
        let first = choose_clock(&config);
        launch(config, sink, page, first)
    }

    /// Starts recording into `sink`; `config.output` is not used, so that forked children
    /// have nowhere to record to and stay silent.
    ///
    /// # Errors
    /// A recording is running already, or there is no memory for its buffers.
    pub fn start_with(config: Config, sink: impl Sink + 'static) -> Result<Recording, Error> {
        let _changing = Changing::begin()?;
        let first = choose_clock(&config);
        let config = Config { fork: ForkPolicy::Silent, ..config };
        launch(config, Box::new(sink), None, first)
    }

    /// Whether this process is being recorded.
    pub fn is_running() -> bool {
        !ACTIVE.load(Ordering::Acquire).is_null()
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
        match self.pid == std::process::id() {
            true => self.shared.order(target, why, patience),
            false => Err(Error::NoFlight),
        }
    }

    /// Ends the recording: everything recorded so far is written. Waits for the sink,
    /// seconds at most; if it does not answer in that time, what it has not taken is
    /// counted as unwritten.
    pub fn stop(self) -> Summary {
        stop(&self.shared, self.pid, PATIENCE)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        stop(&self.shared, self.pid, PATIENCE);
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
fn choose_clock(config: &Config) -> Anchor {
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
    page: Option<Arc<Page>>,
    first: Anchor,
) -> Result<Recording, Error> {
    if !queue::POOL.provide(config.buffer as usize) {
        return Err(Error::Memory { bytes: config.buffer });
    }
    queue::POOL.set_stall(match config.policy {
        Policy::Drop => 0,
        Policy::Stall(time) => time.as_micros().min(u128::from(u32::MAX)) as u32,
    });
    queue::watch_threads();
    crate::lifecycle::watch_process();
    crate::lifecycle::forget_inherited();
    let shared = Arc::new(Shared::new(config.clone()));
    let theirs = shared.clone();
    // Before the engine runs, which may end at once and then takes all this back.
    GENERATION.fetch_add(1, Ordering::Relaxed);
    ACTIVE.store(Arc::into_raw(shared.clone()).cast_mut(), Ordering::Release);
    recorder::forget_categories();
    category::switch(|name| config.categories.matches(name.as_bytes()));
    let spawned = without_signals(|| {
        std::thread::Builder::new().name("kymograph".into()).stack_size(1 << 20).spawn(move || {
            let config = theirs.config.clone();
            let engine = theirs.clone();
            let run = move || Engine::new(engine, &config, sink, page, first).run();
            // The sink may be the program's own, and panic.
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                theirs.recording_ends();
                theirs.broke();
            }
        })
    });
    if let Err(source) = spawned {
        shared.recording_ends();
        deactivate();
        return Err(Error::Thread { source });
    }
    sources::start(&config);
    Ok(Recording { shared, pid: std::process::id() })
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
    Some(stop(&shared, shared.pid, patience))
}

/// Writes what was recorded so far: before the process becomes another one.
/// Returns whether that is done.
pub(crate) fn flush_active(patience: Duration) -> bool {
    // The child of a vfork runs in its parent's memory, but is not the one to be flushed.
    let ours = active().filter(|shared| shared.pid == std::process::id());
    ours.is_some_and(|shared| flush(&shared, patience))
}

/// How the recording of this process is going, as of the last flush.
pub(crate) fn active_summary() -> Option<Summary> {
    active().map(|shared| lock(&shared.stats).total.clone())
}

fn flush(shared: &Shared, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    sources::flush(patience);
    shared.flush(deadline.saturating_duration_since(Instant::now()))
}

/// Starts the sources for which there was nothing to record when the recording started.
pub(crate) fn start_sources() {
    if let Some(shared) = active().filter(|shared| shared.pid == std::process::id()) {
        sources::start(&shared.config);
    }
}

fn stop(shared: &Arc<Shared>, pid: u32, patience: Duration) -> Summary {
    if pid != std::process::id() {
        // A forked child: the recording is the parent's.
        return Summary::default();
    }
    let deadline = Instant::now() + patience;
    // While the engine still empties the queues.
    sources::stop(patience);
    shared.recording_ends();
    let Some(mut inbox) = lock_until(&shared.inbox, deadline) else {
        return Summary::default();
    };
    inbox.stop = true;
    shared.wake.notify_one();
    while !inbox.ended {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        inbox = wait(&shared.answer, inbox, left);
    }
    drop(inbox);
    lock(&shared.stats).total.clone()
}

/// The running recording of this process.
fn active() -> Option<Arc<Shared>> {
    READERS.fetch_add(1, Ordering::SeqCst);
    let shared = ACTIVE.load(Ordering::SeqCst);
    let shared = (!shared.is_null()).then(|| {
        // SAFETY: `ACTIVE` owns a count, which `deactivate` gives up only when no reader is
        // between these two additions.
        unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        }
    });
    READERS.fetch_sub(1, Ordering::SeqCst);
    shared
}

/// The recording is over: nobody finds it any more.
fn deactivate() {
    let shared = ACTIVE.swap(ptr::null_mut(), Ordering::SeqCst);
    if shared.is_null() {
        return;
    }
    while READERS.load(Ordering::SeqCst) != 0 {
        std::thread::yield_now();
    }
    // SAFETY: the count that `ACTIVE` owned; who found the pointer has counts of their own.
    drop(unsafe { Arc::from_raw(shared) });
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
    let mut running = active();
    #[cfg(feature = "inject")]
    if running.is_none() && crate::inject::start_if_wanted() {
        running = active();
    }
    let Some(shared) = running else {
        return crate::lifecycle::will_want(category);
    };
    (!shared.ending.load(Ordering::Acquire)).then(|| shared.config.categories.matches(category))
}

/// In a forked child, on its only thread: the recording is the parent's. Returns how it
/// was configured, if there was one and children are to be recorded too.
pub(crate) fn leave_to_parent() -> Option<&'static Config> {
    let shared = ACTIVE.swap(ptr::null_mut(), Ordering::AcqRel);
    CHANGING.store(false, Ordering::Release);
    READERS.store(0, Ordering::Release);
    if shared.is_null() {
        return None;
    }
    // SAFETY: the pointer owned a count, which is never given up in this process. The
    // config is never changed, so no lock of the parent's is involved.
    let config = unsafe { &(*shared).config };
    (config.fork == ForkPolicy::Record).then_some(config)
}

/// In a forked child, when it records its first event: starts a recording of its own,
/// which began at `first`.
pub(crate) fn start_in_child(config: &Config, first: Anchor) -> Result<(), Error> {
    let _changing = Changing::begin()?;
    let recording = match &config.control {
        Some(path) => {
            let page = Arc::new(Page::open(path)?);
            let sink = sink::open_shared(config, page.clone())?;
            launch(config.clone(), sink, Some(page), first)?
        }
        None => {
            let path = config.output_path(std::process::id(), true);
            launch(config.clone(), sink::open_file(config, &path)?, None, first)?
        }
    };
    // Nobody holds it: it ends with the process.
    std::mem::forget(recording);
    Ok(())
}

/// What the engine and everybody else share of a recording.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pid: u32,
    ending: AtomicBool,
    inbox: Mutex<Inbox>,
    /// Wakes the engine.
    wake: Condvar,
    /// Wakes those who wait for the engine.
    answer: Condvar,
    stats: Mutex<Stats>,
    tickets: AtomicU64,
}

#[derive(Default)]
struct Inbox {
    stop: bool,
    /// The newest flush that was asked for, and the newest that was done.
    wanted: u64,
    done: u64,
    /// Dumps of the flight recorder that were asked for.
    orders: Vec<Order>,
    ended: bool,
}

/// What the engine is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Go on.
    None,
    /// Write everything, then say so.
    Flush(u64),
    /// End.
    Stop,
}

impl Shared {
    fn new(config: Config) -> Shared {
        Shared {
            config,
            pid: std::process::id(),
            ending: AtomicBool::new(false),
            inbox: Mutex::default(),
            wake: Condvar::new(),
            answer: Condvar::new(),
            stats: Mutex::default(),
            tickets: AtomicU64::new(0),
        }
    }

    /// Engine: waits for a request, or for `time`.
    pub(crate) fn wait(&self, time: Duration) -> Request {
        let mut inbox = lock(&self.inbox);
        let request = |inbox: &Inbox| match inbox {
            Inbox { stop: true, .. } => Request::Stop,
            Inbox { wanted, done, .. } if wanted > done => Request::Flush(*wanted),
            _ => Request::None,
        };
        if request(&inbox) == Request::None && inbox.orders.is_empty() {
            inbox = wait(&self.wake, inbox, time);
        }
        request(&inbox)
    }

    /// Engine: the dumps that were asked for since the last time.
    pub(crate) fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut lock(&self.inbox).orders)
    }

    /// Asks for a dump, and waits for it.
    fn order(&self, target: Target, why: &str, patience: Duration) -> Result<Dump, Error> {
        if self.config.flight.is_none() {
            return Err(Error::NoFlight);
        }
        let deadline = Instant::now() + patience;
        let (answer, answered) = std::sync::mpsc::channel();
        let order = Order { target, why: why.to_owned(), answer: Some(answer) };
        match lock_until(&self.inbox, deadline) {
            Some(mut inbox) if !inbox.ended => inbox.orders.push(order),
            _ => return Err(Error::NoFlight),
        }
        self.wake.notify_one();
        let left = deadline.saturating_duration_since(Instant::now());
        answered.recv_timeout(left).unwrap_or_else(|_| {
            let path = self.config.output.clone();
            Err(Error::Output { path, source: io::ErrorKind::TimedOut.into() })
        })
    }

    /// Engine: a flush is done.
    pub(crate) fn flushed(&self, ticket: u64) {
        lock(&self.inbox).done = ticket;
        self.answer.notify_all();
    }

    /// Engine: shows how it is going.
    pub(crate) fn publish(&self, total: Summary, threads: impl FnOnce() -> Vec<ThreadStats>) {
        let mut stats = lock(&self.stats);
        stats.total = total;
        stats.threads = threads();
    }

    /// Nothing is recorded from now on.
    pub(crate) fn recording_ends(&self) {
        if !self.ending.swap(true, Ordering::AcqRel) {
            category::switch(|_| false);
            recorder::forget_categories();
        }
    }

    /// Engine: it is over.
    pub(crate) fn ended(&self, total: Summary) {
        self.publish(total, Vec::new);
        deactivate();
        lock(&self.inbox).ended = true;
        self.answer.notify_all();
    }

    /// The engine panicked: it is over, with what was counted last.
    fn broke(&self) {
        let mut total = lock(&self.stats).total.clone();
        total.failure = Some("the writer panicked".to_owned());
        self.ended(total);
    }

    fn flush(&self, patience: Duration) -> bool {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        let deadline = Instant::now() + patience;
        let Some(mut inbox) = lock_until(&self.inbox, deadline) else {
            return false;
        };
        inbox.wanted = inbox.wanted.max(ticket);
        self.wake.notify_one();
        while inbox.done < ticket && !inbox.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            inbox = wait(&self.answer, inbox, left);
        }
        true
    }
}

/// A panic while it was held leaves a mutex usable: its data are plain values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], but gives up: `_exit` may be called in a signal handler that interrupted
/// the holder of the lock.
fn lock_until<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}
