//! The buffers that PTI fills: a [`Pool`], and its two callbacks. Every thread that makes
//! calls holds one.
//!
//! **At the bound.** What PTI does without a buffer is nowhere said. So it always gets one,
//! if a scratch buffer.

use std::ptr;
use std::sync::OnceLock;

use super::share;
use super::sys::Pti;
use crate::annotate::guarded;
use crate::device::pool::{Bounds, Counts, Full, Pool};
use crate::device::walk;

/// Some 1,400 kernels in a buffer; and in a scratch buffer at least one record of any kind.
const BOUNDS: Bounds =
    Bounds { bytes: 1 << 18, most: 256, scratch_bytes: 1 << 14, most_scratch: 1024 };

static POOL: OnceLock<(Pool, &'static Pti)> = OnceLock::new();

fn pool() -> Option<&'static Pool> {
    POOL.get().map(|(pool, _)| pool)
}

/// What happened so far.
pub(crate) fn counts() -> Counts {
    pool().map_or_else(Counts::default, Pool::counts)
}

/// Gets ready to serve PTI.
pub(crate) fn prepare(pti: &'static Pti) {
    POOL.get_or_init(|| (Pool::new(BOUNDS), pti));
}

/// A buffer that was filled.
pub(crate) fn take_full() -> Option<Full> {
    pool()?.take_full()
}

/// Gives a buffer back when its records were read.
pub(crate) fn recycle(full: Full) {
    pool().into_iter().for_each(|pool| pool.recycle(full));
}

/// PTI wants a buffer.
pub(crate) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize) {
    let provide = || pool().and_then(|pool| pool.take().or_else(|| pool.take_scratch()));
    let (start, bytes) = guarded(None, provide).unwrap_or((ptr::null_mut(), 0));
    // SAFETY: PTI passes two places to write to.
    unsafe {
        *buffer = start;
        *size = bytes;
    }
}

/// PTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(buffer: *mut u8, size: usize, used: usize) {
    guarded((), || {
        let Some((pool, pti)) = POOL.get() else { return };
        match pool.accept(buffer, size) {
            true => {
                let full = Full { start: buffer, used: used.min(size) };
                // SAFETY: PTI wrote it, and nobody writes to it now.
                unsafe { share::deliver(pti.next_record, &full) };
                // SAFETY: PTI wrote them.
                pool.put(full, size, |full| unsafe { walk::count(pti.next_record, full) });
                if !share::is_read() {
                    // Nobody reads it.
                    pool.take_full().into_iter().for_each(|full| pool.recycle(full));
                }
            }
            false => {
                if !share::pass_on(buffer, size, used) {
                    pool.refuse(buffer);
                }
            }
        }
    });
}
