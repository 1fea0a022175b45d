//! What the fake HIP hands to the fake rocprofiler-sdk: a "dispatch table" whose functions
//! the latter may replace. The real tables have a pointer per function; this has one for all.
// Each fake uses some of it.
#![allow(dead_code)]

use std::ffi::CStr;
use std::sync::atomic::AtomicPtr;

use crate::seam::Work;

/// Replaces or wraps what the functions do.
pub(crate) type Observe = extern "C" fn(&Event<'_>);

/// The one entry: an [`Observe`], or null.
#[repr(C)]
pub(crate) struct Table {
    pub(crate) observe: AtomicPtr<()>,
}

/// A library with a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) enum Library {
    Hip,
    Rccl,
    /// Its three tables.
    Roctx,
    RoctxControl,
    RoctxName,
    Hsa,
}

pub(crate) const LIBRARIES: [Library; 6] = [
    Library::Hip,
    Library::Rccl,
    Library::Roctx,
    Library::RoctxControl,
    Library::RoctxName,
    Library::Hsa,
];

/// An argument of a call, as C has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Argument {
    pub(crate) name: &'static CStr,
    pub(crate) ty: &'static CStr,
    pub(crate) bytes: [u8; 12],
    pub(crate) width: usize,
    pub(crate) align: usize,
}

/// A call of a function.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Call<'a> {
    pub(crate) library: Library,
    pub(crate) function: &'static CStr,
    pub(crate) correlation: u64,
    pub(crate) arguments: &'a [Argument],
    /// What it returned; 0 while it is under way.
    pub(crate) result: u64,
    /// A word of the invocation's own.
    pub(crate) word: *mut u64,
}

#[repr(C)]
pub(crate) enum Event<'a> {
    Enter(Call<'a>),
    Exit(Call<'a>),
    /// Times are CLOCK_REALTIME, as in the other fakes.
    Work(Work),
    /// Memory: bytes, negative if it is released.
    Memory {
        device: u32,
        correlation: u64,
        address: u64,
        bytes: i64,
    },
    /// Pages that a device needed, or (`moved`) that were moved to it.
    Pages {
        device: u32,
        moved: bool,
        address: u64,
        bytes: u64,
        start: u64,
        end: u64,
    },
    /// A stream's wait for an event on the device.
    Waited {
        device: u32,
        stream: u32,
        correlation: u64,
        event: u64,
        start: u64,
        end: u64,
    },
    /// Scratch memory: what happened, from when to when.
    Scratch {
        device: u32,
        operation: u32,
        bytes: u64,
        start: u64,
        end: u64,
    },
}

/// Functions by operation, as the fake library numbers them. The real numbers are those of
/// the versions' headers, and differ between them: nobody may rely on either.
pub(crate) const HIP: [&CStr; 28] = [
    c"hipDeviceSynchronize",
    c"hipEventCreateWithFlags",
    c"hipEventQuery",
    c"hipEventRecord",
    c"hipEventSynchronize",
    c"hipFree",
    c"hipGetDevice",
    c"hipGetDevicePropertiesR0600",
    c"hipGetLastError",
    c"hipGraphLaunch",
    c"hipLaunchCooperativeKernel",
    c"hipLaunchKernel",
    c"hipMalloc",
    c"hipMemcpy",
    c"hipMemcpyAsync",
    c"hipMemcpyPeerAsync",
    c"hipMemset",
    c"hipMemsetAsync",
    c"hipMemsetD32Async",
    c"hipModuleLaunchKernel",
    c"hipExtModuleLaunchKernel",
    c"hipSetDevice",
    c"hipStreamCreateWithFlags",
    c"hipStreamDestroy",
    c"hipStreamSynchronize",
    c"hipStreamWaitEvent",
    c"__hipPushCallConfiguration",
    c"__hipPopCallConfiguration",
];
pub(crate) const RCCL: [&CStr; 4] =
    [c"ncclAllReduce", c"ncclBroadcast", c"ncclGroupEnd", c"ncclSend"];
pub(crate) const ROCTX: [&CStr; 6] = [
    c"roctxMarkA",
    c"roctxRangePushA",
    c"roctxRangePop",
    c"roctxRangeStartA",
    c"roctxRangeStop",
    c"roctxGetThreadId",
];

pub(crate) const ROCTX_CONTROL: [&CStr; 2] = [c"roctxProfilerPause", c"roctxProfilerResume"];
pub(crate) const ROCTX_NAME: [&CStr; 4] =
    [c"roctxNameOsThread", c"roctxNameHsaAgent", c"roctxNameHipDevice", c"roctxNameHipStream"];
pub(crate) const HSA: [&CStr; 4] = [
    c"hsa_agent_get_info",
    c"hsa_memory_allocate",
    c"hsa_queue_create",
    c"hsa_signal_load_relaxed",
];

pub(crate) fn functions(library: Library) -> &'static [&'static CStr] {
    match library {
        Library::Hip => &HIP,
        Library::Rccl => &RCCL,
        Library::Roctx => &ROCTX,
        Library::RoctxControl => &ROCTX_CONTROL,
        Library::RoctxName => &ROCTX_NAME,
        Library::Hsa => &HSA,
    }
}
