//! The program as a user of PTI, like PyTorch's profiler (Kineto's XpuptiActivityApi): it finds
//! the functions where a program that is linked with PTI does, and does not survive a buffer
//! that it did not give.

use std::alloc::{Layout, alloc};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use crate::{load, symbol};

const SIZE: usize = 16 << 10;

/// Kinds: kernels, copies, sets, calls of SYCL.
const KINDS: [u32; 4] = [1, 8, 9, 6];

static GIVEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
static READY: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

pub(crate) struct Client;

impl Client {
    pub(crate) fn start() -> Client {
        let found = [c"libpti_view.so.1", c"libpti_view.so.0"];
        found.iter().find_map(|name| load(name)).expect("a PTI");
        type Set = unsafe extern "C" fn(
            unsafe extern "C" fn(*mut *mut u8, *mut usize),
            unsafe extern "C" fn(*mut u8, usize, usize),
        ) -> c_int;
        // SAFETY: `pti_view.h` declares it so.
        let set: Set = unsafe { function(c"ptiViewSetCallbacks") };
        // SAFETY: functions that live as long as the program.
        assert_eq!(unsafe { set(request, complete) }, 0);
        for kind in KINDS {
            assert_eq!(one(c"ptiViewEnable", kind), 0);
        }
        Client
    }

    pub(crate) fn stop(self) {
        for kind in KINDS {
            assert_eq!(one(c"ptiViewDisable", kind), 0);
        }
        // With none of its buffers out it takes it that there is nothing to flush.
        if !GIVEN.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            // SAFETY: `pti_view.h` declares it so.
            unsafe {
                assert_eq!(function::<unsafe extern "C" fn() -> c_int>(c"ptiFlushAllViews")(), 0)
            };
        }
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (buffer, used) in READY.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            count(*buffer as *mut u8, *used, &mut counts);
        }
        for (kind, count) in counts {
            println!("kind {kind}: {count}");
        }
    }
}

/// Where the dynamic linker would find it for the program: the first that has it.
///
/// # Safety
/// `F` is the type of the function with this name.
unsafe fn function<F: Copy>(name: &CStr) -> F {
    // SAFETY: the caller says so; null stands for all that is loaded.
    unsafe { symbol(ptr::null_mut(), name) }.expect("a function of PTI")
}

/// Calls a function with one number.
fn one(name: &CStr, argument: u32) -> c_int {
    // SAFETY: those that are called with this have this type.
    let call: unsafe extern "C" fn(u32) -> c_int = unsafe { function(name) };
    // SAFETY: a number, of the header's.
    unsafe { call(argument) }
}

unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize) {
    let layout = Layout::from_size_align(SIZE, 8).expect("a layout");
    // SAFETY: not of size zero; it is never given back, for so small a program.
    let memory = unsafe { alloc(layout) };
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(memory.addr());
    // SAFETY: places for the answer.
    unsafe {
        buffer.write(memory);
        size.write(SIZE);
    }
}

unsafe extern "C" fn complete(buffer: *mut u8, size: usize, used: usize) {
    let known = GIVEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&buffer.addr());
    // Kineto goes on with the end of its map.
    if !known || size != SIZE {
        eprintln!("the program got a buffer that is not its own");
        std::process::abort();
    }
    READY.lock().unwrap_or_else(PoisonError::into_inner).push((buffer.addr(), used));
}

fn count(buffer: *mut u8, used: usize, counts: &mut BTreeMap<u32, u64>) {
    type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
    // SAFETY: `pti_view.h` declares it so.
    let next: Next = unsafe { function(c"ptiViewGetNextRecord") };
    let mut record = ptr::null_mut();
    // SAFETY: the buffer that was completed.
    while unsafe { next(buffer, used, &mut record) } == 0 {
        // SAFETY: every record begins with its kind.
        *counts.entry(unsafe { record.cast::<u32>().read() }).or_default() += 1;
    }
}
