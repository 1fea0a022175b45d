//! What the fake driver tells the fake CUPTI, which finds `fake_cuda_observe` in it: the
//! part of `cuGetExportTable` that the real ones keep to themselves.
// Each fake uses some of it.
#![allow(dead_code)]

use std::ffi::CStr;

/// All times are nanoseconds of CLOCK_REALTIME, which is CUPTI's own clock on Linux.
pub(crate) type Nanos = u64;

/// Always called on the thread that makes the call.
pub(crate) type Observe = extern "C" fn(&Event);

/// What a stream belongs to. Streams have numbers of their own in every context.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Place {
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Call {
    /// 1 for the driver API, 2 for the runtime API.
    pub(crate) domain: u32,
    pub(crate) cbid: u32,
    pub(crate) correlation: u32,
    pub(crate) context: u32,
    /// What it was called with: pointers and numbers, in their order.
    pub(crate) params: [u64; 3],
    /// The function, and the kernel if it launches one.
    pub(crate) function: &'static CStr,
    pub(crate) symbol: Option<&'static CStr>,
    /// A word of the invocation's own, for whoever is told of its beginning and its end.
    pub(crate) word: *mut u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Kernel {
    pub(crate) name: &'static CStr,
    pub(crate) grid: [i32; 3],
    pub(crate) block: [i32; 3],
    pub(crate) registers: u16,
    pub(crate) static_shared: i32,
    pub(crate) dynamic_shared: i32,
    pub(crate) priority: i32,
}

/// Kinds and memories as `cupti_activity.h` numbers them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Memcpy {
    pub(crate) kind: u8,
    pub(crate) source: u8,
    pub(crate) target: u8,
    pub(crate) bytes: u64,
    /// The device copied to, if it is another one.
    pub(crate) peer: Option<u32>,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) enum Task {
    Kernel(Kernel),
    Copy(Memcpy),
    Set {
        value: u32,
        bytes: u64,
    },
    /// A whole graph, from the start of its first node to the end of its last.
    Graph,
}

/// Something a device does. Told when it is submitted, so `end` usually lies ahead.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Work {
    pub(crate) place: Place,
    pub(crate) correlation: u32,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// Zero for work outside graphs.
    pub(crate) graph: u32,
    pub(crate) node: u64,
    pub(crate) task: Task,
}

/// A wait that is over.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Wait {
    /// `CUpti_ActivitySynchronizationType`.
    pub(crate) kind: u32,
    pub(crate) place: Place,
    pub(crate) correlation: u32,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) event: u32,
    pub(crate) record: u64,
}

/// Something that became of memory, by the kinds of records that tell of it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) enum Deed {
    /// `CUpti_ActivityMemoryOperationType`, and `CUpti_ActivityMemoryKind`.
    Memory { operation: u32, kind: u32 },
    /// `CUpti_ActivityMemoryPoolOperationType`.
    Pool { operation: u32 },
    /// `CUpti_ActivityUnifiedMemoryCounterKind`.
    Unified { kind: u32 },
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) deed: Deed,
    pub(crate) place: Place,
    pub(crate) correlation: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) enum Event {
    /// The driver is there.
    Ready,
    Enter(Call),
    Exit(Call),
    Work(Work),
    Wait(Wait),
    /// An event was recorded; `time` is the device's.
    Recorded {
        place: Place,
        correlation: u32,
        event: u32,
        record: u64,
        time: Nanos,
    },
    Context {
        context: u32,
        device: u32,
    },
    /// A context, whose work is done, is about to be destroyed.
    Destroy {
        context: u32,
    },
    Stream {
        place: Place,
        priority: i32,
    },
    Memory(Memory),
    /// Time that CUDA spent on itself: `CUpti_ActivityOverheadKind`.
    Overhead {
        kind: u32,
        correlation: u32,
        start: Nanos,
        end: Nanos,
    },
}

pub(crate) fn realtime() -> Nanos {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// How far another clock is ahead of CLOCK_REALTIME. A thread that is interrupted between two
/// readings reads again.
pub(crate) fn ahead(theirs: impl Fn() -> Nanos) -> Nanos {
    const NEAR: Nanos = 1_000;
    let mut best = (Nanos::MAX, 0);
    for _ in 0..100 {
        let (before, theirs, after) = (realtime(), theirs(), realtime());
        let width = after.saturating_sub(before);
        if width < best.0 {
            best = (width, theirs.wrapping_sub(before + width / 2));
        }
        if best.0 < NEAR {
            break;
        }
    }
    best.1
}
