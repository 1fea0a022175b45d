//! The functions of `synapse_api.h` that do work: memory, streams, and recipes, which are compiled
//! of graphs of `memcpy` and `memset` nodes. As strict as the real ones: what was not made, or was
//! made for another graph or device, is refused.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Mutex;

use crate::driver::{FAIL, INVALID_ARGUMENT, SUCCESS, has};
use crate::seam::{Kernel, Task};
use crate::work::{self, Effect};

/// `synInvalidTensorProperties`.
const INVALID_TENSOR: c_int = 39;
/// `HABANA_DIM_MAX`, and bytes of an element of the types that are known: single, int32.
const DIMENSIONS: usize = 25;
const ELEMENT: [(u32, u64); 2] = [(4, 4), (16, 4)];
/// `synDeviceGaudi2`.
const GAUDI2: c_int = 4;
/// How long a node takes.
const NODE: u64 = 5_000;

#[repr(C)]
pub struct Geometry {
    sizes: [u64; DIMENSIONS],
    dimensions: u32,
}

/// `synLaunchTensorInfoExt`.
#[repr(C)]
pub struct Launched {
    name: *const c_char,
    address: u64,
    ty: c_int,
    sizes: [u64; DIMENSIONS],
    id: u64,
}

#[derive(Clone, Default)]
struct Tensor {
    graph: u64,
    name: String,
    /// Whether its section is persistent.
    persistent: Option<bool>,
    elements: u64,
    bytes_each: u64,
}

/// A node: what it writes, and what it reads.
#[derive(Clone, Copy)]
struct Node {
    to: u64,
    from: Option<u64>,
}

struct Recipe {
    name: &'static CStr,
    nodes: Vec<Node>,
    /// In the order of their making: their numbers are their places.
    tensors: Vec<(u64, Tensor)>,
}

#[derive(Default)]
struct State {
    last: u64,
    graphs: HashMap<u64, Vec<Node>>,
    /// Sections: their graph, and whether they are persistent.
    sections: HashMap<u64, (u64, bool)>,
    tensors: HashMap<u64, Tensor>,
    recipes: HashMap<u64, Recipe>,
    streams: HashMap<u64, u32>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with<R>(f: impl FnOnce(&mut State) -> R) -> R {
    f(STATE.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert_default())
}

impl State {
    fn handle(&mut self) -> u64 {
        self.last += 1;
        0x5f00_0000 + self.last * 16
    }
}

macro_rules! export {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?) => $body:expr;)*) => {
        $(
            /// # Safety
            /// As Synapse says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                if !crate::driver::is_ready() {
                    return crate::driver::NOT_INITIALIZED;
                }
                #[allow(unused_unsafe, reason = "some take no pointers")]
                // SAFETY: the caller's.
                unsafe { $body }
            }
        )*
    };
}

export! {
    synDeviceGetInfo(_device: u32, to: *mut u8) => {
        to.add(52).cast::<c_int>().write(GAUDI2);
        SUCCESS
    };
    synHostMalloc(_device: u32, bytes: u64, _flags: u32, to: *mut u64) => {
        work::allocate_host(to, bytes as usize)
    };
    synStreamCreateGeneric(to: *mut u64, device: u32, _flags: u32) => {
        if !has(device) {
            return INVALID_ARGUMENT;
        }
        work::set_device(device);
        let status = work::new_stream(to);
        let stream = to.read();
        with(|state| state.streams.insert(stream, device));
        status
    };
    synStreamSynchronize(stream: u64) => {
        if is_stream(stream) { work::synchronize(stream) } else { INVALID_ARGUMENT }
    };
    synMemCopyAsync(stream: u64, from: u64, bytes: u64, to: u64, direction: c_int) => {
        // The direction is what the memory is: from and to.
        let hosts = [(true, false), (false, true), (false, false)];
        let real = (work::is_host(from), work::is_host(to));
        if !is_stream(stream) || hosts.get(direction as usize) != Some(&real) {
            return INVALID_ARGUMENT;
        }
        work::copy([1, 2, 8][direction as usize], None, to, from, bytes as usize, stream)
    };
    synMemsetD32Async(to: u64, value: u32, count: usize, stream: u64) => {
        if is_stream(stream) { work::set(to, value, count, stream) } else { INVALID_ARGUMENT }
    };
    synGraphCreate(to: *mut u64, ty: c_int) => {
        if ty != GAUDI2 {
            return INVALID_ARGUMENT;
        }
        to.write(with(|state| {
            let graph = state.handle();
            state.graphs.insert(graph, Vec::new());
            graph
        }));
        SUCCESS
    };
    synGraphDestroy(graph: u64) => {
        let known = with(|state| state.graphs.remove(&graph).is_some());
        if known { SUCCESS } else { INVALID_ARGUMENT }
    };
    synSectionCreate(to: *mut u64, _descriptor: u64, graph: u64) => {
        to.write(with(|state| {
            let section = state.handle();
            state.sections.insert(section, (graph, false));
            section
        }));
        SUCCESS
    };
    synSectionSetPersistent(section: u64, persistent: bool) => with(|state| {
        let known = state.sections.get_mut(&section);
        known.map_or(INVALID_ARGUMENT, |known| {
            known.1 = persistent;
            SUCCESS
        })
    });
    synTensorHandleCreate(to: *mut u64, graph: u64, _ty: c_int, name: *const c_char) => {
        let name = CStr::from_ptr(name).to_string_lossy().into_owned();
        to.write(with(|state| {
            let tensor = state.handle();
            state.tensors.insert(tensor, Tensor { graph, name, ..Tensor::default() });
            tensor
        }));
        SUCCESS
    };
    synTensorAssignToSection(tensor: u64, section: u64, _offset: u64) => with(|state| {
        let section = state.sections.get(&section).copied();
        let tensor = state.tensors.get_mut(&tensor);
        match (tensor, section) {
            (Some(tensor), Some((graph, persistent))) if tensor.graph == graph => {
                tensor.persistent = Some(persistent);
                SUCCESS
            }
            _ => INVALID_ARGUMENT,
        }
    });
    synTensorSetGeometryExt(tensor: u64, geometry: *const Geometry, _ty: c_int) => {
        let Geometry { sizes, dimensions } = &*geometry;
        let elements = sizes.iter().take(*dimensions as usize).product();
        with(|state| match state.tensors.get_mut(&tensor) {
            Some(tensor) => {
                tensor.elements = elements;
                SUCCESS
            }
            None => INVALID_ARGUMENT,
        })
    };
    synTensorSetDeviceDataType(tensor: u64, ty: u32) => with(|state| {
        let bytes = ELEMENT.iter().find(|(known, _)| *known == ty);
        match (state.tensors.get_mut(&tensor), bytes) {
            (Some(tensor), Some((_, bytes))) => {
                tensor.bytes_each = *bytes;
                SUCCESS
            }
            _ => INVALID_ARGUMENT,
        }
    });
    synNodeCreate(
        graph: u64,
        inputs: *const u64,
        outputs: *const u64,
        input_count: u32,
        output_count: u32,
        _params: *const c_void,
        _params_bytes: u32,
        guid: *const c_char,
        _name: *const c_char,
        _input_layouts: *const *const c_char,
        _output_layouts: *const *const c_char,
    ) => {
        let guid = CStr::from_ptr(guid).to_bytes();
        let wanted = match guid {
            b"memcpy" => 1,
            b"memset" => 0,
            _ => return FAIL,
        };
        if (input_count, output_count) != (wanted, 1) {
            return INVALID_ARGUMENT;
        }
        let node = Node { to: *outputs, from: (wanted == 1).then(|| *inputs) };
        with(|state| match state.graphs.get_mut(&graph) {
            Some(nodes) => {
                nodes.push(node);
                SUCCESS
            }
            None => INVALID_ARGUMENT,
        })
    };
    synGraphCompile(to: *mut u64, graph: u64, name: *const c_char, _log: *const c_char) => {
        let name = CStr::from_ptr(name).to_owned();
        match with(|state| state.compile(graph, &name)) {
            Ok(recipe) => {
                to.write(recipe);
                SUCCESS
            }
            Err(status) => status,
        }
    };
    synWorkspaceGetSize(to: *mut u64, recipe: u64) => {
        to.write(128);
        if with(|state| state.recipes.contains_key(&recipe)) { SUCCESS } else { INVALID_ARGUMENT }
    };
    synTensorRetrieveIds(recipe: u64, names: *const *const c_char, ids: *mut u64, count: u32) => {
        for at in 0..count as usize {
            let name = CStr::from_ptr(*names.add(at)).to_string_lossy().into_owned();
            let id = with(|state| {
                let tensors = &state.recipes.get(&recipe)?.tensors;
                tensors.iter().position(|(_, tensor)| tensor.name == name)
            });
            let Some(id) = id else { return INVALID_ARGUMENT };
            ids.add(at).write(id as u64);
        }
        SUCCESS
    };
    synLaunchExt(
        stream: u64,
        tensors: *const Launched,
        count: u32,
        workspace: u64,
        recipe: u64,
        _flags: u32,
    ) => {
        if !is_stream(stream) || workspace == 0 {
            return INVALID_ARGUMENT;
        }
        let launched = std::slice::from_raw_parts(tensors, count as usize);
        let asked = with(|state| state.recipes.get(&recipe).and_then(|it| it.asked(launched)));
        let Some((name, effects)) = asked else { return INVALID_ARGUMENT };
        for effect in effects {
            work::submit(stream, kernel(name), NODE, effect);
        }
        SUCCESS
    };
}

fn is_stream(stream: u64) -> bool {
    with(|state| state.streams.contains_key(&stream))
}

/// What a recipe does, for who is told of work.
fn kernel(name: &'static CStr) -> Task {
    let one = [1, 1, 1];
    Task::Kernel(Kernel {
        name,
        grid: one,
        block: one,
        registers: 0,
        static_shared: 0,
        dynamic_shared: 0,
        priority: 0,
    })
}

impl State {
    fn compile(&mut self, graph: u64, name: &CStr) -> Result<u64, c_int> {
        let nodes = self.graphs.get(&graph).filter(|nodes| !nodes.is_empty());
        let nodes = nodes.cloned().ok_or(INVALID_ARGUMENT)?;
        let mut tensors = Vec::new();
        for handle in nodes.iter().flat_map(|node| [Some(node.to), node.from]).flatten() {
            let tensor = self.tensors.get(&handle).filter(|tensor| tensor.graph == graph);
            let tensor = tensor.cloned().ok_or(INVALID_ARGUMENT)?;
            // What has no address of its own lies in the workspace, and is nobody's to see.
            let whole = tensor.persistent == Some(true) && tensor.elements * tensor.bytes_each > 0;
            if !whole {
                return Err(INVALID_TENSOR);
            }
            tensors.push((handle, tensor));
        }
        let recipe = self.handle();
        let name = Box::leak(name.to_owned().into_boxed_c_str());
        self.recipes.insert(recipe, Recipe { name, nodes, tensors });
        Ok(recipe)
    }
}

impl Recipe {
    /// Its name, and what it does to these tensors; none if one is missing.
    fn asked(&self, launched: &[Launched]) -> Option<(&'static CStr, Vec<Effect>)> {
        let place = |handle: u64| {
            let id = self.tensors.iter().position(|(known, _)| *known == handle)?;
            let one = launched.iter().find(|one| one.id == id as u64)?;
            let fits = one.sizes[0] == self.tensors[id].1.elements && one.ty == 0;
            let bytes = self.tensors[id].1.elements * self.tensors[id].1.bytes_each;
            (fits && one.address != 0 && !one.name.is_null()).then_some((one.address, bytes))
        };
        let effect = |node: &Node| {
            let (to, bytes) = place(node.to)?;
            let (to, bytes) = (to as usize, bytes as usize);
            Some(match node.from {
                Some(from) => Effect::Copy { to, from: place(from)?.0 as usize, bytes },
                None => Effect::Set { to, value: 0, count: bytes / 4 },
            })
        };
        Some((self.name, self.nodes.iter().map(effect).collect::<Option<_>>()?))
    }
}
