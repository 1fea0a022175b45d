//! The buffers that PTI fills: every thread that makes calls holds one.
//!
//! ```text
//!  free ──request──► PTI ──complete──► full ──► decoder ──► free
//!   ▲ made on demand, up to a bound
//! ```
//! Both callbacks run on threads of the program or of PTI, at any time: they move a pointer
//! from or to a queue and do nothing else. Buffers are never freed, since PTI may keep one
//! for as long as it likes, also after a recording.
//!
//! **At the bound.** What PTI does without a buffer is nowhere said. So it always gets one:
//! at the bound a scratch buffer, small, whose records are counted and thrown away as soon
//! as it comes back.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

use super::sys::SUCCESS;
use crate::annotate::guarded;
use crate::xpu::sys::Pti;

/// Bytes of a buffer: some 1,400 kernels.
pub(crate) const BYTES: usize = 1 << 18;
/// Buffers at most.
const MOST: usize = 256;
/// Bytes of a scratch buffer. Must hold one record of any kind.
const SCRATCH_BYTES: usize = 1 << 14;
/// Scratch buffers at most, which PTI would have to hold all at once.
const MOST_SCRATCH: usize = 1024;
/// Buffers are aligned to pages.
const ALIGN: usize = 4096;

/// A buffer that PTI gave back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    pub(crate) start: *mut u8,
    /// Bytes of records in it.
    pub(crate) used: usize,
}

// SAFETY: whoever holds it is the only one who knows the buffer: it left PTI, and comes
// back only through `free`.
unsafe impl Send for Full {}

struct Free(*mut u8);
// SAFETY: as for `Full`.
unsafe impl Send for Free {}

struct Pool {
    free: ArrayQueue<Free>,
    scratch: ArrayQueue<Free>,
    full: ArrayQueue<Full>,
    pti: &'static Pti,
}

static POOL: OnceLock<Pool> = OnceLock::new();
/// All buffers that were made: what PTI gives back may be somebody else's.
static KNOWN: [AtomicPtr<u8>; MOST + MOST_SCRATCH] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST + MOST_SCRATCH];
static MADE: AtomicUsize = AtomicUsize::new(0);
static MADE_SCRATCH: AtomicUsize = AtomicUsize::new(0);

static COMPLETED: AtomicU64 = AtomicU64::new(0);
static FOREIGN: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) completed: u64,
    /// Buffers given back that are not ours.
    pub(crate) foreign: u64,
    /// Records in scratch buffers.
    pub(crate) discarded: u64,
}

pub(crate) fn counts() -> Counts {
    Counts {
        completed: COMPLETED.load(Ordering::Relaxed),
        foreign: FOREIGN.load(Ordering::Relaxed),
        discarded: DISCARDED.load(Ordering::Relaxed),
    }
}

/// Gets ready to serve PTI.
pub(crate) fn prepare(pti: &'static Pti) {
    POOL.get_or_init(|| Pool {
        free: ArrayQueue::new(MOST),
        scratch: ArrayQueue::new(MOST_SCRATCH),
        full: ArrayQueue::new(MOST),
        pti,
    });
}

/// Makes a buffer, unless there are as many as there may be.
#[cold]
fn make(count: &AtomicUsize, most: usize, bytes: usize) -> Option<*mut u8> {
    if count.fetch_add(1, Ordering::Relaxed) >= most {
        count.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
    // SAFETY: the layout's size is not 0.
    let buffer = unsafe { alloc_zeroed(layout) };
    if buffer.is_null() {
        count.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let free = (ptr::null_mut(), buffer, Ordering::AcqRel, Ordering::Relaxed);
    let _ =
        KNOWN.iter().any(|known| known.compare_exchange(free.0, free.1, free.2, free.3).is_ok());
    Some(buffer)
}

/// A buffer that was filled.
pub(crate) fn take_full() -> Option<Full> {
    POOL.get()?.full.pop()
}

/// Gives a buffer back when its records were read.
pub(crate) fn recycle(full: Full) {
    if let Some(pool) = POOL.get() {
        // There is room: each buffer is in one queue at most.
        let _ = pool.free.push(Free(full.start));
    }
}

/// PTI wants a buffer.
pub(crate) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize) {
    let (start, bytes) = guarded((ptr::null_mut(), 0), provide);
    // SAFETY: PTI passes two places to write to.
    unsafe {
        *buffer = start;
        *size = bytes;
    }
}

fn provide() -> (*mut u8, usize) {
    let Some(pool) = POOL.get() else { return (ptr::null_mut(), 0) };
    let free = pool.free.pop().map(|Free(buffer)| buffer);
    if let Some(buffer) = free.or_else(|| make(&MADE, MOST, BYTES)) {
        return (buffer, BYTES);
    }
    let scratch = pool.scratch.pop().map(|Free(buffer)| buffer);
    match scratch.or_else(|| make(&MADE_SCRATCH, MOST_SCRATCH, SCRATCH_BYTES)) {
        Some(buffer) => (buffer, SCRATCH_BYTES),
        None => (ptr::null_mut(), 0),
    }
}

/// PTI gives a buffer back.
pub(crate) unsafe extern "C" fn completed(buffer: *mut u8, size: usize, used: usize) {
    guarded((), || {
        let Some(pool) = POOL.get() else { return };
        let ours = KNOWN
            .iter()
            .map(|known| known.load(Ordering::Acquire))
            .take_while(|known| !known.is_null())
            .any(|known| known == buffer);
        if !ours || (size != BYTES && size != SCRATCH_BYTES) {
            // Of somebody who set callbacks before us. It is not ours to free.
            FOREIGN.fetch_add(u64::from(!buffer.is_null()), Ordering::Relaxed);
            return;
        }
        COMPLETED.fetch_add(1, Ordering::Relaxed);
        let used = used.min(size);
        if size == SCRATCH_BYTES {
            DISCARDED.fetch_add(count(pool.pti, buffer, used), Ordering::Relaxed);
            let _ = pool.scratch.push(Free(buffer));
        } else {
            let _ = pool.full.push(Full { start: buffer, used });
        }
    });
}

/// How many records are in a buffer.
fn count(pti: &Pti, buffer: *mut u8, used: usize) -> u64 {
    let (mut records, mut record) = (0, ptr::null_mut());
    // SAFETY: PTI steps over the records that it wrote there.
    while unsafe { (pti.next_record)(buffer, used, &mut record) } == SUCCESS {
        records += 1;
    }
    records
}
