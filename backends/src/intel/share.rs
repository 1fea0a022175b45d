//! Another user of PTI in the program (PyTorch's profiler), and we.
//!
//! PTI serves one client: the last one that set callbacks gets all buffers, also those that
//! another gave (pti-gpu's view_handler.h, `RegisterBufferCallbacks`). Kineto does not survive a
//! buffer that it does not know. But we are preloaded: what the program calls by PTI's names comes here
//! first. So PTI keeps having one user, us, and the other gets copies:
//!
//! * **buffers** stay ours. When one is complete, the records of the kinds that the other enabled
//!   are copied into buffers of its own before anything else happens.
//! * **kinds** are enabled while one of both wants them.
//!
//! Before our first recording everything is passed on as it is, and only remembered. What
//! reaches PTI in other ways (a library that was asked for its functions by handle) does not
//! come here.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::sys::{BAD_ARGUMENT, BufferCompleted, BufferRequested, Code, SUCCESS};
use crate::device::pool::Full;
use crate::device::walk::{self, Next};

/// The other's buffer callbacks.
type Callbacks = (BufferRequested, BufferCompleted);

/// What a buffer must have room for at least: the largest record (a copy between devices).
const LEAST: usize = 192;
/// How long the other's flush waits for a buffer that is being filled.
const TIMEOUT: Duration = Duration::from_millis(200);

static CALLBACKS: Mutex<Option<Callbacks>> = Mutex::new(None);
/// The other's buffer that is being filled. It is taken out while it is filled: no lock is
/// held while the other's functions run.
static OPEN: Mutex<Option<Theirs>> = Mutex::new(None);
static FILLING: AtomicU32 = AtomicU32::new(0);
/// Kinds that the other has enabled, and those whose records it still gets.
static THEIRS: AtomicU32 = AtomicU32::new(0);
static DELIVERED: AtomicU32 = AtomicU32::new(0);
/// Kinds that we have enabled.
static OURS: AtomicU32 = AtomicU32::new(0);
/// Whether PTI has our callbacks: from our first recording on, for ever.
static REGISTERED: AtomicBool = AtomicBool::new(false);
/// Whether a recording of ours reads what PTI hands over.
static READING: AtomicBool = AtomicBool::new(false);
static COPIED: AtomicU64 = AtomicU64::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bit(kind: u32) -> u32 {
    1_u32.checked_shl(kind).unwrap_or(0)
}

/// How many records the other got.
pub(crate) fn copied() -> u64 {
    COPIED.load(Ordering::Relaxed)
}

/// We are about to set callbacks. Returns whether PTI does not have them yet.
pub(crate) fn registering() -> bool {
    !REGISTERED.swap(true, Ordering::AcqRel)
}

/// PTI did not take our callbacks.
pub(crate) fn not_registered() {
    REGISTERED.store(false, Ordering::Release);
}

/// We enabled a kind.
pub(crate) fn enabled(kind: u32) {
    OURS.fetch_or(bit(kind), Ordering::AcqRel);
}

/// We want a kind no longer. Returns whether no other user does.
pub(crate) fn disabled(kind: u32) -> bool {
    OURS.fetch_and(!bit(kind), Ordering::AcqRel);
    THEIRS.load(Ordering::Acquire) & bit(kind) == 0
}

/// Sets whether a reader of ours takes what PTI hands over.
pub(crate) fn reading(on: bool) {
    READING.store(on, Ordering::Release);
}

/// Whether a reader of ours takes what PTI hands over.
pub(crate) fn is_read() -> bool {
    READING.load(Ordering::Acquire)
}

/// # Safety
/// `real` is a function of type `F`.
unsafe fn function<F: Copy>(real: *mut c_void) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute_copy(&real) }
}

/// `ptiViewSetCallbacks`, called by the program.
///
/// # Safety
/// `real` is PTI's own function, and the arguments are the program's.
pub unsafe fn set_callbacks(
    real: *mut c_void,
    request: Option<BufferRequested>,
    complete: Option<BufferCompleted>,
) -> Code {
    type Real = unsafe extern "C" fn(Option<BufferRequested>, Option<BufferCompleted>) -> Code;
    let both = request.zip(complete);
    if !REGISTERED.load(Ordering::Acquire) || both.is_none() {
        // SAFETY: the caller's promise.
        let result = unsafe { function::<Real>(real)(request, complete) };
        if result == SUCCESS {
            *lock(&CALLBACKS) = both;
        }
        return result;
    }
    let Some(callbacks) = both else { return BAD_ARGUMENT };
    // As PTI does, which asks for a buffer at once.
    let buffer = Theirs::ask(callbacks);
    if buffer.start.is_null() || buffer.size < LEAST {
        buffer.finish();
        return BAD_ARGUMENT;
    }
    *lock(&CALLBACKS) = both;
    let before = lock(&OPEN).replace(buffer);
    before.into_iter().for_each(Theirs::finish);
    SUCCESS
}

/// `ptiViewEnable`, called by the program. `flush` is `ptiFlushAllViews`.
///
/// # Safety
/// `real` and `flush` are PTI's own functions.
pub unsafe fn enable(real: *mut c_void, flush: *mut c_void, kind: u32) -> Code {
    if THEIRS.load(Ordering::Acquire) == 0 {
        DELIVERED.store(0, Ordering::Release);
        if REGISTERED.load(Ordering::Acquire) && !flush.is_null() {
            // What happened before is none of the other's.
            // SAFETY: the program is in none of PTI's callbacks.
            unsafe { function::<unsafe extern "C" fn() -> Code>(flush)() };
        }
    }
    // SAFETY: the caller's promise.
    let result = unsafe { function::<unsafe extern "C" fn(u32) -> Code>(real)(kind) };
    if result == SUCCESS {
        THEIRS.fetch_or(bit(kind), Ordering::AcqRel);
        DELIVERED.fetch_or(bit(kind), Ordering::AcqRel);
        if REGISTERED.load(Ordering::Acquire) {
            open();
        }
    }
    result
}

/// `ptiViewDisable`, called by the program.
///
/// # Safety
/// `real` is PTI's own function.
pub unsafe fn disable(real: *mut c_void, kind: u32) -> Code {
    // Delivered are its records until its next flush: there they lie.
    THEIRS.fetch_and(!bit(kind), Ordering::AcqRel);
    if OURS.load(Ordering::Acquire) & bit(kind) != 0 {
        return SUCCESS;
    }
    // SAFETY: the caller's promise.
    unsafe { function::<unsafe extern "C" fn(u32) -> Code>(real)(kind) }
}

/// `ptiFlushAllViews`, called by the program.
///
/// # Safety
/// `real` is PTI's own function.
pub unsafe fn flush_all(real: *mut c_void) -> Code {
    // SAFETY: the caller's promise.
    let result = unsafe { function::<unsafe extern "C" fn() -> Code>(real)() };
    if !REGISTERED.load(Ordering::Acquire) {
        return result;
    }
    let since = Instant::now();
    while FILLING.load(Ordering::Acquire) > 0 && since.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_micros(50));
    }
    let open_one = lock(&OPEN).take();
    open_one.into_iter().for_each(Theirs::finish);
    match THEIRS.load(Ordering::Acquire) {
        0 => DELIVERED.store(0, Ordering::Release),
        _ => open(),
    }
    result
}

/// Asks the other for a buffer, unless one is open: Kineto does not flush if none of its is
/// out.
fn open() {
    if lock(&OPEN).is_some() {
        return;
    }
    let callbacks = *lock(&CALLBACKS);
    if let Some(callbacks) = callbacks {
        put_back(Theirs::ask(callbacks));
    }
}

fn put_back(buffer: Theirs) {
    if buffer.start.is_null() {
        return;
    }
    let mut open = lock(&OPEN);
    if open.is_none() {
        *open = Some(buffer);
    } else {
        drop(open);
        // Another thread was faster.
        buffer.finish();
    }
}

/// PTI gave back a buffer that is not ours: one of the other's, from before our recording.
pub(crate) fn pass_on(buffer: *mut u8, size: usize, used: usize) -> bool {
    let callbacks = *lock(&CALLBACKS);
    let Some((_, complete)) = callbacks else { return false };
    // SAFETY: passed on from PTI.
    unsafe { complete(buffer, size, used) };
    true
}

/// Copies what the other wants of a buffer of ours into buffers of its own.
///
/// # Safety
/// PTI wrote the buffer, and does not write to it now.
pub(crate) unsafe fn deliver(next: Next, full: &Full) {
    let wanted = DELIVERED.load(Ordering::Acquire);
    if wanted == 0 {
        return;
    }
    let callbacks = *lock(&CALLBACKS);
    let Some(callbacks) = callbacks else { return };
    FILLING.fetch_add(1, Ordering::AcqRel);
    let open = lock(&OPEN).take();
    let mut to = open.unwrap_or_else(|| Theirs::ask(callbacks));
    // SAFETY: the caller's promise.
    unsafe { to.fill(next, full, wanted) };
    put_back(to);
    FILLING.fetch_sub(1, Ordering::AcqRel);
}

/// A buffer of the other's.
struct Theirs {
    callbacks: Callbacks,
    start: *mut u8,
    size: usize,
    used: usize,
}

// SAFETY: its holder is the only one that writes to it.
unsafe impl Send for Theirs {}

impl Theirs {
    fn ask(callbacks: Callbacks) -> Theirs {
        let (mut start, mut size) = (ptr::null_mut(), 0);
        // SAFETY: two places to write to.
        unsafe { (callbacks.0)(&mut start, &mut size) };
        Theirs { callbacks, start, size, used: 0 }
    }

    fn finish(self) {
        if !self.start.is_null() {
            // SAFETY: a buffer that the other gave for this.
            unsafe { (self.callbacks.1)(self.start, self.size, self.used) };
        }
    }

    /// # Safety
    /// As for [`deliver`].
    unsafe fn fill(&mut self, next: Next, full: &Full, wanted: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            walk::pieces(next, full, |kind, bytes| wanted & bit(kind) == 0 || self.add(bytes));
        }
    }

    /// Returns false if the other gives no buffer that it fits into.
    fn add(&mut self, bytes: &[u8]) -> bool {
        if self.start.is_null() || self.used + bytes.len() > self.size {
            let full = std::mem::replace(self, Theirs { start: ptr::null_mut(), ..*self });
            full.finish();
            *self = Theirs::ask(self.callbacks);
            if self.start.is_null() || self.size < bytes.len() {
                return false;
            }
        }
        // SAFETY: there is room for them, and the buffers are different ones.
        unsafe {
            let to = self.start.add(self.used);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.used += bytes.len();
        COPIED.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Whether the other wants anything now.
pub(crate) fn is_used() -> bool {
    THEIRS.load(Ordering::Acquire) != 0
}
