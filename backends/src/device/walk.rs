//! Walking over the records in a buffer, by the function that the vendor has for that.
//!
//! How long a record is, only the library knows for sure; what we need to know of it, we ask:
//! it is given records that we made up, which works without a device ([`stride`]).

use std::ffi::c_int;
use std::ptr;

use super::pool::Full;
use super::raw::Raw;

/// Stores the first record of a buffer where a null stands, and otherwise the one after that
/// which stands there. Returns 0 if there is one.
pub(crate) type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;

/// Records that are read between two looks at whether the pipeline keeps up.
const BATCH: u32 = 512;
/// Bytes that a record may have.
const MAX_RECORD_BYTES: usize = 1024;

/// The distance of two records of a kind; none if the library does not know it, or says
/// something that cannot be.
pub(crate) fn stride(next: Next, kind: u32) -> Option<usize> {
    // The kind stands wherever the second record may begin.
    let mut buffer = [u64::from(kind); MAX_RECORD_BYTES * 2 / 8];
    let start = buffer.as_mut_ptr().cast::<u8>();
    let mut record = ptr::null_mut();
    for _ in 0..2 {
        // SAFETY: the buffer is aligned, readable and as long as said; the library reads
        // the kind and returns pointers into it.
        if unsafe { next(start, MAX_RECORD_BYTES * 2, &mut record) } != 0 {
            return None;
        }
    }
    let stride = (record as usize).checked_sub(start as usize)?;
    (8..=MAX_RECORD_BYTES).contains(&stride).then_some(stride)
}

/// How many records are in a buffer.
///
/// # Safety
/// The library wrote them, and does not write to it now.
pub(crate) unsafe fn count(next: Next, full: &Full) -> u64 {
    let (mut count, mut record) = (0, ptr::null_mut());
    // SAFETY: the caller's promise.
    while unsafe { next(full.start, full.used, &mut record) } == 0 {
        count += 1;
    }
    count
}

/// Hands each record of a buffer to `each`, with its kind, until that returns false. A record is
/// as long as the way to the next: no size has to be known.
///
/// # Safety
/// As for [`count`].
pub(crate) unsafe fn pieces(next: Next, full: &Full, mut each: impl FnMut(u32, &[u8]) -> bool) {
    let mut record: *mut u8 = ptr::null_mut();
    let mut before: *mut u8 = ptr::null_mut();
    loop {
        // SAFETY: the caller's promise.
        let found = unsafe { next(full.start, full.used, &mut record) } == 0;
        let end = if found { record.addr() } else { full.start.addr() + full.used };
        if !before.is_null() {
            let len = end.saturating_sub(before.addr());
            // SAFETY: `len` bytes of the buffer.
            let bytes = unsafe { std::slice::from_raw_parts(before, len) };
            if !each(Raw::new(bytes).u32(0), bytes) {
                return;
            }
        }
        if !found {
            return;
        }
        before = record;
    }
}

/// Reads all records of a buffer. Returns false if a rest of it could not be read: how many
/// records that are is unknown. `size` gives the bytes of a kind's records, 0 of one that
/// is not read; `end` is what the library returns at the end of a buffer; `pace` waits, now
/// and then, for the pipeline.
///
/// # Safety
/// As for [`count`].
pub(crate) unsafe fn records(
    next: Next,
    end: c_int,
    full: &Full,
    size: impl Fn(u32) -> usize,
    mut read: impl FnMut(Raw<'_>),
    mut pace: impl FnMut(),
) -> bool {
    let mut count = 0_u32;
    let mut record: *mut u8 = ptr::null_mut();
    // Where the next one may begin at the earliest, and whether it is there that it does.
    let (mut least, mut exact) = (0, true);
    loop {
        // SAFETY: the caller's promise.
        let result = unsafe { next(full.start, full.used, &mut record) };
        if result != 0 {
            // Unknown kinds end a buffer (in other words), and so does a record that is not
            // all there.
            return result == end && (!exact || least >= full.used);
        }
        let at = (record as usize).wrapping_sub(full.start as usize);
        // It stands still, or points elsewhere.
        let left = full.used.checked_sub(at).filter(|left| *left >= 8 && at >= least);
        let Some(left) = left else { return false };
        // SAFETY: a record lies within the buffer and begins with its kind.
        let size = size(unsafe { record.cast::<u32>().read_unaligned() });
        if size > left {
            // Its names may be garbage.
            return false;
        }
        // Of a kind that is not read, the end is unknown.
        (least, exact) = (at + size.max(8), size > 0);
        // SAFETY: so many bytes of the buffer, which is not written to now.
        read(Raw::new(unsafe { std::slice::from_raw_parts(record, size.max(8)) }));
        count += 1;
        if count.is_multiple_of(BATCH) {
            pace();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: c_int = 12;
    const STILL: u32 = 98;
    const BEYOND: u32 = 99;

    /// Records of kind N have N words; of kind 7 that is nobody's business.
    unsafe extern "C" fn next(start: *mut u8, used: usize, record: *mut *mut u8) -> c_int {
        // SAFETY: the tests' buffers.
        unsafe {
            let after = match (*record).is_null() {
                true => 0,
                false => match record.read().cast::<u32>().read() {
                    STILL => 0,
                    BEYOND => 1 << 20,
                    kind => (*record).offset_from(start) as usize + 8 * kind as usize,
                },
            };
            if after < 1 << 20 {
                if after + 8 > used {
                    return END;
                }
                let kind = start.add(after).cast::<u32>().read();
                match kind {
                    0 => return 21,
                    STILL | BEYOND => {}
                    _ if after + 8 * kind as usize > used => return END,
                    _ => {}
                }
            }
            *record = start.wrapping_add(after);
        }
        0
    }

    /// The kinds that were read of these words, and whether that was all.
    fn read(mut words: Vec<u64>, used: usize) -> (Vec<u32>, bool) {
        let full = Full { start: words.as_mut_ptr().cast(), used };
        let mut kinds = Vec::new();
        let size = |kind: u32| if kind == 7 { 0 } else { 8 * kind.min(9) as usize };
        let read = |raw: Raw<'_>| kinds.push(raw.u32(0));
        // SAFETY: a buffer as `next` reads it.
        let whole = unsafe { records(next, END, &full, size, read, || {}) };
        (kinds, whole)
    }

    #[test]
    fn records_are_read_to_the_end() {
        assert_eq!(read(vec![2, 0, 3, 0, 0, 1], 48), (vec![2, 3, 1], true));
        assert_eq!(read(vec![0], 0), (vec![], true));
        // One that is not read, in the middle and at the end.
        let seven = [7, 0, 0, 0, 0, 0, 0];
        assert_eq!(read([&seven[..], &[1], &seven].concat(), 120), (vec![7, 1, 7], true));
    }

    #[test]
    fn what_cannot_be_read_is_noticed() {
        assert_eq!(read(vec![2, 0, 3, 0, 0, 1], 32), (vec![2], false), "cut within a record");
        assert_eq!(read(vec![2, 0, 0, 5], 32), (vec![2], false), "an unknown kind");
        assert_eq!(read(vec![9; 12], 80), (vec![9], false), "a rest of a record");
        for kind in [STILL, BEYOND] {
            let mut words = vec![0; 12];
            words[0] = kind.into();
            assert_eq!(read(words, 96), (vec![kind], false));
        }
    }

    #[test]
    fn sizes_and_numbers_are_asked_of_the_library() {
        assert_eq!([1, 9, 0].map(|kind| stride(next, kind)), [Some(8), Some(72), None]);
        assert_eq!(stride(next, STILL), None);
        let mut words = vec![2_u64, 0, 1];
        let full = Full { start: words.as_mut_ptr().cast(), used: 24 };
        // SAFETY: a buffer as `next` reads it.
        assert_eq!(unsafe { count(next, &full) }, 2);
    }
}
