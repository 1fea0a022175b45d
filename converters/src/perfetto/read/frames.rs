//! A stream of bytes cut into packets.

use kymograph_protos::fields::trace;
use std::fmt;
use std::io::{self, Read};

use crate::packed::{Packing, Unpacked};
use crate::perfetto::wire;

/// A field of the file.
pub enum Frame<'a> {
    /// A packet, and where it begins in the unpacked file.
    Packet(&'a [u8], u64),
    /// Another field: none is known.
    Other(u64),
}

/// Why there is nothing more to read.
#[derive(Debug)]
pub struct Damage {
    /// Where what cannot be read begins, in bytes of the unpacked file.
    pub offset: u64,
    what: String,
    /// Where in the packed file that is, about.
    packed: Option<u64>,
    /// What the file's reader failed with, if it did.
    pub io: Option<io::Error>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.offset)?;
        match self.packed {
            Some(packed) => write!(f, " of the unpacked file, byte {packed} of the packed one"),
            None => Ok(()),
        }
    }
}

/// See the module. Holds one packet, and what was read beyond it.
pub struct Frames<R: Read> {
    file: Unpacked<R>,
    buffer: Vec<u8>,
    /// What of `buffer` is not used yet.
    start: usize,
    end: usize,
    /// Where `buffer` begins in the unpacked file.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

const CHUNK: usize = 1 << 18;
/// Longer packets are taken for damage.
const LARGEST: u64 = 1 << 30;
/// The tag and the length of a packet.
const HEADER: usize = 20;

impl<R: Read> Frames<R> {
    pub fn new(file: Unpacked<R>) -> Frames<R> {
        Frames { file, buffer: Vec::new(), start: 0, end: 0, base: 0, ended: false, failure: None }
    }

    /// The next field. `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, Damage> {
        self.fill(HEADER);
        let offset = self.base + self.start as u64;
        let mut rest = &self.buffer[self.start..self.end];
        let available = rest.len();
        if rest.is_empty() {
            return match self.failure {
                Some(_) => Err(self.damage(offset, "cut off".to_owned())),
                None => Ok(None),
            };
        }
        let cut = if self.ended { "cut off" } else { "damaged" };
        let Some(key) = wire::varint(&mut rest).filter(|key| *key >> 3 != 0) else {
            return Err(self.damage(offset, format!("{cut}: no packet begins")));
        };
        let field = key >> 3;
        if key & 7 != 2 {
            let skipped = match key & 7 {
                0 => wire::varint(&mut rest).map(|_| rest.len()),
                1 => rest.len().checked_sub(8),
                5 => rest.len().checked_sub(4),
                _ => None,
            };
            let Some(left) = skipped.filter(|_| field != u64::from(trace::PACKET)) else {
                return Err(self.damage(offset, "damaged: no packet begins".to_owned()));
            };
            self.start += available - left;
            return Ok(Some(Frame::Other(field)));
        }
        let Some(len) = wire::varint(&mut rest).filter(|len| *len <= LARGEST) else {
            return Err(self.damage(offset, format!("{cut}: no length of a packet follows")));
        };
        let (header, len) = (available - rest.len(), len as usize);
        self.fill(header + len);
        if self.end - self.start < header + len {
            let what =
                format!("cut off: {} of {} bytes of a packet", self.end - self.start - header, len);
            self.start += header;
            return Err(self.damage(offset, what));
        }
        let body = self.start + header;
        self.start = body + len;
        Ok(Some(match field {
            field if field == u64::from(trace::PACKET) => {
                Frame::Packet(&self.buffer[body..body + len], offset)
            }
            field => Frame::Other(field),
        }))
    }

    /// What is there of a packet that was cut off, once [`Frames::next`] has said so.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads on until `wanted` bytes are there, or the file ends. What a length claims is
    /// not reserved: the buffer grows with what really comes.
    fn fill(&mut self, wanted: usize) {
        while self.end - self.start < wanted && !self.ended {
            if self.start > 0 && self.buffer.len() - self.end < CHUNK {
                self.buffer.copy_within(self.start..self.end, 0);
                self.base += self.start as u64;
                self.end -= self.start;
                self.start = 0;
            }
            if self.buffer.len() - self.end < CHUNK {
                let more = self.buffer.len().clamp(CHUNK, 16 << 20);
                self.buffer.resize(self.buffer.len() + more, 0);
            }
            match self.file.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What came before it is used first.
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
    }

    fn damage(&mut self, offset: u64, what: String) -> Damage {
        let packed = (self.file.packing() != Packing::Plain).then(|| self.file.position());
        let io = self.failure.take();
        let what = io.as_ref().map_or(what, ToString::to_string);
        Damage { offset, what, packed, io }
    }
}
