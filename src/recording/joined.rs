//! Recording into an arena that `kymo` reads: see [`crate::join`].
//!
//! There is no engine in this process, and nothing to write when it ends. What is left to do
//! here is what only this process can: switch categories, and have its sources push what they
//! still hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymograph_backends::flushes;

use super::active::{activate, active, deactivate};
use super::this_process::ThisProcess;
use super::{Changing, GENERATION};
use crate::config::{Config, DumpOn, ForkPolicy};
use crate::engine::control_block::Shared;
use crate::engine::stats::Summary;
use crate::engine::window::Window;
use crate::error::Error;
use crate::flight::{Dump, Target};
use crate::queue::{self, Life};
use crate::recorder::{self, category};
use crate::{join, sources};

/// Whether this process, or the one that it was forked from, records into an arena.
static JOINED: AtomicBool = AtomicBool::new(false);

/// Whether this process records into an arena that `kymo` reads.
pub(crate) fn is_joined() -> bool {
    JOINED.load(Ordering::Acquire)
}

/// Starts to record, after [`join::join`]. What is recorded before the window opens
/// is not recorded at all: there is no engine here that could leave it out later.
///
/// # Errors
/// A recording is running.
pub(crate) fn start(config: Config, window: Window) -> Result<Arc<Shared>, Error> {
    let _changing = Changing::begin()?;
    super::get_ready(&config);
    if config.flight.is_some() {
        // Of a SIGABRT `kymo` hears without a handler.
        super::arm_alarm(&DumpOn { abort: false, ..config.dump_on.clone() });
    }
    let limited = window.is_limited();
    let shared = Shared::new(config, window, std::process::id(), Box::new(ThisProcess));
    let shared = Arc::new(shared);
    JOINED.store(true, Ordering::Release);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    activate(shared.clone());
    recorder::forget_categories();
    category::switch(|name| shared.wants(name.as_bytes()));
    if limited {
        shared.set_paused(true);
    }
    if let Some(arena) = queue::arena() {
        flushes::answer_to(arena.flushes(), nobody_reads);
    }
    sources::start(&shared.config);
    Ok(shared)
}

/// Whether `kymo` was killed: then nothing is recorded any more.
fn nobody_reads() -> bool {
    let running = active().filter(|_| is_joined());
    let gone = running.is_some_and(|shared| join::is_gone(&shared.config));
    if let (true, Some(arena)) = (gone, queue::arena()) {
        arena.close();
    }
    gone
}

/// Has `kymo` write everything that was recorded so far; returns whether it has.
pub(super) fn flush(timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    sources::flush(timeout);
    queue::flush(deadline.saturating_duration_since(Instant::now()))
}

/// Has `kymo` write what it holds of this process.
pub(super) fn dump(
    shared: &Shared,
    target: &Target,
    why: &str,
    timeout: Duration,
) -> Result<Dump, Error> {
    if shared.config.flight.is_none() {
        return Err(Error::NoFlight);
    }
    let deadline = Instant::now() + timeout;
    sources::flush(timeout);
    let path = match target {
        Target::Path(path) => Some(path.as_path()),
        Target::Next => None,
    };
    let left = deadline.saturating_duration_since(Instant::now());
    join::request_dump(&shared.config, path, why, left).map_err(|source| {
        let path = path.unwrap_or(&shared.config.output).to_owned();
        Error::Output { path, source }
    })
}

/// The program ends the recording.
pub(super) fn stop(shared: &Arc<Shared>, timeout: Duration) -> Summary {
    let deadline = Instant::now() + timeout;
    sources::stop(timeout);
    shared.recording_ends();
    let flushed = queue::flush(deadline.saturating_duration_since(Instant::now()));
    deactivate();
    let (events, lost) = queue::written();
    let failure = (!flushed).then(|| "kymo did not write everything in time".to_owned());
    Summary { events, lost, failure, ..Summary::default() }
}

/// The process ends: its sources push what they have. What is recorded after this, by static
/// destructors for instance, is read as well.
pub(super) fn process_ends(timeout: Duration) {
    // No system call unless there is something to do: a program may have forbidden itself all
    // but the one that ends it. So this does not ask whether it is the child of a `vfork`:
    // workers do, before they touch anything, and its parent says with its next chunk that it
    // goes on.
    sources::stop(timeout);
    queue::live(Life::Ends);
}

/// The process is about to become another program.
#[cfg(feature = "inject")]
pub(super) fn before_exec(shared: &Shared, timeout: Duration) {
    if shared.is_ours() {
        sources::flush(timeout);
        queue::live(Life::Becomes);
    }
}

/// It did not become one.
#[cfg(feature = "inject")]
pub(crate) fn exec_failed() {
    if is_joined() && active().is_some_and(|shared| shared.is_ours()) {
        // SAFETY: errno is this thread's, and the caller's to look at.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        let why = unsafe { *errno };
        queue::live(Life::Records);
        // SAFETY: as above.
        unsafe { *errno = why };
    }
}

/// In a forked child, on its only thread: it records into the same arena, or nothing. Returns
/// whether there is a recording that it could take part in. Takes no lock.
pub(crate) fn in_child() -> bool {
    let Some(shared) = active().filter(|_| is_joined()) else { return false };
    shared.now_of_this_process();
    if shared.config.fork == ForkPolicy::Silent {
        drop(shared);
        closed();
    }
    true
}

/// What this process records is not read any more. Takes no lock and allocates nothing.
pub(crate) fn closed() {
    if let Some(shared) = active().filter(|_| is_joined()) {
        shared.recording_ends();
    }
}
