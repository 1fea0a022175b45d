//! Does what a script says, on the calling thread.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arguments::{dim, integer, kind, new_stream, number, pointer, size, stream, text};
use crate::functions::Function;
use crate::registration::{register, tell};
use crate::script::{Statement, Verb, Via, parse};
use crate::seam::{Deed, Kernel, Memcpy, Place, Task, Work, realtime};
use crate::tables::{Argument, Call, Event, Library};
use crate::{graphs, plant, timeline, work};

/// The library's ids are of all its tables together.
static CORRELATION: AtomicU64 = AtomicU64::new(1);
static RANGES: AtomicU64 = AtomicU64::new(100);

thread_local! {
    static DEVICE: Cell<u32> = const { Cell::new(0) };
}

/// Does what a script says. Returns a status of HIP's.
///
/// # Safety
/// `text` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_hip_run(text: *const c_char) -> c_int {
    register();
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) }.to_str().expect("script: not UTF-8");
    run(&parse(text));
    0
}

pub(crate) fn set_device(device: u32) {
    work::set_device(device);
    DEVICE.set(device);
}

/// `hipDeviceSynchronize`, which a tracer may call as well.
pub(crate) fn synchronize() {
    let place = timeline::place(DEVICE.get(), 7);
    call(Library::Hip, c"hipDeviceSynchronize", &[], |_| {
        timeline::sleep_until(timeline::done(place.context, None));
        0
    });
}

fn run(script: &[Statement]) {
    for statement in script {
        step(statement);
    }
}

/// The handle of a stream: 7, CUDA's default, is the null stream; 1 is `hipStreamLegacy`, and 2
/// `hipStreamPerThread`.
fn handle(place: Place) -> u64 {
    match place.stream {
        7 => 0,
        1 | 2 => place.stream.into(),
        number => 0x7f00_0000_0000 + u64::from(place.device) * 0x1_0000 + u64::from(number) * 64,
    }
}

pub(crate) fn step(statement: &Statement) {
    let place = timeline::place(statement.device, statement.stream);
    match &statement.verb {
        Verb::Repeat(times, body) => (0..*times).for_each(|_| run(body)),
        Verb::Sleep => timeline::sleep_until(realtime() + statement.dur),
        Verb::Graph(id, body) => graphs::define(*id, body),
        _ => {
            timeline::touch(place);
            act(statement, place);
        }
    }
}

fn act(statement: &Statement, place: Place) {
    let stream = stream(plant::stream(handle(place)));
    let hip = |name, arguments: &[Argument], work: &dyn Fn(u64)| {
        call(Library::Hip, name, arguments, |correlation| {
            work(correlation);
            0
        });
    };
    let sleep_until = |time| move |_: u64| timeline::sleep_until(time);
    match &statement.verb {
        Verb::Work(task) => {
            let (name, arguments) = launch(task, statement.via, stream);
            hip(name, &arguments, &|correlation| {
                let (start, end) = timeline::take(place, statement.dur);
                submit(place, correlation, (start, end), 0, *task);
            });
        }
        Verb::Launch(id) => {
            let arguments = [pointer(c"graphExec", u64::from(*id)), stream];
            hip(c"hipGraphLaunch", &arguments, &|correlation| graph(place, correlation, *id));
        }
        Verb::SyncDevice => {
            let done = timeline::done(place.context, None);
            hip(c"hipDeviceSynchronize", &[], &sleep_until(done));
        }
        Verb::SyncStream => {
            let done = timeline::done(place.context, Some(place.stream));
            hip(c"hipStreamSynchronize", &[stream], &sleep_until(done));
        }
        Verb::SyncEvent(event) => {
            let done = timeline::recorded(place, *event).time;
            let event = pointer(c"event", u64::from(*event));
            hip(c"hipEventSynchronize", &[event], &sleep_until(done));
        }
        Verb::Record(event) => {
            let arguments = [pointer(c"event", u64::from(*event)), stream];
            hip(c"hipEventRecord", &arguments, &|_| {
                timeline::record(place, *event);
            });
        }
        Verb::Wait(event) => {
            let time = timeline::recorded(place, *event).time;
            let arguments = [stream, pointer(c"event", u64::from(*event)), number(c"flags", 0)];
            hip(c"hipStreamWaitEvent", &arguments, &|correlation| {
                let start = timeline::done(place.context, Some(place.stream)).max(realtime());
                timeline::hold(place, time);
                let (end, event) = (time.max(start) + 1, 0xe000 + u64::from(*event));
                let Place { device, stream, .. } = place;
                let waited = Event::Waited { device, stream, correlation, event, start, end };
                tell(Library::Hip, &waited);
            });
        }
        Verb::Call(function) => other(function, place),
        Verb::Overhead(operation) => {
            let end = realtime();
            let (device, operation, start) = (place.device, *operation, end - statement.dur);
            let event = Event::Scratch { device, operation, bytes: 1 << 20, start, end };
            tell(Library::Hip, &event);
        }
        Verb::Memory(Deed::Memory { operation, .. }, address, bytes) => {
            let bytes = if *operation == 1 { *bytes as i64 } else { -1 };
            let (device, correlation, address) = (place.device, 0, *address);
            tell(Library::Hip, &Event::Memory { device, correlation, address, bytes });
        }
        Verb::Memory(Deed::Unified { kind }, address, bytes) => {
            let (end, moved) = (realtime(), *kind != 4);
            let (device, start) = (place.device, end - statement.dur);
            let (address, bytes) = (*address, *bytes);
            tell(Library::Hip, &Event::Pages { device, moved, address, bytes, start, end });
        }
        // Of CUDA: memory that is not simply allocated, and the end of a context.
        Verb::Memory(..) | Verb::Destroy => {}
        Verb::Repeat(..) | Verb::Sleep | Verb::Graph(..) => unreachable!("not on a device"),
    }
}

/// The function that asks for work, and its arguments.
fn launch(task: &Task, via: Via, stream: Argument) -> (&'static CStr, Vec<Argument>) {
    match task {
        Task::Kernel(kernel) if via == Via::Driver => module_launch(kernel, stream),
        Task::Kernel(kernel) => {
            let Kernel { grid, block, .. } = kernel;
            let arguments = vec![
                pointer(c"function_address", 0x40_0000),
                dim(c"numBlocks", grid.map(|n| n as u32)),
                dim(c"dimBlocks", block.map(|n| n as u32)),
                pointer(c"args", 0x50_0000),
                size(c"sharedMemBytes", kernel.dynamic_shared as u64),
                stream,
            ];
            (c"hipLaunchKernel", arguments)
        }
        Task::Copy(Memcpy { peer: Some(peer), bytes, .. }) => {
            let arguments = vec![
                pointer(c"dst", 0x7e00_0000_0000),
                integer(c"dstDeviceId", *peer as i32),
                pointer(c"src", 0x7d00_0000_0000),
                integer(c"srcDevice", 0),
                size(c"sizeBytes", *bytes),
                stream,
            ];
            (c"hipMemcpyPeerAsync", arguments)
        }
        Task::Copy(copy) => {
            // hipMemcpyKind: HtoH 0, HtoD 1, DtoH 2, DtoD 3.
            let how = match copy.kind {
                1 => 1,
                2 => 2,
                9 => 0,
                _ => 3,
            };
            let arguments = vec![
                pointer(c"dst", 0x7e00_0000_0000),
                pointer(c"src", 0x7d00_0000_0000),
                size(c"sizeBytes", copy.bytes),
                kind(how),
                stream,
            ];
            (c"hipMemcpyAsync", arguments)
        }
        Task::Set { value, bytes } => {
            let target = pointer(c"dst", 0x7e00_0000_0000);
            let value = integer(c"value", *value as i32);
            (c"hipMemsetAsync", vec![target, value, size(c"sizeBytes", *bytes), stream])
        }
        Task::Graph => unreachable!("graphs are launched as such"),
    }
}

fn module_launch(kernel: &Kernel, stream: Argument) -> (&'static CStr, Vec<Argument>) {
    let [x, y, z] = kernel.grid.map(|n| n as u32);
    let [bx, by, bz] = kernel.block.map(|n| n as u32);
    let arguments = vec![
        pointer(c"f", 0x40_0000),
        number(c"gridDimX", x),
        number(c"gridDimY", y),
        number(c"gridDimZ", z),
        number(c"blockDimX", bx),
        number(c"blockDimY", by),
        number(c"blockDimZ", bz),
        number(c"sharedMemBytes", kernel.dynamic_shared as u32),
        stream,
    ];
    (c"hipModuleLaunchKernel", arguments)
}

/// A call of no consequence for devices.
fn other(function: &Function, place: Place) {
    let word = function.word.to_str().unwrap_or_default();
    let amount = word.parse().unwrap_or(4096_u64);
    let name = function.name;
    let numbered = || {
        let number = amount as u32;
        handle(Place { stream: number, ..place })
    };
    let arguments = match name.to_bytes() {
        b"hipStreamCreateWithFlags" => vec![new_stream(numbered()), number(c"flags", 1)],
        b"hipStreamDestroy" => vec![stream(numbered())],
        b"hipMalloc" => vec![pointer(c"ptr", 0x6000_0000), size(c"size", amount)],
        b"hipFree" => vec![pointer(c"ptr", 0x7e00_0000_0000)],
        b"ncclAllReduce" | b"ncclSend" | b"ncclBroadcast" => vec![
            pointer(c"sendbuff", 0x7d00_0000_0000),
            size(c"count", amount),
            integer(c"datatype", 7),
            if name == c"ncclSend" { integer(c"peer", 3) } else { integer(c"op", 0) },
        ],
        b"roctxMarkA" | b"roctxRangePushA" | b"roctxRangeStartA" | b"roctxNameOsThread" => {
            vec![text(c"message", function.word)]
        }
        b"roctxProfilerPause" | b"roctxProfilerResume" => {
            vec![size(c"tid", word.parse().unwrap_or(0))]
        }
        b"roctxNameHipStream" => {
            vec![text(c"name", c"loader"), pointer(c"stream", numbered())]
        }
        b"hsa_memory_allocate" => vec![size(c"size", amount)],
        b"roctxRangeStop" => vec![size(c"id", RANGES.load(Ordering::Relaxed))],
        _ => Vec::new(),
    };
    let memory = |correlation, bytes| {
        let (device, address) = (place.device, 0x7e00_0000_0000);
        tell(Library::Hip, &Event::Memory { device, correlation, address, bytes });
    };
    call(function.library, name, &arguments, |correlation| match name.to_bytes() {
        b"hipMalloc" => {
            memory(correlation, amount as i64);
            0
        }
        b"hipFree" => {
            memory(correlation, -1);
            0
        }
        b"roctxRangeStartA" => RANGES.fetch_add(1, Ordering::Relaxed) + 1,
        _ => 0,
    });
}

/// Something inside a function.
fn call(
    library: Library,
    function: &'static CStr,
    arguments: &[Argument],
    work: impl FnOnce(u64) -> u64,
) {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    // Not 0: the library does not promise it.
    let mut word = 0x5a5a;
    let call = Call { library, function, correlation, arguments, result: 0, word: &mut word };
    tell(library, &Event::Enter(call));
    let result = work(correlation);
    tell(library, &Event::Exit(Call { result, ..call }));
}

fn submit(place: Place, correlation: u64, (start, end): (u64, u64), graph: u32, task: Task) {
    let (correlation, node) = (correlation as u32, 0);
    if let Some(work) = plant::work(Work { place, correlation, start, end, graph, node, task }) {
        tell(Library::Hip, &Event::Work(work));
    }
}

fn graph(place: Place, correlation: u64, id: u32) {
    let (nodes, dur) = graphs::nodes(id);
    let (start, end) = timeline::take(place, dur);
    let mut next = start;
    for (task, dur) in nodes {
        submit(place, correlation, (next, next + dur), id, task);
        next += dur;
    }
    submit(place, correlation, (start, end), id, Task::Graph);
}
