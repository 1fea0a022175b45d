//! What PTI and Level Zero define, as far as it is used.
//!
//! Numbers and layouts are those of pti_view.h of PTI 0.12 to 1.2 and of ze_api.h of the
//! Level Zero specification 1.3 and later.

use std::ffi::{c_char, c_int, c_void};

use crate::load::functions;

/// `pti_result`.
pub type Code = c_int;
pub(crate) const SUCCESS: Code = 0;
pub(crate) const END_OF_BUFFER: Code = 1;
/// What every function says while `libpti.so` behind the library could not be loaded.
pub(crate) const NOT_IMPLEMENTED: Code = 2;
pub(crate) const BAD_ARGUMENT: Code = 3;
/// `ptiViewGPULocalAvailable`: collection must be on before Level Zero is initialised.
pub(crate) const LOCAL_PROFILING_NOT_SUPPORTED: Code = 52;

/// `pti_view_kind`.
pub(crate) mod kind {
    pub(crate) const KERNEL: u32 = 1;
    pub(crate) const DRIVER_API: u32 = 3;
    pub(crate) const OVERHEAD: u32 = 5;
    pub(crate) const RUNTIME_API: u32 = 6;
    pub(crate) const EXTERNAL_CORRELATION: u32 = 7;
    pub(crate) const COPY: u32 = 8;
    pub(crate) const FILL: u32 = 9;
    pub(crate) const PEER_COPY: u32 = 10;
    pub(crate) const SYNCHRONIZATION: u32 = 11;
    pub(crate) const COMMUNICATION: u32 = 12;
    /// One more than the largest that is used.
    pub(crate) const END: u32 = 13;
}

/// `pti_api_class`: what asks a device for work.
pub(crate) const CLASS_GPU_OPERATION_CORE: c_int = 1;
pub(crate) const CLASS_ALL: c_int = 0x7fff_ffff;
/// `pti_api_group_id`.
pub(crate) const GROUP_LEVEL_ZERO: u32 = 1;
pub(crate) const GROUP_OPENCL: u32 = 2;
pub(crate) const GROUP_ALL: c_int = 0x7fff_ffff;

/// `PTI_INVALID_QUEUE_ID`: work that no queue of SYCL is known for.
pub(crate) const NO_SYCL_QUEUE: u64 = u64::MAX - 1;

/// `pti_version`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

const _: () = assert!(size_of::<Version>() == 12);

/// `pti_fptr_buffer_requested`.
pub type BufferRequested = unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut usize);
/// `pti_fptr_buffer_completed`.
pub type BufferCompleted = unsafe extern "C" fn(buffer: *mut u8, size: usize, used: usize);

functions! {
    /// libpti_view.
    Pti
    required {
        set_callbacks = c"ptiViewSetCallbacks": fn(BufferRequested, BufferCompleted) -> Code;
        enable = c"ptiViewEnable": fn(u32) -> Code;
        disable = c"ptiViewDisable": fn(u32) -> Code;
        flush_all = c"ptiFlushAllViews": fn() -> Code;
        next_record = c"ptiViewGetNextRecord": fn(*mut u8, usize, *mut *mut u8) -> Code;
        api_name = c"ptiViewGetApiIdName": fn(u32, u32, *mut *const c_char) -> Code;
    }
    optional {
        local_available = c"ptiViewGPULocalAvailable": fn() -> Code;
        result_string = c"ptiResultTypeToString": fn(Code) -> *const c_char;
        copy_name = c"ptiViewMemcpyTypeToString": fn(u32) -> *const c_char;
        memory_name = c"ptiViewMemoryTypeToString": fn(u32) -> *const c_char;
        runtime_class = c"ptiViewEnableRuntimeApiClass": fn(u32, c_int, c_int) -> Code;
        driver_class = c"ptiViewEnableDriverApiClass": fn(u32, c_int, c_int) -> Code;
    }
}

/// `ze_result_t`: success, and that there is no driver.
pub(crate) const ZE_SUCCESS: c_int = 0;
pub(crate) const ZE_UNINITIALISED: c_int = 0x7800_0001;
/// `ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES`.
pub(crate) const ZE_DEVICE_PROPERTIES: u32 = 3;
/// `ZE_DEVICE_TYPE_GPU`.
pub(crate) const ZE_DEVICE_GPU: u32 = 1;

/// `ze_device_properties_t` of Level Zero 1.x.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceProperties {
    pub(crate) stype: u32,
    pub(crate) next: *mut c_void,
    pub(crate) kind: u32,
    pub(crate) vendor: u32,
    pub(crate) device: u32,
    pub(crate) flags: u32,
    pub(crate) subdevice: u32,
    pub(crate) core_clock_mhz: u32,
    pub(crate) max_allocation: u64,
    pub(crate) max_contexts: u32,
    pub(crate) max_priority: u32,
    pub(crate) threads_per_unit: u32,
    pub(crate) simd_width: u32,
    pub(crate) units_per_subslice: u32,
    pub(crate) subslices_per_slice: u32,
    pub(crate) slices: u32,
    pub(crate) timer_resolution: u64,
    pub(crate) timestamp_bits: u32,
    pub(crate) kernel_timestamp_bits: u32,
    pub(crate) uuid: [u8; 16],
    pub(crate) name: [u8; 256],
}

const _: () = assert!(size_of::<DeviceProperties>() == 368);
const _: () = assert!(std::mem::offset_of!(DeviceProperties, kind) == 16);
const _: () = assert!(std::mem::offset_of!(DeviceProperties, timer_resolution) == 80);
const _: () = assert!(std::mem::offset_of!(DeviceProperties, uuid) == 96);
const _: () = assert!(std::mem::offset_of!(DeviceProperties, name) == 112);

functions! {
    /// libze_loader.so.1.
    LevelZero
    required {
        init = c"zeInit": fn(u32) -> c_int;
        drivers = c"zeDriverGet": fn(*mut u32, *mut *mut c_void) -> c_int;
        devices = c"zeDeviceGet": fn(*mut c_void, *mut u32, *mut *mut c_void) -> c_int;
        sub_devices = c"zeDeviceGetSubDevices":
            fn(*mut c_void, *mut u32, *mut *mut c_void) -> c_int;
        device_properties = c"zeDeviceGetProperties":
            fn(*mut c_void, *mut DeviceProperties) -> c_int;
    }
    optional {}
}
