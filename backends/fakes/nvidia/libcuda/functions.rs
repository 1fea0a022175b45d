//! The functions that scripts call, with their numbers in CUDA's generated headers
//! (`cupti_runtime_cbid.h`, `cupti_driver_cbid.h`).

use std::ffi::CStr;

pub(crate) const DRIVER: u32 = 1;
pub(crate) const RUNTIME: u32 = 2;

pub(crate) struct Function {
    pub(crate) domain: u32,
    pub(crate) cbid: u32,
    pub(crate) name: &'static CStr,
}

const fn runtime(cbid: u32, name: &'static CStr) -> Function {
    Function { domain: RUNTIME, cbid, name }
}

const fn driver(cbid: u32, name: &'static CStr) -> Function {
    Function { domain: DRIVER, cbid, name }
}

/// The same work in both APIs.
pub(crate) struct Pair {
    pub(crate) runtime: Function,
    pub(crate) driver: Function,
}

macro_rules! pairs {
    ($($name:ident = $runtime_id:literal $runtime:literal, $driver_id:literal $driver:literal;)*) => {
        $(pub(crate) static $name: Pair = Pair {
            runtime: runtime($runtime_id, $runtime),
            driver: driver($driver_id, $driver),
        };)*
    };
}

pairs! {
    LAUNCH = 211 c"cudaLaunchKernel", 307 c"cuLaunchKernel";
    COPY = 41 c"cudaMemcpyAsync", 306 c"cuMemcpyAsync";
    PEER = 161 c"cudaMemcpyPeerAsync", 319 c"cuMemcpyPeerAsync";
    SET = 51 c"cudaMemsetAsync", 216 c"cuMemsetD8Async";
    GRAPH = 311 c"cudaGraphLaunch", 514 c"cuGraphLaunch";
    SYNC_DEVICE = 165 c"cudaDeviceSynchronize", 17 c"cuCtxSynchronize";
    SYNC_STREAM = 131 c"cudaStreamSynchronize", 126 c"cuStreamSynchronize";
    SYNC_EVENT = 137 c"cudaEventSynchronize", 121 c"cuEventSynchronize";
    RECORD = 135 c"cudaEventRecord", 119 c"cuEventRecord";
    WAIT = 147 c"cudaStreamWaitEvent", 295 c"cuStreamWaitEvent";
}

/// What a program calls before it launches a kernel by the driver API.
pub(crate) static GET_KERNEL: Option<Function> = Some(driver(23, c"cuModuleGetFunction"));

/// Functions of no consequence, for `call`.
static OTHERS: [Function; 14] = [
    runtime(10, c"cudaGetLastError"),
    runtime(16, c"cudaSetDevice"),
    runtime(17, c"cudaGetDevice"),
    runtime(20, c"cudaMalloc"),
    runtime(22, c"cudaFree"),
    runtime(138, c"cudaEventQuery"),
    runtime(171, c"cudaProfilerStart"),
    runtime(172, c"cudaProfilerStop"),
    driver(23, c"cuModuleGetFunction"),
    driver(304, c"cuCtxGetCurrent"),
    driver(392, c"cuDevicePrimaryCtxGetState"),
    driver(686, c"cuKernelGetAttribute"),
    driver(377, c"cuProfilerStart"),
    driver(378, c"cuProfilerStop"),
];

pub(crate) fn other(name: &str) -> Option<&'static Function> {
    OTHERS.iter().find(|function| function.name.to_bytes() == name.as_bytes())
}
