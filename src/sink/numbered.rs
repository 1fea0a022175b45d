//! Numbered files beside the output, each written by all processes of a recording: the
//! dumps of a flight recorder, and the parts of a trace that is cut into several.
//!
//! Each has a [`Page`] of its own in the recording's, for [`SharedFile`]: how long the file is,
//! and who still writes to it. The first process to come makes both.

use super::{File, SharedFile, Sink};
use crate::config::Config;
use crate::error::Error;
use crate::page::{Page, Process};
use std::sync::Arc;

/// This process's part in a numbered file. Dropped when it has written all of it.
#[derive(Debug)]
pub(crate) struct Numbered {
    entry: Process,
}

impl Numbered {
    /// Has the process `pid` take part in file `number` of the recording of `page`; makes it
    /// if there is none.
    ///
    /// # Errors
    /// The file cannot be made or opened.
    pub(crate) fn join(
        page: &Arc<Page>,
        config: &Config,
        number: u32,
        pid: u32,
    ) -> Result<(Box<dyn Sink>, Numbered), Error> {
        let path = config.numbered_path(number);
        let own = page.numbered_or(number, || {
            drop(File::create(&path, config.safe, config.mode)?);
            if let Some(old) = config.keep.and_then(|keep| number.checked_sub(keep)) {
                let _ = std::fs::remove_file(config.numbered_path(old));
            }
            Ok::<_, Error>(())
        })?;
        let entry = own.register(pid);
        let file = SharedFile::open(&path, own)?.compress(config.compression());
        Ok((Box::new(file), Numbered { entry }))
    }

    /// Bytes in the file, of all processes.
    pub(crate) fn length(&self) -> u64 {
        self.entry.page().committed()
    }

    /// Counts what this process has written, and what it lost. Returns what all of them
    /// have lost so far.
    pub(crate) fn add(&self, events: u64, lost: u64, bytes: u64) -> u64 {
        let page = self.entry.page();
        page.add(events, lost, bytes);
        page.totals().lost
    }
}
