//! The buffers that CUPTI fills.
//!
//! ```text
//!  free ──request──► CUPTI ──complete──► full ──► decoder ──► free
//!   ▲ made on demand, up to a bound
//! ```
//! Both callbacks run on threads of the program or of CUPTI, at any time: they move a
//! pointer from or to a queue and do nothing else. Buffers are never freed, since CUPTI
//! may keep one for as long as it likes, also after a recording.
//!
//! **At the bound.** From CUDA 12.9 Update 1 on, CUPTI may be refused a buffer and counts
//! what it then drops. Older versions crash if they are refused one: they get a scratch
//! buffer, small, whose records are counted and thrown away as soon as it comes back.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

use super::copies;
use super::share;
use crate::annotate::guarded;

/// Bytes of a buffer: some 5,000 kernels. CUPTI recommends 1 to 10 MB.
pub(crate) const BYTES: usize = 1 << 20;
/// Buffers at most.
const MOST: usize = 48;
/// Bytes of a scratch buffer.
const SCRATCH_BYTES: usize = 1 << 16;
/// Scratch buffers at most, which CUPTI would have to hold all at once.
const MOST_SCRATCH: usize = 1024;
/// Buffers are aligned to pages (CUPTI asks for 8).
const ALIGN: usize = 4096;
/// From this version on a request may be refused.
const MAY_REFUSE: u32 = 28;

/// A buffer that CUPTI gave back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    pub(crate) start: *mut u8,
    /// Bytes of records in it.
    pub(crate) valid: usize,
}

// SAFETY: whoever holds it is the only one who knows the buffer: it left CUPTI, and comes
// back only through `free`.
unsafe impl Send for Full {}

struct Pool {
    free: ArrayQueue<Free>,
    scratch: ArrayQueue<Free>,
    full: ArrayQueue<Full>,
}

struct Free(*mut u8);
// SAFETY: as for `Full`.
unsafe impl Send for Free {}

static POOL: OnceLock<Pool> = OnceLock::new();
/// All buffers that were made: what CUPTI gives back may be somebody else's.
static KNOWN: [AtomicPtr<u8>; MOST + MOST_SCRATCH] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST + MOST_SCRATCH];
static MADE: AtomicUsize = AtomicUsize::new(0);
static MADE_SCRATCH: AtomicUsize = AtomicUsize::new(0);
static VERSION: AtomicU32 = AtomicU32::new(0);

static REQUESTED: AtomicU64 = AtomicU64::new(0);
static COMPLETED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static FOREIGN: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requested: u64,
    pub(crate) completed: u64,
    /// Requests that were refused, or served with a scratch buffer.
    pub(crate) refused: u64,
    /// Buffers given back that are not ours.
    pub(crate) foreign: u64,
    /// Records in scratch buffers.
    pub(crate) discarded: u64,
}

pub(crate) fn counts() -> Counts {
    Counts {
        requested: REQUESTED.load(Ordering::Relaxed),
        completed: COMPLETED.load(Ordering::Relaxed),
        refused: REFUSED.load(Ordering::Relaxed),
        foreign: FOREIGN.load(Ordering::Relaxed),
        discarded: DISCARDED.load(Ordering::Relaxed),
    }
}

/// Gets ready to serve this version of CUPTI.
pub(crate) fn prepare(version: u32) {
    VERSION.store(version, Ordering::Relaxed);
    let pool = POOL.get_or_init(|| Pool {
        free: ArrayQueue::new(MOST),
        scratch: ArrayQueue::new(MOST_SCRATCH),
        full: ArrayQueue::new(MOST),
    });
    // The first requests come inside the program's first launches.
    while MADE.load(Ordering::Relaxed) < 4 {
        let Some(buffer) = make(&MADE, MOST, BYTES) else { break };
        let _ = pool.free.push(Free(buffer));
    }
}

/// Makes a buffer, unless there are as many as there may be.
#[cold]
fn make(count: &AtomicUsize, most: usize, bytes: usize) -> Option<*mut u8> {
    let number = count.fetch_add(1, Ordering::Relaxed);
    if number >= most {
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
    for known in &KNOWN {
        if known
            .compare_exchange(ptr::null_mut(), buffer, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            break;
        }
    }
    Some(buffer)
}

/// A buffer that was filled.
pub(crate) fn take_full() -> Option<Full> {
    POOL.get()?.full.pop()
}

/// Gives a buffer back when its records were read.
pub(crate) fn recycle(full: Full) {
    let Some(pool) = POOL.get() else { return };
    // There is room: each buffer is in one queue at most.
    let _ = pool.free.push(Free(full.start));
}

/// CUPTI wants a buffer.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    let (start, bytes) = guarded((ptr::null_mut(), 0), provide);
    // SAFETY: CUPTI passes three places to write to. 0 records: as many as fit.
    unsafe {
        *buffer = start;
        *size = bytes;
        *records = 0;
    }
}

fn provide() -> (*mut u8, usize) {
    if let Some(theirs) = share::request() {
        return theirs;
    }
    REQUESTED.fetch_add(1, Ordering::Relaxed);
    let Some(pool) = POOL.get() else { return (ptr::null_mut(), 0) };
    if let Some(Free(buffer)) = pool.free.pop() {
        return (buffer, BYTES);
    }
    if let Some(buffer) = make(&MADE, MOST, BYTES) {
        return (buffer, BYTES);
    }
    REFUSED.fetch_add(1, Ordering::Relaxed);
    if VERSION.load(Ordering::Relaxed) >= MAY_REFUSE {
        return (ptr::null_mut(), 0);
    }
    let scratch = pool.scratch.pop().map(|Free(buffer)| buffer);
    match scratch.or_else(|| make(&MADE_SCRATCH, MOST_SCRATCH, SCRATCH_BYTES)) {
        Some(buffer) => (buffer, SCRATCH_BYTES),
        None => (ptr::null_mut(), 0),
    }
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
        COMPLETED.fetch_add(1, Ordering::Relaxed);
        let ours = KNOWN
            .iter()
            .map(|known| known.load(Ordering::Acquire))
            .take_while(|known| !known.is_null())
            .any(|known| known == buffer);
        if !ours || (size != BYTES && size != SCRATCH_BYTES) {
            // Of somebody who registered callbacks before us. It is not ours to free.
            if !buffer.is_null() && share::complete(context, stream, buffer, size, valid) {
                return;
            }
            FOREIGN.fetch_add(u64::from(!buffer.is_null()), Ordering::Relaxed);
            return;
        }
        // SAFETY: CUPTI is done with the buffer, and it is in no queue.
        unsafe { copies::deliver(context, stream, buffer, valid.min(size)) };
        let Some(pool) = POOL.get() else { return };
        if size == SCRATCH_BYTES {
            DISCARDED.fetch_add(share::count(buffer, valid.min(size)), Ordering::Relaxed);
            let _ = pool.scratch.push(Free(buffer));
        } else {
            let _ = pool.full.push(Full { start: buffer, valid: valid.min(size) });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test: the pool is the process's.
    #[test]
    fn buffers_go_round_and_end_at_the_bound() {
        prepare(26);
        let request = || {
            let (mut start, mut size, mut records) = (ptr::null_mut(), 0, 7);
            // SAFETY: three places to write to.
            unsafe { requested(&mut start, &mut size, &mut records) };
            assert_eq!(records, 0);
            (start, size)
        };
        let all: Vec<_> = (0..MOST).map(|_| request()).collect();
        assert!(all.iter().all(|(start, size)| *size == BYTES && start.addr() % 8 == 0));
        // Versions that must not be refused get a little, the others nothing.
        let (scratch, size) = request();
        assert!(!scratch.is_null() && size == SCRATCH_BYTES);
        prepare(28);
        assert_eq!(request(), (ptr::null_mut(), 0));
        let give = |start, size, valid| {
            // SAFETY: a buffer that was handed out, or one that must not be touched.
            unsafe { completed(ptr::null_mut(), 0, start, size, valid) };
        };
        let mut theirs = [1_u8; 64];
        give(theirs.as_mut_ptr(), BYTES, 64);
        assert_eq!(counts().foreign, 1);
        assert!(take_full().is_none());
        give(all[0].0, BYTES, 40);
        let full = take_full().unwrap();
        assert_eq!((full.start, full.valid), (all[0].0, 40));
        recycle(full);
        let (again, size) = request();
        assert_eq!((again, size), (all[0].0, BYTES));
        give(scratch, SCRATCH_BYTES, 16);
        assert!(take_full().is_none());
        prepare(26);
        assert_eq!(request(), (scratch, SCRATCH_BYTES));
    }
}
