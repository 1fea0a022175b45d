//! Records of a vendor's, read at offsets.

/// Three numbers in a row: how vendors write grids and blocks.
#[allow(non_camel_case_types, reason = "named as the method that reads it is")]
pub(crate) type u32x3 = [u32; 3];

/// One record: its bytes, as many as it has. What lies beyond them is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a>(&'a [u8]);

impl<'a> Raw<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Raw<'a> {
        Raw(bytes)
    }

    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at + N)?.try_into().ok()
    }

    /// A field of 1, 2, 4 or 8 bytes; 0 if the record ends before it.
    pub(crate) fn u8(self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        self.array(at).map_or(0, u16::from_ne_bytes)
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        self.array(at).map_or(0, u32::from_ne_bytes)
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        self.array(at).map_or(0, u64::from_ne_bytes)
    }

    pub(crate) fn u32x3(self, at: usize) -> u32x3 {
        [self.u32(at), self.u32(at + 4), self.u32(at + 8)]
    }

    /// Bytes of the record.
    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// Whether the record has a field of `len` bytes there.
    pub(crate) fn has(self, at: usize, len: usize) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.0.len())
    }
}

/// A record with these fields: offset, value, and bytes of it.
#[cfg(test)]
pub(crate) fn bytes(len: usize, fields: &[(usize, u64, usize)]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, value, size) in fields {
        bytes[*at..at + size].copy_from_slice(&value.to_ne_bytes()[..*size]);
    }
    bytes
}
