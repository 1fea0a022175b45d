//! Work as real programs ask for it: memory, streams, kernels by name, graphs by capture. What a
//! kernel does is known by its name (`kymo_selftest_N`); everything is done when it is asked
//! for, and takes its time on the stream like the statements of scripts, which it becomes.
// Each fake uses some of it.
#![allow(dead_code)]

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::run::step;
use crate::script::{Statement, Verb, Via};
use crate::seam::{Kernel, Memcpy, Task};

pub(crate) const SUCCESS: i32 = 0;
const INVALID_VALUE: i32 = 1;
const NOT_FOUND: i32 = 500;
/// How long kernels and transfers take.
const KERNEL: u64 = 5_000;
const TRANSFER: u64 = 3_000;

thread_local! {
    static DEVICE: Cell<u32> = const { Cell::new(0) };
}

/// What is done to memory.
#[derive(Clone, Copy)]
pub(crate) enum Effect {
    Fill { to: usize, factor: u32, count: u32, value: u32 },
    Copy { to: usize, from: usize, bytes: usize },
    Set { to: usize, value: u32, count: usize },
}

type Nodes = Vec<(Task, u64, Effect)>;

#[derive(Default)]
struct State {
    functions: Vec<&'static CStr>,
    /// Streams that are captured, by handle.
    captured: HashMap<u64, Nodes>,
    graphs: HashMap<u32, Vec<Effect>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static STREAMS: AtomicU32 = AtomicU32::new(20);
static GRAPHS: AtomicU32 = AtomicU32::new(1000);

fn with<R>(f: impl FnOnce(&mut State) -> R) -> R {
    f(STATE.lock().unwrap().get_or_insert_default())
}

pub(crate) fn set_device(device: u32) {
    DEVICE.set(device);
}

pub(crate) fn device() -> u32 {
    DEVICE.get()
}

/// # Safety
/// `to` is valid for a write.
pub(crate) unsafe fn allocate(to: *mut u64, bytes: usize) -> i32 {
    let memory = vec![0_u64; bytes.div_ceil(8)].leak();
    // SAFETY: the caller's.
    unsafe { to.write(memory.as_mut_ptr() as u64) };
    SUCCESS
}

static HOST: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Memory that is the host's, where that is asked for later.
///
/// # Safety
/// `to` is valid for a write.
pub(crate) unsafe fn allocate_host(to: *mut u64, bytes: usize) -> i32 {
    // SAFETY: the caller's.
    let (status, address) = unsafe { (allocate(to, bytes), to.read()) };
    HOST.lock().unwrap().push(address);
    status
}

pub(crate) fn is_host(address: u64) -> bool {
    HOST.lock().unwrap().contains(&address)
}

/// The handle of a stream, as scripts have it in the fake HIP; 7 is the null stream.
fn handle(device: u32, number: u32) -> u64 {
    0x7f00_0000_0000 + u64::from(device) * 0x1_0000 + u64::from(number) * 64
}

fn place(stream: u64) -> (u32, u32) {
    match stream {
        0 => (device(), 7),
        _ => ((stream >> 16 & 0xff) as u32, (stream as u32 & 0xffff) / 64),
    }
}

/// # Safety
/// `to` is valid for a write.
pub(crate) unsafe fn new_stream(to: *mut u64) -> i32 {
    let number = STREAMS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe { to.write(handle(device(), number)) };
    SUCCESS
}

/// # Safety
/// `to` is valid for a write, and `name` is a string.
pub(crate) unsafe fn function(to: *mut u64, name: *const std::ffi::c_char) -> i32 {
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    if !name.to_string_lossy().starts_with("kymo_selftest_") {
        return NOT_FOUND;
    }
    let name = Box::leak(name.into_boxed_c_str());
    let number = with(|state| {
        state.functions.push(name);
        state.functions.len() as u64
    });
    // SAFETY: the caller's.
    unsafe { to.write(number) };
    SUCCESS
}

/// # Safety
/// `params` points to an address, a count and a value, or is null.
pub(crate) unsafe fn launch(
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    stream: u64,
    params: *mut *mut c_void,
) -> i32 {
    let Some(name) = with(|state| state.functions.get(function as usize - 1).copied()) else {
        return INVALID_VALUE;
    };
    let number = name.to_string_lossy().trim_start_matches("kymo_selftest_").parse().unwrap_or(0);
    // SAFETY: the caller's: what the kernels of this name take.
    let (to, count, value) = unsafe {
        let at = |index: usize| *params.add(index);
        (*at(0).cast::<u64>(), *at(1).cast::<u32>(), *at(2).cast::<u32>())
    };
    let kernel = Kernel {
        name,
        grid: grid.map(|n| n as i32),
        block: block.map(|n| n as i32),
        registers: 16,
        static_shared: 0,
        dynamic_shared: 0,
        priority: 0,
    };
    let to = to as usize;
    let effect = Effect::Fill { to, factor: 7 + number, count, value };
    submit(stream, Task::Kernel(kernel), KERNEL, effect)
}

/// Kinds of copies as CUPTI numbers them.
pub(crate) fn copy(
    kind: u8,
    peer: Option<u32>,
    to: u64,
    from: u64,
    bytes: usize,
    stream: u64,
) -> i32 {
    let memory = |device: bool| if device { 3 } else { 2 };
    let (source, target) = (memory(kind != 1), memory(kind != 2));
    let task = Task::Copy(Memcpy { kind, source, target, bytes: bytes as u64, peer });
    let effect = Effect::Copy { to: to as usize, from: from as usize, bytes };
    submit(stream, task, TRANSFER, effect)
}

/// Sets words.
pub(crate) fn set(to: u64, value: u32, count: usize, stream: u64) -> i32 {
    let task = Task::Set { value, bytes: count as u64 * 4 };
    submit(stream, task, TRANSFER, Effect::Set { to: to as usize, value, count })
}

pub(crate) fn submit(stream: u64, task: Task, dur: u64, effect: Effect) -> i32 {
    let captured = with(|state| {
        let nodes = state.captured.get_mut(&stream);
        nodes.map(|nodes| nodes.push((task, dur, effect))).is_some()
    });
    if !captured {
        effect.happen();
        run(stream, Verb::Work(task), dur);
    }
    SUCCESS
}

fn statement(stream: u64, verb: Verb, dur: u64) -> Statement {
    let (device, stream) = place(stream);
    Statement { verb, device, stream, dur, priority: 0, via: Via::Driver }
}

fn run(stream: u64, verb: Verb, dur: u64) {
    step(&statement(stream, verb, dur));
}

pub(crate) fn synchronize(stream: u64) -> i32 {
    run(stream, Verb::SyncStream, 0);
    SUCCESS
}

pub(crate) fn begin_capture(stream: u64) -> i32 {
    with(|state| state.captured.insert(stream, Vec::new()));
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
pub(crate) unsafe fn end_capture(stream: u64, to: *mut u64) -> i32 {
    let Some(nodes) = with(|state| state.captured.remove(&stream)) else { return INVALID_VALUE };
    let id = GRAPHS.fetch_add(1, Ordering::Relaxed);
    with(|state| state.graphs.insert(id, nodes.iter().map(|(_, _, effect)| *effect).collect()));
    let body = nodes.into_iter().map(|(task, dur, _)| statement(stream, Verb::Work(task), dur));
    run(stream, Verb::Graph(id, body.collect()), 0);
    // SAFETY: the caller's.
    unsafe { to.write(id.into()) };
    SUCCESS
}

/// # Safety
/// `to` is valid for a write.
pub(crate) unsafe fn instantiate(to: *mut u64, graph: u64) -> i32 {
    // SAFETY: the caller's.
    unsafe { to.write(graph) };
    SUCCESS
}

pub(crate) fn launch_graph(graph: u64, stream: u64) -> i32 {
    let effects = with(|state| state.graphs.get(&(graph as u32)).cloned().unwrap_or_default());
    effects.iter().for_each(|effect| effect.happen());
    run(stream, Verb::Launch(graph as u32), 0);
    SUCCESS
}

impl Effect {
    fn happen(self) {
        // SAFETY: memory that programs were given by `allocate`, or their own.
        unsafe {
            match self {
                Effect::Fill { to, factor, count, value } => {
                    let to = to as *mut u32;
                    for at in 0..count {
                        to.add(at as usize).write(at.wrapping_mul(factor).wrapping_add(value));
                    }
                }
                Effect::Copy { to, from, bytes } => {
                    std::ptr::copy(from as *const u8, to as *mut u8, bytes);
                }
                Effect::Set { to, value, count } => {
                    std::slice::from_raw_parts_mut(to as *mut u32, count).fill(value);
                }
            }
        }
    }
}
