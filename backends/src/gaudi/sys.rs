//! What Synapse defines, as far as it is used: synapse_api.h and synapse_common_types.h of
//! HabanaAI/Intel_Gaudi3_Software (2024-11), the same in HabanaAI/SynapseAI_Core unless said
//! otherwise.

use std::ffi::{c_char, c_int, c_void};

use crate::load::functions;

/// `synStatus`.
pub(crate) type Status = c_int;
pub(crate) const SUCCESS: Status = 0;

/// `synTraceType`.
pub(crate) const TRACE_ALL: c_int = 1;
pub(crate) const TRACE_HOST: c_int = 2;
pub(crate) const TRACE_DEVICE: c_int = 3;
/// `synTraceFormatTEF`.
pub(crate) const FORMAT_TEF: c_int = 1;

functions! {
    /// libSynapse.
    Synapse
    required {
        start = c"synProfilerStart": fn(c_int, u32) -> Status;
        stop = c"synProfilerStop": fn(c_int, u32) -> Status;
        trace = c"synProfilerGetTrace":
            fn(c_int, u32, c_int, *mut c_void, *mut usize, *mut usize) -> Status;
        now = c"synProfilerGetCurrentTimeNS": fn(*mut u64) -> Status;
    }
    optional {
        required_memory = c"synProfilerQueryRequiredMemory": fn(u32, *mut u32) -> Status;
        user_buffer = c"synProfilerSetUserBuffer": fn(u32, *mut c_void) -> Status;
        malloc = c"synDeviceMalloc": fn(u32, u64, u64, u32, *mut u64) -> Status;
        name = c"synDeviceGetName": fn(*mut c_char, c_int, u32) -> Status;
        memory = c"synDeviceGetMemoryInfo": fn(u32, *mut u64, *mut u64) -> Status;
        synchronize = c"synDeviceSynchronize": fn(u32) -> Status;
        initialize = c"synInitialize": fn() -> Status;
        count = c"synDeviceGetCount": fn(*mut u32) -> Status;
    }
}
