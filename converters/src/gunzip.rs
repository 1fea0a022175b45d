//! gzip, member by member, as it is read.
//!
//! Most traces are gzip files, and unpacking takes a fifth of the time of reading one. zlib-rs is
//! faster than what flate2 has by default. And what is damaged is told here from what stands
//! behind the last member: flate2's reader has one error for both.

use std::io::{self, BufRead, Read};

use zlib_rs::{Inflate, InflateFlush, Status};

/// zlib's word for a gzip header and the largest window.
const GZIP: u8 = 16 + 15;

/// Unpacks all members of a gzip file.
///
/// # Errors
///
/// [`io::ErrorKind::UnexpectedEof`] where a member is cut off, [`io::ErrorKind::InvalidData`] where
/// it is damaged, each after everything that could be unpacked before it.
pub(crate) struct Gunzip<R> {
    packed: R,
    inflate: Inflate,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Member,
    /// Behind a member: there may be another one.
    Between,
    /// Behind the last one; there is something else.
    Garbage,
    End,
}

impl<R: BufRead> Gunzip<R> {
    pub fn new(packed: R) -> Gunzip<R> {
        Gunzip { packed, inflate: Inflate::new(true, GZIP), at: At::Member }
    }

    /// What the packed bytes come from.
    pub fn get_ref(&self) -> &R {
        &self.packed
    }

    /// Whether something stands behind the last member, which is passed over.
    pub fn has_garbage(&self) -> bool {
        self.at == At::Garbage
    }

    /// Looks whether another member follows.
    fn next_member(&mut self) -> io::Result<()> {
        let next = loop {
            match self.packed.fill_buf() {
                Ok(next) => break next,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.at = match next.first() {
            None => At::End,
            Some(0x1f) => {
                self.inflate = Inflate::new(true, GZIP);
                At::Member
            }
            Some(_) => At::Garbage,
        };
        Ok(())
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.at {
                At::Garbage | At::End => return Ok(0),
                At::Between => {
                    self.next_member()?;
                    continue;
                }
                At::Member => {}
            }
            let packed = match self.packed.fill_buf() {
                Ok(packed) => packed,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let cut = packed.is_empty();
            let before = (self.inflate.total_in(), self.inflate.total_out());
            let done = self.inflate.decompress(packed, buffer, InflateFlush::NoFlush);
            let read = (self.inflate.total_in() - before.0) as usize;
            let wrote = (self.inflate.total_out() - before.1) as usize;
            self.packed.consume(read);
            match done {
                Ok(Status::StreamEnd) => self.at = At::Between,
                Ok(_) if wrote > 0 || read > 0 => {}
                Ok(_) if cut => {
                    let why = "the packed data is cut off";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                // The output of before an error comes first; the error, again, at the next call.
                Err(_) if wrote > 0 => {}
                _ => {
                    let why = "the packed data is damaged";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
            if wrote > 0 {
                return Ok(wrote);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Bytes that hardly pack, so that damage is anywhere.
    fn noise() -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"0123456789abcdef"[(state >> 60) as usize]
        };
        (0..200_000).map(|_| next()).collect()
    }

    /// What `file` unpacks to, from a source that gives `step` bytes at a time.
    fn read(file: &[u8], step: usize) -> (Vec<u8>, Result<bool, io::ErrorKind>) {
        let mut gunzip = Gunzip::new(io::BufReader::with_capacity(step, file));
        let mut out = Vec::new();
        let result = gunzip.read_to_end(&mut out);
        (out, result.map(|_| gunzip.has_garbage()).map_err(|error| error.kind()))
    }

    #[test]
    fn members_are_joined_and_garbage_is_told() {
        let noise = noise();
        let file = [gzip(&noise), gzip(b""), gzip(b" end")].concat();
        let whole = [&noise[..], b" end"].concat();
        for step in [1, 2, 17, 1 << 16] {
            assert_eq!(read(&file, step), (whole.clone(), Ok(false)));
            for garbage in [&b"\0\0\0"[..], b"{}"] {
                let file = [&file[..], garbage].concat();
                assert_eq!(read(&file, step), (whole.clone(), Ok(true)), "{step}");
            }
        }
    }

    #[test]
    fn a_cut_is_told_wherever_it_is() {
        let noise = noise();
        let first = gzip(b"first ");
        let file = [first.clone(), gzip(&noise)].concat();
        let whole = [b"first ", &noise[..]].concat();
        let second = first.len() + 1..first.len() + 40;
        for cut in (0..first.len()).chain(second).chain([file.len() - 1]) {
            let (out, result) = read(&file[..cut], 1 << 16);
            assert_eq!(result, Err(io::ErrorKind::UnexpectedEof), "{cut}");
            assert!(whole.starts_with(&out));
            assert!(out.len() >= if cut > first.len() { 6 } else { 0 });
        }
        assert_eq!(read(&file[..file.len() - 9], 7).0.len(), whole.len());
    }

    #[test]
    fn damage_is_no_garbage() {
        let noise = noise();
        let mut file = gzip(&noise);
        let (middle, end) = (file.len() / 2, file.len());
        file[end - 6] ^= 1;
        assert_eq!(read(&file, 999), (noise.clone(), Err(io::ErrorKind::InvalidData)));
        // A table of codes that is none.
        file.splice(middle..middle + 600, [0xff; 600]);
        let (out, result) = read(&file, 999);
        assert_eq!(result, Err(io::ErrorKind::InvalidData));
        assert!(out.len() > noise.len() / 3, "{}", out.len());
    }
}
