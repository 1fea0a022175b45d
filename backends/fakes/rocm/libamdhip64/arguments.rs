//! Arguments as C has them (hip_runtime_api.h, and rocprofiler-sdk's hip/api_args.h for
//! their names).

use std::ffi::CStr;

use crate::tables::Argument;

fn argument(name: &'static CStr, ty: &'static CStr, value: &[u8], align: usize) -> Argument {
    let mut bytes = [0; 12];
    bytes[..value.len()].copy_from_slice(value);
    Argument { name, ty, bytes, width: value.len(), align }
}

pub(crate) fn pointer(name: &'static CStr, value: u64) -> Argument {
    argument(name, c"void*", &value.to_ne_bytes(), 8)
}

pub(crate) fn stream(value: u64) -> Argument {
    argument(c"stream", c"ihipStream_t*", &value.to_ne_bytes(), 8)
}

pub(crate) fn size(name: &'static CStr, value: u64) -> Argument {
    argument(name, c"unsigned long", &value.to_ne_bytes(), 8)
}

pub(crate) fn number(name: &'static CStr, value: u32) -> Argument {
    argument(name, c"unsigned int", &value.to_ne_bytes(), 4)
}

pub(crate) fn integer(name: &'static CStr, value: i32) -> Argument {
    argument(name, c"int", &value.to_ne_bytes(), 4)
}

pub(crate) fn kind(value: u32) -> Argument {
    argument(c"kind", c"hipMemcpyKind", &value.to_ne_bytes(), 4)
}

pub(crate) fn text(name: &'static CStr, value: &'static CStr) -> Argument {
    let address = value.as_ptr() as u64;
    argument(name, c"char const*", &address.to_ne_bytes(), 8)
}

pub(crate) fn dim(name: &'static CStr, value: [u32; 3]) -> Argument {
    let bytes: Vec<u8> = value.iter().flat_map(|n| n.to_ne_bytes()).collect();
    argument(name, c"rocprofiler_dim3_t", &bytes, 4)
}
