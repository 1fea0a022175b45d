//! Protobuf fields appended to a byte vector.

/// A message under construction at the end of a buffer. Fields may come in any order.
#[derive(Debug)]
pub struct Message<'a> {
    out: &'a mut Vec<u8>,
}

/// Wire types.
pub(super) const VARINT: u32 = 0;
pub(super) const FIXED64: u32 = 1;
pub(super) const LENGTH: u32 = 2;

impl<'a> Message<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Message<'a> {
        Message { out }
    }

    /// An unsigned integer, enum or bool.
    #[inline]
    pub fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        let key = field << 3 | VARINT;
        if key < 0x80 && value < 0x80 {
            self.out.extend_from_slice(&[key as u8, value as u8]);
        } else {
            varints(self.out, key, value);
        }
        self
    }

    /// A signed integer of type `int32` or `int64`.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.uint(field, value as u64)
    }

    /// Fields that are encoded already.
    pub fn encoded(&mut self, fields: &[u8]) -> &mut Self {
        self.out.extend_from_slice(fields);
        self
    }

    /// A `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        varint(self.out, u64::from(field << 3 | FIXED64));
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `double`.
    pub fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.fixed64(field, value.to_bits())
    }

    /// `bytes`, or a `string` that is UTF-8.
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        varint(self.out, u64::from(field << 3 | LENGTH));
        varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
        self
    }

    /// Fields that were written elsewhere.
    pub(super) fn raw(&mut self, fields: &[u8]) -> &mut Self {
        self.out.extend_from_slice(fields);
        self
    }

    /// A string of any bytes: see [`super::clean`].
    pub fn text(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.bytes(field, super::clean(value).as_bytes())
    }

    /// A message within this one.
    #[inline]
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message<'_>)) -> &mut Self {
        varint(self.out, u64::from(field << 3 | LENGTH));
        let start = self.out.len();
        self.out.push(0);
        fill(&mut Message { out: self.out });
        close(self.out, start);
        self
    }
}

/// Appends a varint.
#[inline]
pub(super) fn varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        long_varint(out, value);
    }
}

/// One byte after the other into the vector: those written one by one elsewhere are slow to copy
/// together right after.
fn long_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the key of a field, and its value.
fn varints(out: &mut Vec<u8>, key: u32, value: u64) {
    long_varint(out, key.into());
    long_varint(out, value);
}

/// Puts a varint at `at`; gives where it ends.
#[inline]
pub(super) fn put_varint(bytes: &mut [u8; 16], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        bytes[at & 15] = value as u8 | 0x80;
        at += 1;
        value >>= 7;
    }
    bytes[at & 15] = value as u8;
    at + 1
}

/// Bytes that a varint takes.
pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Fills in the length of what follows the one byte reserved for it at `start`; makes
/// room when one byte is not enough.
#[inline]
pub(super) fn close(out: &mut Vec<u8>, start: usize) {
    let len = out.len() - start - 1;
    if len < 0x80 {
        out[start] = len as u8;
    } else {
        close_long(out, start, len);
    }
}

fn close_long(out: &mut Vec<u8>, start: usize, len: usize) {
    let end = out.len();
    varint(out, len as u64);
    let more = out.len() - end - 1;
    let mut length = [0; 10];
    length[..=more].copy_from_slice(&out[end..]);
    out.copy_within(start + 1..end, start + 1 + more);
    out[start..=start + more].copy_from_slice(&length[..=more]);
    out.truncate(end + more);
}
