//! The client's buffers: one of each thread, and one for the devices; and the thread that
//! gives them back.

use std::collections::{HashMap, VecDeque};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::bytes::Record;
use crate::{observe, settings, view};

/// `pti_fptr_buffer_requested`.
pub(crate) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize);
/// `pti_fptr_buffer_completed`.
pub(crate) type Complete = unsafe extern "C" fn(*mut u8, usize, usize);

/// The size of records of kinds that nobody knows.
pub(crate) const UNKNOWN_SIZE: usize = 72;
/// What a buffer must have room for: `SizeOfLargestViewRecord`.
const LEAST: usize = 192;
/// Whose buffer is the devices'.
pub(crate) const DEVICES: u32 = 0;

struct Buffer {
    start: *mut u8,
    size: usize,
    used: usize,
    /// Where its last record begins.
    last: usize,
}

// SAFETY: the client gave it away; it is written by whoever has it out of the table.
unsafe impl Send for Buffer {}

#[derive(Default)]
struct State {
    client: Option<(Request, Complete)>,
    open: HashMap<u32, Buffer>,
    outbox: VecDeque<Buffer>,
    under_way: usize,
    flushes: usize,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

type Guard = MutexGuard<'static, Option<State>>;

fn lock() -> Guard {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    guard
}

fn state(guard: &mut Guard) -> &mut State {
    guard.get_or_insert_default()
}

/// Asks for the first buffer at once, as the real one does, and refuses one that is too small.
/// What another client's buffers hold goes to the new one: this thread's at once, and those of
/// others when they are full (view_handler.h, `RegisterBufferCallbacks`).
pub(crate) fn set_client(request: Request, complete: Complete) -> bool {
    let buffer = ask(request);
    if buffer.size < LEAST {
        deliver(&buffer, complete);
        return false;
    }
    state(&mut lock()).client = Some((request, complete));
    static START: Once = Once::new();
    START.call_once(|| {
        std::thread::Builder::new().name("fake-pti".into()).spawn(deliver_all).expect("a thread");
    });
    let before = state(&mut lock()).open.insert(DEVICES, buffer);
    before.into_iter().for_each(|buffer| deliver(&buffer, complete));
    true
}

pub(crate) fn has_client() -> bool {
    state(&mut lock()).client.is_some()
}

fn ask(request: Request) -> Buffer {
    let (mut start, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the client's function, with places for its answer. No lock is held.
    unsafe { request(&mut start, &mut size) };
    Buffer { start, size, used: 0, last: 0 }
}

pub(crate) fn write(owner: u32, record: &Record) {
    put(owner, record.bytes());
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    for (fault, kind) in [("unknown-kind", 200), ("invalid-kind", 201)] {
        if settings::befalls(fault, count) {
            put(owner, Record::unknown(kind, UNKNOWN_SIZE).bytes());
        }
    }
}

fn put(owner: u32, bytes: &[u8]) {
    loop {
        let mut guard = lock();
        let now = state(&mut guard);
        let Some((request, _)) = now.client else { return };
        match now.open.get_mut(&owner) {
            Some(buffer) if buffer.size - buffer.used >= bytes.len() => {
                // SAFETY: the client's memory, this long, and written under the lock.
                unsafe {
                    let to = buffer.start.add(buffer.used);
                    to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                buffer.last = buffer.used;
                buffer.used += bytes.len();
                return;
            }
            Some(_) => {
                let full = now.open.remove(&owner);
                now.outbox.extend(full);
                CHANGED.notify_all();
            }
            None => {
                drop(guard);
                let buffer = ask(request);
                assert!(buffer.size >= LEAST, "fake PTI: it needs buffers");
                let other = state(&mut lock()).open.insert(owner, buffer);
                state(&mut lock()).outbox.extend(other);
            }
        }
    }
}

/// Gives everything back, and returns when the client has it.
pub(crate) fn flush() {
    while settings::fault("flush-hangs") {
        std::thread::sleep(Duration::from_secs(60));
    }
    observe::finish();
    if settings::fault("hoard") && view::is_any_enabled() {
        return;
    }
    let written = settings::fault("race").then(race).unwrap_or_default();
    let mut guard = lock();
    let now = state(&mut guard);
    let mut open = std::mem::take(&mut now.open);
    for (owner, used) in written {
        open.entry(owner).and_modify(|buffer| buffer.used = used.min(buffer.used));
    }
    let (used, empty): (HashMap<_, _>, HashMap<_, _>) =
        open.into_iter().partition(|(_, buffer)| buffer.used > 0);
    now.open = empty;
    now.outbox.extend(used.into_values());
    now.flushes += 1;
    CHANGED.notify_all();
    while !state(&mut guard).outbox.is_empty() || state(&mut guard).under_way > 0 {
        guard = CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    state(&mut guard).flushes -= 1;
}

/// How far buffers were written when a flush looked at them; it takes them a moment later, and
/// no lock in between (view_handler.h, `FlushBuffers`).
fn race() -> HashMap<u32, usize> {
    let mut guard = lock();
    let open = state(&mut guard).open.iter();
    let written = open.map(|(owner, buffer)| (*owner, buffer.used)).collect();
    drop(guard);
    std::thread::sleep(Duration::from_micros(300));
    written
}

fn deliver_all() {
    let mut guard = lock();
    loop {
        let now = state(&mut guard);
        let wait = settings::fault("hoard") || settings::fault("out-of-order");
        let next = match now.flushes {
            0 if wait => None,
            _ if settings::fault("out-of-order") => now.outbox.pop_back(),
            _ => now.outbox.pop_front(),
        };
        let (Some(buffer), Some((_, complete))) = (next, now.client) else {
            let pause = Duration::from_millis(5);
            let waited = CHANGED.wait_timeout(guard, pause).unwrap_or_else(PoisonError::into_inner);
            drop(waited.0);
            observe::finish();
            guard = lock();
            continue;
        };
        now.under_way += 1;
        drop(guard);
        deliver(&buffer, complete);
        guard = lock();
        state(&mut guard).under_way -= 1;
        CHANGED.notify_all();
    }
}

fn deliver(buffer: &Buffer, complete: Complete) {
    let cut = settings::fault("truncated") && buffer.used > 0;
    let used = if cut { buffer.last + 12 } else { buffer.used };
    // SAFETY: the client's function, with a buffer that it gave.
    unsafe { complete(buffer.start, buffer.size, used) };
}
