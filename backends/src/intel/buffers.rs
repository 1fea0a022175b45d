//! The buffers that PTI fills, and its two callbacks. Every thread that makes
//! calls holds one.
//!
//! **At the bound.** What PTI does without a buffer is nowhere said. So it always gets one,
//! if a scratch buffer.

use std::ptr;

use super::share;
use crate::annotate::guarded;
use crate::device::buffers::Buffers;
use crate::device::pool::{Bounds, Full};

/// Some 1,400 kernels in a buffer; and in a scratch buffer at least one record of any kind.
const BOUNDS: Bounds =
    Bounds { bytes: 1 << 18, most: 256, scratch_bytes: 1 << 14, most_scratch: 1024 };

/// See the module.
pub(crate) static BUFFERS: Buffers = Buffers::new(BOUNDS);

/// PTI wants a buffer.
pub(crate) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize) {
    let (start, bytes) = guarded(None, || BUFFERS.provide(false)).unwrap_or((ptr::null_mut(), 0));
    // SAFETY: PTI passes two places to write to.
    unsafe {
        *buffer = start;
        *size = bytes;
    }
}

/// PTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(buffer: *mut u8, size: usize, used: usize) {
    guarded((), || {
        // SAFETY: PTI wrote the buffer, and does not write to it now.
        let deliver = |next, full: &Full| unsafe { share::deliver(next, full) };
        // SAFETY: as above.
        unsafe {
            let theirs = || share::pass_on(buffer, size, used);
            BUFFERS.complete((buffer, size, used), deliver, theirs);
        }
        if !share::is_read() {
            BUFFERS.discard();
        }
    });
}
