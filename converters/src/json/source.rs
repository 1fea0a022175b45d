//! The window of the input: UTF-8 text of which an element can borrow.

use std::io::{ErrorKind, Read};

use super::problem::{Error, Limits, RepairKind, Repairs};

/// Bytes asked of the reader at a time. Large enough that an element that straddles two chunks,
/// and is therefore read twice, is rare; small enough to stay in the second-level cache.
const CHUNK: usize = 256 << 10;

/// Whether packed data ends too early or is damaged: see [`crate::packed::Unpacked`].
fn is_cut(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData)
}

/// A window that slides over the input.
#[derive(Debug)]
pub(super) struct Source<R> {
    input: R,
    text: String,
    /// Where in `text` reading stands.
    pos: usize,
    /// Offset in the input of `text[0]`.
    base: u64,
    /// What was read of a character that is not complete yet.
    tail: Vec<u8>,
    ended: bool,
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Self {
        let (text, tail) = (String::new(), Vec::new());
        Self { input, text, pos: 0, base: 0, tail, ended: false }
    }

    /// What has been read and not been consumed.
    pub(super) fn rest(&self) -> &str {
        &self.text[self.pos..]
    }

    /// The text from `start` on, where `start` came from [`Source::mark`].
    pub(super) fn at(&self, start: usize) -> &str {
        &self.text[start..]
    }

    /// Where reading stands, to come back to with [`Source::at`] until the next fill.
    pub(super) fn mark(&self) -> usize {
        self.pos
    }

    /// Offset in the input of the byte `ahead` of where reading stands.
    pub(super) fn offset(&self, ahead: usize) -> u64 {
        self.base + (self.pos + ahead) as u64
    }

    /// Whether nothing comes after [`Source::rest`].
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.pos += bytes;
    }

    /// Reads on, so that what is unread at least doubles or the input ends.
    pub(super) fn fill(&mut self, limits: &Limits, repairs: &mut Repairs) -> Result<(), Error> {
        let unread = self.text.len() - self.pos;
        if unread > limits.element_bytes {
            return Err(Error::Limit { offset: self.offset(0), what: "an element is too long" });
        }
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.drain(..self.pos);
        bytes.append(&mut self.tail);
        self.base += self.pos as u64;
        self.pos = 0;
        // What is read stays where it is.
        let (mut len, wanted) = (bytes.len(), unread * 2 + CHUNK / 2);
        bytes.resize(wanted + CHUNK / 2, 0);
        while len < wanted && !self.ended {
            let got = self.read(&mut bytes[len..], len, repairs)?;
            self.ended = got == 0;
            len += got;
        }
        bytes.truncate(len);
        match String::from_utf8(bytes) {
            Ok(text) => self.text = text,
            Err(error) => self.repair(&error.into_bytes(), repairs),
        }
        Ok(())
    }

    /// Reads once, behind `len` bytes of the window.
    fn read(&mut self, to: &mut [u8], len: usize, repairs: &mut Repairs) -> Result<usize, Error> {
        let at = self.base + len as u64;
        loop {
            match self.input.read(to) {
                Ok(got) => return Ok(got),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What was unpacked until then is as good as any file that is cut off.
                Err(error) if at > 0 && is_cut(&error) => {
                    repairs.note(RepairKind::Packed, at);
                    return Ok(0);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes what is not UTF-8, with one `?` for each byte that is not: offsets stay those of the
    /// input.
    #[cold]
    fn repair(&mut self, bytes: &[u8], repairs: &mut Repairs) {
        for chunk in bytes.utf8_chunks() {
            self.text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let at_end = invalid.as_ptr_range().end == bytes.as_ptr_range().end;
            if at_end && !self.ended && is_begun(invalid) {
                // The rest of the character comes with the next read.
                self.tail.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                repairs.note(RepairKind::Encoding, self.base + self.text.len() as u64);
                self.text.extend(std::iter::repeat_n('?', invalid.len()));
            }
        }
    }
}

/// Whether bytes may be the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
