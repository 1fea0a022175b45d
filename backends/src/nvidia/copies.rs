//! Records for another user of CUPTI, copied into buffers of its own: see [`super::share`].
//!
//! The other always has one buffer of its that is being filled, as it would have with
//! CUPTI: Kineto takes it that there are no records if none of its buffers is out, and does
//! not even flush. So one is asked for when the other enables something, kept between
//! buffers of ours, and completed when it is full or the other flushes.
//!
//! The buffer is taken out while it is filled (a pointer that is swapped): no lock
//! is held while the other's functions run.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use super::clock::{Fit, both};
use super::kinds::layout;
use super::other;
use super::state::STATE;
use super::sys::{BufferCompleted, BufferRequested};
use crate::device::pool::Full;
use crate::device::raw::Raw;
use crate::device::walk::{self, Next};

/// The buffer that is being filled; null while a thread fills it.
static OPEN: AtomicPtr<Copy> = AtomicPtr::new(ptr::null_mut());

/// How long the other's flush waits for threads that are still copying.
const TIMEOUT: Duration = Duration::from_millis(200);

/// How many records the other got.
pub(crate) fn copied() -> u64 {
    STATE.other.copied.load(Ordering::Relaxed)
}

/// Asks the other for a buffer, unless one is open.
pub(crate) fn open() {
    if OPEN.load(Ordering::Acquire).is_null()
        && let Some(mut copy) = Copy::new()
        && copy.ask()
    {
        put_back(copy);
    }
}

/// Gives the other what it has got so far.
pub(crate) fn complete() {
    let since = Instant::now();
    while STATE.other.copying.load(Ordering::Acquire) > 0 && since.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_micros(50));
    }
    if let Some(mut copy) = take() {
        copy.finish();
    }
}

fn take() -> Option<Box<Copy>> {
    let open = OPEN.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: the thread that swaps it out owns it; it was a box.
    (!open.is_null()).then(|| unsafe { Box::from_raw(open) })
}

fn put_back(copy: Box<Copy>) {
    let copy = Box::into_raw(copy);
    let empty = ptr::null_mut();
    if OPEN.compare_exchange(empty, copy, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // Another thread was faster.
        // SAFETY: it is ours still.
        unsafe { Box::from_raw(copy) }.finish();
    }
}

/// Copies what the other wants of a buffer of ours into buffers of its own.
///
/// # Safety
/// CUPTI wrote the buffer, and does not write to it now.
pub(crate) unsafe fn deliver(context: *mut c_void, stream: u32, next: Next, full: &Full) {
    let wanted = other::delivered();
    if wanted == 0 {
        return;
    }
    STATE.other.copying.fetch_add(1, Ordering::AcqRel);
    if let Some(mut copy) = take().or_else(Copy::new) {
        (copy.context, copy.stream) = (context as usize, stream);
        // SAFETY: the caller's promise.
        unsafe { copy.fill(next, full, wanted) };
        if !copy.to.is_null() {
            put_back(copy);
        }
    }
    STATE.other.copying.fetch_sub(1, Ordering::AcqRel);
}

/// A buffer of the other's.
struct Copy {
    request: BufferRequested,
    complete: BufferCompleted,
    context: usize,
    stream: u32,
    to: *mut u8,
    size: usize,
    used: usize,
}

impl Copy {
    fn new() -> Option<Box<Copy>> {
        let (request, complete) = other::callbacks()?;
        let to = ptr::null_mut();
        Some(Box::new(Copy { request, complete, context: 0, stream: 0, to, size: 0, used: 0 }))
    }

    /// Returns false if the other gives no buffer.
    fn ask(&mut self) -> bool {
        let mut most = 0;
        // SAFETY: three places to write to.
        unsafe { (self.request)(&mut self.to, &mut self.size, &mut most) };
        !self.to.is_null()
    }

    /// # Safety
    /// As for [`deliver`].
    unsafe fn fill(&mut self, next: Next, full: &Full, wanted: u64) {
        let fit = fit();
        let mut piece =
            |kind, bytes: &[u8]| wanted & other::bit(kind) == 0 || self.add(bytes, fit.as_ref());
        // SAFETY: the caller's promise.
        unsafe { walk::pieces(next, full, &mut piece) };
    }

    /// Returns false if the other gives no buffer that it fits into.
    fn add(&mut self, bytes: &[u8], fit: Option<&Fit>) -> bool {
        if self.used + bytes.len() > self.size {
            self.finish();
            if !self.ask() || self.size < bytes.len() {
                self.finish();
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
        STATE.other.copied.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn finish(&mut self) {
        if !self.to.is_null() {
            let context = self.context as *mut c_void;
            // SAFETY: a buffer that the other gave for this.
            unsafe { (self.complete)(context, self.stream, self.to, self.size, self.used) };
        }
        (self.to, self.size, self.used) = (ptr::null_mut(), 0, 0);
    }
}

/// From CUPTI's clock to the one that the other asked for, if that is another.
fn fit() -> Option<Fit> {
    let (callback, first) = other::wanted_clock()?;
    Some(Fit::through(first, both(callback)))
}

/// Converts the times of a record.
fn convert(fit: &Fit, record: &mut [u8]) {
    let times = layout(Raw::new(record).u32(0)).map_or(&[][..], |layout| layout.times);
    for at in times {
        if let Some(field) = record.get_mut(*at..at + 8) {
            let time = u64::from_ne_bytes(field.try_into().unwrap_or_default());
            // CUPTI_TIMESTAMP_UNKNOWN stays what it is.
            if time != 0 {
                field.copy_from_slice(&fit.at(time).to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvidia::kinds::kind;

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
