//! Buffers on their way back to the client, through threads of CUPTI's own.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::buffers::{Buffer, client, take_all};
use crate::{observe, settings};

#[derive(Default)]
struct Outbox {
    waiting: VecDeque<Buffer>,
    under_way: usize,
    /// Flushes that wait for the outbox to be empty.
    flushes: usize,
}

static OUTBOX: Mutex<Option<Outbox>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

type Guard = MutexGuard<'static, Option<Outbox>>;

fn lock() -> Guard {
    let mut guard = OUTBOX.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    guard
}

fn outbox(guard: &mut Guard) -> &mut Outbox {
    guard.get_or_insert_default()
}

/// Runs a buffer callback; some calls are not allowed within.
pub(crate) fn in_callback<R>(callback: impl FnOnce() -> R) -> R {
    let before = IN_CALLBACK.replace(true);
    let result = callback();
    IN_CALLBACK.set(before);
    result
}

/// Starts the threads, once.
pub(crate) fn start() {
    static START: Once = Once::new();
    START.call_once(|| {
        let threads = if settings::fault("several-threads") { 4 } else { 1 };
        for i in 0..threads {
            let name = format!("fake-cupti-{i}");
            let thread = std::thread::Builder::new().name(name).spawn(work);
            thread.expect("fake CUPTI: a thread");
        }
    });
}

/// A full buffer.
pub(crate) fn complete(buffer: Buffer) {
    let mut guard = lock();
    outbox(&mut guard).waiting.push_back(buffer);
    CHANGED.notify_all();
}

/// Everything there is, and returns when the client has it.
pub(crate) fn flush(forced: bool) {
    assert!(!IN_CALLBACK.get(), "fake CUPTI: no flush in a buffer callback");
    while settings::fault("flush-hangs") {
        std::thread::sleep(Duration::from_secs(60));
    }
    start();
    observe::finish(forced);
    if settings::fault("hoard") && !forced {
        return;
    }
    let buffers = take_all();
    let mut guard = lock();
    outbox(&mut guard).waiting.extend(buffers);
    outbox(&mut guard).flushes += 1;
    CHANGED.notify_all();
    while !outbox(&mut guard).waiting.is_empty() || outbox(&mut guard).under_way > 0 {
        guard = CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    outbox(&mut guard).flushes -= 1;
}

fn work() {
    let mut guard = lock();
    loop {
        let Some(buffer) = next(outbox(&mut guard)) else {
            let pause = Duration::from_millis(5);
            let waited = CHANGED.wait_timeout(guard, pause).unwrap_or_else(PoisonError::into_inner);
            drop(waited.0);
            observe::finish(false);
            guard = lock();
            continue;
        };
        outbox(&mut guard).under_way += 1;
        drop(guard);
        deliver(&buffer);
        guard = lock();
        outbox(&mut guard).under_way -= 1;
        CHANGED.notify_all();
    }
}

fn next(outbox: &mut Outbox) -> Option<Buffer> {
    let flushing = outbox.flushes > 0;
    if settings::fault("hoard") && !flushing {
        return None;
    }
    if settings::fault("out-of-order") {
        let enough = flushing || outbox.waiting.len() >= 3;
        return if enough { outbox.waiting.pop_back() } else { None };
    }
    outbox.waiting.pop_front()
}

fn deliver(buffer: &Buffer) {
    let Some(client) = client() else {
        return;
    };
    let complete = |start, size, valid| {
        // SAFETY: the client's function, with a buffer that a client gave.
        in_callback(|| unsafe { (client.complete)(ptr::null_mut(), 0, start, size, valid) });
    };
    let cut = settings::fault("truncated") && buffer.valid > 0;
    let valid = if cut { buffer.last + 12 } else { buffer.valid };
    complete(buffer.start, buffer.size, valid);
}
