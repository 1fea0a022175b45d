//! Buffers: records wait in them, and are handed over on a thread of the library's own.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::record::Record;
use crate::registration::{is_finalized, is_open};
use crate::seam::realtime;
use crate::settings;
use crate::status::{BUFFER_NOT_FOUND, SUCCESS, call, finalized, locked};

#[repr(C)]
struct Header {
    category: u32,
    kind: u32,
    payload: *const u8,
}

type Done = unsafe extern "C" fn(u64, u64, *mut *mut Header, usize, *mut c_void, u64);

#[derive(Default)]
struct Buffer {
    context: u64,
    watermark: usize,
    done: usize,
    data: usize,
    waiting: Vec<Record>,
}

#[derive(Default)]
struct State {
    buffers: Vec<Buffer>,
    /// Records of work that is not over, by its end, with the buffer they go to.
    in_flight: BTreeMap<(u64, u64), (usize, Record)>,
    number: u64,
    /// Somebody wants all buffers to be handed over.
    wanted: u64,
    handed: u64,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// Handles are not indices.
const FIRST: u64 = 0x900;

type Guard = MutexGuard<'static, Option<State>>;

fn lock() -> Guard {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    guard
}

fn state(guard: &mut Guard) -> &mut State {
    guard.get_or_insert_default()
}

/// Starts the thread that hands records over, once.
pub(crate) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let builder = std::thread::Builder::new().name("fake-rocprofiler".into());
        builder.spawn(work).expect("fake rocprofiler: a thread");
    });
}

/// Counts records that were dropped.
pub(crate) fn dropped() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// A record of something that is over at `end`.
pub(crate) fn add(buffer: u64, end: u64, record: Record) {
    let mut guard = lock();
    let state = state(&mut guard);
    let at = buffer.wrapping_sub(FIRST) as usize;
    if at < state.buffers.len() {
        state.number += 1;
        let key = (end, state.number);
        state.in_flight.insert(key, (at, record));
    }
}

impl State {
    /// What is over goes into its buffer. Returns whether one is full.
    fn settle(&mut self, now: u64) -> bool {
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (at, record) = entry.remove();
            self.buffers[at].waiting.push(record);
        }
        self.buffers.iter().any(|buffer| buffer.waiting.len() >= buffer.watermark)
    }
}

fn work() {
    let mut guard = lock();
    loop {
        let late = settings::fault("late");
        let full = !late && state(&mut guard).settle(realtime());
        let wanted = state(&mut guard).wanted;
        if !full && wanted == state(&mut guard).handed {
            let pause = Duration::from_millis(5);
            guard = CHANGED.wait_timeout(guard, pause).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let buffers = state(&mut guard).buffers.iter_mut().enumerate();
        let ready: Vec<_> = buffers
            .map(|(at, buffer)| {
                let waiting = std::mem::take(&mut buffer.waiting);
                (at, buffer.context, buffer.done, buffer.data, waiting)
            })
            .collect();
        drop(guard);
        for (at, context, done, data, waiting) in ready {
            deliver(context, FIRST + at as u64, done, data, waiting);
        }
        guard = lock();
        state(&mut guard).handed = wanted;
        CHANGED.notify_all();
    }
}

fn deliver(context: u64, buffer: u64, done: usize, data: usize, mut waiting: Vec<Record>) {
    if waiting.is_empty() {
        return;
    }
    if settings::fault("out-of-order") {
        waiting.reverse();
    }
    let header = |record: &Record| Header {
        category: record.category,
        kind: record.kind,
        payload: record.words.as_ptr().cast(),
    };
    let mut headers: Vec<_> = waiting.iter().map(header).collect();
    let mut pointers: Vec<_> = headers.iter_mut().map(|header| &raw mut *header).collect();
    // SAFETY: it was one when it was stored.
    let done = unsafe { std::mem::transmute::<usize, Done>(done) };
    let dropped = DROPPED.load(Ordering::Relaxed);
    let (headers, count) = (pointers.as_mut_ptr(), pointers.len());
    // SAFETY: the tool's function; all lives for the call.
    unsafe { done(context, buffer, headers, count, data as *mut c_void, dropped) };
}

/// Waits for all that is under way.
pub(crate) fn finish_all() {
    loop {
        let mut guard = lock();
        let last = state(&mut guard).in_flight.last_key_value().map(|(key, _)| key.0);
        if settings::fault("late") {
            state(&mut guard).settle(u64::MAX);
        }
        let Some(last) = last else { return };
        drop(guard);
        let left = last.saturating_sub(realtime());
        std::thread::sleep(Duration::from_nanos(left.max(100_000)));
    }
}

fn flush() -> c_int {
    if is_finalized() {
        return finalized();
    }
    while settings::fault("flush-hangs") {
        std::thread::sleep(Duration::from_secs(60));
    }
    start();
    let mut guard = lock();
    if !settings::fault("late") {
        state(&mut guard).settle(realtime());
    }
    state(&mut guard).wanted += 1;
    let ticket = state(&mut guard).wanted;
    CHANGED.notify_all();
    while state(&mut guard).handed < ticket {
        guard = CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    SUCCESS
}

/// # Safety
/// `done` takes what it is promised; `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_buffer(
    context: u64,
    _size: usize,
    watermark: usize,
    _policy: c_int,
    done: *mut c_void,
    data: *mut c_void,
    to: *mut u64,
) -> c_int {
    call("rocprofiler_create_buffer", || {
        if !is_open() {
            return locked();
        }
        let mut guard = lock();
        let buffers = &mut state(&mut guard).buffers;
        let (done, data) = (done as usize, data as usize);
        buffers.push(Buffer { context, watermark, done, data, waiting: Vec::new() });
        // SAFETY: the caller's.
        unsafe { to.write(FIRST + buffers.len() as u64 - 1) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_flush_buffer(buffer: u64) -> c_int {
    call("rocprofiler_flush_buffer", || {
        let count = state(&mut lock()).buffers.len() as u64;
        if buffer.wrapping_sub(FIRST) >= count {
            return BUFFER_NOT_FOUND;
        }
        flush()
    })
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_callback_thread(to: *mut u64) -> c_int {
    call("rocprofiler_create_callback_thread", || {
        // SAFETY: the caller's.
        unsafe { to.write(1) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_assign_callback_thread(_buffer: u64, thread: u64) -> c_int {
    call(
        "rocprofiler_assign_callback_thread",
        || if thread == 1 { SUCCESS } else { BUFFER_NOT_FOUND },
    )
}
