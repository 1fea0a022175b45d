//! One gzip member that grows and is complete at every moment.
//!
//! trace_processor gives up on a gzip file that ends within a member, and on one of more
//! than some hundred members. So a file holds *one*, and every batch makes it longer:
//!
//! ```text
//!              ┌────────┬─────────┬─────────┬───────────────────────────┐
//! before       │ header │ batch 1 │ batch 2 │ tail                      │
//!              └────────┴─────────┴─────────┴───────────────────────────┘
//! 1. behind    ┌────────┬─────────┬─────────┬───────┬────────────┬──────┐
//!    the tail  │ header │ batch 1 │ batch 2 │ tail  │ …of batch 3│ tail'│
//!              └────────┴─────────┴─────────┴───────┴────────────┴──────┘
//! 2. over it   ┌────────┬─────────┬─────────┬────────────────────┬──────┐
//!              │ header │ batch 1 │ batch 2 │ batch 3            │ tail'│
//!              └────────┴─────────┴─────────┴────────────────────┴──────┘
//!
//! tail, 13 bytes:  01 00 00 ff ff │ CRC-32  │ size
//!                  an empty last  │ of all, │ of all, modulo 2³²,
//!                  block          │ LE      │ LE
//! ```
//! A batch is raw deflate that refers to nothing before it and ends on a byte boundary (a
//! sync flush). The CRC of the whole is combined from that in the old tail and that of the
//! batch, so the state lies in the file itself, and processes may append in turn.
//!
//! **A process that dies while writing** leaves the old tail where it was (step 1), with a piece of
//! the new batch behind it: the next writer or `seal` cuts that off; without one,
//! trace_processor refuses the file and `gzip -dc` reads it all the same. Or he has
//! overwritten it (step 2), and the batch is whole. Which of the two is told by one bit:
//! the tail's first byte is odd (last block), a batch's is even. Step 2 itself is not
//! interrupted: it lies within one page, for which batches are padded with empty blocks.

use super::descriptor::Descriptor;
use flate2::{Compression, FlushCompress};
use std::io;

/// Fast enough for the writer thread to keep up with millions of events a second.
const LEVEL: u32 = 3;

/// Deflate, no name, no time, Unix.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
const TAIL: usize = 13;
/// An empty last block: the first five bytes of a tail.
const LAST: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// An empty block that is not the last one: padding.
const EMPTY: [u8; 5] = [0, 0, 0, 0xff, 0xff];
/// The least that a kernel copies without looking for signals.
const PAGE: u64 = 4096;

/// A compressed batch.
#[derive(Debug)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    sum: crc32fast::Hasher,
    size: u32,
}

impl Blocks {
    /// Compresses `packets`.
    pub(super) fn of(packets: &[u8]) -> io::Result<Blocks> {
        let bytes = deflate(packets, Vec::with_capacity(packets.len() / 4 + 64))?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(packets);
        Ok(Blocks { bytes, sum, size: packets.len() as u32 })
    }

    /// The compressed bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As many empty blocks as it takes that the tail which follows, from `at` on, lies
    /// within a page, and that the batch covers the tail before it.
    fn padding(&self, at: u64) -> usize {
        let fits = |blocks: &usize| {
            let len = self.bytes.len() + blocks * EMPTY.len();
            let start = (at + len as u64) % PAGE;
            len >= TAIL && start + TAIL as u64 <= PAGE
        };
        (0..8).find(fits).unwrap_or(0)
    }
}

/// Compresses `packets` up to a byte boundary, into `bytes`, which is empty and grows.
///
/// A flush that fills its room is not over, and has to be asked for again. The encoders of
/// flate2 do not: a few large batches in a thousand lack their end then, and everything
/// after it in the member cannot be read.
fn deflate(packets: &[u8], mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    /// Enough for a flush: with less, zlib flushes once more.
    const ROOM: usize = 64;
    let mut state = flate2::Compress::new(Compression::new(LEVEL), false);
    let mut full = false;
    loop {
        let rest = &packets[state.total_in() as usize..];
        state.compress_vec(rest, &mut bytes, FlushCompress::Sync)?;
        let was_full = std::mem::replace(&mut full, bytes.len() == bytes.capacity());
        // miniz_oxide may spend the call after a full one on what it held back, and flush
        // with the next. At worst that is an empty block too many.
        if !full && !was_full {
            return Ok(bytes);
        }
        bytes.reserve(ROOM);
    }
}

/// What a member holds so far, as its tail says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Member {
    sum: u32,
    size: u32,
}

impl Member {
    /// An empty member as far as its tail.
    pub(super) const fn header() -> &'static [u8] {
        &HEADER
    }

    /// What ends the member.
    pub(super) fn tail(self) -> [u8; TAIL] {
        let mut tail = [0; TAIL];
        tail[..5].copy_from_slice(&LAST);
        tail[5..9].copy_from_slice(&self.sum.to_le_bytes());
        tail[9..].copy_from_slice(&self.size.to_le_bytes());
        tail
    }

    /// The member with a batch more.
    #[must_use]
    pub(super) fn and(self, batch: &Blocks) -> Member {
        let mut sum = crc32fast::Hasher::new_with_initial(self.sum);
        sum.combine(&batch.sum);
        Member { sum: sum.finalize(), size: self.size.wrapping_add(batch.size) }
    }

    /// The member in a file of `length` bytes.
    pub(super) fn read(file: &Descriptor, length: u64) -> io::Result<Member> {
        if length == 0 {
            return Ok(Member::default());
        }
        let mut tail = [0; TAIL];
        let start = length.checked_sub(TAIL as u64).ok_or_else(damaged)?;
        file.read_exact_at(&mut tail, start)?;
        if tail[..5] != LAST {
            return Err(damaged());
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| tail[at + i]));
        Ok(Member { sum: word(5), size: word(9) })
    }

    /// Appends a batch to the member, which lies in a file of `length` bytes. Returns the
    /// new length. After an error the file is as long as before, and whole.
    pub(super) fn append(
        &mut self,
        file: &Descriptor,
        length: u64,
        batch: &Blocks,
    ) -> io::Result<u64> {
        let after = self.and(batch);
        let result = self.extend(file, length, batch, after.tail());
        match result {
            Ok(_) => *self = after,
            // Should that fail too, the next writer cuts.
            Err(_) => drop(file.truncate(length)),
        }
        result
    }

    fn extend(
        &self,
        file: &Descriptor,
        length: u64,
        batch: &Blocks,
        tail: [u8; TAIL],
    ) -> io::Result<u64> {
        let length = match length {
            0 => {
                let empty = [&HEADER[..], &self.tail()].concat();
                file.write_all_at(&empty, 0)?;
                empty.len() as u64
            }
            _ => length,
        };
        let start = length - TAIL as u64;
        let padding = EMPTY.repeat(batch.padding(start));
        let whole = [&batch.bytes, &padding[..], &tail].concat();
        file.write_all_at(&whole[TAIL..], length)?;
        if let Err(error) = file.write_all_at(&whole[..TAIL], start) {
            let _ = file.write_all_at(&self.tail(), start);
            return Err(error);
        }
        Ok(start + whole.len() as u64)
    }
}

/// Where the member ends in a file of `length` bytes of which `committed` are known to be
/// whole: a process died after these.
pub(super) fn whole(file: &Descriptor, committed: u64, length: u64) -> io::Result<u64> {
    let Some(start) = committed.checked_sub(TAIL as u64) else {
        return Ok(committed);
    };
    let mut first = [0];
    file.read_exact_at(&mut first, start)?;
    let overwritten = first[0] & 1 == 0;
    Ok(if overwritten { length } else { committed })
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "another process changed the end of the output")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::path::Path;

    fn open(path: &Path) -> Descriptor {
        Descriptor::open(path, libc::O_RDWR | libc::O_CREAT, 0o600).unwrap()
    }

    fn unpacked(path: &Path) -> Vec<u8> {
        let mut content = Vec::new();
        let file = std::fs::read(path).unwrap();
        // One member: anything after it would be an error or be missing.
        let mut decoder = flate2::bufread::GzDecoder::new(&file[..]);
        decoder.read_to_end(&mut content).unwrap();
        assert!(decoder.into_inner().is_empty());
        content
    }

    /// Text that compresses badly, of any length.
    fn batch(seed: u32, size: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            b'a' + (state >> 11) as u8 % 32
        };
        (0..size).map(|_| next()).collect()
    }

    #[test]
    fn a_member_is_complete_after_every_batch_and_its_tails_keep_to_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.gz");
        let file = open(&path);
        let (mut member, mut length, mut all) = (Member::default(), 0, Vec::new());
        for n in 0..200 {
            let packets = batch(n * 77 + 1, [1, 2, 40, 700, 5000][n as usize % 5]);
            length = member.append(&file, length, &Blocks::of(&packets).unwrap()).unwrap();
            all.extend(packets);
            assert!((length - 13) % PAGE <= PAGE - 13);
            assert_eq!(Member::read(&file, length).unwrap(), member);
            assert_eq!(path.metadata().unwrap().len(), length);
            assert!(n % 9 != 0 || unpacked(&path) == all, "after batch {n}");
        }
    }

    /// A batch by itself, with an end.
    fn inflated(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.extend(LAST);
        let mut content = Vec::new();
        flate2::bufread::DeflateDecoder::new(&bytes[..]).read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn a_batch_is_whole_where_an_encoder_of_flate2_leaves_out_its_end() {
        let packets = batch(7, 308_076);
        for size in [246_262, 308_076] {
            let blocks = Blocks::of(&packets[..size]).unwrap();
            assert!(blocks.bytes.ends_with(&EMPTY[1..]), "of {size} bytes");
            assert!(inflated(blocks.bytes) == packets[..size], "of {size} bytes");
        }
    }

    #[test]
    fn a_batch_is_whole_wherever_its_room_ends() {
        for size in [0, 1, 600, 40_000] {
            let packets = batch(3, size);
            let length = deflate(&packets, Vec::with_capacity(2 * size + 64)).unwrap().len();
            // To the byte around the end, and some on the way.
            for room in (0..length).step_by(1 + size / 20).chain(length - 5..length + 6) {
                let bytes = deflate(&packets, Vec::with_capacity(room)).unwrap();
                assert!(bytes.ends_with(&EMPTY[1..]), "{size} bytes in {room}");
                assert!(inflated(bytes) == packets, "{size} bytes in {room}");
            }
        }
    }

    #[test]
    fn a_batch_is_whole_that_ends_just_after_a_block_does() {
        // miniz_oxide ends a block after some 61 230 of these bytes.
        let packets = batch(7, 61_600);
        for size in (61_000..packets.len()).step_by(50) {
            let bytes = deflate(&packets[..size], Vec::with_capacity(100)).unwrap();
            assert!(bytes.ends_with(&EMPTY[1..]), "{size} bytes");
            assert!(inflated(bytes) == packets[..size], "{size} bytes");
        }
    }

    #[test]
    fn whoever_dies_while_writing_leaves_a_member_that_can_be_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.gz");
        let file = open(&path);
        let mut member = Member::default();
        let before = member.append(&file, 0, &Blocks::of(b"before ").unwrap()).unwrap();
        let old = std::fs::read(&path).unwrap();
        let after = member.append(&file, before, &Blocks::of(&batch(5, 300)).unwrap()).unwrap();
        let new = std::fs::read(&path).unwrap();
        let start = before as usize - TAIL;
        for written in before..=after {
            let torn = [&old[..], &new[before as usize..written as usize]].concat();
            std::fs::write(&path, torn).unwrap();
            assert_eq!(whole(&file, before, written).unwrap(), before);
        }
        std::fs::write(&path, &new).unwrap();
        assert_eq!(whole(&file, before, after).unwrap(), after);
        assert_ne!(new[start] & 1, 1);
        assert_eq!(whole(&file, 0, 20).unwrap(), 0, "died over the very first batch");
    }

    #[test]
    fn a_foreign_end_is_not_built_upon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.gz");
        std::fs::write(&path, b"somebody else's text").unwrap();
        let file = open(&path);
        assert!(Member::read(&file, 20).is_err());
        assert!(Member::read(&file, 5).is_err());
    }
}
