//! The buffers that CUPTI fills, and its two callbacks.
//!
//! **At the bound.** From CUDA 12.9 Update 1 on, CUPTI may be refused a buffer and counts
//! what it then drops. Older versions crash if they are refused one: they get a scratch
//! buffer.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering;

use super::copies;
use super::other;
use super::state::STATE;
use crate::annotate::guarded;
use crate::device::buffers::Buffers;
use crate::device::pool::{Bounds, Full};
use crate::device::walk::Next;

/// Some 5,000 kernels in a buffer. CUPTI recommends 1 to 10 MB.
const BOUNDS: Bounds =
    Bounds { bytes: 1 << 20, most: 48, scratch_bytes: 1 << 16, most_scratch: 1024 };
/// From this version on a request may be refused.
const MAY_REFUSE: u32 = 28;

/// See the module.
pub(crate) static BUFFERS: Buffers = Buffers::new(BOUNDS);

/// Gets ready to serve this version of CUPTI.
pub(crate) fn prepare(next: Next, version: u32) {
    STATE.setup.may_refuse.store(version >= MAY_REFUSE, Ordering::Relaxed);
    // The first requests come inside the program's first launches.
    BUFFERS.prepare(next, 4);
}

/// CUPTI wants a buffer.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    let (start, bytes) = guarded(None, provide).unwrap_or((ptr::null_mut(), 0));
    // SAFETY: CUPTI passes three places to write to. 0 records: as many as fit.
    unsafe {
        *buffer = start;
        *size = bytes;
        *records = 0;
    }
}

fn provide() -> Option<(*mut u8, usize)> {
    let may_refuse = STATE.setup.may_refuse.load(Ordering::Relaxed);
    other::request().or_else(|| BUFFERS.provide(may_refuse))
}

/// CUPTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) {
    guarded((), || {
        // SAFETY: CUPTI is done with the buffer, and it is in no queue.
        let deliver = |next, full: &Full| unsafe { copies::deliver(context, stream, next, full) };
        // The other user of CUPTI may have asked for it before us.
        let theirs = || other::complete(context, stream, buffer, size, valid);
        // SAFETY: as above.
        unsafe { BUFFERS.complete((buffer, size, valid), deliver, theirs) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: the pool is the process's.
    #[test]
    fn buffers_go_round_and_end_at_the_bound() {
        /// There are no records.
        unsafe extern "C" fn next(_: *mut u8, _: usize, _: *mut *mut u8) -> std::ffi::c_int {
            12
        }
        prepare(next, 26);
        let request = || {
            let (mut start, mut size, mut records) = (ptr::null_mut(), 0, 7);
            // SAFETY: three places to write to.
            unsafe { requested(&mut start, &mut size, &mut records) };
            assert_eq!(records, 0);
            (start, size)
        };
        let all: Vec<_> = (0..BOUNDS.most).map(|_| request()).collect();
        assert!(all.iter().all(|(start, size)| *size == BOUNDS.bytes && start.addr() % 8 == 0));
        // Versions that must not be refused get a little, the others nothing.
        let (scratch, size) = request();
        assert!(!scratch.is_null() && size == BOUNDS.scratch_bytes);
        prepare(next, 28);
        assert_eq!(request(), (ptr::null_mut(), 0));
        let give = |start, size, valid| {
            // SAFETY: a buffer that was handed out, or one that must not be touched.
            unsafe { completed(ptr::null_mut(), 0, start, size, valid) };
        };
        let mut theirs = [1_u8; 64];
        give(theirs.as_mut_ptr(), BOUNDS.bytes, 64);
        assert_eq!(BUFFERS.counts().foreign, 1);
        assert!(BUFFERS.take_full().is_none());
        give(all[0].0, BOUNDS.bytes, 40);
        let full = BUFFERS.take_full().unwrap();
        assert_eq!((full.start, full.used), (all[0].0, 40));
        BUFFERS.recycle(full);
        let (again, size) = request();
        assert_eq!((again, size), (all[0].0, BOUNDS.bytes));
        give(scratch, BOUNDS.scratch_bytes, 16);
        assert!(BUFFERS.take_full().is_none());
        prepare(next, 26);
        assert_eq!(request(), (scratch, BOUNDS.scratch_bytes));
    }
}
