//! NVTX's binary interface: numbers and layouts, from the public headers of NVTX 3
//! (`nvtx3/nvToolsExt.h`, `nvToolsExtPayload.h`, `nvToolsExtCounters.h`,
//! `nvToolsExtSemantics*.h`, `nvtxDetail/nvtxTypes.h`, `nvtxDetail/nvtxExtTypes.h`).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// A function of any type, as the tables hold it.
pub(crate) type Function = *const ();

/// `NvtxGetExportTableFunc_t`: how an NVTX copy hands out its tables.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// `NvtxExportTableID` (nvtxTypes.h).
pub(crate) const ETID_CALLBACKS: u32 = 1;
pub(crate) const ETID_VERSIONINFO: u32 = 3;

/// `NvtxCallbackModule` (nvtxTypes.h).
pub(crate) const MODULE_CORE: c_int = 1;
pub(crate) const MODULE_CORE2: c_int = 5;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
pub(crate) struct Callbacks {
    pub(crate) struct_size: usize,
    pub(crate) get_module_function_table:
        Option<unsafe extern "C" fn(c_int, *mut *mut *mut Function, *mut c_uint) -> c_int>,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
pub(crate) struct VersionInfo {
    pub(crate) struct_size: usize,
    pub(crate) version: u32,
    pub(crate) reserved: u32,
    pub(crate) set_injection_version: Option<unsafe extern "C" fn(u32)>,
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EventAttributes {
    pub(crate) version: u16,
    pub(crate) size: u16,
    pub(crate) category: u32,
    pub(crate) color_type: i32,
    pub(crate) color: u32,
    pub(crate) payload_type: i32,
    /// The number of extended payloads.
    pub(crate) reserved: i32,
    pub(crate) payload: u64,
    pub(crate) message_type: i32,
    pub(crate) message: u64,
}

/// `nvtxColorType_t`.
pub(crate) const COLOR_ARGB: i32 = 1;

/// `nvtxPayloadType_t`, and `NVTX_PAYLOAD_TYPE_EXT` of the payload extension.
pub(crate) const PAYLOAD_U64: i32 = 1;
pub(crate) const PAYLOAD_I64: i32 = 2;
pub(crate) const PAYLOAD_F64: i32 = 3;
pub(crate) const PAYLOAD_U32: i32 = 4;
pub(crate) const PAYLOAD_I32: i32 = 5;
pub(crate) const PAYLOAD_F32: i32 = 6;
pub(crate) const PAYLOAD_EXT: i32 = 0xdfbd_0009_u32.cast_signed();

/// `nvtxMessageType_t`.
pub(crate) const MESSAGE_ASCII: i32 = 1;
pub(crate) const MESSAGE_WIDE: i32 = 2;
pub(crate) const MESSAGE_REGISTERED: i32 = 3;

/// `nvtxResourceAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ResourceAttributes {
    pub(crate) version: u16,
    pub(crate) size: u16,
    pub(crate) identifier_type: i32,
    pub(crate) identifier: u64,
    pub(crate) message_type: i32,
    pub(crate) message: u64,
}

/// `nvtxResourceGenericType_t`: class 1, index 3 and 4.
pub(crate) const RESOURCE_THREAD_NATIVE: i32 = 1 << 16 | 3;
pub(crate) const RESOURCE_THREAD_POSIX: i32 = 1 << 16 | 4;

/// What a failing push or pop returns (any negative number will do).
pub(crate) const FAILED: c_int = -1;

/// `nvtxExtModuleInfo_t`.
#[repr(C)]
#[derive(Debug)]
pub struct ExtModule {
    pub(crate) nvtx_version: u16,
    pub(crate) struct_size: u16,
    pub(crate) module: u16,
    pub(crate) compat: u16,
    pub(crate) segment_count: usize,
    pub(crate) segments: *mut ExtSegment,
    pub(crate) get_export: Option<unsafe extern "C" fn(u32) -> isize>,
    pub(crate) info: *const c_void,
}

/// `nvtxExtModuleSegment_t`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ExtSegment {
    pub(crate) id: usize,
    pub(crate) slot_count: usize,
    pub(crate) slots: *mut Function,
}

/// `NVTX_EXT_PAYLOAD_MODULEID`, `NVTX_EXT_COUNTERS_MODULEID`.
pub(crate) const EXT_PAYLOAD: u16 = 2;
pub(crate) const EXT_COUNTERS: u16 = 4;

/// `nvtxPayloadData_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PayloadData {
    pub(crate) schema: u64,
    pub(crate) size: usize,
    pub(crate) data: *const u8,
}

/// `nvtxPayloadSchemaEntry_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SchemaEntry {
    pub(crate) flags: u64,
    pub(crate) ty: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) detail: u64,
    pub(crate) offset: u64,
    pub(crate) semantics: *const SemanticsHeader,
    pub(crate) reserved: *const c_void,
}

/// `nvtxPayloadSchemaAttr_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SchemaAttributes {
    pub(crate) field_mask: u64,
    pub(crate) name: *const c_char,
    pub(crate) ty: u64,
    pub(crate) flags: u64,
    pub(crate) entries: *const SchemaEntry,
    pub(crate) entry_count: usize,
    pub(crate) static_size: usize,
    pub(crate) pack: usize,
    pub(crate) id: u64,
    pub(crate) extension: *const c_void,
}

/// `NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_*`.
pub(crate) const SCHEMA_HAS_TYPE: u64 = 1 << 2;
pub(crate) const SCHEMA_HAS_ENTRIES: u64 = 1 << 4;
pub(crate) const SCHEMA_HAS_COUNT: u64 = 1 << 5;
pub(crate) const SCHEMA_HAS_SIZE: u64 = 1 << 6;
pub(crate) const SCHEMA_HAS_PACK: u64 = 1 << 7;
pub(crate) const SCHEMA_HAS_ID: u64 = 1 << 8;

/// `NVTX_PAYLOAD_SCHEMA_TYPE_*`.
pub(crate) const SCHEMA_STATIC: u64 = 1;
pub(crate) const SCHEMA_DYNAMIC: u64 = 2;

/// `NVTX_PAYLOAD_ENTRY_FLAG_*`.
pub(crate) const FLAG_POINTER: u64 = 1 << 1;
pub(crate) const FLAG_OFFSETS: u64 = 3 << 2;
pub(crate) const FLAG_ARRAY: u64 = 7 << 4;
pub(crate) const ARRAY_FIXED: u64 = 1 << 4;
pub(crate) const ARRAY_ZERO_TERMINATED: u64 = 2 << 4;
pub(crate) const ARRAY_LENGTH_INDEX: u64 = 3 << 4;
pub(crate) const FLAG_DEEP_COPY: u64 = 1 << 8;
pub(crate) const FLAG_HIDE: u64 = 1 << 9;
pub(crate) const FLAG_ROLE: u64 = 3 << 10;
pub(crate) const ROLE_MESSAGE: u64 = 1 << 10;
pub(crate) const ROLE_TIMESTAMP: u64 = 2 << 10;

/// `NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED`, `_RAW`.
pub(crate) const SCHEMA_REFERENCED: u64 = 1022;
pub(crate) const SCHEMA_RAW: u64 = 1023;
/// `NVTX_PAYLOAD_SCHEMA_ID_STATIC_START`; counters and scopes have the same.
pub(crate) const STATIC_IDS: u64 = 1 << 24;
/// `NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START`; counters and scopes have the same.
pub(crate) const DYNAMIC_IDS: u64 = 1 << 32;

/// `nvtxPayloadEnum_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EnumEntry {
    pub(crate) name: *const c_char,
    pub(crate) value: u64,
    pub(crate) is_flag: i8,
}

/// `nvtxPayloadEnumAttr_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct EnumAttributes {
    pub(crate) field_mask: u64,
    pub(crate) name: *const c_char,
    pub(crate) entries: *const EnumEntry,
    pub(crate) entry_count: usize,
    pub(crate) size: usize,
    pub(crate) id: u64,
    pub(crate) extension: *const c_void,
}

/// `NVTX_PAYLOAD_ENUM_ATTR_FIELD_*`.
pub(crate) const ENUM_HAS_ENTRIES: u64 = 1 << 2;
pub(crate) const ENUM_HAS_COUNT: u64 = 1 << 3;
pub(crate) const ENUM_HAS_SIZE: u64 = 1 << 4;
pub(crate) const ENUM_HAS_ID: u64 = 1 << 5;

/// `nvtxSemanticsHeader_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SemanticsHeader {
    pub(crate) struct_size: u32,
    pub(crate) id: u16,
    pub(crate) version: u16,
    pub(crate) next: *const SemanticsHeader,
}

/// `NVTX_SEMANTIC_ID_TIME_V1`, `NVTX_SEMANTIC_ID_COUNTERS_V1`.
pub(crate) const SEMANTIC_TIME: u16 = 2;
pub(crate) const SEMANTIC_COUNTER: u16 = 5;
/// `NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED`: what we returned from `nvtxTimestampGet`.
pub(crate) const TIME_FROM_TOOL: u64 = 1;

/// `nvtxSemanticsTime_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TimeSemantics {
    pub(crate) header: SemanticsHeader,
    pub(crate) time_domain: u64,
}

/// The beginning of `nvtxSemanticsCounter_t`; limits follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CounterSemantics {
    pub(crate) header: SemanticsHeader,
    pub(crate) flags: u64,
    pub(crate) unit: *const c_char,
}

/// `NVTX_COUNTER_FLAG_VALUETYPES` and its value `_DELTA`.
pub(crate) const VALUE_TYPES: u64 = 3 << 4;
pub(crate) const VALUE_DELTA: u64 = 2 << 4;

/// `nvtxCounterAttr_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CounterAttributes {
    pub(crate) struct_size: usize,
    pub(crate) schema: u64,
    pub(crate) name: *const c_char,
    pub(crate) description: *const c_char,
    pub(crate) scope: u64,
    pub(crate) semantics: *const SemanticsHeader,
    pub(crate) id: u64,
}

/// `nvtxCounterBatch_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CounterBatch {
    pub(crate) counter: u64,
    pub(crate) samples: *const u8,
    pub(crate) samples_size: usize,
    pub(crate) flags: u64,
    pub(crate) timestamps: *const i64,
    pub(crate) timestamps_size: usize,
}

/// `NVTX_COUNTER_BATCH_FLAG_*`: the timestamps are a time and an interval.
pub(crate) const BATCH_BEGIN_INTERVAL: u64 = 1 << 32;
pub(crate) const BATCH_END_INTERVAL: u64 = 2 << 32;

/// `NVTX_COUNTER_SAMPLE_ZERO`.
pub(crate) const SAMPLE_ZERO: u8 = 0;

const _: () = assert!(size_of::<EventAttributes>() == 48);
const _: () = assert!(offset_of!(EventAttributes, color_type) == 8);
const _: () = assert!(offset_of!(EventAttributes, payload) == 24);
const _: () = assert!(offset_of!(EventAttributes, message_type) == 32);
const _: () = assert!(offset_of!(EventAttributes, message) == 40);
const _: () = assert!(size_of::<ResourceAttributes>() == 32);
const _: () = assert!(offset_of!(ResourceAttributes, identifier) == 8);
const _: () = assert!(size_of::<Callbacks>() == 16);
const _: () = assert!(size_of::<VersionInfo>() == 24);
const _: () = assert!(size_of::<ExtModule>() == 40);
const _: () = assert!(offset_of!(ExtModule, segments) == 16);
const _: () = assert!(size_of::<ExtSegment>() == 24);
const _: () = assert!(size_of::<PayloadData>() == 24);
const _: () = assert!(size_of::<SchemaEntry>() == 64);
const _: () = assert!(size_of::<SchemaAttributes>() == 80);
const _: () = assert!(size_of::<EnumEntry>() == 24);
const _: () = assert!(size_of::<EnumAttributes>() == 56);
const _: () = assert!(size_of::<SemanticsHeader>() == 16);
const _: () = assert!(size_of::<TimeSemantics>() == 24);
const _: () = assert!(size_of::<CounterSemantics>() == 32);
const _: () = assert!(size_of::<CounterAttributes>() == 56);
const _: () = assert!(size_of::<CounterBatch>() == 48);

/// A structure that begins with a version and its size, both u16, as the program knows
/// it: what it does not know reads as zero. None for NULL.
///
/// # Safety
/// `from` is NULL or readable for as many bytes as its size says. `T` is plain old data
/// that may be all zero.
pub(crate) unsafe fn read_sized<T: Copy>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    let mut to = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: every version of these structures has the first four bytes; after that no
    // more than the structure's own size is read, and no more than `T` has is written.
    unsafe {
        let size = from.cast::<u16>().add(1).read_unaligned();
        let size = usize::from(size).clamp(4, size_of::<T>());
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.as_mut_ptr().cast::<u8>(), size);
        Some(to.assume_init())
    }
}

/// As [`read_sized`], of a structure that the program knows as we do; none if it is older.
///
/// # Safety
/// As for [`read_sized`].
#[inline(always)]
pub(crate) unsafe fn read_whole<T: Copy>(from: *const T) -> Option<T> {
    if from.is_null() {
        return None;
    }
    // SAFETY: as in `read_sized`.
    unsafe {
        let size = from.cast::<u16>().add(1).read_unaligned();
        (usize::from(size) >= size_of::<T>()).then(|| from.read_unaligned())
    }
}
