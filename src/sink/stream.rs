//! Any [`std::io::Write`].

use super::Sink;
use super::quiet::quietly;
use std::fmt;
use std::io;

/// Writes to anything. After the first error it stays silent: part of a batch may have
/// gone out, and whatever followed would be garbage to the reader.
///
/// The destination decides how long a write takes. One that blocks keeps the engine's
/// thread from draining, so that events are dropped (and counted) meanwhile.
pub struct Stream<W> {
    writer: W,
    broken: bool,
}

impl<W: io::Write + Send> Stream<W> {
    /// Writes to `writer`.
    pub fn new(writer: W) -> Stream<W> {
        Stream { writer, broken: false }
    }

    fn unless_broken(&mut self, action: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let result = quietly(|| action(&mut self.writer));
        self.broken = result.is_err();
        result
    }
}

impl<W> fmt::Debug for Stream<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = self.broken;
        f.debug_struct("Stream").field("broken", &broken).finish()
    }
}

impl<W: io::Write + Send> Sink for Stream<W> {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        self.unless_broken(|writer| writer.write_all(packets))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.unless_broken(io::Write::flush)
    }
}
