//! The functions that scripts call: those of SYCL's runtime (Unified Runtime) and of Level
//! Zero that do what CUDA's do. Their numbers are this fake's own; who wants a name asks PTI.

use std::ffi::CStr;

pub(crate) const DRIVER: u32 = 1;
pub(crate) const RUNTIME: u32 = 2;

pub(crate) struct Function {
    pub(crate) domain: u32,
    pub(crate) cbid: u32,
    pub(crate) name: &'static CStr,
}

/// What a program calls before it launches a kernel by the driver API: of no interest here.
pub(crate) static GET_KERNEL: Option<Function> = None;

/// The same work in both APIs.
pub(crate) struct Pair {
    pub(crate) runtime: Function,
    pub(crate) driver: Function,
}

macro_rules! pairs {
    ($($name:ident = $id:literal $runtime:literal, $driver:literal;)*) => {
        $(pub(crate) static $name: Pair = Pair {
            runtime: Function { domain: RUNTIME, cbid: $id, name: $runtime },
            driver: Function { domain: DRIVER, cbid: $id, name: $driver },
        };)*
    };
}

pairs! {
    LAUNCH = 1 c"urEnqueueKernelLaunch", c"zeCommandListAppendLaunchKernel";
    COPY = 2 c"urEnqueueUSMMemcpy", c"zeCommandListAppendMemoryCopy";
    PEER = 3 c"urEnqueueUSMMemcpy", c"zeCommandListAppendMemoryCopy";
    SET = 4 c"urEnqueueUSMFill", c"zeCommandListAppendMemoryFill";
    GRAPH = 5 c"urEnqueueCommandBufferExp", c"zeCommandQueueExecuteCommandLists";
    SYNC_DEVICE = 6 c"urQueueFinish", c"zeCommandQueueSynchronize";
    SYNC_STREAM = 7 c"urQueueFinish", c"zeCommandListHostSynchronize";
    SYNC_EVENT = 8 c"urEventWait", c"zeEventHostSynchronize";
    RECORD = 9 c"urEnqueueEventsWait", c"zeCommandListAppendSignalEvent";
    WAIT = 10 c"urEnqueueEventsWaitWithBarrier", c"zeCommandListAppendBarrier";
}

/// Functions of no consequence, for `call`, by the names that scripts of CUDA have for them.
static OTHERS: [(&str, Function); 4] = [
    ("cudaMalloc", Function { domain: RUNTIME, cbid: 20, name: c"urUSMDeviceAlloc" }),
    ("cudaFree", Function { domain: RUNTIME, cbid: 21, name: c"urUSMFree" }),
    ("cudaGetDevice", Function { domain: RUNTIME, cbid: 22, name: c"urDeviceGet" }),
    ("cuCtxGetCurrent", Function { domain: DRIVER, cbid: 23, name: c"zeContextGetStatus" }),
];

pub(crate) fn other(name: &str) -> Option<&'static Function> {
    OTHERS.iter().find(|(cuda, _)| *cuda == name).map(|(_, function)| function)
}
