//! Compression.
//!
//! | | in a file | in a stream |
//! |---|---|---|
//! | gzip | one member, complete at every moment: see `gzip.rs` | one member, complete when finished |
//! | zstd | a frame per batch | a frame per batch |
//! | packets | a packet or a few per batch, see `packed.rs` | the same |
//!
//! Frames of zstd in a row are one file. Those of gzip are too, but readers pay for each.
//! The price of both is a few per cent in size: no batch learns from the one before.

use super::Sink;
use super::descriptor::Descriptor;
use super::gzip::{self, Blocks, Member};
use super::packed;
use crate::config::Compress;
use std::borrow::Cow;
use std::fmt;
use std::io;

const ZSTD_LEVEL: i32 = 3;

/// A batch as it goes into a file.
#[derive(Debug)]
pub(super) enum Batch<'a> {
    /// Appended as it is.
    Bytes(Cow<'a, [u8]>),
    /// Becomes part of the file's one gzip member.
    Blocks(Blocks),
}

impl Batch<'_> {
    /// Compresses `packets`.
    pub(super) fn of(how: Compress, packets: &[u8]) -> io::Result<Batch<'_>> {
        Ok(match how {
            Compress::None | Compress::Auto => Batch::Bytes(packets.into()),
            Compress::Gzip => Batch::Blocks(Blocks::of(packets)?),
            Compress::Zstd => Batch::Bytes(frame(packets)?.into()),
            Compress::Packets => Batch::Bytes(packed::pack(packets)?.into()),
        })
    }

    /// Appends the batch to a regular file that ends at `length`. Returns where it ends
    /// then. After an error the file is as before.
    pub(super) fn append(
        &self,
        file: &Descriptor,
        length: u64,
        member: &mut Member,
    ) -> io::Result<u64> {
        match self {
            Batch::Blocks(blocks) => member.append(file, length, blocks),
            Batch::Bytes(bytes) => {
                let written = file.write_all_at(bytes, length);
                if written.is_err() {
                    // Should that fail too, the next batch starts at the same place all
                    // the same.
                    let _ = file.truncate(length);
                }
                written.map(|()| length + bytes.len() as u64)
            }
        }
    }
}

/// Where the whole batches end in a file of `length` bytes, of which `committed` are known
/// to be whole: a process died while it wrote what follows.
pub(super) fn whole(
    how: Compress,
    file: &Descriptor,
    committed: u64,
    length: u64,
) -> io::Result<u64> {
    match how {
        Compress::Gzip => gzip::whole(file, committed, length),
        _ => Ok(committed),
    }
}

fn frame(packets: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.compress(packets)
}

/// Compresses for any other sink. What a gzip stream needs at its end comes with
/// [`Sink::finish`]: until then it is incomplete. Files know a better way: see the module.
pub struct Compressed<S> {
    how: Compress,
    inner: S,
    member: Member,
    started: bool,
}

impl<S: Sink> Compressed<S> {
    /// Compresses for `inner`.
    pub fn new(how: Compress, inner: S) -> Compressed<S> {
        Compressed { how, inner, member: Member::default(), started: false }
    }

    fn start(&self) -> &'static [u8] {
        if self.started { &[] } else { Member::header() }
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
        match Batch::of(self.how, packets)? {
            Batch::Bytes(bytes) => self.inner.write(&bytes),
            Batch::Blocks(blocks) => {
                self.inner.write(&[self.start(), blocks.bytes()].concat())?;
                self.started = true;
                self.member = self.member.and(&blocks);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.how == Compress::Gzip {
            self.inner.write(&[self.start(), &self.member.tail()].concat())?;
        }
        self.inner.finish()
    }
}
