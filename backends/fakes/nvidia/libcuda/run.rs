//! Does what a script says, on the calling thread.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use crate::driver;
use crate::functions::{self, Function, Pair};
use crate::script::{Statement, Verb, Via, parse};
use crate::seam::{Call, Event, Memory, Observe, Place, Task, Wait, Work, realtime};
use crate::{graphs, plant, timeline};

static OBSERVER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static CORRELATION: AtomicU32 = AtomicU32::new(1);

/// Where the fake CUPTI says what to call. Returns whether the driver is initialised.
#[unsafe(no_mangle)]
pub extern "C" fn fake_cuda_observe(observe: Observe) -> c_int {
    attach(observe);
    driver::is_ready().into()
}

/// The same inside of one library: exported functions may be another library's.
pub(crate) fn attach(observe: Observe) {
    OBSERVER.store(observe as *mut (), Ordering::Release);
}

/// Does what a script says. Returns a CUDA status.
///
/// # Safety
/// `text` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_cuda_run(text: *const c_char) -> c_int {
    if !driver::is_ready() {
        return driver::NOT_INITIALIZED;
    }
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) }.to_str().expect("script: not UTF-8");
    run(&parse(text));
    driver::SUCCESS
}

pub(crate) fn tell(event: &Event) {
    let observe = OBSERVER.load(Ordering::Acquire);
    if observe.is_null() {
        return;
    }
    // SAFETY: only `fake_cuda_observe` stores here.
    let observe = unsafe { std::mem::transmute::<*mut (), Observe>(observe) };
    observe(event);
}

fn submitted(work: Work) {
    if let Some(work) = plant::work(work) {
        tell(&Event::Work(work));
    }
}

/// `cuCtxSynchronize`, which a tracer may call as well.
pub(crate) fn synchronize() {
    let place = timeline::place(0, 7);
    call(&functions::SYNC_DEVICE, Via::Driver, place, &With::NOTHING, |correlation| {
        wait(4, place, correlation, 0, timeline::done(place.context, None));
    });
}

fn run(script: &[Statement]) {
    for statement in script {
        step(statement);
    }
}

pub(crate) fn step(statement: &Statement) {
    let place = timeline::place(statement.device, statement.stream);
    match &statement.verb {
        Verb::Repeat(times, body) => (0..*times).for_each(|_| run(body)),
        Verb::Sleep => timeline::sleep_until(realtime() + statement.dur),
        Verb::Graph(id, body) => graphs::define(*id, body),
        _ => {
            visit(place, statement.priority);
            act(statement, place);
        }
    }
}

/// Tells of contexts and streams when they are first used.
fn visit(place: Place, priority: i32) {
    let (context, stream) = timeline::touch(place);
    if context {
        tell(&Event::Context { context: place.context, device: place.device });
    }
    if stream {
        tell(&Event::Stream { place, priority });
    }
}

fn act(statement: &Statement, place: Place) {
    let via = statement.via;
    let stream = place.stream.into();
    match &statement.verb {
        Verb::Work(task) => {
            let pair = match task {
                Task::Copy(copy) if copy.peer.is_some() => &functions::PEER,
                Task::Copy(_) => &functions::COPY,
                Task::Set { .. } => &functions::SET,
                Task::Kernel(_) | Task::Graph => &functions::LAUNCH,
            };
            let with = With { symbol: symbol(task), ..With::NOTHING };
            call(pair, via, place, &with, |correlation| {
                let (start, end) = timeline::take(place, statement.dur);
                let (graph, node, task) = (0, 0, *task);
                submitted(Work { place, correlation, start, end, graph, node, task });
            });
        }
        Verb::Launch(id) => {
            call(&functions::GRAPH, via, place, &With::NOTHING, |correlation| {
                launch(place, correlation, *id);
            });
        }
        Verb::SyncDevice => {
            call(&functions::SYNC_DEVICE, via, place, &With::NOTHING, |correlation| {
                wait(4, place, correlation, 0, timeline::done(place.context, None));
            });
        }
        Verb::SyncStream => {
            let with = With::params([stream, 0, 0]);
            call(&functions::SYNC_STREAM, via, place, &with, |correlation| {
                let done = timeline::done(place.context, Some(place.stream));
                wait(3, place, correlation, 0, done);
            });
        }
        Verb::SyncEvent(event) => {
            let with = With::params([handle(*event), 0, 0]);
            call(&functions::SYNC_EVENT, via, place, &with, |correlation| {
                let done = timeline::recorded(place, *event).time;
                wait(1, place, correlation, *event, done);
            });
        }
        Verb::Record(event) => {
            let with = With::params([handle(*event), stream, 0]);
            call(&functions::RECORD, via, place, &with, |correlation| {
                let timeline::Recorded { id, time } = timeline::record(place, *event);
                tell(&Event::Recorded { place, correlation, event: *event, record: id, time });
            });
        }
        Verb::Wait(event) => {
            let with = With::params([stream, handle(*event), 0]);
            call(&functions::WAIT, via, place, &with, |correlation| {
                timeline::hold(place, timeline::recorded(place, *event).time);
                wait(2, place, correlation, *event, 0);
            });
        }
        Verb::Call(function) => {
            if function.name == c"cuModuleGetFunction" {
                GOT_KERNEL.store(true, Ordering::Relaxed);
            }
            let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
            within(function, correlation, place, &With::NOTHING, || {});
        }
        Verb::Memory(deed, address, bytes) => {
            let (deed, address, bytes, end) = (*deed, *address, *bytes, realtime());
            let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
            let start = end - statement.dur;
            let memory = Memory { deed, place, correlation, address, bytes, start, end };
            tell(&Event::Memory(memory));
        }
        Verb::Destroy => {
            timeline::sleep_until(timeline::done(place.context, None));
            tell(&Event::Destroy { context: place.context });
            timeline::forget(place.context);
        }
        Verb::Overhead(kind) => {
            let end = realtime();
            let (kind, correlation) = (*kind, CORRELATION.load(Ordering::Relaxed));
            let start = end - statement.dur;
            tell(&Event::Overhead { kind, correlation, start, end });
        }
        Verb::Repeat(..) | Verb::Sleep | Verb::Graph(..) => unreachable!("not on a device"),
    }
}

fn symbol(task: &Task) -> Option<&'static CStr> {
    if let Task::Kernel(kernel) = task { Some(kernel.name) } else { None }
}

/// What a function is called with.
struct With {
    symbol: Option<&'static CStr>,
    params: [u64; 3],
}

impl With {
    const NOTHING: With = With { symbol: None, params: [0; 3] };

    fn params(params: [u64; 3]) -> With {
        With { params, ..With::NOTHING }
    }
}

/// What a program has for an event.
fn handle(event: u32) -> u64 {
    0xe000_0000 | u64::from(event)
}

/// Whether the program has something to launch by the driver API.
static GOT_KERNEL: AtomicBool = AtomicBool::new(false);

/// Work inside the functions that ask for it, under one correlation id.
fn call(pair: &Pair, via: Via, place: Place, with: &With, work: impl FnOnce(u32)) {
    let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
    let inner = || match via {
        Via::Runtime => work(correlation),
        Via::Driver | Via::Both => {
            within(&pair.driver, correlation, place, with, || work(correlation));
        }
    };
    match via {
        Via::Driver => {
            if let (Some(_), Some(get)) = (with.symbol, &functions::GET_KERNEL)
                && !GOT_KERNEL.swap(true, Ordering::Relaxed)
            {
                let correlation = CORRELATION.fetch_add(1, Ordering::Relaxed);
                within(get, correlation, place, &With::NOTHING, || {});
            }
            inner();
        }
        Via::Runtime | Via::Both => within(&pair.runtime, correlation, place, with, inner),
    }
}

fn within(function: &Function, correlation: u32, place: Place, with: &With, work: impl FnOnce()) {
    let mut word = 0;
    let call = Call {
        domain: function.domain,
        cbid: function.cbid,
        correlation,
        context: place.context,
        params: with.params,
        function: function.name,
        symbol: with.symbol,
        word: &mut word,
    };
    tell(&Event::Enter(call));
    work();
    tell(&Event::Exit(call));
}

/// Waits until `done`, and tells of it. A stream's wait for an event takes no time.
fn wait(kind: u32, place: Place, correlation: u32, event: u32, done: u64) {
    let start = realtime();
    timeline::sleep_until(done);
    let record = if event == 0 { 0 } else { timeline::recorded(place, event).id };
    let end = realtime();
    tell(&Event::Wait(Wait { kind, place, correlation, start, end, event, record }));
}

fn launch(place: Place, correlation: u32, id: u32) {
    let (nodes, dur) = graphs::nodes(id);
    if nodes.is_empty() {
        return;
    }
    let graph = id;
    let (start, end) = timeline::take(place, dur);
    let mut next = start;
    for (number, (task, dur)) in (1..).zip(nodes) {
        let node = u64::from(id) << 32 | number;
        let (start, end) = (next, next + dur);
        submitted(Work { place, correlation, start, end, graph, node, task });
        next = end;
    }
    let (node, task) = (0, Task::Graph);
    tell(&Event::Work(Work { place, correlation, start, end, graph, node, task }));
}
