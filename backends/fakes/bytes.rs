//! Records as bytes: fields at the offsets that the vendor's headers give.
// Each fake uses some of it.
#![allow(dead_code)]

use std::ffi::c_char;

/// Bytes of the largest record of any kind.
const MAX_BYTES: usize = 320;

pub(crate) struct Record {
    bytes: [u8; MAX_BYTES],
    size: usize,
}

impl Record {
    /// Of a kind whose records have so many bytes.
    pub(crate) fn sized(kind: u32, size: usize) -> Record {
        let mut record = Record { bytes: [0; MAX_BYTES], size };
        record.u32(0, kind);
        record
    }

    /// As a library wrote it.
    pub(crate) fn copied(kind: u32, bytes: &[u8]) -> Record {
        let mut record = Record::sized(kind, bytes.len());
        record.bytes[..bytes.len()].copy_from_slice(bytes);
        record
    }

    /// Of a kind that no version knows.
    pub(crate) fn unknown(kind: u32, size: usize) -> Record {
        let mut record = Record { bytes: [0xA5; MAX_BYTES], size };
        record.u32(0, kind);
        record
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    /// A field; one that lies beyond a version's record is left out.
    pub(crate) fn put<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        if offset + N <= self.size {
            self.bytes[offset..offset + N].copy_from_slice(&value);
        }
    }

    pub(crate) fn u8(&mut self, offset: usize, value: u8) {
        self.put(offset, [value]);
    }

    pub(crate) fn u16(&mut self, offset: usize, value: u16) {
        self.put(offset, value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, offset: usize, value: u32) {
        self.put(offset, value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, offset: usize, value: i32) {
        self.put(offset, value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, offset: usize, value: u64) {
        self.put(offset, value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, offset: usize, value: *const c_char) {
        self.u64(offset, value.expose_provenance() as u64);
    }
}
