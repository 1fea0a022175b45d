//! The functions of `ze_api.h` that do work: see `work`.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

use crate::driver::{NOT_INITIALIZED, SUCCESS, is_ready};
use crate::work;

/// `ZE_RESULT_ERROR_INVALID_ARGUMENT`, `.._INVALID_NATIVE_BINARY`.
const INVALID: c_int = 0x7800_0004;
const INVALID_CODE: c_int = 0x7800_000f;
/// `ZE_COMMAND_QUEUE_FLAG_IN_ORDER`, and the structs' types.
const IN_ORDER: u32 = 2;
const QUEUE_DESC: u32 = 0x0e;
const MODULE_DESC: u32 = 0x1b;
const KERNEL_DESC: u32 = 0x1d;
const SPIRV: u32 = 0x0723_0203;

/// Threads of a group, and the arguments: an address, a count, a value.
#[derive(Clone, Copy, Default)]
struct Kernel {
    group: [u32; 3],
    to: u64,
    numbers: [u32; 2],
}

static KERNELS: Mutex<Option<HashMap<u64, Kernel>>> = Mutex::new(None);

fn kernel<R>(handle: u64, f: impl FnOnce(&mut Kernel) -> R) -> R {
    f(KERNELS.lock().unwrap().get_or_insert_default().entry(handle).or_default())
}

macro_rules! export {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?) => $body:expr;)*) => {
        $(
            /// # Safety
            /// As Level Zero says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                if !is_ready() {
                    return NOT_INITIALIZED;
                }
                #[allow(unused_unsafe, reason = "some take no pointers")]
                // SAFETY: the caller's.
                unsafe { $body }
            }
        )*
    };
}

/// A number of a struct, by its offset.
unsafe fn number(desc: *const u8, at: usize) -> u32 {
    // SAFETY: the caller's.
    unsafe { desc.add(at).cast::<u32>().read() }
}

export! {
    zeContextCreate(_driver: u64, _desc: *const u8, to: *mut u64) => { to.write(1); SUCCESS };
    zeMemAllocDevice(
        _context: u64, _desc: *const u8, bytes: usize, _align: usize, _device: u64, to: *mut u64,
    ) => work::allocate(to, bytes);
    zeMemAllocHost(_context: u64, _desc: *const u8, bytes: usize, _align: usize, to: *mut u64)
        => work::allocate_host(to, bytes);
    zeModuleCreate(
        _context: u64, _device: u64, desc: *const u8, to: *mut u64, _log: *mut u64,
    ) => {
        let code = desc.add(32).cast::<*const u32>().read();
        if number(desc, 0) != MODULE_DESC || code.read() != SPIRV {
            return INVALID_CODE;
        }
        to.write(1);
        SUCCESS
    };
    zeKernelCreate(_module: u64, desc: *const u8, to: *mut u64) => {
        let name = desc.add(24).cast::<*const c_char>().read();
        if number(desc, 0) == KERNEL_DESC { work::function(to, name) } else { INVALID }
    };
    zeKernelSetGroupSize(handle: u64, x: u32, y: u32, z: u32)
        => { kernel(handle, |kernel| kernel.group = [x, y, z]); SUCCESS };
    zeKernelSetArgumentValue(handle: u64, index: u32, size: usize, value: *const c_void)
        => match (index, size) {
            (0, 8) => { kernel(handle, |kernel| kernel.to = value.cast::<u64>().read()); SUCCESS }
            (1 | 2, 4) => {
                let value = value.cast::<u32>().read();
                kernel(handle, |kernel| kernel.numbers[index as usize - 1] = value);
                SUCCESS
            }
            _ => INVALID,
        };
    zeCommandListCreateImmediate(
        _context: u64, device: u64, desc: *const u8, to: *mut u64,
    ) => {
        // Work of a list that is not in order may overtake.
        if number(desc, 0) != QUEUE_DESC || number(desc, 24) & IN_ORDER == 0 {
            return INVALID;
        }
        work::set_device(device as u32 - 1);
        work::new_stream(to)
    };
    zeCommandListAppendLaunchKernel(
        list: u64, handle: u64, groups: *const [u32; 3], _signal: u64, _waits: u32,
        _events: *mut u64,
    ) => {
        let Kernel { group, mut to, numbers: [mut count, mut value] } = kernel(handle, |one| *one);
        let mut params: [*mut c_void; 3] =
            [(&raw mut to).cast(), (&raw mut count).cast(), (&raw mut value).cast()];
        work::launch(handle, groups.read(), group, list, params.as_mut_ptr())
    };
    zeCommandListAppendMemoryCopy(
        list: u64, to: u64, from: u64, bytes: usize, _signal: u64, _waits: u32,
        _events: *mut u64,
    ) => {
        let kind = match (work::is_host(from), work::is_host(to)) {
            (true, false) => 1,
            (false, true) => 2,
            _ => 8,
        };
        work::copy(kind, None, to, from, bytes, list)
    };
    zeCommandListAppendMemoryFill(
        list: u64, to: u64, pattern: *const u32, size: usize, bytes: usize, _signal: u64,
        _waits: u32, _events: *mut u64,
    ) => if size == 4 { work::set(to, pattern.read(), bytes / 4, list) } else { INVALID };
    zeCommandListHostSynchronize(list: u64, _timeout: u64) => work::synchronize(list);
}
