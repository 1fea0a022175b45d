//! Bytes of a packet whose greatest size is known beforehand: no check per byte.

/// Writes into reserved space behind a vector's end. The vector is longer only after
/// [`Cursor::finish`].
pub(super) struct Cursor<'a> {
    out: &'a mut Vec<u8>,
    at: usize,
    /// Up to where the fixed parts may reach.
    end: usize,
}

impl<'a> Cursor<'a> {
    /// # Safety
    /// `out` has `room` bytes of spare capacity, and no more are written but by `nested`.
    #[inline(always)]
    pub(super) unsafe fn new(out: &'a mut Vec<u8>, room: usize) -> Cursor<'a> {
        let at = out.len();
        Cursor { out, at, end: at + room }
    }

    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], used: usize) {
        debug_assert!(self.at + N <= self.end && self.end <= self.out.capacity());
        // SAFETY: by the contract of `new`, N bytes fit.
        unsafe { self.out.as_mut_ptr().add(self.at).cast::<[u8; N]>().write_unaligned(bytes) };
        self.at += used;
    }

    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.put([byte], 1);
    }

    #[inline(always)]
    pub(super) fn pair(&mut self, a: u8, b: u8) {
        self.put([a, b], 2);
    }

    /// The key of a field from 16 on.
    #[inline(always)]
    pub(super) fn key(&mut self, key: [u8; 2]) {
        self.put(key, 2);
    }

    #[inline(always)]
    pub(super) fn copy16(&mut self, bytes: [u8; 16], used: usize) {
        self.put(bytes, used);
    }

    #[inline(always)]
    pub(super) fn fixed64(&mut self, value: u64) {
        self.put(value.to_le_bytes(), 8);
    }

    #[inline(always)]
    pub(super) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Overwrites a byte that was written before.
    #[inline(always)]
    pub(super) fn patch(&mut self, at: usize, byte: u8) {
        debug_assert!(at < self.at);
        // SAFETY: `at` lies before the position.
        unsafe { self.out.as_mut_ptr().add(at).write(byte) };
    }

    /// Lets `fill` append to the vector itself, and makes sure that the fixed parts still
    /// fit behind that.
    #[cold]
    pub(super) fn nested(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let room = self.end - self.at;
        // SAFETY: everything before `at` was written.
        unsafe { self.out.set_len(self.at) };
        fill(self.out);
        self.out.reserve(room);
        self.at = self.out.len();
        self.end = self.at + room;
    }

    #[inline(always)]
    pub(super) fn finish(self) {
        debug_assert!(self.at <= self.out.capacity());
        // SAFETY: everything before `at` was written.
        unsafe { self.out.set_len(self.at) };
    }
}
