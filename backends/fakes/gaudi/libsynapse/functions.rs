//! What scripts call. Synapse has one way to launch anything: a recipe.

use std::ffi::CStr;

pub(crate) struct Function {
    pub(crate) domain: u32,
    pub(crate) cbid: u32,
    pub(crate) name: &'static CStr,
}

/// The same in both APIs of CUDA's; here they are one.
pub(crate) struct Pair {
    pub(crate) runtime: Function,
    pub(crate) driver: Function,
}

macro_rules! pairs {
    ($($name:ident = $function:literal;)*) => {
        $(pub(crate) static $name: Pair = Pair {
            runtime: Function { domain: 2, cbid: 0, name: $function },
            driver: Function { domain: 1, cbid: 0, name: $function },
        };)*
    };
}

pairs! {
    LAUNCH = c"enqueueWithExternalEvents";
    COPY = c"enqueueWithExternalEvents";
    PEER = c"enqueueWithExternalEvents";
    SET = c"enqueueWithExternalEvents";
    GRAPH = c"enqueueWithExternalEvents";
    SYNC_DEVICE = c"synDeviceSynchronize";
    SYNC_STREAM = c"synStreamSynchronize";
    SYNC_EVENT = c"synEventSynchronize";
    RECORD = c"synEventRecord";
    WAIT = c"synStreamWaitEvent";
}

/// Kernels are in recipes.
pub(crate) static GET_KERNEL: Option<Function> = None;

/// Functions of no consequence, for `call`, by the names that scripts of CUDA have for them.
static OTHERS: [(&str, Function); 2] = [
    ("cudaMalloc", Function { domain: 2, cbid: 0, name: c"synDeviceMalloc" }),
    ("cudaGetDevice", Function { domain: 2, cbid: 0, name: c"synDeviceGetInfo" }),
];

pub(crate) fn other(name: &str) -> Option<&'static Function> {
    OTHERS.iter().find(|(cuda, _)| *cuda == name).map(|(_, function)| function)
}
