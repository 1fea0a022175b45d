//! What PyTorch's allocators report to a profiler (c10/core/Allocator.h), and whether one listens.
//! They call these functions of `libc10.so` through the dynamic linker, which finds ours before
//! them; ours pass on. So PyTorch's own profiler has what it has without us.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use kymograph_backends::torch::{self, Allocation};

use super::behind;
use crate::guard::{guard, slow_guard};

const LIBRARY: &CStr = c"libc10.so";

/// A function of PyTorch's, looked up once.
struct Theirs {
    found: AtomicPtr<c_void>,
    looked: AtomicU8,
}

impl Theirs {
    const fn new() -> Theirs {
        Theirs { found: AtomicPtr::new(std::ptr::null_mut()), looked: AtomicU8::new(0) }
    }

    fn get(&self, name: &CStr) -> *mut c_void {
        if self.looked.load(Ordering::Acquire) == 0 {
            let found = slow_guard(std::ptr::null_mut(), || behind::definition(name, LIBRARY));
            self.found.store(found, Ordering::Relaxed);
            self.looked.store(1, Ordering::Release);
        }
        self.found.load(Ordering::Relaxed)
    }
}

/// `c10::memoryProfilingEnabled`: whether allocations are to be reported.
#[unsafe(export_name = "_ZN3c1022memoryProfilingEnabledEv")]
pub extern "C" fn memory_profiling_enabled() -> bool {
    static THEIRS: Theirs = Theirs::new();
    if guard(false, torch::wants_memory) {
        return true;
    }
    let theirs = THEIRS.get(c"_ZN3c1022memoryProfilingEnabledEv");
    // SAFETY: what has this name has this type; null is none.
    let theirs =
        unsafe { std::mem::transmute::<*mut c_void, Option<extern "C" fn() -> bool>>(theirs) };
    theirs.is_some_and(|theirs| theirs())
}

type Report = extern "C" fn(*mut c_void, i64, u64, u64, u16);

macro_rules! report {
    ($name:ident = $symbol:literal, $c:literal) => {
        /// `c10::reportMemoryUsageToProfiler`: a block was allocated or freed. A `c10::Device` is
        /// two bytes, its type and its index.
        #[unsafe(export_name = $symbol)]
        pub extern "C" fn $name(
            block: *mut c_void,
            bytes: i64,
            allocated: u64,
            reserved: u64,
            device: u16,
        ) {
            static THEIRS: Theirs = Theirs::new();
            let theirs = THEIRS.get($c);
            // SAFETY: what has this name has this type; null is none.
            let theirs = unsafe { std::mem::transmute::<*mut c_void, Option<Report>>(theirs) };
            if let Some(theirs) = theirs {
                theirs(block, bytes, allocated, reserved, device);
            }
            guard((), || {
                let [device_type, device] = device.to_le_bytes().map(u8::cast_signed);
                let address = block.addr() as u64;
                torch::memory_changed(Allocation {
                    address,
                    bytes,
                    allocated,
                    reserved,
                    device_type,
                    device,
                });
            });
        }
    };
}

report!(
    report = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
    c"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
);
// Before 2.1.
report!(
    report_signed = "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    c"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
);
