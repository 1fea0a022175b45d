//! Files that may be packed: gzip of several members, zstd of several frames, or plain.
//!
//! What a packed file unpacks to is bounded by its own size, so that a few kilobytes do not
//! fill the memory: see [`Limits`].

use std::io::{self, BufReader, Chain, Cursor, Read};

use crate::gunzip::Gunzip;

/// How much a file may unpack to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// This many bytes in any case.
    pub bytes: u64,
    /// More than that if it is at most this many times what was read of the file.
    pub ratio: u64,
}

impl Default for Limits {
    /// One gigabyte, or 200 times the file. Traces pack 10 to 60 times.
    fn default() -> Limits {
        Limits { bytes: 1 << 30, ratio: 200 }
    }
}

/// How a file is packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// Not as a whole: a Perfetto trace has its packets packed, many at a time, and is some
    /// five times smaller for it; others are plain.
    Packets,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

/// Reads a file and unpacks it, as its first bytes say.
///
/// # Errors
///
/// Reading fails with what the file's reader fails with; with
/// [`io::ErrorKind::UnexpectedEof`] or [`io::ErrorKind::InvalidData`] where packed data is
/// cut off or damaged, after everything before that; and with
/// [`io::ErrorKind::FileTooLarge`] beyond the limits.
pub struct Unpacked<R: Read> {
    inner: Inner<R>,
    packing: Packing,
    limits: Limits,
    unpacked: u64,
}

type Source<R> = BufReader<Counted<Chain<Cursor<Vec<u8>>, R>>>;

enum Inner<R: Read> {
    Plain(Source<R>),
    Gzip(Box<Gunzip<Source<R>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Source<R>>>),
}

impl<R: Read> Unpacked<R> {
    /// Looks at the first bytes of `file`.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn new(mut file: R, limits: Limits) -> io::Result<Unpacked<R>> {
        let mut first = Vec::with_capacity(4);
        file.by_ref().take(4).read_to_end(&mut first)?;
        let packing = match first[..] {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Packing::Zstd,
            // A skippable frame, which seekable zstd files may begin with.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Packing::Zstd,
            _ => Packing::Plain,
        };
        let counted = Counted { inner: Cursor::new(first).chain(file), bytes: 0 };
        let source = BufReader::with_capacity(1 << 16, counted);
        let inner = match packing {
            Packing::Plain | Packing::Packets => Inner::Plain(source),
            Packing::Gzip => Inner::Gzip(Box::new(Gunzip::new(source))),
            Packing::Zstd => {
                Inner::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(source)?))
            }
        };
        Ok(Unpacked { inner, packing, limits, unpacked: 0 })
    }

    /// How the file is packed.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// Bytes of the file itself that were read.
    pub fn position(&self) -> u64 {
        match &self.inner {
            Inner::Plain(source) => position(source),
            Inner::Gzip(decoder) => position(decoder.get_ref()),
            Inner::Zstd(decoder) => position(decoder.get_ref()),
        }
    }

    /// Whether something stood behind the packed data, which was passed over.
    pub fn has_garbage(&self) -> bool {
        matches!(&self.inner, Inner::Gzip(decoder) if decoder.has_garbage())
    }

    /// Bytes that it unpacked to so far.
    pub fn unpacked(&self) -> u64 {
        self.unpacked
    }
}

fn position<R: Read>(source: &Source<R>) -> u64 {
    source.get_ref().bytes - source.buffer().len() as u64
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.inner {
            Inner::Plain(source) => source.read(buffer),
            Inner::Gzip(decoder) => decoder.read(buffer),
            Inner::Zstd(decoder) => decoder.read(buffer).map_err(|error| {
                // The decoder calls both damage and a foreign tail "other".
                let kind = match error.kind() {
                    io::ErrorKind::Other => io::ErrorKind::InvalidData,
                    kind => kind,
                };
                io::Error::new(kind, error)
            }),
        }?;
        self.unpacked += read as u64;
        let most = self.limits.bytes.max(self.limits.ratio.saturating_mul(self.position()));
        if self.packing != Packing::Plain && self.unpacked > most {
            let text = format!(
                "{} packed bytes unpack to more than {most}: not what a trace does",
                self.position()
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        Ok(read)
    }
}

impl<R: Read> std::fmt::Debug for Unpacked<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked")
            .field("packing", &self.packing)
            .field("unpacked", &self.unpacked)
            .finish_non_exhaustive()
    }
}

struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gunzip::tests::gzip;

    fn read(file: &[u8], limits: Limits) -> (Vec<u8>, io::Result<usize>) {
        let mut out = Vec::new();
        let result = Unpacked::new(file, limits).unwrap().read_to_end(&mut out);
        (out, result)
    }

    #[test]
    fn members_and_frames_are_joined() {
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for file in [
            b"one two".to_vec(),
            [gzip(b"one"), gzip(b" two")].concat(),
            [zstd(b"one"), vec![0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9], zstd(b" two")].concat(),
        ] {
            let (out, result) = read(&file, Limits::default());
            result.unwrap();
            assert_eq!(out, b"one two");
        }
    }

    #[test]
    fn what_lies_before_a_cut_is_read() {
        let mut member = gzip(b"second");
        member.truncate(member.len() - 3);
        let (out, result) = read(&[gzip(b"first "), member].concat(), Limits::default());
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(out.starts_with(b"first "));
        let mut frame = zstd::encode_all(&b"second"[..], 1).unwrap();
        frame.truncate(frame.len() - 3);
        let whole = zstd::encode_all(&b"first "[..], 1).unwrap();
        let (out, result) = read(&[whole, frame].concat(), Limits::default());
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(out.starts_with(b"first "));
    }

    #[test]
    fn a_bomb_is_stopped() {
        let bomb = gzip(&vec![0; 10 << 20]);
        let (out, result) = read(&bomb, Limits { bytes: 1 << 20, ratio: 20 });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(out.len() <= 2 << 20);
    }

    #[test]
    fn short_files_are_plain() {
        for file in [&b""[..], b"\x1f", b"abc"] {
            let (out, result) = read(file, Limits::default());
            assert_eq!((out.as_slice(), result.unwrap()), (file, file.len()));
        }
    }
}
