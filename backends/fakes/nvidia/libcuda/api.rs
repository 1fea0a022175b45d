//! The functions of `cuda.h` that do work: see `work`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::work;

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoadData(_module: *mut u64, image: *const c_void) -> c_int {
    c_int::from(image.is_null())
}

/// # Safety
/// As CUDA says, for this and all others here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(to: *mut u64, _: u64, name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::function(to, name) }
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::allocate(to, bytes) }
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemHostAlloc(to: *mut u64, bytes: usize, _: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::allocate(to, bytes) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(_context: u64, _flags: c_uint) -> c_int {
    0
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(to: *mut u64, _: c_uint) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::new_stream(to) }
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
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
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    // SAFETY: the caller's.
    unsafe { work::launch(function, grid, block, stream, params) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> c_int {
    work::copy(1, None, to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> c_int {
    work::copy(2, None, to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) -> c_int {
    work::copy(8, None, to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: u64,
    from: u64,
    _from_context: u64,
    bytes: usize,
    stream: u64,
) -> c_int {
    work::copy(10, Some(to_context as u32 - 1), to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: u64) -> c_int {
    work::set(to, value, count, stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: u64) -> c_int {
    work::synchronize(stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: u64, _mode: c_int) -> c_int {
    work::begin_capture(stream)
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(stream: u64, to: *mut u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::end_capture(stream, to) }
}

/// # Safety
/// As CUDA says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(to: *mut u64, graph: u64, _: u64) -> c_int {
    // SAFETY: the caller's.
    unsafe { work::instantiate(to, graph) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(graph: u64, stream: u64) -> c_int {
    work::launch_graph(graph, stream)
}
