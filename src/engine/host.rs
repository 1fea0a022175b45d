//! What an engine asks of the process that it records.

use crate::config::CategoryFilter;

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
