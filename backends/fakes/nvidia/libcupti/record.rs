//! Records as bytes. Offsets are those of `cupti_activity.h`; a field that lies beyond a
//! version's record is left out.

use std::ptr;

use crate::bytes::Record;
use crate::seam::{Call, Deed, Kernel, Memcpy, Memory, Nanos, Place, Task, Wait, Work};
use crate::settings;
use crate::sizes::{kind, size_of};

fn new(kind: u32) -> Record {
    Record::sized(kind, size_of(kind, settings::toolkit()).expect("a kind of this version"))
}

/// What a device did, with its times in the clock that was asked for.
pub(crate) fn work(work: &Work, start: Nanos, end: Nanos) -> Record {
    match &work.task {
        Task::Kernel(kernel) => of_kernel(work, kernel, start, end),
        Task::Copy(copy) => match copy.peer {
            None => of_copy(work, copy, start, end),
            Some(peer) => of_peer_copy(work, copy, peer, start, end),
        },
        Task::Set { value, bytes } => of_set(work, *value, *bytes, start, end),
        Task::Graph => of_graph(work, start, end),
    }
}

/// `CUpti_ActivityKernel8` to `CUpti_ActivityKernel13`.
fn of_kernel(work: &Work, kernel: &Kernel, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::CONCURRENT_KERNEL);
    record.u16(6, kernel.registers);
    record.u64(16, start);
    record.u64(24, end);
    record.u64(32, end);
    record.u32(40, work.place.device);
    record.u32(44, work.place.context);
    record.u32(48, work.place.stream);
    for (i, size) in kernel.grid.iter().chain(&kernel.block).enumerate() {
        record.i32(52 + 4 * i, *size);
    }
    record.i32(76, kernel.static_shared);
    record.i32(80, kernel.dynamic_shared);
    record.u32(92, work.correlation);
    record.u64(96, u64::from(work.correlation));
    let named = !settings::fault("no-name");
    record.text(104, if named { kernel.name.as_ptr() } else { ptr::null() });
    record.u32(140, (kernel.static_shared + kernel.dynamic_shared) as u32);
    record.u64(144, work.node);
    record.u32(156, work.graph);
    record.u32(168, 8 + work.place.stream);
    record.u32(172, 1);
    record.i32(216, kernel.priority);
    record.u32(232, work.graph);
    record.u64(240, work.node);
    record
}

/// `CUpti_ActivityMemcpy5` to `CUpti_ActivityMemcpy7`.
fn of_copy(work: &Work, copy: &Memcpy, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::MEMCPY);
    copied(&mut record, work, copy, start, end);
    record.u32(44, work.correlation);
    record.u64(64, work.node);
    record.u32(72, work.graph);
    record.u32(76, 8 + work.place.stream);
    record.u32(80, 2);
    // Before 13.0 there is no `isDeviceLaunched` here, only padding, with anything in it.
    record.u8(84, if settings::toolkit() < 1300 { 0xA5 } else { 0 });
    record.u64(88, 1);
    record.u32(96, work.graph);
    record.u64(104, work.node);
    record
}

/// `CUpti_ActivityMemcpyPtoP4`.
fn of_peer_copy(work: &Work, copy: &Memcpy, peer: u32, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::MEMCPY2);
    copied(&mut record, work, copy, start, end);
    record.u32(44, work.place.device);
    record.u32(48, work.place.context);
    record.u32(52, peer);
    record.u32(56, peer + 1);
    record.u32(60, work.correlation);
    record.u64(72, work.node);
    record.u32(80, work.graph);
    record.u32(84, 8 + work.place.stream);
    record.u32(88, 2);
    record
}

/// What both kinds of copies begin with; 1 is the flag of asynchronous ones.
fn copied(record: &mut Record, work: &Work, copy: &Memcpy, start: Nanos, end: Nanos) {
    for (i, byte) in [copy.kind, copy.source, copy.target, 1].into_iter().enumerate() {
        record.u8(4 + i, byte);
    }
    record.u64(8, copy.bytes);
    record.u64(16, start);
    record.u64(24, end);
    record.u32(32, work.place.device);
    record.u32(36, work.place.context);
    record.u32(40, work.place.stream);
}

/// `CUpti_ActivityMemset4` and `CUpti_ActivityMemset5`.
fn of_set(work: &Work, value: u32, bytes: u64, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::MEMSET);
    record.u32(4, value);
    record.u64(8, bytes);
    record.u64(16, start);
    record.u64(24, end);
    record.u32(32, work.place.device);
    record.u32(36, work.place.context);
    record.u32(40, work.place.stream);
    record.u32(44, work.correlation);
    record.u16(48, 1);
    record.u16(50, 3);
    record.u64(64, work.node);
    record.u32(72, work.graph);
    record.u32(76, 8 + work.place.stream);
    record.u32(80, 2);
    record.u32(88, work.graph);
    record.u64(96, work.node);
    record
}

/// `CUpti_ActivityGraphTrace` and `CUpti_ActivityGraphTrace2`.
fn of_graph(work: &Work, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::GRAPH_TRACE);
    record.u32(4, work.correlation);
    record.u64(8, start);
    record.u64(16, end);
    record.u32(24, work.place.device);
    record.u32(28, work.graph);
    record.u32(32, work.place.context);
    record.u32(36, work.place.stream);
    record.u32(48, work.place.device);
    record.u32(52, work.place.context);
    record
}

/// `CUpti_ActivityAPI`.
pub(crate) fn call(call: &Call, thread: u32, start: Nanos, end: Nanos) -> Record {
    let mut record = new(if call.domain == 1 { kind::DRIVER } else { kind::RUNTIME });
    record.u32(4, call.cbid);
    record.u64(8, start);
    record.u64(16, end);
    record.u32(24, std::process::id());
    record.u32(28, thread);
    record.u32(32, call.correlation);
    record
}

/// `CUpti_ActivityExternalCorrelation`.
pub(crate) fn external(of: u32, id: u64, correlation: u32) -> Record {
    let mut record = new(kind::EXTERNAL_CORRELATION);
    record.u32(4, of);
    record.u64(8, id);
    record.u32(16, correlation);
    record
}

/// `CUpti_ActivitySynchronization` and `CUpti_ActivitySynchronization2`. Waits for a whole
/// context have no stream, waits for no event no event.
pub(crate) fn wait(wait: &Wait, start: Nanos, end: Nanos) -> Record {
    const CONTEXT: u32 = 4;
    let mut record = new(kind::SYNCHRONIZATION);
    let none = |is: bool, value: u32| if is { u32::MAX } else { value };
    record.u32(4, wait.kind);
    record.u64(8, start);
    record.u64(16, end);
    record.u32(24, wait.correlation);
    record.u32(28, wait.place.context);
    record.u32(32, none(wait.kind == CONTEXT, wait.place.stream));
    record.u32(36, none(wait.event == 0, wait.event));
    record.u64(40, wait.record);
    record
}

/// `CUpti_ActivityCudaEvent` and `CUpti_ActivityCudaEvent2`.
pub(crate) fn recorded(place: Place, correlation: u32, event: u32, id: u64, time: Nanos) -> Record {
    let mut record = new(kind::CUDA_EVENT);
    record.u32(4, correlation);
    record.u32(8, place.context);
    record.u32(12, place.stream);
    record.u32(16, event);
    record.u32(24, place.device);
    record.u64(40, time);
    record.u64(48, id);
    record
}

/// The kind of record that tells of a deed.
pub(crate) fn kind_of(deed: Deed) -> u32 {
    match deed {
        Deed::Memory { .. } => kind::MEMORY2,
        Deed::Pool { .. } => kind::MEMORY_POOL,
        Deed::Unified { .. } => kind::UNIFIED_MEMORY_COUNTER,
    }
}

/// `CUpti_ActivityMemory3`, `CUpti_ActivityMemoryPool2` and
/// `CUpti_ActivityUnifiedMemoryCounter2`, and what came after them.
pub(crate) fn memory(memory: &Memory, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind_of(memory.deed));
    let pid = std::process::id();
    match memory.deed {
        Deed::Memory { operation, kind } => {
            let of = [operation, kind, memory.correlation];
            (4..).step_by(4).zip(of).for_each(|(at, value)| record.u32(at, value));
            let what = [memory.address, memory.bytes, end];
            (16..).step_by(8).zip(what).for_each(|(at, value)| record.u64(at, value));
            let place = [pid, memory.place.device, memory.place.context, memory.place.stream];
            (48..).step_by(4).zip(place).for_each(|(at, value)| record.u32(at, value));
        }
        Deed::Pool { operation } => {
            // CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL.
            let of = [operation, 1, memory.correlation, pid, memory.place.device];
            (4..).step_by(4).zip(of).for_each(|(at, value)| record.u32(at, value));
            let what = [0, memory.address, memory.bytes, memory.bytes / 2, end, memory.bytes / 4];
            (24..).step_by(8).zip(what).for_each(|(at, value)| record.u64(at, value));
        }
        Deed::Unified { kind } => {
            record.u32(4, kind);
            let what = [memory.bytes, start, end, memory.address];
            (8..).step_by(8).zip(what).for_each(|(at, value)| record.u64(at, value));
            let place = [0, memory.place.device, memory.place.stream, pid];
            (40..).step_by(4).zip(place).for_each(|(at, value)| record.u32(at, value));
        }
    }
    record
}

/// `CUpti_ActivityOverhead` to `CUpti_ActivityOverhead3`, of the calling thread.
pub(crate) fn overhead(of: u32, thread: u32, correlation: u32, times: (Nanos, Nanos)) -> Record {
    const THREAD: u32 = 2;
    let mut record = new(kind::OVERHEAD);
    record.u32(4, of);
    record.u32(8, THREAD);
    record.u32(12, std::process::id());
    record.u32(16, thread);
    record.u64(24, times.0);
    record.u64(32, times.1);
    record.u32(40, correlation);
    record
}

/// `CUpti_ActivityContext` to `CUpti_ActivityContext4`; 1 is CUDA.
pub(crate) fn context(id: u32, device: u32) -> Record {
    let mut record = new(kind::CONTEXT);
    record.u32(4, id);
    record.u32(8, device);
    record.u16(12, 1);
    record.u16(14, 7);
    record.u64(32, u64::from(std::process::id()));
    record
}

/// `CUpti_ActivityStream`.
pub(crate) fn stream(place: Place, priority: i32) -> Record {
    let mut record = new(kind::STREAM);
    record.u32(4, place.context);
    record.u32(8, place.stream);
    record.i32(12, priority);
    record.u32(16, if place.stream == 7 { 2 } else { 1 });
    record
}

/// `CUpti_ActivityDevice4` to `CUpti_ActivityDevice6`.
pub(crate) fn device(id: u32) -> Record {
    let mut record = new(kind::DEVICE);
    record.u64(8, 3_350_000_000);
    record.u64(16, 80 << 30);
    record.u32(28, 50 << 20);
    record.u32(32, 32);
    record.u32(44, 132);
    record.u32(52, 64);
    record.u32(56, 32);
    record.u32(60, 233_472);
    record.u32(64, 65_536);
    record.u32(104, 9);
    record.u32(112, id);
    record.text(136, c"Fake GPU".as_ptr());
    record.u8(144, 1);
    record
}
