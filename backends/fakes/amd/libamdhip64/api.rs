//! The functions of `hip_runtime_api.h` and of hiprtc that do work: see `work`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::registration::register;
use crate::work;

macro_rules! export {
    ($($name:ident($($arg:ident: $ty:ty),*) => $body:expr;)*) => {
        $(
            /// # Safety
            /// As HIP says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                register();
                #[allow(unused_unsafe, reason = "some take no pointers")]
                // SAFETY: the caller's.
                unsafe { $body }
            }
        )*
    };
}

export! {
    hipDeviceEnablePeerAccess(_device: c_int, _flags: c_uint) => 0;
    hipModuleLoadData(_module: *mut u64, image: *const c_void) => c_int::from(image.is_null());
    hipModuleGetFunction(to: *mut u64, _module: u64, name: *const c_char)
        => work::function(to, name);
    hipMalloc(to: *mut u64, bytes: usize) => work::allocate(to, bytes);
    hipHostMalloc(to: *mut u64, bytes: usize, _flags: c_uint) => work::allocate(to, bytes);
    hipStreamCreateWithFlags(to: *mut u64, _flags: c_uint) => work::new_stream(to);
    hipMemcpyHtoDAsync(to: u64, from: u64, bytes: usize, stream: u64)
        => work::copy(1, None, to, from, bytes, stream);
    hipMemcpyDtoHAsync(to: u64, from: u64, bytes: usize, stream: u64)
        => work::copy(2, None, to, from, bytes, stream);
    hipMemcpyDtoDAsync(to: u64, from: u64, bytes: usize, stream: u64)
        => work::copy(8, None, to, from, bytes, stream);
    hipMemcpyPeerAsync(
        to: u64, device: c_int, from: u64, _from_device: c_int, bytes: usize, stream: u64
    ) => work::copy(10, Some(device as u32), to, from, bytes, stream);
    hipMemsetD32Async(to: u64, value: c_int, count: usize, stream: u64)
        => work::set(to, value as u32, count, stream);
    hipStreamSynchronize(stream: u64) => work::synchronize(stream);
    hipStreamBeginCapture(stream: u64, _mode: c_int) => work::begin_capture(stream);
    hipStreamEndCapture(stream: u64, to: *mut u64) => work::end_capture(stream, to);
    hipGraphInstantiateWithFlags(to: *mut u64, graph: u64, _flags: u64)
        => work::instantiate(to, graph);
    hipGraphLaunch(graph: u64, stream: u64) => work::launch_graph(graph, stream);
    hiprtcCreateProgram(
        to: *mut u64, _source: *const c_char, _name: *const c_char, _headers: c_int,
        _sources: *const *const c_char, _names: *const *const c_char
    ) => { to.write(1); 0 };
    hiprtcCompileProgram(_program: u64, _count: c_int, _options: *const *const c_char) => 0;
    hiprtcGetCodeSize(_program: u64, to: *mut usize) => { to.write(16); 0 };
    hiprtcGetCode(_program: u64, to: *mut u8) => { to.write_bytes(1, 16); 0 };
}

/// # Safety
/// As HIP says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipModuleLaunchKernel(
    function: u64,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared: c_uint,
    stream: u64,
    params: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> c_int {
    register();
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    // SAFETY: the caller's.
    unsafe { work::launch(function, grid, block, stream, params) }
}
