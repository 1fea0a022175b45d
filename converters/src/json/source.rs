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
    /// Raw bytes of the last read; begins with `tail` bytes of a character not complete yet.
    raw: Vec<u8>,
    tail: usize,
    ended: bool,
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Self {
        let raw = vec![0; CHUNK];
        Self { input, text: String::new(), pos: 0, base: 0, raw, tail: 0, ended: false }
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
        self.text.drain(..self.pos);
        self.base += self.pos as u64;
        self.pos = 0;
        let wanted = unread * 2 + CHUNK / 2;
        while self.text.len() < wanted && !self.ended {
            self.read(repairs)?;
        }
        Ok(())
    }

    fn read(&mut self, repairs: &mut Repairs) -> Result<(), Error> {
        let got = loop {
            match self.input.read(&mut self.raw[self.tail..]) {
                Ok(got) => break got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What was unpacked until then is as good as any file that is cut off.
                Err(error) if self.base + self.text.len() as u64 > 0 && is_cut(&error) => {
                    repairs.note(RepairKind::Packed, self.base + self.text.len() as u64);
                    break 0;
                }
                Err(error) => return Err(error.into()),
            }
        };
        self.ended = got == 0;
        let full = self.tail + got;
        let mut done = 0;
        while done < full {
            let error = match std::str::from_utf8(&self.raw[done..full]) {
                Ok(text) => {
                    self.text.push_str(text);
                    done = full;
                    break;
                }
                Err(error) => error,
            };
            let valid = done + error.valid_up_to();
            if let Ok(text) = std::str::from_utf8(&self.raw[done..valid]) {
                self.text.push_str(text);
            }
            done = valid;
            let bad = match error.error_len() {
                Some(bad) => bad,
                None if self.ended => full - valid,
                // The rest of the character comes with the next read.
                None => break,
            };
            repairs.note(RepairKind::Encoding, self.base + self.text.len() as u64);
            // One `?` for each byte: offsets stay those of the input.
            self.text.extend(std::iter::repeat_n('?', bad));
            done += bad;
        }
        self.raw.copy_within(done..full, 0);
        self.tail = full - done;
        Ok(())
    }
}
