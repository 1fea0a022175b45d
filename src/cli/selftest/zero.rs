//! Intel GPUs, by Level Zero: immediate command lists, which are streams, and kernels in SPIR-V.

use super::devices::{ALL_KERNELS, BLOCK, Devices, Handle, Stop, factor, kernel_name};
use super::load::{Library, call, functions};
use super::spirv;
use super::truth::Kind;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

/// `ze_result_t`; 0 is success.
type Status = c_int;

/// `ze_structure_type_t`.
const CONTEXT_DESC: u32 = 0x0d;
const QUEUE_DESC: u32 = 0x0e;
const DEVICE_MEMORY_DESC: u32 = 0x15;
const HOST_MEMORY_DESC: u32 = 0x16;
const MODULE_DESC: u32 = 0x1b;
const KERNEL_DESC: u32 = 0x1d;
/// `ZE_COMMAND_QUEUE_FLAG_IN_ORDER`: what is asked for later does not overtake.
const IN_ORDER: u32 = 2;
/// `ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS`.
const ASYNCHRONOUS: u32 = 2;
const PAGE: usize = 4096;

/// `ze_context_desc_t`, `ze_host_mem_alloc_desc_t`, and the beginning of those of device memory
/// and queues: numbers after the chain.
#[repr(C)]
struct Desc {
    ty: u32,
    next: *const c_void,
    numbers: [u32; 6],
}

impl Desc {
    fn new(ty: u32) -> Desc {
        Desc { ty, next: ptr::null(), numbers: [0; 6] }
    }
}

/// `ze_module_desc_t`.
#[repr(C)]
struct ModuleDesc {
    ty: u32,
    next: *const c_void,
    /// `ZE_MODULE_FORMAT_IL_SPIRV` is 0.
    format: u32,
    size: usize,
    code: *const u8,
    flags: *const c_char,
    constants: *const c_void,
}

/// `ze_kernel_desc_t`.
#[repr(C)]
struct KernelDesc {
    ty: u32,
    next: *const c_void,
    flags: u32,
    name: *const c_char,
}

functions! {
    init = c"zeInit": fn(u32);
    drivers = c"zeDriverGet": fn(*mut u32, *mut Handle);
    devices = c"zeDeviceGet": fn(Handle, *mut u32, *mut Handle);
    context = c"zeContextCreate": fn(Handle, *const Desc, *mut Handle);
    memory = c"zeMemAllocDevice": fn(Handle, *const Desc, usize, usize, Handle, *mut Handle);
    host = c"zeMemAllocHost": fn(Handle, *const Desc, usize, usize, *mut Handle);
    module = c"zeModuleCreate":
        fn(Handle, Handle, *const ModuleDesc, *mut Handle, *mut Handle);
    kernel = c"zeKernelCreate": fn(Handle, *const KernelDesc, *mut Handle);
    group = c"zeKernelSetGroupSize": fn(Handle, u32, u32, u32);
    argument = c"zeKernelSetArgumentValue": fn(Handle, u32, usize, *const c_void);
    list = c"zeCommandListCreateImmediate": fn(Handle, Handle, *const Desc, *mut Handle);
    launch = c"zeCommandListAppendLaunchKernel":
        fn(Handle, Handle, *const [u32; 3], Handle, u32, *mut Handle);
    copy = c"zeCommandListAppendMemoryCopy":
        fn(Handle, Handle, Handle, usize, Handle, u32, *mut Handle);
    fill = c"zeCommandListAppendMemoryFill":
        fn(Handle, Handle, *const c_void, usize, usize, Handle, u32, *mut Handle);
    wait = c"zeCommandListHostSynchronize": fn(Handle, u64);
}

/// Level Zero, and the devices of its first driver.
pub(super) struct Zero {
    functions: Functions,
    context: Handle,
    devices: Vec<Handle>,
    /// Modules are made one at a time. (Each thread makes its own: a kernel that two gave
    /// arguments to would have those of either.)
    modules: Mutex<()>,
}

fn check(what: &str, status: Status) -> Result<(), Stop> {
    match status {
        0 => Ok(()),
        error => Err(Stop::Failed(format!("{what}: {error:#x}"))),
    }
}

impl Zero {
    pub(super) fn open() -> Result<Zero, Stop> {
        let library = Library::load(&["libze_loader.so.1"]).map_err(Stop::Missing)?;
        let functions = Functions::find(library, 0).map_err(Stop::Missing)?;
        let modules = Mutex::new(());
        let mut zero = Zero { functions, context: 0, devices: Vec::new(), modules };
        // SAFETY: a number: all kinds of drivers.
        let ready = unsafe { (zero.functions.init)(0) };
        if ready != 0 {
            return Err(Stop::Missing(format!("no driver of Level Zero (zeInit: {ready:#x})")));
        }
        let (mut count, mut driver) = (1, 0);
        call!(zero, drivers(&mut count, &mut driver))?;
        let mut count = 0;
        call!(zero, devices(driver, &mut count, ptr::null_mut()))?;
        zero.devices = vec![0; count.min(64) as usize];
        if zero.devices.is_empty() {
            return Err(Stop::Missing("Level Zero has no device".into()));
        }
        call!(zero, devices(driver, &mut count, zero.devices.as_mut_ptr()))?;
        let mut context = 0;
        call!(zero, context(driver, &Desc::new(CONTEXT_DESC), &mut context))?;
        zero.context = context;
        Ok(zero)
    }
}

impl Devices for Zero {
    fn count(&self) -> u32 {
        self.devices.len() as u32
    }

    fn select(&self, _device: u32) -> Result<(), Stop> {
        Ok(())
    }

    fn kernels(&self, device: u32) -> Result<Vec<Handle>, Stop> {
        let _one_at_a_time = self.modules.lock();
        let names: Vec<_> = (0..ALL_KERNELS).map(kernel_name).collect();
        let code = spirv::fill(names.iter().zip((0..ALL_KERNELS).map(factor)));
        let desc = ModuleDesc {
            ty: MODULE_DESC,
            next: ptr::null(),
            format: 0,
            size: size_of_val(code.as_slice()),
            code: code.as_ptr().cast(),
            flags: ptr::null(),
            constants: ptr::null(),
        };
        let (mut module, device) = (0, self.devices[device as usize]);
        call!(self, module(self.context, device, &desc, &mut module, ptr::null_mut()))?;
        let find = |name: &String| {
            let name = CString::new(name.as_str()).unwrap_or_default();
            let (ty, next) = (KERNEL_DESC, ptr::null());
            let desc = KernelDesc { ty, next, flags: 0, name: name.as_ptr() };
            let mut kernel = 0;
            call!(self, kernel(module, &desc, &mut kernel))?;
            call!(self, group(kernel, BLOCK, 1, 1))?;
            Ok(kernel)
        };
        names.iter().map(find).collect()
    }

    fn memory(&self, device: u32, bytes: usize) -> Result<Handle, Stop> {
        let (mut address, device) = (0, self.devices[device as usize]);
        let desc = Desc::new(DEVICE_MEMORY_DESC);
        call!(self, memory(self.context, &desc, bytes, PAGE, device, &mut address))?;
        Ok(address)
    }

    fn host(&self, _device: u32, bytes: usize) -> Result<&'static mut [u32], Stop> {
        let mut address = 0;
        let desc = Desc::new(HOST_MEMORY_DESC);
        call!(self, host(self.context, &desc, bytes, PAGE, &mut address))?;
        // SAFETY: it was just made, of this size, and stays; it is only used here.
        Ok(unsafe { std::slice::from_raw_parts_mut(address as usize as *mut u32, bytes / 4) })
    }

    fn stream(&self, device: u32) -> Result<Handle, Stop> {
        // Ordinal, index, flags, mode, priority.
        let desc = Desc { numbers: [0, 0, IN_ORDER, ASYNCHRONOUS, 0, 0], ..Desc::new(QUEUE_DESC) };
        let mut list = 0;
        call!(self, list(self.context, self.devices[device as usize], &desc, &mut list))?;
        Ok(list)
    }

    fn launch(
        &self,
        kernel: Handle,
        blocks: u32,
        stream: Handle,
        (to, count, value): (Handle, u32, u32),
    ) -> Result<(), Stop> {
        call!(self, argument(kernel, 0, 8, (&raw const to).cast()))?;
        call!(self, argument(kernel, 1, 4, (&raw const count).cast()))?;
        call!(self, argument(kernel, 2, 4, (&raw const value).cast()))?;
        call!(self, launch(stream, kernel, &[blocks, 1, 1], 0, 0, ptr::null_mut()))
    }

    fn copy(
        &self,
        _kind: Kind,
        (to, _): (Handle, u32),
        (from, _): (Handle, u32),
        bytes: usize,
        stream: Handle,
    ) -> Result<(), Stop> {
        call!(self, copy(stream, to, from, bytes, 0, 0, ptr::null_mut()))
    }

    fn set(&self, to: Handle, value: u32, words: usize, stream: Handle) -> Result<(), Stop> {
        let pattern = (&raw const value).cast();
        call!(self, fill(stream, to, pattern, 4, words * 4, 0, 0, ptr::null_mut()))
    }

    fn wait(&self, stream: Handle) -> Result<(), Stop> {
        call!(self, wait(stream, u64::MAX))
    }

    fn capture(
        &self,
        _stream: Handle,
        _body: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Option<Handle>, Stop> {
        Ok(None)
    }

    fn replay(&self, _graph: Handle, _stream: Handle) -> Result<(), Stop> {
        Ok(())
    }

    fn has_peers(&self) -> bool {
        false
    }
}
