//! Recordings that somebody else asked for, and what comes before a program's own.

use std::path::Path;
use std::sync::Arc;

use super::{Changing, PATIENCE, Recording, Shared, Summary, Window, choose_clock, set_up};
use crate::clock::Anchor;
use crate::config::{Config, ForkPolicy};
use crate::control;
use crate::error::Error;
use crate::session::Request;
use crate::sink::{self, Sink};
use crate::sources;

/// The program is about to record: what others asked for has ended.
pub(super) struct Program {
    began: bool,
}

impl Program {
    pub fn begin() -> Result<Program, Error> {
        let mut program = Program { began: false };
        if let Some(desk) = control::desk() {
            if desk.status().program.is_some() || !desk.preempt(PATIENCE) {
                return Err(Error::AlreadyRecording);
            }
            program.began = true;
        }
        Ok(program)
    }

    /// It records, or could not.
    pub fn records(mut self, started: Result<Recording, Error>) -> Result<Recording, Error> {
        if let (true, Ok(_), Some(desk)) = (self.began, &started, control::desk()) {
            self.began = false;
            desk.program_records();
        }
        started
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let (true, Some(desk)) = (self.began, control::desk()) {
            desk.program_is(None);
        }
    }
}

/// A recording whose sources are on and whose window has not opened.
pub(crate) struct Prepared {
    shared: Arc<Shared>,
    sink: Box<dyn Sink>,
    first: Anchor,
}

/// Prepares the recording that `request` asks for, to be written to `path`.
///
/// # Errors
/// As [`Recording::start`].
pub(crate) fn prepare(request: &Request, path: &Path) -> Result<Prepared, Error> {
    let _changing = Changing::begin()?;
    // A child that is forked meanwhile has not been asked. And whoever asks may be wrong
    // about who else writes to that folder.
    let config = Config {
        output: path.to_owned(),
        safe: true,
        mode: Some(0o600),
        fork: ForkPolicy::Silent,
        control: None,
        flight: None,
        // It is one trace, at the path that was checked.
        rotate: None,
        also: Vec::new(),
        ..request.config.clone()
    };
    let sink = sink::open_file(&config, path)?;
    let first = choose_clock(&config);
    let shared = set_up(config, Some(path), Window::closed())?;
    let facts = [
        ("trace_id", &request.trace_id),
        ("group_trace_id", &request.group_trace_id),
        ("custom_config", &request.custom),
        ("remarks", &request.remarks.join("; ")),
    ];
    for (key, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        shared.state(key, value);
    }
    sources::start(&shared.config);
    #[cfg(feature = "inject")]
    crate::inject::state_facts();
    Ok(Prepared { shared, sink, first })
}

impl Prepared {
    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Records on this thread until [`Shared::end`]. `ready` is called as soon as the
    /// window may open. Returns also when it opened and closed, in nanoseconds.
    pub fn run(self, ready: impl FnOnce(), attend: &mut dyn FnMut()) -> (Summary, (u64, u64)) {
        ready();
        super::run(&self.shared, self.sink, self.first, attend);
        (self.shared.total(), self.shared.window_nanos())
    }
}
