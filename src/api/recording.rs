//! The recording that a program starts and stops.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::config::{Config, ForkPolicy};
use crate::control::lifecycle;
use crate::control::presence::{self, broker};
use crate::engine::control_block::Shared;
use crate::engine::stats::{Stats, Summary};
use crate::engine::window::{Side, Window};
use crate::error::Error;
use crate::flight::{Dump, Target};
use crate::recording::{self, Changing, TIMEOUT, joined};
use crate::sink::{self, Sink};

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
            if !lifecycle::join(&config) {
                let (path, source) = (path.clone(), io::ErrorKind::NotConnected.into());
                return Err(Error::Control { path, source });
            }
            return joined::start(config, window).map(Recording::of);
        }
        let program = Program::begin()?;
        let changing = Changing::begin()?;
        let sink = sink::open(&config)?;
        let first = clock::choose(config.clock);
        let output = config.output_path(std::process::id(), false);
        lifecycle::watch_process();
        let run = presence::run;
        let started = recording::launch(&changing, config, sink, Some(&output), first, window, run);
        program.records(started.map(Recording::of))
    }

    /// The handle of a recording of this process that has started.
    pub(crate) fn of(shared: Arc<Shared>) -> Recording {
        Recording { shared, pid: std::process::id() }
    }

    /// Starts recording into `sink`; `config.output` is not used, so that forked children
    /// have nowhere to record to and stay silent.
    ///
    /// # Errors
    /// A recording is running already, or there is no memory for its buffers.
    pub fn start_with(config: Config, sink: impl Sink + 'static) -> Result<Recording, Error> {
        let program = Program::begin()?;
        let changing = Changing::begin()?;
        let first = clock::choose(config.clock);
        let config = Config { fork: ForkPolicy::Silent, ..config };
        lifecycle::watch_process();
        let (sink, window, run) = (Box::new(sink), Window::all(), presence::run);
        let started = recording::launch(&changing, config, sink, None, first, window, run);
        program.records(started.map(Recording::of))
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
        recording::is_running()
    }

    /// Keeps it until the process ends.
    #[cfg(feature = "inject")]
    pub(crate) fn keep(self) {
        recording::keep(self.shared.clone());
        std::mem::forget(self);
    }

    /// Whether this process started it, and not one that it was forked from.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// How it is going.
    pub fn stats(&self) -> Stats {
        if self.pid != std::process::id() {
            // A forked child: the thread that held the lock does not exist here.
            return Stats::default();
        }
        recording::stats(&self.shared)
    }

    /// Writes everything recorded so far to the sink, and waits until that is done, or for
    /// `timeout`. Returns whether it is done.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.pid == std::process::id() && recording::flush(&self.shared, timeout)
    }

    /// Writes what the flight recorder holds of this process to `path`, while the recording
    /// goes on. Waits until that is done.
    ///
    /// # Errors
    /// The recording is no flight recorder, the file cannot be written, or it took longer
    /// than `timeout` (it may still be finished then).
    pub fn dump(&self, path: impl Into<PathBuf>, timeout: Duration) -> Result<Dump, Error> {
        self.order(Target::Path(path.into()), "asked by the program", timeout)
    }

    /// As [`Recording::dump`], but into the next of the numbered files: `trace.1.pftrace`,
    /// `trace.2.pftrace` and so on for the output `trace.pftrace`. All processes of a
    /// recording under `kymo record` add their part; only this one's is waited for. `why`
    /// is said in the trace.
    ///
    /// # Errors
    /// As [`Recording::dump`].
    pub fn trigger(&self, why: &str, timeout: Duration) -> Result<Dump, Error> {
        self.order(Target::Next, why, timeout)
    }

    fn order(&self, target: Target, why: &str, timeout: Duration) -> Result<Dump, Error> {
        if self.pid != std::process::id() {
            return Err(Error::NoFlight);
        }
        recording::dump(&self.shared, target, why, timeout)
    }

    /// Ends the recording: everything recorded so far is written. Waits for the sink for as
    /// long as it takes something, a hundred seconds at most; if it does not answer for ten,
    /// what it has not taken is counted as unwritten.
    pub fn stop(self) -> Summary {
        recording::stop(&self.shared, self.pid, TIMEOUT.max(self.shared.config.closing_time()))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        recording::stop(&self.shared, self.pid, TIMEOUT.max(self.shared.config.closing_time()));
    }
}

/// The program is about to record: what others asked for has ended.
struct Program {
    began: bool,
}

impl Program {
    fn begin() -> Result<Program, Error> {
        let mut program = Program { began: false };
        if let Some(broker) = broker() {
            // What `stop` waits for is the engine's end, which the thread that ran it reports
            // to the broker a little later.
            broker.settle(|| !recording::is_running(), TIMEOUT);
            if broker.status().program.is_some() || !broker.preempt(TIMEOUT) {
                return Err(Error::AlreadyRecording);
            }
            program.began = true;
        }
        Ok(program)
    }

    /// It records, or could not.
    fn records(mut self, started: Result<Recording, Error>) -> Result<Recording, Error> {
        if let (true, Ok(_), Some(broker)) = (self.began, &started, broker()) {
            self.began = false;
            broker.program_records();
        }
        started
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let (true, Some(broker)) = (self.began, broker()) {
            broker.program_is(None);
        }
    }
}
