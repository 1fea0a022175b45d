//! The activity API: kinds, flushes, and the walk through a buffer.

use std::collections::HashSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::buffers::{self, Client, Complete, Request, UNKNOWN_SIZE};
use crate::settings::toolkit;
use crate::sizes::{kind, size_of};
use crate::status::{
    self, INVALID_KIND, INVALID_PARAMETER, MAX_LIMIT_REACHED, NOT_READY, SUCCESS, UNKNOWN, call,
};
use crate::{delivery, driver, record, settings};

static KINDS: [AtomicBool; 64] = [const { AtomicBool::new(false) }; 64];
/// API functions that were switched off, by domain and number.
static SILENT: Mutex<Option<HashSet<(u32, u32)>>> = Mutex::new(None);

pub(crate) fn forget() {
    KINDS.iter().for_each(|kind| kind.store(false, Ordering::SeqCst));
}

pub(crate) fn is_enabled(kind: u32) -> bool {
    KINDS[kind as usize].load(Ordering::Relaxed)
}

pub(crate) fn is_call_enabled(domain: u32, cbid: u32) -> bool {
    let kind = if domain == 1 { kind::DRIVER } else { kind::RUNTIME };
    let silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
    is_enabled(kind) && !silent.as_ref().is_some_and(|set| set.contains(&(domain, cbid)))
}

fn switch(kind: u32, on: bool) -> c_int {
    if size_of(kind, toolkit()).is_none() {
        return INVALID_KIND;
    }
    // As on an H200 with CUDA 13.0: who asks too soon is refused for ever.
    if kind == kind::UNIFIED_MEMORY_COUNTER && on {
        static TOO_SOON: AtomicBool = AtomicBool::new(false);
        let soon = !driver::has_finished();
        if TOO_SOON.fetch_or(soon, Ordering::Relaxed) || soon {
            return NOT_READY;
        }
    }
    delivery::start();
    KINDS[kind as usize].store(on, Ordering::Relaxed);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> c_int {
    call("cuptiActivityEnable", || switch(kind, true))
}

/// Also records that the device is there: there are no others before their time.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableAndDump(kind: u32) -> c_int {
    call("cuptiActivityEnableAndDump", || {
        let status = switch(kind, true);
        if status == SUCCESS && kind == kind::DEVICE {
            buffers::write_of_device(&record::device(0));
        }
        status
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> c_int {
    call("cuptiActivityDisable", || switch(kind, false))
}

fn switch_call(domain: u32, cbid: u32, on: bool) -> c_int {
    let mut silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
    let silent = silent.get_or_insert_default();
    if on {
        silent.remove(&(domain, cbid))
    } else {
        silent.insert((domain, cbid))
    };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableDriverApi(cbid: u32, enable: u8) -> c_int {
    call("cuptiActivityEnableDriverApi", || switch_call(1, cbid, enable != 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableRuntimeApi(cbid: u32, enable: u8) -> c_int {
    call("cuptiActivityEnableRuntimeApi", || switch_call(2, cbid, enable != 0))
}

/// Works without a driver.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    request: Option<Request>,
    complete: Option<Complete>,
) -> c_int {
    status::call_anywhere("cuptiActivityRegisterCallbacks", || {
        let (Some(request), Some(complete)) = (request, complete) else {
            return INVALID_PARAMETER;
        };
        buffers::register(Client { request, complete });
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> c_int {
    call("cuptiActivityFlushAll", || {
        delivery::flush(flag & 1 != 0);
        SUCCESS
    })
}

/// The fake always completes full buffers at once.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushPeriod(_milliseconds: u32) -> c_int {
    call("cuptiActivityFlushPeriod", || SUCCESS)
}

/// # Safety
/// `dropped` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> c_int {
    call("cuptiActivityGetNumDroppedRecords", || {
        if dropped.is_null() {
            return INVALID_PARAMETER;
        }
        // SAFETY: not null; the caller says the rest.
        unsafe { dropped.write(buffers::take_dropped() as usize) };
        SUCCESS
    })
}

/// The record after `*record`, or the first if that is null. A record that is not whole is
/// the end (12); a kind that CUPTI does not know an error, 999 before 12.4 and 21 since.
///
/// # Safety
/// `buffer` has `valid` bytes, and `*record` is null or one of its records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> c_int {
    status::call_anywhere("cuptiActivityGetNextRecord", || {
        if buffer.is_null() || record.is_null() {
            return INVALID_PARAMETER;
        }
        // SAFETY: not null; the caller says the rest.
        let current = unsafe { record.read() };
        let at = if current.is_null() {
            0
        } else {
            let at = current.addr() - buffer.addr();
            // SAFETY: a record of the buffer.
            at + unsafe { step(current) }.unwrap_or(valid)
        };
        if at + 4 > valid {
            return MAX_LIMIT_REACHED;
        }
        // SAFETY: there are four bytes left.
        let next = unsafe { buffer.add(at) };
        // SAFETY: as above.
        match unsafe { step(next) } {
            None => {
                if toolkit() < 1204 {
                    UNKNOWN
                } else {
                    INVALID_KIND
                }
            }
            Some(size) if at + size > valid => MAX_LIMIT_REACHED,
            Some(_) => {
                // SAFETY: not null; the caller says the rest.
                unsafe { record.write(next) };
                SUCCESS
            }
        }
    })
}

/// The size of the record there.
///
/// # Safety
/// It has four bytes.
unsafe fn step(record: *mut u8) -> Option<usize> {
    // SAFETY: the caller says so.
    let kind = unsafe { record.cast::<u32>().read_unaligned() };
    if kind == 200 && settings::fault("unknown-kind") {
        return Some(UNKNOWN_SIZE);
    }
    size_of(kind, toolkit())
}

/// The size of a kind's records: `cuptiActivityGetStructSize`, of 13.2. `size` goes in as
/// zero and comes out as the size of the newest version of the record.
///
/// # Safety
/// `size` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetStructSize(
    kind: u32,
    _version: usize,
    size: *mut usize,
) -> c_int {
    call("cuptiActivityGetStructSize", || {
        let (Some(bytes), false) = (size_of(kind, toolkit()), size.is_null()) else {
            return INVALID_PARAMETER;
        };
        // SAFETY: not null; the caller says the rest.
        unsafe { size.write(bytes) };
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableLatencyTimestamps(_enable: u8) -> c_int {
    call("cuptiActivityEnableLatencyTimestamps", || SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnableAllSyncRecords(_enable: u8) -> c_int {
    call("cuptiActivityEnableAllSyncRecords", || SUCCESS)
}
