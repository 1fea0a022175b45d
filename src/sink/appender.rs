//! Many processes, one file.
//!
//! The engines of all processes of a recording append whole batches to the one output. The
//! [`Page`] says how much of the file is whole (`committed`), and lets one append at a time:
//!
//! ```text
//! lock ─► file longer than committed? a write failed: cut ─► append to what is whole
//!      ─► committed = length ─► unlock
//! ```
//!
//! At every moment the first `committed` bytes are whole batches.

use super::Sink;
use super::compress::{self, Batch};
use super::descriptor::Descriptor;
use super::gzip::Member;
use super::quiet::quietly;
use crate::config::Compress;
use crate::error::Error;
use crate::page::{Page, State};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Appends to the output that the engines of `kymo record` share.
#[derive(Debug)]
pub struct SharedFile {
    output: Descriptor,
    page: Arc<Page>,
    how: Compress,
}

impl SharedFile {
    /// Opens the output, which must exist.
    ///
    /// # Errors
    /// The output cannot be opened or is no regular file.
    #[doc(hidden)]
    pub fn open(path: &Path, page: Arc<Page>) -> Result<SharedFile, Error> {
        let failed = |source| Error::Output { path: path.to_owned(), source };
        let mut output = Descriptor::open(path, libc::O_RDWR, 0).map_err(failed)?;
        let stat = output.ensure().map_err(failed)?;
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Error::Refused {
                path: path.to_owned(),
                why: "several processes can only share a regular file; choose another path",
            });
        }
        Ok(SharedFile { output, page, how: Compress::None })
    }

    /// Compresses what it writes. All processes must do so in the same way.
    #[must_use]
    pub(super) fn compress(mut self, how: Compress) -> SharedFile {
        self.how = how;
        self
    }

    /// Appends `last`; nothing can be appended after it. Returns the output's length.
    pub(super) fn seal(&mut self, last: &[u8]) -> io::Result<u64> {
        let batch = Batch::of(self.how, last)?;
        self.locked(|this, committed| {
            let appended = if last.is_empty() { Ok(()) } else { this.append(committed, &batch) };
            this.page.set_state(State::Closed);
            appended?;
            Ok(this.page.committed())
        })
    }

    /// Runs `action`, with the length of what is whole, while no other process appends.
    fn locked<T>(&mut self, action: impl FnOnce(&mut Self, u64) -> io::Result<T>) -> io::Result<T> {
        let page = self.page.clone();
        let _appending = page.append();
        self.whole().and_then(|at| action(self, at))
    }

    /// Cuts off what a writer that died left, and returns where the next batch goes.
    fn whole(&mut self) -> io::Result<u64> {
        if self.page.state() == State::Closed {
            return Err(io::Error::other("the recording is over"));
        }
        let length = self.output.ensure()?.st_size as u64;
        let committed = self.page.committed();
        if length < committed {
            // A hole of zeros would make everything after it unreadable.
            return Err(io::Error::other("another process cut the output short"));
        }
        if length == committed {
            return Ok(committed);
        }
        let whole = compress::whole(self.how, &self.output, committed, length)?;
        self.output.truncate(whole)?;
        self.page.commit(whole);
        Ok(whole)
    }

    fn append(&mut self, at: u64, batch: &Batch<'_>) -> io::Result<()> {
        let mut member = match batch {
            Batch::Blocks(_) => Member::read(&self.output, at)?,
            Batch::Bytes(_) => Member::default(),
        };
        let end = quietly(|| batch.append(&self.output, at, &mut member))?;
        self.page.commit(end);
        Ok(())
    }
}

impl Sink for SharedFile {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        if packets.is_empty() {
            return Ok(());
        }
        // Compressed before the others are made to wait.
        let batch = Batch::of(self.how, packets)?;
        let written = self.locked(|this, at| this.append(at, &batch));
        if written.is_err() && self.page.state() != State::Closed {
            self.page.count_write_error();
        }
        written
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
