//! Compression around any other sink.
//!
//! Each batch becomes one whole gzip member or zstd frame. Both formats say that such
//! pieces in a row are one file, so what is on disk can be opened at every moment, and
//! processes that share an output can append pieces in any order. The price is a few per
//! cent in size: no piece learns from the one before.

use super::Sink;
use crate::config::Compress;
use std::fmt;
use std::io::{self, Write as _};

/// Fast enough for the writer thread to keep up with millions of events a second.
const GZIP_LEVEL: u32 = 3;
const ZSTD_LEVEL: i32 = 3;

/// Compresses what it passes on.
pub struct Compressed<S> {
    how: Compress,
    inner: S,
}

impl<S: Sink> Compressed<S> {
    /// Compresses for `inner`, which takes each piece as a batch.
    pub fn new(how: Compress, inner: S) -> Compressed<S> {
        Compressed { how, inner }
    }
}

impl<S> fmt::Debug for Compressed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Compressed").field(&self.how).finish()
    }
}

impl<S: Sink> Sink for Compressed<S> {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        if packets.is_empty() {
            return Ok(());
        }
        self.inner.write(&encode(self.how, packets)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.inner.finish()
    }
}

/// `packets` as one piece; nothing for nothing.
pub(super) fn encode(how: Compress, packets: &[u8]) -> io::Result<Vec<u8>> {
    if packets.is_empty() {
        return Ok(Vec::new());
    }
    match how {
        Compress::None | Compress::Auto => Ok(packets.to_vec()),
        Compress::Gzip => {
            let piece = Vec::with_capacity(packets.len() / 4);
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder = flate2::write::GzEncoder::new(piece, level);
            encoder.write_all(packets)?;
            encoder.finish()
        }
        Compress::Zstd => {
            let mut encoder = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
            encoder.include_checksum(true)?;
            encoder.compress(packets)
        }
    }
}
