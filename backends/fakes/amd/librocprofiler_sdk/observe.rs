//! What the fake HIP does becomes callbacks and records.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::agents::{CPU, gpu};
use crate::kinds;
use crate::record::{self, Dispatch, Record, When};
use crate::registration::is_finalized;
use crate::seam::{Task, Work, ahead, realtime};
use crate::settings::{self, befalls, toolkit};
use crate::status::{ERROR, SUCCESS, call};
use crate::tables::{Argument, Call, Event};
use crate::{buffers, contexts, replay, streams};

pub(crate) const ENTER: u32 = 1;
pub(crate) const EXIT: u32 = 2;
/// Where a payload has its arguments, and its bytes: the unions of the real ones are larger.
const ARGUMENTS: usize = 8;
const PAYLOAD: usize = 8 + 160 + 8;
/// `GPU_MAX_HW_QUEUES`, as it is unless somebody sets it.
const QUEUES: u64 = 4;
/// Where copies of arguments lay when their addresses are passed on: nothing is there any more.
const GONE: usize = 0x1000;

pub(crate) extern "C" fn observe(event: &Event<'_>) {
    if is_finalized() {
        return;
    }
    match event {
        Event::Enter(call) => tell(call, ENTER),
        Event::Exit(call) => tell(call, EXIT),
        Event::Work(work) => submitted(work),
        Event::Memory { device, correlation, address, bytes } => {
            let now = boottime(realtime());
            let when = when(*correlation, now, now + 100);
            let record = record::allocation(&when, gpu(*device), *address, *bytes);
            add(record, c"MEMORY_ALLOCATION", realtime());
        }
        Event::Pages { device, moved, address, bytes, start, end } => {
            let (times, agents) = ((boottime(*start), boottime(*end)), [CPU, gpu(*device)]);
            let record = record::pages(times, *moved, agents, (*address, *bytes));
            let kind = if *moved { c"KFD_PAGE_MIGRATE" } else { c"KFD_PAGE_FAULT" };
            add(record, kind, *end);
        }
        Event::Waited { device, stream, correlation, event, start, end } => {
            let when = when(*correlation, boottime(*start), boottime(*end));
            let queue = u64::from(*device) * 100 + u64::from(*stream) % QUEUES;
            for operation in [1, 2] {
                let record = record::event(&when, operation, gpu(*device), (queue, 77), *event);
                add(record, c"HIP_EVENT", *end);
            }
        }
        Event::Scratch { device, operation, bytes, start, end } => {
            let when = when(0, boottime(*start), boottime(*end));
            let record = record::scratch(&when, *operation, gpu(*device), 4, *bytes);
            add(record, c"SCRATCH_MEMORY", *end);
        }
    }
}

/// A time of CLOCK_REALTIME on the library's clock.
fn boottime(time: u64) -> u64 {
    static AHEAD: OnceLock<u64> = OnceLock::new();
    time.wrapping_add(*AHEAD.get_or_init(|| ahead(system))) + clock()
}

/// CLOCK_BOOTTIME.
pub(crate) fn system() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// How far the library's clock is ahead of CLOCK_BOOTTIME.
fn clock() -> u64 {
    let jumped = RECORDS.load(Ordering::Relaxed) >= JUMP_AT;
    let jump = if jumped { settings::fault_every("clock-jump", 0) } else { 0 };
    settings::fault_every("clock", 0) + jump
}

const JUMP_AT: u64 = 500;
static RECORDS: AtomicU64 = AtomicU64::new(0);

fn when(correlation: u64, start: u64, end: u64) -> When {
    // SAFETY: always succeeds.
    let thread = unsafe { libc::gettid() } as u64;
    let correlation = if settings::fault("no-correlation") { 0 } else { correlation };
    When { correlation, thread, start, end }
}

fn add(record: Option<Record>, kind: &CStr, end: u64) {
    let Some(record) = record else { return };
    let Some(number) = kinds::buffer(kind) else { return };
    for buffer in contexts::buffers(number) {
        buffers::add(buffer, end, Record { words: record.words.clone(), ..record });
    }
}

/// A record of device work, to which something may happen.
fn add_work(record: Option<Record>, kind: &CStr, end: u64) {
    let Some(mut record) = record else { return };
    if contexts::buffers(record.kind as c_int).is_empty() {
        return;
    }
    let number = RECORDS.fetch_add(1, Ordering::Relaxed) + 1;
    if befalls("drop", number) {
        return buffers::dropped();
    }
    if befalls("zero-times", number) {
        record.put(40, 0, 8);
        record.put(48, 0, 8);
    }
    if befalls("backwards", number) {
        record.put(48, 1, 8);
    }
    if befalls("future", number) {
        record.put(48, system() + settings::HOUR, 8);
    }
    if befalls("truncated", number) {
        let half = record.words[0] / 2;
        record.put(0, half, 8);
    }
    let unknown = befalls("unknown-kind", number).then(record::unknown);
    for buffer in contexts::buffers(record.kind as c_int) {
        if let Some(unknown) = &unknown {
            let words = unknown.words.clone();
            buffers::add(buffer, end, Record { words, ..*unknown });
        }
    }
    add(Some(record), kind, end);
}

fn submitted(work: &Work) {
    replay::once();
    let (start, end) = (boottime(work.start), boottime(work.end));
    let when = when(work.correlation.into(), start, end);
    let agent = gpu(work.place.device);
    // HIP has few queues, which its streams share.
    let queue = u64::from(work.place.device) * 100 + u64::from(work.place.stream) % QUEUES;
    match work.task {
        Task::Kernel(kernel) => {
            let block = kernel.block.map(|n| n as u32);
            let dispatch = Dispatch {
                agent,
                queue,
                kernel: register(kernel.name, kernel.static_shared as u32, kernel.registers),
                private: 0,
                group: (kernel.static_shared + kernel.dynamic_shared) as u32,
                workgroup: block,
                grid: std::array::from_fn(|axis| kernel.grid[axis] as u32 * block[axis]),
            };
            add_work(record::kernel(&when, &dispatch), c"KERNEL_DISPATCH", work.end);
        }
        // What HIP makes of it: a kernel of its own.
        Task::Set { bytes, .. } => {
            let items = (bytes as u32).div_ceil(16).max(1);
            let dispatch = Dispatch {
                agent,
                queue,
                kernel: register(c"__amd_rocclr_fillBufferAligned.kd", 0, 16),
                private: 0,
                group: 0,
                workgroup: [256, 1, 1],
                grid: [items, 1, 1],
            };
            add_work(record::kernel(&when, &dispatch), c"KERNEL_DISPATCH", work.end);
        }
        Task::Copy(copy) => {
            // Host to host 1, to device 2, to host 3, device to device 4.
            let (direction, to, from) = match (copy.kind, copy.peer) {
                (_, Some(peer)) => (4, gpu(peer), agent),
                (1, _) => (2, agent, CPU),
                (2, _) => (3, CPU + 1, agent),
                (9, _) => (1, CPU, CPU),
                _ => (4, agent, agent),
            };
            let record = record::copy(&when, direction, to, from, copy.bytes);
            add_work(record, c"MEMORY_COPY", work.end);
        }
        Task::Graph => {
            let record = record::graph(&when, agent, queue, work.graph.into(), 2);
            add(record, c"HIP_GRAPH", work.end);
        }
    }
}

#[repr(C)]
struct Symbol {
    size: u64,
    kernel: u64,
    code_object: u64,
    name: *const c_char,
    object: u64,
    kernarg: [u32; 2],
    group: u32,
    private: u32,
    sgprs: u32,
    vgprs: u32,
    accum_vgprs: u32,
    rest: [u64; 2],
}

/// The id of a kernel; tools are told of it the first time.
pub(crate) fn register(name: &'static CStr, shared: u32, registers: u16) -> u64 {
    static KERNELS: Mutex<Option<HashMap<&'static CStr, u64>>> = Mutex::new(None);
    let mut kernels = KERNELS.lock().unwrap();
    let kernels = kernels.get_or_insert_default();
    if let Some(id) = kernels.get(name) {
        return *id;
    }
    let id = kernels.len() as u64 + 1;
    kernels.insert(name, id);
    if settings::fault("unregistered") {
        return id;
    }
    let nameless = settings::fault("no-name");
    let symbol = Symbol {
        size: if toolkit() < 100 { 72 } else { 88 },
        kernel: id,
        code_object: 1,
        name: if nameless { std::ptr::null() } else { name.as_ptr() },
        object: 0x7000,
        kernarg: [64, 16],
        group: shared,
        private: 0,
        sgprs: 48,
        vgprs: registers.into(),
        accum_vgprs: 4,
        rest: [0, 0],
    };
    const SYMBOL_REGISTER: u32 = 2;
    let kind = kinds::callback(c"CODE_OBJECT");
    let mut word = 0;
    for (context, service) in contexts::callbacks(kind, SYMBOL_REGISTER as c_int) {
        let payload = (&raw const symbol).cast();
        let record = callback_record(context, 0, kind, SYMBOL_REGISTER, ENTER, payload);
        // SAFETY: the tool's function; all lives for the call.
        unsafe { invoke(service.callback, record, &mut word, service.data) };
    }
    id
}

/// `rocprofiler_callback_tracing_record_t`: 56 bytes in 0.5, 64 from 1.0 on.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Large([u64; 8]);

#[derive(Clone, Copy)]
#[repr(C)]
struct Small([u64; 7]);

pub(crate) fn callback_record(
    context: u64,
    correlation: u64,
    kind: c_int,
    operation: u32,
    phase: u32,
    payload: *const u8,
) -> Large {
    // SAFETY: always succeeds.
    let thread = unsafe { libc::gettid() } as u64;
    let kind = u64::from(kind as u32) | u64::from(operation) << 32;
    // What follows the phase is padding.
    let (phase, payload) = (u64::from(phase) | 0xdead << 32, payload as u64);
    Large(match toolkit() {
        ..100 => [context, thread, correlation, 0, kind, phase, payload, 0xbad],
        _ => [context, thread, correlation, 0, 0, kind, phase, payload],
    })
}

/// # Safety
/// `callback` is a tool's, for records of the emulated version.
pub(crate) unsafe fn invoke(callback: usize, record: Large, word: *mut u64, data: usize) {
    let data = data as *mut c_void;
    type ForLarge = unsafe extern "C" fn(Large, *mut u64, *mut c_void);
    type ForSmall = unsafe extern "C" fn(Small, *mut u64, *mut c_void);
    // SAFETY: the caller's promise.
    unsafe {
        if toolkit() < 100 {
            let [a, b, c, d, e, f, g, _] = record.0;
            std::mem::transmute::<usize, ForSmall>(callback)(
                Small([a, b, c, d, e, f, g]),
                word,
                data,
            );
        } else {
            std::mem::transmute::<usize, ForLarge>(callback)(record, word, data);
        }
    }
}

/// Offsets of arguments in a struct of them.
fn places(arguments: &[Argument]) -> Vec<usize> {
    let mut at = ARGUMENTS;
    let place = |argument: &Argument| {
        at = at.next_multiple_of(argument.align);
        let here = at;
        at += argument.width;
        here
    };
    arguments.iter().map(place).collect()
}

thread_local! {
    /// The arguments of the call that this thread is in, for who asks for them.
    static ARGUMENTS_OF: std::cell::RefCell<Vec<Argument>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn tell(call: &Call<'_>, phase: u32) {
    // What tells of streams is wrapped around what tells of calls.
    if phase == ENTER {
        streams::enter(call);
    }
    tell_of_call(call, phase);
    if phase == EXIT {
        streams::exit(call);
    }
}

fn tell_of_call(call: &Call<'_>, phase: u32) {
    let kind = kinds::of_library(call.library);
    let operation = kinds::operation(call.library, call.function);
    let mut payload = [0_u64; PAYLOAD / 8];
    payload[0] = PAYLOAD as u64;
    // SAFETY: the bytes of the words.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(payload.as_mut_ptr().cast::<u8>(), PAYLOAD) };
    for (argument, at) in call.arguments.iter().zip(places(call.arguments)) {
        bytes[at..at + argument.width].copy_from_slice(&argument.bytes[..argument.width]);
    }
    bytes[PAYLOAD - 8..].copy_from_slice(&call.result.to_ne_bytes());
    ARGUMENTS_OF.with_borrow_mut(|arguments| *arguments = call.arguments.to_vec());
    for (context, service) in contexts::callbacks(kind, operation as c_int) {
        let payload = payload.as_ptr().cast();
        let record = callback_record(context, call.correlation, kind, operation, phase, payload);
        // SAFETY: the tool's function; all lives for the call.
        unsafe { invoke(service.callback, record, call.word, service.data) };
    }
}

type EachArgument = unsafe extern "C" fn(
    c_int,
    c_int,
    u32,
    *const c_void,
    i32,
    *const c_char,
    *const c_char,
    *const c_char,
    i32,
    *mut c_void,
) -> c_int;

/// # Safety
/// `record` is one that a callback of this thread was given, within that callback; `each`
/// takes `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kind_operation_args(
    record: Large,
    each: EachArgument,
    _dereferences: i32,
    data: *mut c_void,
) -> c_int {
    call("rocprofiler_iterate_callback_tracing_kind_operation_args", || {
        let payload = if toolkit() < 100 { record.0[6] } else { record.0[7] } as *const u8;
        if payload.is_null() {
            return ERROR;
        }
        // The library walks over a copy of the arguments (hip/defines.hpp, `as_arg_addr`), which
        // is gone when it passes their addresses on.
        let arguments = ARGUMENTS_OF.with_borrow(Vec::clone);
        for (number, (argument, at)) in arguments.iter().zip(places(&arguments)).enumerate() {
            let address = std::ptr::without_provenance(GONE + at - ARGUMENTS);
            let (ty, name) = (argument.ty.as_ptr(), argument.name.as_ptr());
            // SAFETY: the tool's function.
            unsafe { each(0, 0, number as u32, address, 0, ty, name, c"?".as_ptr(), 0, data) };
        }
        SUCCESS
    })
}

/// # Safety
/// `to` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_get_timestamp(to: *mut u64) -> c_int {
    call("rocprofiler_get_timestamp", || {
        // SAFETY: the caller's.
        unsafe { to.write(boottime(realtime())) };
        SUCCESS
    })
}
