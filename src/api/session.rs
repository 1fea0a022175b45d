//! Recordings around a program's iterations.

use std::fmt;

use super::recording::Recording;
use super::step::{begin_step, end_step, step};
use crate::config::Config;
use crate::engine::stats::Summary;
use crate::error::Error;
use crate::session::{Schedule, ScheduleAction};

/// What became of a trace: where it is, and what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Ready {
    /// Its path.
    pub path: std::path::PathBuf,
    /// Which of the session's traces it is, from 1.
    pub number: u64,
    /// What it amounts to.
    pub summary: Summary,
}

/// What is called with each trace.
type OnTraceReady = Box<dyn FnMut(&Ready) + Send>;

/// Records the iterations that a [`Schedule`] chooses, each cycle into a trace of its own.
///
/// ```
/// use kymograph::{Config, Session, scope};
/// use kymograph::session::Schedule;
///
/// # let dir = tempfile::tempdir()?;
/// let schedule = Schedule { wait: 1, warmup: 1, active: 2, repeat: 1, ..Schedule::default() };
/// let config = Config::to_file(dir.path().join("t.pftrace"));
/// let mut session = Session::new(config, schedule, |ready| {
///     println!("{}: {} events", ready.path.display(), ready.summary.events);
/// })?;
/// for _ in 0..10 {
///     {
///         let _scope = scope!("work");
///     }
///     session.step()?;
/// }
/// assert_eq!(session.finish(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// The first trace has the name that `config` says, further ones get their number before the
/// extension: `t.pftrace`, `t.2.pftrace`. What is recorded when the session ends is written,
/// too, if its window had opened.
///
/// Steps take some nanoseconds, but those that switch sources on or write a trace:
/// milliseconds.
#[must_use = "the session ends when this is dropped"]
pub struct Session {
    config: Config,
    schedule: Schedule,
    on_trace_ready: OnTraceReady,
    /// Iterations that have ended.
    step: u64,
    recording: Option<Recording>,
    open: bool,
    traces: u64,
    metadata: Vec<(String, String)>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Session");
        debug.field("step", &self.step).field("recording", &self.recording).finish_non_exhaustive()
    }
}

impl Session {
    /// Begins iteration 0. `on_trace_ready` is called by [`Session::step`] and
    /// [`Session::finish`].
    ///
    /// # Errors
    /// As [`Recording::start`], if the schedule begins with a warm-up or a recording.
    pub fn new(
        config: Config,
        schedule: Schedule,
        on_trace_ready: impl FnMut(&Ready) + Send + 'static,
    ) -> Result<Session, Error> {
        let mut session = Session {
            config,
            schedule,
            on_trace_ready: Box::new(on_trace_ready),
            step: 0,
            recording: None,
            open: false,
            traces: 0,
            metadata: Vec::new(),
        };
        session.enter()?;
        begin_step();
        Ok(session)
    }

    /// Ends an iteration and begins the next; also does what [`crate::step`] does.
    ///
    /// # Errors
    /// A recording that is due cannot be started; the schedule goes on.
    pub fn step(&mut self) -> Result<(), Error> {
        end_step();
        if self.schedule.action(self.step) == ScheduleAction::RecordAndSave {
            self.save();
        }
        self.step += 1;
        let entered = self.enter();
        step();
        entered
    }

    /// Does what the iteration that begins now wants.
    fn enter(&mut self) -> Result<(), Error> {
        let record = match self.schedule.action(self.step) {
            ScheduleAction::None => return Ok(()),
            ScheduleAction::Warmup => false,
            ScheduleAction::Record | ScheduleAction::RecordAndSave => true,
        };
        if self.recording.is_none() {
            let config = Config { output: self.output(), ..self.config.clone() };
            let recording = Recording::prepare(config)?;
            for (key, value) in &self.metadata {
                recording.add_metadata(key, value);
            }
            self.recording = Some(recording);
        }
        if let (true, false, Some(recording)) = (record, self.open, &self.recording) {
            recording.open();
            self.open = true;
        }
        Ok(())
    }

    /// Where the trace goes that is next.
    fn output(&self) -> std::path::PathBuf {
        match self.traces + 1 {
            1 => self.config.output_path(std::process::id(), false),
            number => self.config.numbered_path(number as u32),
        }
    }

    fn save(&mut self) {
        let path = self.output();
        let Some(recording) = self.recording.take() else {
            return;
        };
        self.open = false;
        self.traces += 1;
        let summary = recording.stop();
        (self.on_trace_ready)(&Ready { path, number: self.traces, summary });
    }

    /// Records nothing for a while (`false`), or goes on: see [`Recording::pause`].
    pub fn toggle(&self, on: bool) {
        match &self.recording {
            Some(recording) if on => recording.resume(),
            Some(recording) => recording.pause(),
            None => {}
        }
    }

    /// Has this session's traces say something of themselves: see
    /// [`Recording::add_metadata`].
    pub fn add_metadata(&mut self, key: &str, value: &str) {
        if let Some(recording) = &self.recording {
            recording.add_metadata(key, value);
        }
        self.metadata.push((key.to_owned(), value.to_owned()));
    }

    /// Ends it; returns how many traces there are.
    pub fn finish(mut self) -> u64 {
        self.end();
        self.traces
    }

    fn end(&mut self) {
        if self.open {
            self.save();
        } else if let Some(recording) = self.recording.take() {
            let path = self.output();
            drop(recording);
            // Nothing of its warm-up is in it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
