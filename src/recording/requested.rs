//! Recordings that were requested from outside.

use std::path::Path;
use std::sync::Arc;

use super::{Changing, run_engine, set_up};
use crate::capture::Rule;
use crate::clock::{self, Anchor};
use crate::config::{Config, ForkPolicy};
use crate::engine::control_block::Shared;
use crate::engine::stats::Summary;
use crate::engine::window;
use crate::error::Error;
use crate::hooks::ON_REQUESTED;
use crate::session::{Request, Window};
use crate::sink::{self, Sink};
use crate::sources;

/// A recording whose sources are on and whose window has not opened.
pub(crate) struct Prepared {
    shared: Arc<Shared>,
    sink: Box<dyn Sink>,
    first: Anchor,
}

/// Prepares the recording that `request` asks for, to be written to `path`.
///
/// # Errors
/// As [`super::launch`].
pub(crate) fn prepare(request: &Request, path: &Path) -> Result<Prepared, Error> {
    let _changing = Changing::begin()?;
    // A child that is forked meanwhile has not been asked. And the request may be wrong
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
    let first = clock::choose(config.clock);
    let shared = set_up(config, Some(path), window::Window::closed())?;
    if let Window::Ranges { count } = request.window {
        let name = request.iteration_of.as_bytes().into();
        shared.captures.by(Rule::Iterations { name, count });
    }
    let metadata = [
        ("trace_id", &request.trace_id),
        ("group_trace_id", &request.group_trace_id),
        ("custom_config", &request.custom),
        ("remarks", &request.remarks.join("; ")),
    ];
    for (key, value) in metadata.into_iter().filter(|(_, value)| !value.is_empty()) {
        shared.state(key, value);
    }
    sources::start(&shared.config);
    ON_REQUESTED.call();
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
        run_engine(&self.shared, self.sink, self.first, attend);
        (self.shared.total(), self.shared.window_nanos())
    }
}
