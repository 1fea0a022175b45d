//! Numbered files beside the output, each written by all processes of a recording: the
//! dumps of a flight recorder, and the parts of a trace that is cut into several.
//!
//! Each has a control page of its own beside the recording's, for [`SharedFile`]: how long
//! the file is, and who still writes to it. Whoever comes first makes both, with the
//! recording's page locked; a page that is there says that its file is, too.

use super::{File, SharedFile, Sink};
use crate::config::Config;
use crate::control::{Page, Process, Totals};
use crate::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::descriptor::Descriptor;

/// How long to wait for somebody who makes the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// This process's part in a numbered file. Dropped when it has written all of it.
#[derive(Debug)]
pub(crate) struct Numbered {
    entry: Process,
}

impl Numbered {
    /// Has the process `pid` take part in file `number` of the recording of `page`; makes it
    /// if nobody has.
    ///
    /// # Errors
    /// The file or its page cannot be made or opened.
    pub(crate) fn join(
        page: &Arc<Page>,
        config: &Config,
        number: u32,
        pid: u32,
    ) -> Result<(Box<dyn Sink>, Numbered), Error> {
        let path = config.numbered_path(number);
        let place = Numbered::page(page, number);
        if !place.exists() {
            let lock = locked(page)?;
            if !place.exists() {
                drop(File::create(&path, config.safe, config.mode)?);
                drop(Page::create(&place)?);
                if let Some(old) = config.keep.and_then(|keep| number.checked_sub(keep)) {
                    let _ = std::fs::remove_file(config.numbered_path(old));
                }
            }
            lock.unlock();
        }
        let own = Arc::new(Page::open(&place)?);
        let entry = own.register_for(pid);
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

    /// Where the page of a numbered file lies.
    fn page(page: &Page, number: u32) -> PathBuf {
        page.path().with_extension(number.to_string())
    }

    /// What file `number` amounts to.
    /// `None` if nobody has begun.
    pub(crate) fn progress(page: &Page, number: u32) -> Option<Totals> {
        Page::open(&Numbered::page(page, number)).ok().map(|page| page.totals())
    }
}

/// The lock of the recording's page, which is also that of its output.
fn locked(page: &Page) -> Result<Descriptor, Error> {
    let failed = |source| Error::Control { path: page.path().to_owned(), source };
    let lock = Descriptor::open(page.path(), libc::O_RDWR, 0).map_err(failed)?;
    let deadline = Instant::now() + PATIENCE;
    while !lock.try_lock().map_err(failed)? {
        if Instant::now() >= deadline {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(lock)
}
