//! This process, as the engine of its recording sees it.

use std::time::Duration;

use super::active::deactivate;
use super::kept;
use crate::config::CategoryFilter;
use crate::engine::host::Host;
use crate::recorder::{self, category, names};
use crate::sources;

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
        names::name_of(tid)
    }

    fn over(&self, written: bool) {
        if written {
            kept::end();
        }
        deactivate();
    }
}
