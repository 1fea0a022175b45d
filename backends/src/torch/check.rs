//! Finds out which layout the PyTorch of this process has: runs an operator of ours under an
//! observer, and compares what each layout reads with what must come out.
//!
//! Nothing is read before it is known to be there: the operator lies in memory of ours that is
//! larger than any version's, and cleared.

use std::ffi::{CStr, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::layout::{
    CALLBACKS, Callback, LAYOUTS, Layout, MAX_BYTES, NAME, SCOPE, TEXT, THREAD, USER, read,
};
use super::library::{Before, Torch};
use crate::annotate::guarded;

/// Longer than what a `std::string` keeps in itself.
const OPERATOR: &CStr = c"kymograph::looks_at_the_layout";
const SEQUENCE: i64 = 0x4b59_4d4f;
/// What is no value of a `bool`, a number of a thread or a handle.
const UNTOUCHED: u8 = 0;

/// The operator of the check, while it runs.
static SUBJECT: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// Layouts that fit, a bit for each; the highest says that the observer was called.
static FITS: AtomicU32 = AtomicU32::new(0);
const CALLED: u32 = 1 << 31;
/// The thread by PyTorch's number.
static THIS_THREAD: Mutex<u64> = Mutex::new(0);

#[repr(C, align(64))]
struct Room([u8; MAX_BYTES]);

/// The layout of the functions' PyTorch.
///
/// # Errors
/// It has none that is known; the text says what did not fit.
pub(super) fn layout(torch: &Torch, before: Before) -> Result<&'static Layout, &'static str> {
    // SAFETY: takes nothing.
    if !unsafe { (torch.is_enabled)() } {
        return Err("this thread has switched observers off");
    }
    FITS.store(0, Ordering::Relaxed);
    let mut room = Box::new(Room([UNTOUCHED; MAX_BYTES]));
    let subject = room.0.as_mut_ptr();
    // SAFETY: takes nothing.
    let thread = unsafe { (torch.thread)() };
    *THIS_THREAD.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = thread;
    SUBJECT.store(subject, Ordering::Release);
    let callback = Callback { needs_ids: true, ..Callback::new(started, ended) };
    // SAFETY: the functions have these types; the memory is large enough for the object, which
    // lives from its constructor to its destructor. Other observers see an operator that is
    // called as ours.
    let (name, asynchronous) = unsafe {
        let handle = (torch.add_callback)(callback);
        (torch.construct)(subject, USER);
        before.call(subject, OPERATOR, SEQUENCE);
        let name = same_text((torch.name)(subject), OPERATOR);
        let before = asyncs(subject);
        (torch.set_async)(subject);
        let after = asyncs(subject);
        (torch.destruct)(subject);
        (torch.remove_callback)(handle);
        (name, after & !before)
    };
    SUBJECT.store(std::ptr::null_mut(), Ordering::Release);
    let fits = FITS.load(Ordering::Acquire);
    if fits & CALLED == 0 {
        return Err("it does not call observers");
    }
    if !name {
        return Err("its operators have no names");
    }
    let fits = fits & asynchronous;
    let mut fitting = LAYOUTS.iter().enumerate().filter(|(bit, _)| fits & 1 << bit != 0);
    match (fitting.next(), fitting.next()) {
        (Some((_, layout)), None) => Ok(layout),
        (None, _) => Err("its operators are laid out in an unknown way"),
        _ => Err("more than one layout of operators fits"),
    }
}

/// Bits of the layouts by which the operator is asynchronous.
///
/// # Safety
/// `subject` has [`MAX_BYTES`].
unsafe fn asyncs(subject: *const u8) -> u32 {
    let is = |layout: &Layout| {
        // SAFETY: inside of the memory, of which any bytes are a number.
        unsafe { read::<u8>(subject, layout.is_async) == 1 }
    };
    LAYOUTS.iter().enumerate().map(|(bit, layout)| u32::from(is(layout)) << bit).sum()
}

/// Whether PyTorch gave this text.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn same_text(text: *const c_char, expected: &CStr) -> bool {
    // SAFETY: the caller's promise.
    !text.is_null() && unsafe { CStr::from_ptr(text) } == expected
}

unsafe extern "C" fn started(context: *mut *mut u8, function: *const u8) -> *mut *mut u8 {
    // SAFETY: room for a pointer, where the caller expects the observer's context: none.
    unsafe { context.write(std::ptr::null_mut()) };
    guarded((), || {
        let subject = SUBJECT.load(Ordering::Acquire);
        // Another thread's operator is none of the check's.
        if subject.is_null() || !std::ptr::eq(subject, function) {
            return;
        }
        let thread = *THIS_THREAD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fits = LAYOUTS.iter().enumerate().map(|(bit, layout)| {
            // SAFETY: it is the memory of the check.
            u32::from(unsafe { fits(subject, layout, thread) }) << bit
        });
        FITS.store(fits.sum::<u32>() | CALLED, Ordering::Release);
    });
    context
}

unsafe extern "C" fn ended(_: *const u8, _: *mut u8) {}

/// Whether the operator of the check, which has begun, reads as it must.
///
/// # Safety
/// `subject` has [`MAX_BYTES`].
unsafe fn fits(subject: *const u8, layout: &Layout, thread: u64) -> bool {
    // SAFETY: all of it lies in the memory, of which any bytes are a number.
    unsafe {
        let callbacks: usize = read(subject, CALLBACKS);
        let count: u32 = read(subject, CALLBACKS + 8);
        let inline = callbacks == subject.addr() + CALLBACKS + 16;
        let ours = (0..count.min(4) as usize).any(|n| {
            read::<usize>(subject, CALLBACKS + 16 + 16 * n) == started as *const () as usize
        });
        let name = read::<usize>(subject, NAME);
        inline
            && ours
            && read::<u64>(subject, THREAD) == thread
            && read::<u8>(subject, SCOPE) == USER
            && read::<u8>(subject, layout.name_kind) == TEXT
            && name != 0
            && read::<i64>(subject, layout.sequence) == SEQUENCE
            && read::<u64>(subject, layout.forward_thread) == 0
            && (1..1 << 48).contains(&read::<u64>(subject, layout.handle))
    }
}
