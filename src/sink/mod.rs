//! Where packets go.
//!
//! A [`Sink`] takes batches of whole `TracePacket`s. What it has accepted is a valid trace
//! at every moment, whatever happens next: that is the one promise all of them keep.
//!
//! | sink | for | how it stays valid |
//! |---|---|---|
//! | [`File`] | one process, one file | a write that fails is cut off again |
//! | [`SharedFile`] | `kymo record`: many processes, one file | one appends at a time; what a write that failed left is cut off by the next |
//! | [`Compressed`] | `.gz`, `.zst`, around a pipe or any other | a frame per batch; gzip only once it is finished |
//! | [`Fanout`] | several of these | one that fails is given up |
//! | [`Memory`] | tests, embedders | |
//! | [`Stream`] | any [`std::io::Write`] | stops for good at the first failure |
//!
//! Sinks run on the engine's thread inside the host program, so they are careful
//! guests: they wait for seconds at most, raise no SIGPIPE or SIGXFSZ, and never write to
//! a descriptor that the program has closed and reused (see `descriptor.rs`).

mod appender;
mod compress;
mod descriptor;
mod fanout;
mod file;
mod gzip;
mod memory;
mod numbered;
mod packed;
mod quiet;
mod stream;

pub use appender::SharedFile;
pub use compress::Compressed;
pub use fanout::Fanout;
pub use file::File;
pub use memory::Memory;
pub(crate) use numbered::Numbered;
pub use stream::Stream;

use crate::config::{Compress, Config};
use crate::error::Error;
use crate::page::Page;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A destination of packets.
///
/// Used by one thread at a time, which need not be the one that made it.
pub trait Sink: Send {
    /// Appends a batch: a whole number of `TracePacket`s, each with its tag and length as
    /// in a `Trace` message.
    ///
    /// # Errors
    /// All or nothing: after an error nothing of the batch is in the output (or, for a
    /// destination that cannot be cut, nothing more will ever be). The next batch may
    /// succeed, when there is room again, say; but whatever the lost one introduced, such
    /// as interned strings and clocks, the caller has to introduce anew.
    fn write(&mut self, packets: &[u8]) -> io::Result<()>;

    /// Says that no more batches come. Called once.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn finish(&mut self) -> io::Result<()>;

    /// What went wrong since it was last asked although the batch was accepted: one of
    /// several destinations failed, say.
    fn trouble(&mut self) -> Option<io::Error> {
        None
    }
}

impl Sink for Box<dyn Sink> {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        (**self).write(packets)
    }

    fn finish(&mut self) -> io::Result<()> {
        (**self).finish()
    }

    fn trouble(&mut self) -> Option<io::Error> {
        (**self).trouble()
    }
}

/// Opens what `config` asks for, and thereby tests it before anything is recorded.
///
/// # Errors
/// The output cannot be used; the message says what to do.
pub fn open(config: &Config) -> Result<Box<dyn Sink>, Error> {
    if config.rotate.is_none() || config.flight.is_some() {
        return open_all(config, &config.output_path(std::process::id(), false));
    }
    match config.also.first() {
        Some(path) => {
            let why = "ALSO sends one trace and ROTATE makes several; unset one of them";
            Err(Error::Refused { path: path.clone(), why })
        }
        None => open_file(config, &config.numbered_path(1)),
    }
}

/// The output, and what `config` wants besides.
fn open_all(config: &Config, path: &Path) -> Result<Box<dyn Sink>, Error> {
    let first = open_file(config, path)?;
    if config.also.is_empty() {
        return Ok(first);
    }
    let mut all = vec![(path.display().to_string(), first)];
    for path in &config.also {
        all.push((path.display().to_string(), open_file(config, path)?));
    }
    Ok(Box::new(Fanout::new(all)))
}

/// As [`open`], at a path of the caller's choice (that of a forked
/// child, from [`Config::output_path`]).
///
/// # Errors
/// As [`open`].
pub fn open_file(config: &Config, path: &Path) -> Result<Box<dyn Sink>, Error> {
    let file = File::create(path, config.safe, config.mode)?;
    Ok(match file.compress(config.compression()) {
        Ok(file) => Box::new(file),
        Err(pipe) => match config.compression() {
            Compress::None | Compress::Auto => Box::new(pipe),
            how => Box::new(Compressed::new(how, pipe)),
        },
    })
}

/// The output of `kymo record`, to which the engines of all processes append.
///
/// # Errors
/// As [`open`].
#[doc(hidden)]
pub fn open_shared(config: &Config, page: Arc<Page>) -> Result<Box<dyn Sink>, Error> {
    let file = SharedFile::open(&config.output, page)?;
    Ok(Box::new(file.compress(config.compression())))
}

/// Whether there is a file at `path` that is no trace: a slip of the user who chose the path
/// would destroy a script or a result. An empty file may become one. What cannot be read is
/// not judged.
#[doc(hidden)]
pub fn is_something_else(path: &Path) -> bool {
    use io::Read;
    let mut head = [0; 4];
    let regular = path.symlink_metadata().is_ok_and(|file| file.is_file());
    let read = regular.then(|| std::fs::File::open(path).and_then(|mut file| file.read(&mut head)));
    let Some(Ok(length)) = read else { return false };
    let (gzip, zstd) = ([0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd]);
    length > 0 && head[0] != 0x0a && !head.starts_with(&gzip) && head != zstd
}

/// Ends the shared output of `kymo record`: cuts off what dead processes left, appends
/// `packets` and closes the page, so that a straggler can no longer append.
///
/// # Errors
/// The output is gone, full, or held by a stopped process for seconds. It is valid up to
/// the last whole batch also then, unless that process wakes up.
#[doc(hidden)]
pub fn seal(config: &Config, page: Arc<Page>, packets: &[u8]) -> Result<u64, Error> {
    let mut file = SharedFile::open(&config.output, page)?.compress(config.compression());
    file.seal(packets).map_err(|source| Error::Output { path: config.output.clone(), source })
}
