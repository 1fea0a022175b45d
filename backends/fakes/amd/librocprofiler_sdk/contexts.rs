//! Contexts, and the services in them.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::registration::{is_finalized, is_open};
use crate::status::{CONTEXT_NOT_FOUND, ERROR, SUCCESS, call, finalized, locked};

#[derive(Clone)]
pub(crate) struct Service {
    /// None: all.
    operations: Option<Vec<c_int>>,
    pub(crate) callback: usize,
    pub(crate) data: usize,
}

#[derive(Default)]
struct Context {
    running: bool,
    callbacks: BTreeMap<c_int, Service>,
    buffers: BTreeMap<c_int, u64>,
}

static CONTEXTS: Mutex<Vec<Context>> = Mutex::new(Vec::new());

/// Handles are not indices.
const FIRST: u64 = 0x500;

fn lock() -> MutexGuard<'static, Vec<Context>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with(id: u64, body: impl FnOnce(&mut Context) -> c_int) -> c_int {
    let mut contexts = lock();
    match contexts.get_mut(id.wrapping_sub(FIRST) as usize) {
        Some(context) => body(context),
        None => CONTEXT_NOT_FOUND,
    }
}

/// Callbacks of this kind and operation in running contexts.
pub(crate) fn callbacks(kind: c_int, operation: c_int) -> Vec<(u64, Service)> {
    let contexts = lock();
    let running = contexts.iter().enumerate().filter(|(_, context)| context.running);
    let mut found = Vec::new();
    for (at, context) in running {
        let service = context.callbacks.get(&kind);
        let wanted = |service: &&Service| {
            service.operations.as_ref().is_none_or(|all| all.contains(&operation))
        };
        found.extend(service.filter(wanted).map(|service| (FIRST + at as u64, service.clone())));
    }
    found
}

/// Buffers for records of this kind, of running contexts.
pub(crate) fn buffers(kind: c_int) -> Vec<u64> {
    let contexts = lock();
    let running = contexts.iter().filter(|context| context.running);
    running.filter_map(|context| context.buffers.get(&kind).copied()).collect()
}

pub(crate) fn stop_all() {
    lock().iter_mut().for_each(|context| context.running = false);
}

/// # Safety
/// `to` is valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_context(to: *mut u64) -> c_int {
    call("rocprofiler_create_context", || {
        if !is_open() {
            return locked();
        }
        let mut contexts = lock();
        contexts.push(Context::default());
        // SAFETY: the caller's.
        unsafe {
            if to.read() != 0 {
                return ERROR;
            }
            to.write(FIRST + contexts.len() as u64 - 1);
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_start_context(id: u64) -> c_int {
    call("rocprofiler_start_context", || start(id, true))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_stop_context(id: u64) -> c_int {
    call("rocprofiler_stop_context", || start(id, false))
}

fn start(id: u64, on: bool) -> c_int {
    if is_finalized() {
        return finalized();
    }
    with(id, |context| {
        context.running = on;
        SUCCESS
    })
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_context_is_valid(id: u64, to: *mut c_int) -> c_int {
    call("rocprofiler_context_is_valid", || {
        with(id, |_| {
            // SAFETY: the caller's.
            unsafe { to.write(1) };
            SUCCESS
        })
    })
}

/// # Safety
/// `operations` is null or has `count` of them.
unsafe fn list(operations: *const c_int, count: usize) -> Option<Vec<c_int>> {
    if operations.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    Some(unsafe { std::slice::from_raw_parts(operations, count) }.to_vec())
}

/// # Safety
/// `operations` is null or has `count` of them; `callback` takes what it is promised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_callback_tracing_service(
    id: u64,
    kind: c_int,
    operations: *const c_int,
    count: usize,
    callback: *mut c_void,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_configure_callback_tracing_service", || {
        if !is_open() {
            return locked();
        }
        // SAFETY: the caller's.
        let operations = unsafe { list(operations, count) };
        let service = Service { operations, callback: callback as usize, data: data as usize };
        with(id, |context| match context.callbacks.insert(kind, service) {
            None => SUCCESS,
            Some(_) => ERROR,
        })
    })
}

/// # Safety
/// `operations` is null or has `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_buffer_tracing_service(
    id: u64,
    kind: c_int,
    _operations: *const c_int,
    _count: usize,
    buffer: u64,
) -> c_int {
    call("rocprofiler_configure_buffer_tracing_service", || {
        if !is_open() {
            return locked();
        }
        with(id, |context| match context.buffers.insert(kind, buffer) {
            None => SUCCESS,
            Some(_) => ERROR,
        })
    })
}
