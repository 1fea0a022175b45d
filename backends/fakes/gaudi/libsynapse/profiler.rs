//! Synapse's profiler: what the devices and the host did, until it is asked for.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::buffer::{self, Item};
use crate::driver::{FAIL, SUCCESS, has, is_profiled};
use crate::seam::{Call, Event, Nanos, realtime};
use crate::settings;

/// `synTraceType`.
const ALL: c_int = 1;
const HOST: c_int = 2;

/// What happened, by device.
static ITEMS: Mutex<Vec<(u32, Item)>> = Mutex::new(Vec::new());
/// Devices that are profiled, a bit each, and which have memory for that.
static RUNNING: AtomicU32 = AtomicU32::new(0);
static MEMORY: AtomicU32 = AtomicU32::new(0);
static AHEAD: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// When the calls that this thread is in began.
    static BEGAN: std::cell::RefCell<Vec<Nanos>> = const { std::cell::RefCell::new(Vec::new()) };
}

pub(crate) extern "C" fn observe(event: &Event) {
    match event {
        Event::Enter(_) => BEGAN.with_borrow_mut(|stack| stack.push(now())),
        Event::Exit(call) => exit(call),
        Event::Work(work) => keep(work.place.device, Item::Work(*work, offset())),
        _ => {}
    }
}

fn exit(call: &Call) {
    let start = BEGAN.with_borrow_mut(Vec::pop).unwrap_or_default();
    // SAFETY: always succeeds.
    let thread = unsafe { libc::gettid() } as u32;
    let device = call.context - 1;
    let (name, id, end) = (call.function, call.correlation, now());
    keep(device, Item::Call { name, id, start, end, thread });
}

fn keep(device: u32, item: Item) {
    if RUNNING.load(Ordering::Acquire) >> device & 1 != 0 {
        ITEMS.lock().unwrap_or_else(PoisonError::into_inner).push((device, item));
    }
}

/// The profiler's clock is not the system's: it began two days ago.
fn offset() -> Nanos {
    static OFFSET: std::sync::OnceLock<Nanos> = std::sync::OnceLock::new();
    *OFFSET.get_or_init(|| realtime() - 172_800_000_000_000)
}

pub(crate) fn now() -> Nanos {
    realtime() - offset()
}

/// The body of a function of the profiler's.
fn call(function: &str, device: u32, body: impl FnOnce() -> c_int) -> c_int {
    if settings::fault("errors") || !is_profiled() || !has(device) {
        return FAIL;
    }
    settings::error(function).unwrap_or_else(body)
}

/// # Safety
/// `bytes` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synProfilerQueryRequiredMemory(device: u32, bytes: *mut u32) -> c_int {
    call("synProfilerQueryRequiredMemory", device, || {
        // SAFETY: the caller says so.
        unsafe { bytes.write(if settings::fault("memory") { 1 << 28 } else { 0 }) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn synProfilerSetUserBuffer(device: u32, _buffer: *mut c_void) -> c_int {
    call("synProfilerSetUserBuffer", device, || {
        MEMORY.fetch_or(1 << device, Ordering::AcqRel);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn synProfilerStart(_what: c_int, device: u32) -> c_int {
    call("synProfilerStart", device, || {
        if settings::fault("memory") && MEMORY.load(Ordering::Acquire) >> device & 1 == 0 {
            return FAIL;
        }
        // A session has what happens in it.
        ITEMS.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| *of != device);
        RUNNING.fetch_or(1 << device, Ordering::AcqRel);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn synProfilerStop(_what: c_int, device: u32) -> c_int {
    while settings::fault("stop-hangs") {
        std::thread::sleep(std::time::Duration::from_secs(60));
    }
    call("synProfilerStop", device, || {
        RUNNING.fetch_and(!(1 << device), Ordering::AcqRel);
        SUCCESS
    })
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synProfilerGetCurrentTimeNS(to: *mut u64) -> c_int {
    if settings::fault("clock-jump") && RUNNING.load(Ordering::Acquire) != 0 {
        AHEAD.store(true, Ordering::Release);
    }
    let ahead = if AHEAD.load(Ordering::Acquire) { 3_600_000_000_000 } else { 0 };
    let device = (0..32).find(|device| has(*device)).unwrap_or(0);
    call("synProfilerGetCurrentTimeNS", device, || {
        // SAFETY: the caller says so.
        unsafe { to.write(now() + ahead) };
        SUCCESS
    })
}

/// # Safety
/// As Synapse says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn synProfilerGetTrace(
    what: c_int,
    device: u32,
    _format: c_int,
    to: *mut c_void,
    size: *mut usize,
    count: *mut usize,
) -> c_int {
    call("synProfilerGetTrace", device, || {
        let items = ITEMS.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = items.iter().filter(|(of, _)| *of == device).map(|(_, item)| item);
        let wanted = |item: &&Item| match item {
            Item::Call { .. } => what == ALL || what == HOST,
            Item::Work(..) => what != HOST,
        };
        let mine: Vec<&Item> = mine.filter(wanted).collect();
        // Pointers in it are those of the place it is written to.
        let made = buffer::make(&mine, to.addr());
        // SAFETY: the caller says so: places for two numbers, and what it was told before.
        unsafe {
            if !to.is_null() {
                assert!(*size >= made.bytes.len(), "fake Synapse: too little room");
                to.cast::<u8>().copy_from_nonoverlapping(made.bytes.as_ptr(), made.bytes.len());
            }
            size.write(if settings::fault("huge") { 1 << 50 } else { made.bytes.len() });
            count.write(made.count);
        }
        SUCCESS
    })
}
