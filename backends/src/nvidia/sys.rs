//! What CUPTI and the CUDA driver define, as far as it is used.
//!
//! Numbers and layouts are those of cupti_activity.h, cupti_callbacks.h, cupti_result.h
//! and cuda.h, CUDA 11.8 to 13.4, in which they are the same unless said otherwise.

#![allow(missing_docs, reason = "named after the headers, which document them")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::load::functions;

/// `CUptiResult`.
pub type Code = c_int;
pub(crate) const SUCCESS: Code = 0;
pub(crate) const ERROR_INVALID_PARAMETER: Code = 1;
pub(crate) const ERROR_NOT_INITIALIZED: Code = 15;
pub(crate) const ERROR_MULTIPLE_SUBSCRIBERS: Code = 39;

/// `CUpti_ActivityFlag`.
pub(crate) const FLUSH_FORCED: u32 = 1;

/// `CUpti_CallbackDomain`.
pub(crate) const DOMAIN_DRIVER: c_int = 1;
pub(crate) const DOMAIN_RUNTIME: c_int = 2;
pub(crate) const DOMAIN_RESOURCE: c_int = 3;
pub(crate) const DOMAIN_STATE: c_int = 6;

/// `CUpti_CallbackIdResource`.
pub(crate) const RESOURCE_CONTEXT_CREATED: u32 = 1;
pub(crate) const RESOURCE_CONTEXT_DESTROY_STARTING: u32 = 2;
pub(crate) const RESOURCE_CU_INIT_FINISHED: u32 = 5;

/// `CUpti_ApiCallbackSite`.
pub(crate) const API_ENTER: u32 = 0;

/// `CUpti_CallbackData`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CallbackData {
    pub(crate) site: u32,
    pub(crate) function_name: *const c_char,
    pub(crate) params: *const c_void,
    pub(crate) return_value: *const c_void,
    pub(crate) symbol_name: *const c_char,
    pub(crate) context: *mut c_void,
    pub(crate) context_uid: u32,
    pub(crate) correlation_data: *mut u64,
    pub(crate) correlation_id: u32,
}

const _: () = assert!(size_of::<CallbackData>() == 72);
const _: () = assert!(std::mem::offset_of!(CallbackData, context) == 40);
const _: () = assert!(std::mem::offset_of!(CallbackData, correlation_data) == 56);
const _: () = assert!(std::mem::offset_of!(CallbackData, correlation_id) == 64);

/// The beginning of `CUpti_ResourceData`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ResourceData {
    pub(crate) context: *mut c_void,
}

/// The beginning of `CUpti_StateData`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct StateData {
    pub(crate) result: Code,
    pub(crate) message: *const c_char,
}

const _: () = assert!(std::mem::offset_of!(StateData, message) == 8);

pub type Callback =
    unsafe extern "C" fn(user: *mut c_void, domain: c_int, id: u32, data: *const c_void);
pub type BufferRequested =
    unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize, records: *mut usize);
pub type BufferCompleted = unsafe extern "C" fn(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
);
pub type TimestampCallback = unsafe extern "C" fn() -> u64;

functions! {
    /// libcupti.
    Cupti
    required {
        version = c"cuptiGetVersion": fn(*mut u32) -> Code;
        subscribe = c"cuptiSubscribe": fn(*mut *mut c_void, Callback, *mut c_void) -> Code;
        unsubscribe = c"cuptiUnsubscribe": fn(*mut c_void) -> Code;
        enable_callback = c"cuptiEnableCallback": fn(u32, *mut c_void, c_int, u32) -> Code;
        enable_domain = c"cuptiEnableDomain": fn(u32, *mut c_void, c_int) -> Code;
        callback_name = c"cuptiGetCallbackName": fn(c_int, u32, *mut *const c_char) -> Code;
        register_callbacks = c"cuptiActivityRegisterCallbacks":
            fn(BufferRequested, BufferCompleted) -> Code;
        enable = c"cuptiActivityEnable": fn(u32) -> Code;
        disable = c"cuptiActivityDisable": fn(u32) -> Code;
        flush_all = c"cuptiActivityFlushAll": fn(u32) -> Code;
        next_record = c"cuptiActivityGetNextRecord":
            fn(*mut u8, usize, *mut *mut u8) -> Code;
        dropped = c"cuptiActivityGetNumDroppedRecords":
            fn(*mut c_void, u32, *mut usize) -> Code;
    }
    optional {
        get_timestamp = c"cuptiGetTimestamp": fn(*mut u64) -> Code;
        finalize = c"cuptiFinalize": fn() -> Code;
        result_string = c"cuptiGetResultString": fn(Code, *mut *const c_char) -> Code;
        register_timestamp = c"cuptiActivityRegisterTimestampCallback":
            fn(TimestampCallback) -> Code;
        enable_and_dump = c"cuptiActivityEnableAndDump": fn(u32) -> Code;
        configure_unified = c"cuptiActivityConfigureUnifiedMemoryCounter":
            fn(*mut [u32; 4], u32) -> Code;
        stream_id = c"cuptiGetStreamIdEx":
            fn(*mut c_void, *mut c_void, u8, *mut u32) -> Code;
        enable_runtime_api = c"cuptiActivityEnableRuntimeApi": fn(u32, u8) -> Code;
    }
}

/// `CUdevice_attribute`.
pub(crate) mod attribute {
    use std::ffi::c_int;
    pub(crate) const MAX_THREADS_PER_BLOCK: c_int = 1;
    pub(crate) const MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
    pub(crate) const WARP_SIZE: c_int = 10;
    pub(crate) const MAX_REGISTERS_PER_BLOCK: c_int = 12;
    pub(crate) const MULTIPROCESSOR_COUNT: c_int = 16;
    pub(crate) const MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
    pub(crate) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
    pub(crate) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
    pub(crate) const MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 81;
    pub(crate) const MAX_REGISTERS_PER_MULTIPROCESSOR: c_int = 82;
    pub(crate) const MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
    pub(crate) const MAX_BLOCKS_PER_MULTIPROCESSOR: c_int = 106;
    pub(crate) const RESERVED_SHARED_MEMORY_PER_BLOCK: c_int = 111;
}

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
pub(crate) const CAPTURE_MODE_RELAXED: c_int = 2;

functions! {
    /// libcuda.so.1.
    Cuda
    required {
        init = c"cuInit": fn(c_uint) -> c_int;
        driver_version = c"cuDriverGetVersion": fn(*mut c_int) -> c_int;
        device_count = c"cuDeviceGetCount": fn(*mut c_int) -> c_int;
        device = c"cuDeviceGet": fn(*mut c_int, c_int) -> c_int;
        device_name = c"cuDeviceGetName": fn(*mut c_char, c_int, c_int) -> c_int;
        device_attribute = c"cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int) -> c_int;
    }
    optional {
        device_uuid = c"cuDeviceGetUuid_v2": fn(*mut [u8; 16], c_int) -> c_int;
        device_uuid_v1 = c"cuDeviceGetUuid": fn(*mut [u8; 16], c_int) -> c_int;
        device_memory = c"cuDeviceTotalMem_v2": fn(*mut usize, c_int) -> c_int;
        device_pci = c"cuDeviceGetPCIBusId": fn(*mut c_char, c_int, c_int) -> c_int;
        primary_state = c"cuDevicePrimaryCtxGetState":
            fn(c_int, *mut c_uint, *mut c_int) -> c_int;
        primary_retain = c"cuDevicePrimaryCtxRetain": fn(*mut *mut c_void, c_int) -> c_int;
        primary_release = c"cuDevicePrimaryCtxRelease_v2": fn(c_int) -> c_int;
        set_context = c"cuCtxSetCurrent": fn(*mut c_void) -> c_int;
        synchronize = c"cuCtxSynchronize": fn() -> c_int;
        exchange_capture_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut c_int) -> c_int;
    }
}
