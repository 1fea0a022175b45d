//! What rocprofiler-sdk defines, as far as it is used.
//!
//! Numbers and layouts are those of the headers of 0.5.0 (ROCm 6.3), 1.0.0 (ROCm 7.0) and
//! of the development branch of 2026 (`rocprofiler-sdk/{fwd,registration,buffer,
//! buffer_tracing,callback_tracing,agent}.h`). Where they differ, both are here, and the
//! version or a record's own size decides. Kinds of records and most operations have
//! numbers that changed: they are asked for by name ([`super::kinds`]).

#![allow(missing_docs, reason = "named after the headers, which document them")]

use std::ffi::{c_char, c_int, c_void};

use crate::load::functions;

/// `rocprofiler_status_t`. From 13 on, numbers differ between versions.
pub type Status = c_int;
pub(crate) const SUCCESS: Status = 0;

/// The oldest version that is understood: 0.5.0, as versions are written
/// (10000 * major + 100 * minor + patch; registration.h).
pub(crate) const OLDEST: u32 = 500;
/// From here on (1.0.0) client ids begin with their size.
pub(crate) const CLIENT_ID_HAS_SIZE: u32 = 10_000;
/// Ids are structs of one number (`rocprofiler_context_id_t` and the like), which the ABI
/// passes like the number.
pub(crate) type Id = u64;

/// `rocprofiler_tool_initialize_t`, `rocprofiler_tool_finalize_t`; the former is given a
/// `rocprofiler_client_finalize_t`, which we do not call.
pub(crate) type Initialize =
    unsafe extern "C" fn(finalizer: *const c_void, data: *mut c_void) -> c_int;
pub(crate) type Finalize = unsafe extern "C" fn(data: *mut c_void);

/// `rocprofiler_tool_configure_result_t` (registration.h).
#[repr(C)]
#[derive(Debug)]
pub struct ConfigureResult {
    pub(crate) size: usize,
    pub(crate) initialize: Initialize,
    pub(crate) finalize: Finalize,
    pub(crate) tool_data: *mut c_void,
}

const _: () = assert!(size_of::<ConfigureResult>() == 32);

// SAFETY: functions and a null pointer.
unsafe impl Sync for ConfigureResult {}

/// `rocprofiler_configure_func_t`.
pub type Configure = unsafe extern "C" fn(
    version: u32,
    runtime_version: *const c_char,
    priority: u32,
    client: *mut c_void,
) -> *mut ConfigureResult;

/// Where a client id has its name (registration.h): `{name, handle}` in 0.5,
/// `{size, name, handle}` from 1.0 on.
pub(crate) const fn client_name_at(version: u32) -> usize {
    if version >= CLIENT_ID_HAS_SIZE { 8 } else { 0 }
}

/// `rocprofiler_record_header_t` (fwd.h).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RecordHeader {
    pub(crate) category: u32,
    pub(crate) kind: u32,
    pub(crate) payload: *const u8,
}

const _: () = assert!(size_of::<RecordHeader>() == 16);

/// `ROCPROFILER_BUFFER_CATEGORY_TRACING`.
pub(crate) const CATEGORY_TRACING: u32 = 1;
/// `ROCPROFILER_BUFFER_POLICY_LOSSLESS`.
pub(crate) const POLICY_LOSSLESS: c_int = 2;

/// `rocprofiler_callback_tracing_record_t` (fwd.h), which is passed by value. Correlation
/// ids had 16 bytes in 0.5 and have 24 since 1.0: what follows them lies 8 bytes further.
/// The larger form serves for both: the 8 bytes after a smaller one are on the stack, too,
/// and not looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallbackRecord {
    pub(crate) context: Id,
    pub(crate) thread: u64,
    /// `correlation_id.internal`.
    pub(crate) correlation: u64,
    pub(crate) external: u64,
    rest: [u64; 4],
}

const _: () = assert!(size_of::<CallbackRecord>() == 64);

impl CallbackRecord {
    /// `kind`, `operation`, `phase` and `payload`.
    #[inline]
    pub(crate) fn parts(&self, version: u32) -> Parts {
        let at = usize::from(version >= CLIENT_ID_HAS_SIZE);
        let (kind_operation, phase, payload) =
            (self.rest[at], self.rest[at + 1], self.rest[at + 2]);
        Parts {
            operation: (kind_operation >> 32) as u32,
            phase: phase as u32,
            payload: payload as usize as *const u8,
        }
    }
}

/// What of a callback's record lies elsewhere in different versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) operation: u32,
    pub(crate) phase: u32,
    pub(crate) payload: *const u8,
}

/// `rocprofiler_callback_phase_t`. Loading is `ENTER`, unloading `EXIT`.
pub(crate) const PHASE_ENTER: u32 = 1;
pub(crate) const PHASE_EXIT: u32 = 2;

/// `ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER`.
pub(crate) const KERNEL_SYMBOL: u32 = 2;

/// The beginning of `rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t`
/// (callback_tracing.h), which both versions have.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KernelSymbol {
    pub(crate) size: u64,
    pub(crate) kernel: u64,
    pub(crate) code_object: u64,
    pub(crate) name: *const c_char,
    pub(crate) object: u64,
    pub(crate) kernarg_size: u32,
    pub(crate) kernarg_alignment: u32,
    /// Static group segment (LDS), in bytes per workgroup.
    pub(crate) group_size: u32,
    /// Private segment (scratch), in bytes per work-item.
    pub(crate) private_size: u32,
    pub(crate) sgprs: u32,
    pub(crate) vgprs: u32,
    pub(crate) accum_vgprs: u32,
}

const _: () = assert!(std::mem::offset_of!(KernelSymbol, name) == 24);
const _: () = assert!(std::mem::offset_of!(KernelSymbol, group_size) == 48);
const _: () = assert!(std::mem::offset_of!(KernelSymbol, vgprs) == 60);
const _: () = assert!(size_of::<KernelSymbol>() == 72);

/// What is read of `rocprofiler_agent_v0_t` (agent.h): the same in 0.5.0 (296 bytes), 0.6.0
/// (304 bytes) and 1.1.0 (312 bytes) up to `UUID`.
pub(crate) mod agent {
    pub(crate) const SIZE: usize = 0;
    pub(crate) const ID: usize = 8;
    pub(crate) const TYPE: usize = 16;
    pub(crate) const WAVE_FRONT_SIZE: usize = 64;
    pub(crate) const CU_COUNT: usize = 72;
    pub(crate) const GFX_TARGET_VERSION: usize = 100;
    pub(crate) const LOCATION_ID: usize = 108;
    pub(crate) const DOMAIN: usize = 112;
    pub(crate) const LDS_SIZE_IN_KB: usize = 52;
    pub(crate) const NAME: usize = 248;
    pub(crate) const PRODUCT_NAME: usize = 264;
    pub(crate) const LOGICAL_NODE_TYPE_ID: usize = 288;
    pub(crate) const MEM_BANKS_COUNT: usize = 28;
    /// `rocprofiler_agent_mem_bank_t`: heap@0, size_in_bytes@16, 24 bytes each.
    pub(crate) const MEM_BANKS: usize = 224;
    pub(crate) const MEM_BANK_BYTES: usize = 24;
    pub(crate) const MEM_BANK_SIZE: usize = 16;
    /// What environment variables such as `HIP_VISIBLE_DEVICES` leave visible, a bit each
    /// (`rocprofiler_agent_runtime_visiblity_t`): since 0.6.0. Padding before.
    pub(crate) const VISIBILITY: usize = 292;
    pub(crate) const VISIBLE_TO_HIP: u32 = 2;
    /// 8 bytes since 0.6.0, 16 since 1.1.0.
    pub(crate) const UUID: usize = 296;
    /// Bytes in 0.5.0: what to say is asked for, since newer versions have more.
    pub(crate) const BYTES: usize = 296;
    /// `ROCPROFILER_AGENT_TYPE_GPU`.
    pub(crate) const GPU: u32 = 2;
    /// `ROCPROFILER_AGENT_INFO_VERSION_0`.
    pub(crate) const VERSION_0: std::ffi::c_int = 1;
}

pub(crate) type CallbackTracing =
    unsafe extern "C" fn(record: CallbackRecord, user: *mut u64, data: *mut c_void);
pub(crate) type BufferTracing = unsafe extern "C" fn(
    context: Id,
    buffer: Id,
    headers: *mut *mut RecordHeader,
    count: usize,
    data: *mut c_void,
    dropped: u64,
);
pub(crate) type EachKind = unsafe extern "C" fn(kind: c_int, data: *mut c_void) -> c_int;
pub(crate) type EachOperation =
    unsafe extern "C" fn(kind: c_int, operation: c_int, data: *mut c_void) -> c_int;
pub(crate) type EachArgument = unsafe extern "C" fn(
    kind: c_int,
    operation: c_int,
    number: u32,
    address: *const c_void,
    indirections: i32,
    ty: *const c_char,
    name: *const c_char,
    value: *const c_char,
    dereferences: i32,
    data: *mut c_void,
) -> c_int;
pub(crate) type EachAgents = unsafe extern "C" fn(
    version: c_int,
    agents: *const *const u8,
    count: usize,
    data: *mut c_void,
) -> Status;

functions! {
    /// librocprofiler-sdk.
    Sdk
    required {
        query_agents = c"rocprofiler_query_available_agents":
            fn(c_int, EachAgents, usize, *mut c_void) -> Status;
        create_context = c"rocprofiler_create_context": fn(*mut Id) -> Status;
        start_context = c"rocprofiler_start_context": fn(Id) -> Status;
        stop_context = c"rocprofiler_stop_context": fn(Id) -> Status;
        context_is_valid = c"rocprofiler_context_is_valid": fn(Id, *mut c_int) -> Status;
        create_buffer = c"rocprofiler_create_buffer":
            fn(Id, usize, usize, c_int, BufferTracing, *mut c_void, *mut Id) -> Status;
        flush_buffer = c"rocprofiler_flush_buffer": fn(Id) -> Status;
        configure_buffer = c"rocprofiler_configure_buffer_tracing_service":
            fn(Id, c_int, *const c_int, usize, Id) -> Status;
        configure_callback = c"rocprofiler_configure_callback_tracing_service":
            fn(Id, c_int, *const c_int, usize, CallbackTracing, *mut c_void) -> Status;
        buffer_kinds = c"rocprofiler_iterate_buffer_tracing_kinds":
            fn(EachKind, *mut c_void) -> Status;
        buffer_kind_name = c"rocprofiler_query_buffer_tracing_kind_name":
            fn(c_int, *mut *const c_char, *mut u64) -> Status;
        callback_kinds = c"rocprofiler_iterate_callback_tracing_kinds":
            fn(EachKind, *mut c_void) -> Status;
        callback_kind_name = c"rocprofiler_query_callback_tracing_kind_name":
            fn(c_int, *mut *const c_char, *mut u64) -> Status;
        callback_operations = c"rocprofiler_iterate_callback_tracing_kind_operations":
            fn(c_int, EachOperation, *mut c_void) -> Status;
        callback_operation_name = c"rocprofiler_query_callback_tracing_kind_operation_name":
            fn(c_int, c_int, *mut *const c_char, *mut u64) -> Status;
    }
    optional {
        create_thread = c"rocprofiler_create_callback_thread": fn(*mut Id) -> Status;
        assign_thread = c"rocprofiler_assign_callback_thread": fn(Id, Id) -> Status;
        arguments = c"rocprofiler_iterate_callback_tracing_kind_operation_args":
            fn(CallbackRecord, EachArgument, i32, *mut c_void) -> Status;
        timestamp = c"rocprofiler_get_timestamp": fn(*mut u64) -> Status;
        status_string = c"rocprofiler_get_status_string": fn(Status) -> *const c_char;
    }
}

functions! {
    /// What is asked of librocprofiler-sdk before it is configured.
    Entry
    required {
        version = c"rocprofiler_get_version": fn(*mut u32, *mut u32, *mut u32) -> Status;
        is_initialized = c"rocprofiler_is_initialized": fn(*mut c_int) -> Status;
        force_configure = c"rocprofiler_force_configure": fn(Configure) -> Status;
    }
    optional {
        status_string = c"rocprofiler_get_status_string": fn(Status) -> *const c_char;
    }
}

/// An error of the library's in words.
pub(crate) fn describe(
    status: Status,
    string: Option<unsafe extern "C" fn(Status) -> *const c_char>,
) -> String {
    // SAFETY: returns null or a static C string.
    let text = string.map_or(std::ptr::null(), |string| unsafe { string(status) });
    if text.is_null() {
        return format!("error {status}");
    }
    // SAFETY: as above.
    format!("{} ({status})", unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy())
}
