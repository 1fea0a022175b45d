//! Arguments as C has them (hip_runtime_api.h, and rocprofiler-sdk's hip/api_args.h for
//! their names). Types are called what `typeid(T).name()` calls them (stringize_arg.hpp).

use std::ffi::CStr;

use crate::tables::Argument;

fn argument(name: &'static CStr, ty: &'static CStr, value: &[u8], align: usize) -> Argument {
    let mut bytes = [0; 12];
    bytes[..value.len()].copy_from_slice(value);
    Argument { name, ty, bytes, width: value.len(), align }
}

pub(crate) fn pointer(name: &'static CStr, value: u64) -> Argument {
    argument(name, c"Pv", &value.to_ne_bytes(), 8)
}

pub(crate) fn stream(value: u64) -> Argument {
    argument(c"stream", c"P12ihipStream_t", &value.to_ne_bytes(), 8)
}

pub(crate) fn size(name: &'static CStr, value: u64) -> Argument {
    argument(name, c"m", &value.to_ne_bytes(), 8)
}

pub(crate) fn number(name: &'static CStr, value: u32) -> Argument {
    argument(name, c"j", &value.to_ne_bytes(), 4)
}

pub(crate) fn integer(name: &'static CStr, value: i32) -> Argument {
    argument(name, c"i", &value.to_ne_bytes(), 4)
}

pub(crate) fn kind(value: u32) -> Argument {
    argument(c"kind", c"13hipMemcpyKind", &value.to_ne_bytes(), 4)
}

pub(crate) fn text(name: &'static CStr, value: &'static CStr) -> Argument {
    let address = value.as_ptr() as u64;
    argument(name, c"PKc", &address.to_ne_bytes(), 8)
}

pub(crate) fn dim(name: &'static CStr, value: [u32; 3]) -> Argument {
    let bytes: Vec<u8> = value.iter().flat_map(|n| n.to_ne_bytes()).collect();
    argument(name, c"18rocprofiler_dim3_t", &bytes, 4)
}

/// Where a stream is stored when it is made: it has the name of one, and is none.
pub(crate) fn new_stream(value: u64) -> Argument {
    let place: &'static u64 = Box::leak(Box::new(value));
    let address = std::ptr::from_ref(place) as u64;
    argument(c"stream", c"PP12ihipStream_t", &address.to_ne_bytes(), 8)
}
