//! Bounded reading: the bytes of a payload, and how many of them a member takes.

use super::super::super::memory;
use super::super::super::text::{utf8_from_16, utf8_from_32};
use super::super::sys::{self, PayloadData};
use super::fields::{Primitive, Read, unsigned};
use super::schema::{Field, Type};

/// The bytes of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Blob {
    data: *const u8,
    size: usize,
}

impl Blob {
    /// The bytes of a payload as the program describes it.
    pub(crate) fn new(payload: &PayloadData) -> Blob {
        let size = if payload.data.is_null() { 0 } else { payload.size };
        Blob { data: payload.data, size }
    }

    /// `size` bytes at `offset`, if there are so many.
    pub(crate) fn bytes(&self, offset: usize, size: usize) -> Option<&[u8]> {
        let end = offset.checked_add(size)?;
        if end > self.size || end > isize::MAX as usize {
            return None;
        }
        // SAFETY: within the payload, which the program keeps for the duration of the call.
        Some(unsafe { std::slice::from_raw_parts(self.data.add(offset), size) })
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A number of up to eight bytes.
    pub(crate) fn unsigned(&self, offset: usize, size: usize) -> Option<u64> {
        self.bytes(offset, size).map(unsigned)
    }

    /// The offset of an address in it.
    pub(crate) fn offset_of(&self, address: u64) -> Option<usize> {
        let offset = (address as usize).checked_sub(self.data.addr())?;
        (offset < self.size).then_some(offset)
    }
}

/// A member that may be another's length, as a number.
pub(crate) fn integer(field: &Field, blob: Blob, at: usize) -> Option<u64> {
    match field.ty {
        Type::Primitive(p @ Primitive { read: Read::Signed | Read::Unsigned, size }) => {
            if field.flags & sys::FLAG_ARRAY != 0 {
                return None;
            }
            let (_, bits) = p.number(blob.bytes(at, size)?)?;
            // A negative length is none.
            Some(if p.read == Read::Signed {
                bits.cast_signed().max(0).cast_unsigned()
            } else {
                bits
            })
        }
        _ => None,
    }
}

/// The number of elements that the schema gives or refers to.
pub(crate) fn length_said(field: &Field, lengths: &[Option<u64>]) -> Option<u64> {
    match field.flags & sys::FLAG_ARRAY {
        0 | sys::ARRAY_FIXED => Some(field.detail),
        sys::ARRAY_LENGTH_INDEX => *lengths.get(usize::try_from(field.detail).ok()?)?,
        _ => None,
    }
}

/// Whether a zero ends an array or a text. (Texts: also if nothing else is said.)
pub(crate) fn is_zero_terminated(field: &Field) -> bool {
    match field.flags & sys::FLAG_ARRAY {
        sys::ARRAY_ZERO_TERMINATED => true,
        0 => field.detail == 0,
        _ => false,
    }
}

/// The number of elements of an array, or of code units of a text; none if the payload is
/// too short for it.
pub(crate) fn length(
    field: &Field,
    stride: usize,
    blob: Blob,
    at: usize,
    lengths: &[Option<u64>],
) -> Option<usize> {
    if is_zero_terminated(field) {
        let stride = stride.max(1);
        let elements =
            (0..).map_while(|i: usize| blob.bytes(at.checked_add(i.checked_mul(stride)?)?, stride));
        return Some(elements.take(1 << 16).take_while(|e| e.iter().any(|&b| b != 0)).count());
    }
    let count = usize::try_from(length_said(field, lengths)?).ok()?;
    blob.bytes(at, count.checked_mul(stride)?)?;
    Some(count)
}

/// A text of code units of this size, up to its first zero.
pub(crate) fn decode(unit: usize, bytes: &[u8]) -> Vec<u8> {
    match unit {
        2 => utf8_from_16(
            bytes.chunks_exact(2).map(|u| unsigned(u) as u16).take_while(|&unit| unit != 0),
        ),
        4 => utf8_from_32(
            bytes.chunks_exact(4).map(|u| unsigned(u) as u32).take_while(|&unit| unit != 0),
        ),
        _ => {
            let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
            memory::concat(&[&bytes[..end]]).unwrap_or_default()
        }
    }
}
