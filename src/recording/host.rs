//! What a recording asks of the process that is recorded.

use std::time::Duration;

use super::active::deactivate;
use super::kept;
use crate::config::CategoryFilter;
use crate::{category, control, recorder, sources};

/// The process that is recorded, as its engine and its requests see it. The engine may run in
/// another process: then these go through memory that both map, and none of them waits for an
/// answer of a process that may be dead.
pub(crate) trait Host: Send + Sync {
    /// Events of these categories are recorded from now on; without a filter, none.
    fn record(&self, wanted: Option<&CategoryFilter>);

    /// Has sources push what they have finished. Returns whether they have; if not, whoever
    /// calls asks again until they have.
    fn flush_sources(&self) -> bool;

    /// What the program called this thread before it was recorded.
    fn thread_name(&self, tid: u32) -> Option<Vec<u8>>;

    /// The recording is over; whether everything is written.
    fn over(&self, written: bool);
}

/// How long sources of this process may take to push what they have.
const SOURCES: Duration = Duration::from_millis(100);

/// This process.
#[derive(Debug)]
pub(super) struct ThisProcess;

impl Host for ThisProcess {
    fn record(&self, wanted: Option<&CategoryFilter>) {
        category::switch(|name| wanted.is_some_and(|filter| filter.matches(name.as_bytes())));
        recorder::forget_categories();
    }

    fn flush_sources(&self) -> bool {
        sources::flush(SOURCES);
        true
    }

    fn thread_name(&self, tid: u32) -> Option<Vec<u8>> {
        control::name_of(tid)
    }

    fn over(&self, written: bool) {
        if written {
            kept::end();
        }
        deactivate();
    }
}
