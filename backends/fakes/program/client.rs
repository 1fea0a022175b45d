//! The program as a user of CUPTI, like PyTorch's profiler: it finds the functions where
//! a program that is linked with CUPTI does, registers its own buffers without asking who
//! was there, and flushes by force at the end.

use std::alloc::{Layout, alloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::{load, symbol};

const SIZE: usize = 64 << 10;

/// Kinds: runtime, driver, kernels, copies, sets, waits.
const KINDS: [u32; 6] = [5, 4, 10, 1, 2, 38];

static GIVEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static COUNTS: Mutex<BTreeMap<u32, u64>> = Mutex::new(BTreeMap::new());
static UNKNOWN_BUFFERS: Mutex<u64> = Mutex::new(0);

pub(crate) struct Client;

impl Client {
    pub(crate) fn start() -> Client {
        let found = [c"libcupti.so.13", c"libcupti.so.12", c"libcupti.so.11.8"];
        found.iter().find_map(|name| load(name)).expect("a CUPTI");
        type Register = unsafe extern "C" fn(
            unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize),
            unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize),
        ) -> c_int;
        // SAFETY: `cupti_activity.h` declares it so.
        let register: Register = unsafe { function(c"cuptiActivityRegisterCallbacks") };
        // SAFETY: functions that live as long as the program.
        assert_eq!(unsafe { register(request, complete) }, 0);
        for kind in KINDS {
            assert_eq!(one(c"cuptiActivityEnable", kind), 0);
        }
        Client
    }

    pub(crate) fn stop(self) {
        for kind in KINDS {
            assert_eq!(one(c"cuptiActivityDisable", kind), 0);
        }
        // As Kineto does (`CuptiActivityApi::activityBuffers`): with none of its buffers out,
        // it takes it that there is nothing to flush.
        if !GIVEN.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            assert_eq!(one(c"cuptiActivityFlushAll", 1), 0);
        }
        let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, count) in counts.iter() {
            println!("kind {kind}: {count}");
        }
        let unknown = UNKNOWN_BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
        println!("buffers of others: {unknown}");
    }
}

/// Where the dynamic linker would find it for the program: the first that has it.
///
/// # Safety
/// `F` is the type of the function with this name.
unsafe fn function<F: Copy>(name: &CStr) -> F {
    // SAFETY: the caller says so; null stands for all that is loaded.
    unsafe { symbol(ptr::null_mut(), name) }.expect("a function of CUPTI")
}

/// Calls a function with one number.
fn one(name: &CStr, argument: u32) -> c_int {
    // SAFETY: those that are called with this have this type.
    let call: unsafe extern "C" fn(u32) -> c_int = unsafe { function(name) };
    // SAFETY: a number, of the header's.
    unsafe { call(argument) }
}

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    let layout = Layout::from_size_align(SIZE, 8).expect("a layout");
    // SAFETY: not of size zero; it is never given back, for so small a program.
    let memory = unsafe { alloc(layout) };
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner).push(memory.addr());
    // SAFETY: places for the answer.
    unsafe {
        buffer.write(memory);
        size.write(SIZE);
        most.write(0);
    }
}

unsafe extern "C" fn complete(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let out = given.len();
    given.retain(|known| *known != buffer.addr());
    let known = given.len() < out;
    drop(given);
    if !known {
        *UNKNOWN_BUFFERS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        return;
    }
    type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
    // SAFETY: `cupti_activity.h` declares it so.
    let next: Next = unsafe { function(c"cuptiActivityGetNextRecord") };
    let mut record = ptr::null_mut();
    // SAFETY: the buffer that was completed.
    while unsafe { next(buffer, valid, &mut record) } == 0 {
        // SAFETY: every record begins with its kind.
        let kind = unsafe { record.cast::<u32>().read() };
        *COUNTS.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }
}
