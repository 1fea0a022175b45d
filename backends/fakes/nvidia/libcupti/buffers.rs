//! The client's buffers, while records are written into them.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::bytes::Record;
use crate::{attributes, callbacks, delivery, settings};

/// `CUpti_BuffersCallbackRequestFunc`.
pub(crate) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub(crate) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) request: Request,
    pub(crate) complete: Complete,
}

/// A buffer and what is in it.
pub(crate) struct Buffer {
    pub(crate) start: *mut u8,
    pub(crate) size: usize,
    pub(crate) valid: usize,
    /// Where its last record begins.
    pub(crate) last: usize,
}

// SAFETY: the client gave it away; it is written by whoever has it out of the table.
unsafe impl Send for Buffer {}

/// Whose records a buffer is for: a thread's, or this, which also is the devices'.
const SHARED: u32 = 0;

static CLIENT: Mutex<Option<Client>> = Mutex::new(None);
static OPEN: Mutex<Option<HashMap<u32, Buffer>>> = Mutex::new(None);
static DROPPED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn forget() {
    *CLIENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(crate) fn register(client: Client) {
    *CLIENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
}

pub(crate) fn client() -> Option<Client> {
    *CLIENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open<R>(f: impl FnOnce(&mut HashMap<u32, Buffer>) -> R) -> R {
    f(OPEN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

pub(crate) fn drop_one() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// Reading it resets it.
pub(crate) fn take_dropped() -> u64 {
    DROPPED.swap(0, Ordering::Relaxed)
}

/// Writes a record of the calling thread.
pub(crate) fn write_of_thread(thread: u32, record: &Record) {
    write(if attributes::per_thread() { thread } else { SHARED }, record);
}

/// Writes a record of a device.
pub(crate) fn write_of_device(record: &Record) {
    write(SHARED, record);
}

/// Everything that is not empty, to be completed.
pub(crate) fn take_all() -> Vec<Buffer> {
    open(|open| {
        let taken = std::mem::take(open);
        let (full, empty) = taken.into_iter().partition(|(_, buffer)| buffer.valid > 0);
        *open = empty;
        HashMap::into_values(full).collect()
    })
}

fn write(owner: u32, record: &Record) {
    put(owner, record.bytes());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    for (fault, kind) in [("unknown-kind", 200), ("invalid-kind", 201)] {
        if settings::befalls(fault, count) {
            put(owner, Record::unknown(kind, UNKNOWN_SIZE).bytes());
        }
    }
}

/// The size of records of kinds that nobody knows.
pub(crate) const UNKNOWN_SIZE: usize = 72;

/// Callbacks run with no lock held: they may call CUPTI.
fn put(owner: u32, bytes: &[u8]) {
    loop {
        let full = open(|open| {
            let buffer = open.get_mut(&owner)?;
            if buffer.size - buffer.valid < bytes.len() {
                return Some(open.remove(&owner));
            }
            // SAFETY: the client's memory, this long, and written under the lock.
            unsafe {
                let to = buffer.start.add(buffer.valid);
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
            buffer.last = buffer.valid;
            buffer.valid += bytes.len();
            Some(None)
        });
        match full {
            Some(None) => return,
            Some(Some(buffer)) => delivery::complete(buffer),
            None => match request() {
                Some(buffer) if settings::fault("empty-buffers") && skip() => {
                    delivery::complete(buffer);
                }
                Some(buffer) if buffer.size >= bytes.len() => {
                    let other = open(|open| open.insert(owner, buffer));
                    if let Some(other) = other {
                        delivery::complete(other);
                    }
                }
                _ => return drop_one(),
            },
        }
    }
}

/// Every other time.
fn skip() -> bool {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
}

fn request() -> Option<Buffer> {
    let client = client()?;
    let (mut start, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the client's function, with three places for its answer.
    delivery::in_callback(|| unsafe { (client.request)(&mut start, &mut size, &mut most) });
    if start.is_null() || size == 0 {
        refused();
        return None;
    }
    assert!(start.addr().is_multiple_of(8), "fake CUPTI: buffers must be aligned to 8 bytes");
    if attributes::zeroed() {
        // SAFETY: the client says that so much of it is there.
        let bytes = unsafe { std::slice::from_raw_parts(start, size) };
        if bytes.iter().any(|b| *b != 0) {
            // The real one would leave what it finds in all fields that it has no value for.
            eprintln!("fake CUPTI: it was told that buffers come zeroed, and this one is not");
        }
    }
    Some(Buffer { start, size, valid: 0, last: 0 })
}

/// 12.9 was the first to survive that.
fn refused() {
    if settings::toolkit() < 1209 {
        eprintln!("fake CUPTI: before 12.9 it crashes when it gets no buffer");
        std::process::abort();
    }
    callbacks::state(8, c"No buffer was provided by the client; records are dropped");
}
