//! Another user of CUPTI in the program (PyTorch's profiler), and we.
//!
//! CUPTI's first interface serves one: buffers go to whoever registered callbacks last,
//! there is one subscriber, one clock, and a kind that one of two disables is gone for the
//! other. Left alone, two users both end up with nothing. But we are preloaded: what the
//! program calls by CUPTI's names comes here first. So CUPTI keeps having one user, us,
//! and the other gets copies:
//!
//! * **buffers** stay ours. When one is complete, the records of the kinds that the other
//!   enabled are copied into a buffer that it is asked for, and that is completed for it,
//!   before anything else happens: its own flush finds all of them there.
//! * **kinds** are enabled while anybody wants them.
//! * **clock**: CUPTI's stays as it is. Times in the copies are converted to the clock that
//!   the other asked for (Kineto's: the processor's counter).
//! * **callbacks**: the other gets a subscription of its own, which ours feeds.
//!
//! Without a recording of ours everything is passed on as it is; it is only remembered, so
//! that a recording that starts later can take over.
//!
//! What reaches CUPTI in other ways (a tool that opened it by itself) does not come here;
//! that is noticed by its effects only.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::clock;
use super::library;
use super::sys::{
    BufferCompleted, BufferRequested, Code, Cupti, ERROR_INVALID_PARAMETER, ERROR_NOT_INITIALIZED,
    SUCCESS, TimestampCallback, kind,
};
use crate::vendor::raw::Raw;

/// The other's buffer callbacks; both or none.
static REQUEST: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static COMPLETE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The clock that the other asked for, and the same moment on CUPTI's clock and on it.
static TIMESTAMP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static ANCHOR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Whether CUPTI itself was given that clock: before we recorded anything.
static THEIR_CLOCK: AtomicBool = AtomicBool::new(false);
/// Kinds that the other has enabled, and those whose records it still gets.
static THEIRS: AtomicU64 = AtomicU64::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);
/// Kinds that we have enabled.
static OURS: AtomicU64 = AtomicU64::new(0);
/// Whether CUPTI calls us for buffers: from our first recording on, for ever.
static REGISTERED: AtomicBool = AtomicBool::new(false);
static COPIED: AtomicU64 = AtomicU64::new(0);

/// CUPTI's own functions, for whoever calls them by name.
pub(crate) fn real() -> Option<&'static Cupti> {
    library::present()
}

/// How many records the other got.
pub(crate) fn copied() -> u64 {
    COPIED.load(Ordering::Relaxed)
}

/// The other's clock, if CUPTI itself runs on it.
pub(crate) fn their_clock() -> Option<TimestampCallback> {
    if THEIR_CLOCK.load(Ordering::Acquire) { timestamp() } else { None }
}

/// We are about to register buffer callbacks.
pub(crate) fn registering() {
    REGISTERED.store(true, Ordering::Release);
}

fn bit(kind: u32) -> u64 {
    1_u64.checked_shl(kind).unwrap_or(0)
}

/// We enabled a kind.
pub(crate) fn enabled(kind: u32) {
    OURS.fetch_or(bit(kind), Ordering::AcqRel);
}

/// We want a kind no longer. Returns whether nobody else does.
pub(crate) fn disabled(kind: u32) -> bool {
    OURS.fetch_and(!bit(kind), Ordering::AcqRel);
    THEIRS.load(Ordering::Acquire) & bit(kind) == 0
}

/// `cuptiActivityRegisterCallbacks`, called by the program.
pub fn register_callbacks(
    request: Option<BufferRequested>,
    complete: Option<BufferCompleted>,
) -> Code {
    let (Some(request), Some(complete)) = (request, complete) else {
        return ERROR_INVALID_PARAMETER;
    };
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    REQUEST.store(request as *mut c_void, Ordering::Release);
    COMPLETE.store(complete as *mut c_void, Ordering::Release);
    if REGISTERED.load(Ordering::Acquire) {
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { (real.register_callbacks)(request, complete) }
}

/// `cuptiActivityEnable`, called by the program.
pub fn enable(kind: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    if THEIRS.load(Ordering::Acquire) == 0 {
        if REGISTERED.load(Ordering::Acquire) {
            // What happened before is none of the other's.
            // SAFETY: the program is in none of CUPTI's callbacks, as it may not enable
            // anything there.
            unsafe { (real.flush_all)(0) };
        }
        DELIVERED.store(0, Ordering::Release);
    }
    // SAFETY: the program's own call.
    let result = unsafe { (real.enable)(kind) };
    if result == SUCCESS {
        THEIRS.fetch_or(bit(kind), Ordering::AcqRel);
        DELIVERED.fetch_or(bit(kind) | implied(kind), Ordering::AcqRel);
    }
    result
}

/// Kinds whose records come with others.
fn implied(kind: u32) -> u64 {
    match kind {
        kind::MEMCPY => bit(kind::MEMCPY2),
        kind::SYNCHRONIZATION => bit(kind::CUDA_EVENT),
        _ => 0,
    }
}

/// `cuptiActivityDisable`, called by the program.
pub fn disable(kind: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    // Delivered are its records until its next flush: there they lie.
    THEIRS.fetch_and(!bit(kind), Ordering::AcqRel);
    if OURS.load(Ordering::Acquire) & bit(kind) != 0 {
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { (real.disable)(kind) }
}

/// `cuptiActivityFlushAll`, called by the program.
pub fn flush_all(flag: u32) -> Code {
    let Some(real) = real() else { return ERROR_NOT_INITIALIZED };
    // SAFETY: the program's own call.
    let result = unsafe { (real.flush_all)(flag) };
    if THEIRS.load(Ordering::Acquire) == 0 {
        DELIVERED.store(0, Ordering::Release);
    }
    result
}

/// `cuptiActivityRegisterTimestampCallback`, called by the program.
pub fn register_timestamp(callback: Option<TimestampCallback>) -> Code {
    let Some(register) = real().and_then(|real| real.register_timestamp) else {
        return ERROR_NOT_INITIALIZED;
    };
    let Some(callback) = callback else { return ERROR_INVALID_PARAMETER };
    if REGISTERED.load(Ordering::Acquire) {
        let (ours, theirs) = both(callback);
        ANCHOR[0].store(ours, Ordering::Release);
        ANCHOR[1].store(theirs, Ordering::Release);
        TIMESTAMP.store(callback as *mut c_void, Ordering::Release);
        return SUCCESS;
    }
    TIMESTAMP.store(callback as *mut c_void, Ordering::Release);
    THEIR_CLOCK.store(true, Ordering::Release);
    // SAFETY: the program's own call.
    unsafe { register(callback) }
}

/// `cuptiGetTimestamp`, called by the program.
///
/// # Safety
/// As CUPTI says.
pub unsafe fn get_timestamp(to: *mut u64) -> Code {
    let Some(real) = real().and_then(|real| real.get_timestamp) else {
        return ERROR_NOT_INITIALIZED;
    };
    match timestamp().filter(|_| !THEIR_CLOCK.load(Ordering::Acquire)) {
        Some(callback) if !to.is_null() => {
            // SAFETY: the program's own clock and place.
            unsafe { *to = callback() };
            SUCCESS
        }
        // SAFETY: the program's own call.
        _ => unsafe { real(to) },
    }
}

/// `cuptiFinalize`, called by the program.
pub fn finalize() -> Code {
    let Some(real) = real().and_then(|real| real.finalize) else { return ERROR_NOT_INITIALIZED };
    if OURS.load(Ordering::Acquire) != 0 {
        // It would end our recording; for the other, everything is over now.
        THEIRS.store(0, Ordering::Release);
        DELIVERED.store(0, Ordering::Release);
        super::subscription::end();
        return SUCCESS;
    }
    // SAFETY: the program's own call.
    unsafe { real() }
}

fn timestamp() -> Option<TimestampCallback> {
    // SAFETY: null, or stored from a function of this type.
    unsafe {
        std::mem::transmute::<*mut c_void, Option<TimestampCallback>>(
            TIMESTAMP.load(Ordering::Acquire),
        )
    }
}

fn callbacks() -> Option<(BufferRequested, BufferCompleted)> {
    // SAFETY: null, or stored from functions of these types.
    unsafe {
        let request = std::mem::transmute::<*mut c_void, Option<BufferRequested>>(
            REQUEST.load(Ordering::Acquire),
        );
        let complete = std::mem::transmute::<*mut c_void, Option<BufferCompleted>>(
            COMPLETE.load(Ordering::Acquire),
        );
        Some((request?, complete?))
    }
}

/// CUPTI wants a buffer and we record nothing: asks the other. `None` if there is none.
pub(crate) fn request() -> Option<(*mut u8, usize)> {
    let (request, _) = callbacks().filter(|_| OURS.load(Ordering::Acquire) == 0)?;
    let (mut buffer, mut size, mut most) = (ptr::null_mut(), 0, 0);
    // SAFETY: three places to write to.
    unsafe { request(&mut buffer, &mut size, &mut most) };
    Some((buffer, size))
}

/// CUPTI gave back a buffer that is not ours. Returns whether it was the other's.
pub(crate) fn complete(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) -> bool {
    let Some((_, complete)) = callbacks() else { return false };
    // SAFETY: passed on from CUPTI.
    unsafe { complete(context, stream, buffer, size, valid) };
    true
}

/// How many records are in a buffer.
pub(crate) fn count(buffer: *mut u8, valid: usize) -> u64 {
    let Some(real) = real() else { return 0 };
    let mut record: *mut u8 = ptr::null_mut();
    let mut count = 0;
    // SAFETY: CUPTI wrote `valid` bytes of records there, and nobody writes now.
    while unsafe { (real.next_record)(buffer, valid, &mut record) } == SUCCESS {
        count += 1;
    }
    count
}

/// Copies what the other wants of a buffer of ours into buffers of its own.
///
/// # Safety
/// The buffer has `valid` bytes of records that CUPTI wrote, and nobody writes to it.
pub(crate) unsafe fn deliver(context: *mut c_void, stream: u32, buffer: *mut u8, valid: usize) {
    let wanted = DELIVERED.load(Ordering::Acquire);
    if wanted == 0 {
        return;
    }
    let (Some((request, complete)), Some(real)) = (callbacks(), real()) else { return };
    let fit = Fit::now();
    let mut copy =
        Copy { request, complete, context, stream, to: ptr::null_mut(), size: 0, used: 0 };
    let mut record: *mut u8 = ptr::null_mut();
    let mut before: *mut u8 = ptr::null_mut();
    loop {
        // SAFETY: the caller's promise.
        let found = unsafe { (real.next_record)(buffer, valid, &mut record) } == SUCCESS;
        // A record is as long as the way to the next: no size has to be known.
        let end = if found { record as usize } else { buffer as usize + valid };
        if !before.is_null() {
            let len = end.saturating_sub(before as usize);
            // SAFETY: `len` bytes of the buffer.
            let bytes = unsafe { std::slice::from_raw_parts(before, len) };
            let kind = Raw::new(bytes).u32(0);
            if wanted & bit(kind) != 0 && !copy.add(bytes, fit.as_ref()) {
                break;
            }
        }
        if !found {
            break;
        }
        before = record;
    }
    copy.finish();
}

/// A buffer of the other's that is being filled.
struct Copy {
    request: BufferRequested,
    complete: BufferCompleted,
    context: *mut c_void,
    stream: u32,
    to: *mut u8,
    size: usize,
    used: usize,
}

impl Copy {
    /// Returns false if the other gives no buffer.
    fn add(&mut self, bytes: &[u8], fit: Option<&Fit>) -> bool {
        if self.used + bytes.len() > self.size {
            self.finish();
            let mut most = 0;
            // SAFETY: three places to write to.
            unsafe { (self.request)(&mut self.to, &mut self.size, &mut most) };
            if self.to.is_null() || self.size < bytes.len() {
                // Declined, or of no use.
                self.size = 0;
                return false;
            }
        }
        // SAFETY: there is room for them, and the buffers are different ones.
        let copied = unsafe {
            let to = self.to.add(self.used);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
            std::slice::from_raw_parts_mut(to, bytes.len())
        };
        if let Some(fit) = fit {
            convert(fit, copied);
        }
        self.used += bytes.len();
        COPIED.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn finish(&mut self) {
        if !self.to.is_null() {
            // SAFETY: a buffer that the other gave for this.
            unsafe { (self.complete)(self.context, self.stream, self.to, self.size, self.used) };
        }
        (self.to, self.size, self.used) = (ptr::null_mut(), 0, 0);
    }
}

/// The same moment on CUPTI's clock and on another.
fn both(theirs: TimestampCallback) -> (u64, u64) {
    let once = || {
        let before = clock::cupti();
        // SAFETY: a clock, which may be asked at any time.
        let their = unsafe { theirs() };
        let width = clock::cupti().wrapping_sub(before);
        (width, (before + width / 2, their))
    };
    (0..8).map(|_| once()).min_by_key(|(width, _)| *width).map_or((0, 0), |(_, both)| both)
}

/// From CUPTI's clock to the other's: a line through two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    from: (u64, u64),
    rate: f64,
}

impl Fit {
    fn now() -> Option<Fit> {
        let callback = timestamp().filter(|_| !THEIR_CLOCK.load(Ordering::Acquire))?;
        let first = (ANCHOR[0].load(Ordering::Acquire), ANCHOR[1].load(Ordering::Acquire));
        let last = both(callback);
        Some(Fit::through(first, last))
    }

    pub(crate) fn through(first: (u64, u64), last: (u64, u64)) -> Fit {
        let run = last.0.wrapping_sub(first.0) as i64;
        let rise = last.1.wrapping_sub(first.1) as i64;
        let rate = if run > 0 && rise > 0 { rise as f64 / run as f64 } else { 1.0 };
        // From the later one: what is converted is recent.
        Fit { from: last, rate }
    }

    pub(crate) fn at(&self, time: u64) -> u64 {
        let distance = time.wrapping_sub(self.from.0) as i64;
        self.from.1.wrapping_add_signed((distance as f64 * self.rate) as i64)
    }
}

/// Converts the times of a record.
fn convert(fit: &Fit, record: &mut [u8]) {
    for at in times(Raw::new(record).u32(0)) {
        if let Some(field) = record.get_mut(*at..at + 8) {
            let time = u64::from_ne_bytes(field.try_into().unwrap_or_default());
            // CUPTI_TIMESTAMP_UNKNOWN stays what it is.
            if time != 0 {
                field.copy_from_slice(&fit.at(time).to_ne_bytes());
            }
        }
    }
}

/// Where records have times (cupti_activity.h; the same from 11.8 to 13.4).
fn times(kind: u32) -> &'static [usize] {
    match kind {
        kind::MEMCPY | kind::MEMSET | kind::MEMCPY2 | kind::UNIFIED_MEMORY_COUNTER => &[16, 24],
        kind::KERNEL | kind::CONCURRENT_KERNEL => &[16, 24, 32, 120, 128],
        kind::DRIVER | kind::RUNTIME | kind::SYNCHRONIZATION | kind::GRAPH_TRACE => &[8, 16],
        kind::OVERHEAD => &[24, 32],
        kind::CUDA_EVENT => &[40],
        kind::MEMORY2 => &[32],
        kind::MEMORY_POOL => &[56],
        kind::MARKER => &[8],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_and_nothing_else() {
        // A counter of 2.5 GHz.
        let fit = Fit::through((1_000_000, 70_000_000), (2_000_000, 72_500_000));
        assert_eq!((fit.at(2_000_000), fit.at(1_000_000)), (72_500_000, 70_000_000));
        let mut record = vec![0_u8; 208];
        record[0] = kind::CONCURRENT_KERNEL as u8;
        record[16..24].copy_from_slice(&1_500_000_u64.to_ne_bytes());
        record[40] = 7;
        convert(&fit, &mut record);
        let raw = Raw::new(&record);
        assert_eq!((raw.u64(16), raw.u64(24), raw.u32(40)), (71_250_000, 0, 7));
    }
}
