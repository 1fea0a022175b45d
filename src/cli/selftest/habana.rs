//! Intel Gaudi, by Synapse: kernels are recipes of one node each, compiled at run time, which need
//! no compiled kernel: `memcpy` within a buffer, and `memset`.

use super::devices::{ALL_KERNELS, Devices, Handle, Stop, kernel_name};
use super::load::{Library, call, functions};
use super::truth::Kind;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Mutex;

/// `synStatus`; 0 is success.
type Status = c_int;

/// `HABANA_DIM_MAX`.
const DIMENSIONS: usize = 25;
/// `syn_type_single`: 4 bytes, and none of them is looked at.
const SINGLE: u32 = 4;
/// `DATA_TENSOR`, `synGeometrySizes`.
const DATA_TENSOR: c_int = 0;
const SIZES: c_int = 1;
/// `synDmaDir`.
const HOST_TO_DRAM: c_int = 0;
const DRAM_TO_HOST: c_int = 1;
const DRAM_TO_DRAM: c_int = 2;
/// Numbers of modules that a machine may have.
const MODULES: u32 = 64;
/// Words that a kernel writes, and where those that it copies lie.
const WORDS: u64 = 256;
const FROM: u64 = 512 * 4;

/// `synTensorGeometryExt`.
#[repr(C)]
struct Geometry {
    sizes: [u64; DIMENSIONS],
    dimensions: u32,
}

/// `synLaunchTensorInfoExt`.
#[repr(C)]
struct Tensor {
    name: *const c_char,
    address: u64,
    ty: c_int,
    sizes: [u64; DIMENSIONS],
    id: u64,
}

const _: () = assert!(size_of::<Geometry>() == 208 && size_of::<Tensor>() == 232);

/// The beginning of `synDeviceInfo`: where it says the type of the device, of 56 bytes.
const DEVICE_TYPE: usize = 52;
const INFO_BYTES: usize = 128;

functions! {
    initialize = c"synInitialize": fn();
    destroy = c"synDestroy": fn();
    count = c"synDeviceGetCount": fn(*mut u32);
    acquire = c"synDeviceAcquireByModuleId": fn(*mut u32, u32);
    release = c"synDeviceRelease": fn(u32);
    info = c"synDeviceGetInfo": fn(u32, *mut u8);
    memory = c"synDeviceMalloc": fn(u32, u64, u64, u32, *mut Handle);
    host = c"synHostMalloc": fn(u32, u64, u32, *mut Handle);
    stream = c"synStreamCreateGeneric": fn(*mut Handle, u32, u32);
    copy = c"synMemCopyAsync": fn(Handle, u64, u64, u64, c_int);
    set = c"synMemsetD32Async": fn(u64, u32, usize, Handle);
    wait = c"synStreamSynchronize": fn(Handle);
    graph = c"synGraphCreate": fn(*mut Handle, c_int);
    forget = c"synGraphDestroy": fn(Handle);
    section = c"synSectionCreate": fn(*mut Handle, u64, Handle);
    persist = c"synSectionSetPersistent": fn(Handle, bool);
    tensor = c"synTensorHandleCreate": fn(*mut Handle, Handle, c_int, *const c_char);
    assign = c"synTensorAssignToSection": fn(Handle, Handle, u64);
    geometry = c"synTensorSetGeometryExt": fn(Handle, *const Geometry, c_int);
    data_type = c"synTensorSetDeviceDataType": fn(Handle, u32);
    node = c"synNodeCreate": fn(
        Handle, *const Handle, *const Handle, u32, u32, *const c_void, u32,
        *const c_char, *const c_char, *const *const c_char, *const *const c_char,
    );
    compile = c"synGraphCompile": fn(*mut Handle, Handle, *const c_char, *const c_char);
    workspace = c"synWorkspaceGetSize": fn(*mut u64, Handle);
    ids = c"synTensorRetrieveIds": fn(Handle, *const *const c_char, *mut u64, u32);
    launch = c"synLaunchExt": fn(Handle, *const Tensor, u32, u64, Handle, u32);
}

/// A recipe, and its tensors' numbers: what it writes, and what it reads.
#[derive(Clone, Copy)]
struct Recipe {
    handle: Handle,
    workspace: Handle,
    ids: [u64; 2],
    reads: bool,
}

/// Synapse, and the devices that this process has.
pub(super) struct Habana {
    functions: Functions,
    devices: Vec<u32>,
    ty: c_int,
    recipes: Mutex<Vec<Recipe>>,
}

fn check(what: &str, status: Status) -> Result<(), Stop> {
    match status {
        0 => Ok(()),
        error => Err(Stop::Failed(format!("{what}: synStatus {error}"))),
    }
}

/// The names of tensors: of what a recipe writes, and of what it reads.
const TENSORS: [*const c_char; 2] = [c"to".as_ptr(), c"from".as_ptr()];

impl Habana {
    pub(super) fn open() -> Result<Habana, Stop> {
        let library = Library::load(&["libSynapse.so"]).map_err(Stop::Missing)?;
        let functions = Functions::find(library, 0).map_err(Stop::Missing)?;
        let recipes = Mutex::new(Vec::new());
        let mut syn = Habana { functions, devices: Vec::new(), ty: 0, recipes };
        let missing = |stop| match stop {
            Stop::Missing(why) | Stop::Failed(why) => Stop::Missing(why),
        };
        call!(syn, initialize()).map_err(missing)?;
        let mut count = 0;
        call!(syn, count(&mut count)).map_err(missing)?;
        let mut last = Stop::Missing("no device".into());
        for module in 0..MODULES {
            let mut device = 0;
            match call!(syn, acquire(&mut device, module)) {
                Ok(()) => syn.devices.push(device),
                Err(why) => last = missing(why),
            }
            if syn.devices.len() >= count as usize {
                break;
            }
        }
        let first = *syn.devices.first().ok_or(last)?;
        let mut info = [0_u64; INFO_BYTES / 8];
        let info = info.as_mut_ptr().cast::<u8>();
        call!(syn, info(first, info))?;
        // SAFETY: it lies within the bytes.
        syn.ty = unsafe { info.add(DEVICE_TYPE).cast::<c_int>().read() };
        Ok(syn)
    }

    /// Kernels of even numbers copy, the others set.
    fn recipe(&self, device: u32, number: u32) -> Result<Recipe, Stop> {
        let name = CString::new(kernel_name(number)).unwrap_or_default();
        let reads = number.is_multiple_of(2);
        let mut graph = 0;
        call!(self, graph(&mut graph, self.ty))?;
        let mut tensors = [0, 0];
        let count = 1 + u32::from(reads);
        for (tensor, name) in tensors.iter_mut().zip(TENSORS).take(count as usize) {
            *tensor = self.tensor(graph, name)?;
        }
        let guid = if reads { c"memcpy" } else { c"memset" };
        let ([to, from], null, none) = (&tensors, ptr::null(), ptr::null());
        let (inputs, guid) = (u32::from(reads), guid.as_ptr());
        call!(self, node(graph, from, to, inputs, 1, null, 0, guid, name.as_ptr(), none, none))?;
        let (mut recipe, mut bytes, mut workspace) = (0, 0, 0);
        call!(self, compile(&mut recipe, graph, name.as_ptr(), ptr::null()))?;
        call!(self, workspace(&mut bytes, recipe))?;
        if bytes > 0 {
            workspace = self.memory(device, bytes as usize)?;
        }
        let mut ids = [0, 0];
        call!(self, ids(recipe, TENSORS.as_ptr(), ids.as_mut_ptr(), count))?;
        call!(self, forget(graph))?;
        Ok(Recipe { handle: recipe, workspace, ids, reads })
    }

    /// A tensor whose address is said with each launch.
    fn tensor(&self, graph: Handle, name: *const c_char) -> Result<Handle, Stop> {
        let (mut section, mut tensor) = (0, 0);
        call!(self, section(&mut section, 0, graph))?;
        call!(self, persist(section, true))?;
        call!(self, tensor(&mut tensor, graph, DATA_TENSOR, name))?;
        call!(self, assign(tensor, section, 0))?;
        call!(self, geometry(tensor, &Geometry { sizes: sizes(), dimensions: 1 }, SIZES))?;
        call!(self, data_type(tensor, SINGLE))?;
        Ok(tensor)
    }
}

fn sizes() -> [u64; DIMENSIONS] {
    std::array::from_fn(|at| if at == 0 { WORDS } else { 0 })
}

impl Devices for Habana {
    fn count(&self) -> u32 {
        self.devices.len() as u32
    }

    fn select(&self, _device: u32) -> Result<(), Stop> {
        Ok(())
    }

    fn kernels(&self, device: u32) -> Result<Vec<Handle>, Stop> {
        // One thread compiles at a time.
        let mut recipes = self.recipes.lock().unwrap_or_else(|broken| broken.into_inner());
        let make = |number| {
            recipes.push(self.recipe(device, number)?);
            Ok(recipes.len() as Handle - 1)
        };
        (0..ALL_KERNELS).map(make).collect()
    }

    fn memory(&self, device: u32, bytes: usize) -> Result<Handle, Stop> {
        let mut address = 0;
        call!(self, memory(self.devices[device as usize], bytes as u64, 0, 0, &mut address))?;
        Ok(address)
    }

    fn host(&self, device: u32, bytes: usize) -> Result<&'static mut [u32], Stop> {
        let mut address = 0;
        call!(self, host(self.devices[device as usize], bytes as u64, 0, &mut address))?;
        // SAFETY: it was just made, of this size, and stays; it is only used here.
        Ok(unsafe { std::slice::from_raw_parts_mut(address as usize as *mut u32, bytes / 4) })
    }

    fn stream(&self, device: u32) -> Result<Handle, Stop> {
        let mut stream = 0;
        call!(self, stream(&mut stream, self.devices[device as usize], 0))?;
        Ok(stream)
    }

    fn launch(
        &self,
        kernel: Handle,
        _blocks: u32,
        stream: Handle,
        (to, ..): (Handle, u32, u32),
    ) -> Result<(), Stop> {
        let recipes = self.recipes.lock().unwrap_or_else(|broken| broken.into_inner());
        let Recipe { handle, workspace, ids, reads } = recipes[kernel as usize];
        drop(recipes);
        let tensor = |at: usize, address| {
            let (name, ty) = (TENSORS[at], DATA_TENSOR);
            Tensor { name, address, ty, sizes: sizes(), id: ids[at] }
        };
        let tensors = [tensor(0, to), tensor(1, to + FROM)];
        let count = 1 + u32::from(reads);
        call!(self, launch(stream, tensors.as_ptr(), count, workspace, handle, 0))
    }

    fn copy(
        &self,
        kind: Kind,
        (to, _): (Handle, u32),
        (from, _): (Handle, u32),
        bytes: usize,
        stream: Handle,
    ) -> Result<(), Stop> {
        let direction = match kind {
            Kind::ToDevice => HOST_TO_DRAM,
            Kind::ToHost => DRAM_TO_HOST,
            _ => DRAM_TO_DRAM,
        };
        call!(self, copy(stream, from, bytes as u64, to, direction))
    }

    fn set(&self, to: Handle, value: u32, words: usize, stream: Handle) -> Result<(), Stop> {
        call!(self, set(to, value, words, stream))
    }

    fn wait(&self, stream: Handle) -> Result<(), Stop> {
        call!(self, wait(stream))
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

impl Drop for Habana {
    /// A process that keeps its devices has its trace fetched while Synapse ends.
    fn drop(&mut self) {
        for device in &self.devices {
            let _ = call!(self, release(*device));
        }
        let _ = call!(self, destroy());
    }
}
