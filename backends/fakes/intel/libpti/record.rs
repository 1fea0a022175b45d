//! Records as bytes. Offsets are those of `pti_view.h`; a field that lies beyond a version's
//! record is left out.

use crate::bytes::Record;
use crate::seam::{Call, Memcpy, Nanos, Place, Task, Wait, Work};
use crate::settings;
use crate::sizes::{kind, size_of};

/// `PTI_INVALID_QUEUE_ID`.
const NO_QUEUE: u64 = u64::MAX - 1;

fn new(kind: u32) -> Record {
    Record::sized(kind, size_of(kind, settings::version()).expect("a kind of this version"))
}

pub(crate) fn uuid(record: &mut Record, offset: usize, device: u32) {
    // As `fake_ze_uuid` in the fake Level Zero.
    record.put(offset, [0x10 + device as u8; 16]);
}

/// What a device did.
pub(crate) fn work(work: &Work, start: Nanos, end: Nanos) -> Record {
    match &work.task {
        Task::Kernel(kernel) => {
            let mut record = new(kind::KERNEL);
            handles(&mut record, 8, work.place);
            if !settings::fault("no-name") {
                record.text(24, kernel.name.as_ptr());
            }
            record.text(32, c"gemm.cpp".as_ptr());
            record.u64(40, 42);
            record.u64(48, u64::from(work.correlation));
            common(&mut record, 56, work);
            uuid(&mut record, 80, work.place.device);
            times(&mut record, 96, start, end);
            record.u64(144, 5);
            record.u64(152, queue(work.place));
            record.u32(160, 3);
            record.u32(176, 2);
            record
        }
        Task::Copy(copy) => match copy.peer {
            None => of_copy(work, copy, start, end),
            Some(peer) => of_peer_copy(work, peer, start, end),
        },
        Task::Set { value, bytes } => {
            let mut record = new(kind::FILL);
            record.u32(4, 2);
            handles(&mut record, 8, work.place);
            record.text(24, c"zeCommandListAppendMemoryFill".as_ptr());
            uuid(&mut record, 48, work.place.device);
            record.u64(64, u64::from(work.correlation));
            common(&mut record, 72, work);
            times(&mut record, 80, start, end);
            record.u64(112, *bytes);
            record.u64(120, u64::from(*value));
            record.u64(128, queue(work.place));
            record
        }
        Task::Graph => unreachable!("PTI has no records of whole graphs"),
    }
}

fn of_copy(work: &Work, copy: &Memcpy, start: Nanos, end: Nanos) -> Record {
    // `pti_view_memory_type`: host 1, device 2.
    let memory = |cuda: u8| if cuda == 3 { 2 } else { 1 };
    let (from, to) = (memory(copy.source), memory(copy.target));
    let mut record = new(kind::COPY);
    record.u32(4, from * 4 + to);
    record.u32(8, from);
    record.u32(12, to);
    handles(&mut record, 16, work.place);
    record.text(32, c"zeCommandListAppendMemoryCopy".as_ptr());
    uuid(&mut record, 56, work.place.device);
    record.u64(72, u64::from(work.correlation));
    common(&mut record, 80, work);
    times(&mut record, 88, start, end);
    record.u64(120, copy.bytes);
    record.u64(128, queue(work.place));
    record
}

fn of_peer_copy(work: &Work, peer: u32, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::PEER_COPY);
    record.u32(4, 10);
    record.u32(8, 2);
    record.u32(12, 2);
    handles(&mut record, 16, work.place);
    record.text(32, c"zeCommandListAppendMemoryCopy".as_ptr());
    uuid(&mut record, 72, work.place.device);
    uuid(&mut record, 88, peer);
    record.u64(104, u64::from(work.correlation));
    common(&mut record, 112, work);
    times(&mut record, 120, start, end);
    let Task::Copy(copy) = &work.task else { unreachable!("a copy") };
    record.u64(152, copy.bytes);
    record.u64(160, queue(work.place));
    record
}

fn handles(record: &mut Record, at: usize, place: Place) {
    record.u64(at, 0x1000 * u64::from(place.context) + u64::from(place.stream));
    record.u64(at + 8, 0xc000 + u64::from(place.context));
}

fn common(record: &mut Record, at: usize, work: &Work) {
    record.u32(at, work.correlation);
    // SAFETY: always succeeds.
    record.u32(at + 4, unsafe { libc::gettid() } as u32);
}

fn times(record: &mut Record, at: usize, start: Nanos, end: Nanos) {
    record.u64(at, start.saturating_sub(2000));
    record.u64(at + 8, start);
    record.u64(at + 16, end);
    record.u64(at + 24, start.saturating_sub(1000));
}

/// SYCL's number of a queue.
fn queue(place: Place) -> u64 {
    if settings::fault("no-sycl") { NO_QUEUE } else { place.stream.into() }
}

/// `pti_view_record_api`.
pub(crate) fn call(call: &Call, start: Nanos, end: Nanos) -> Record {
    let runtime = call.domain == 2;
    let mut record = new(if runtime { kind::RUNTIME_API } else { kind::DRIVER_API });
    record.u64(8, start);
    record.u64(16, end);
    record.u32(24, if runtime { 3 } else { 1 });
    record.u32(28, call.cbid);
    record.u32(32, std::process::id());
    record.u32(36, thread());
    record.u32(40, call.correlation);
    record
}

pub(crate) fn wait(wait: &Wait) -> Record {
    let mut record = new(kind::SYNCHRONIZATION);
    // Kinds as the fake driver's: event, stream waits for event, stream, context.
    let (ty, function) = [(0, 0), (4, 8), (1, 10), (5, 7), (6, 6)][wait.kind as usize % 5];
    record.u32(4, ty);
    handles(&mut record, 8, wait.place);
    record.u64(32, wait.start);
    record.u64(40, wait.end);
    record.u32(48, thread());
    record.u32(52, wait.correlation);
    record.u32(56, u32::from(wait.event != 0));
    record.u32(64, function);
    record.u32(68, 1);
    record
}

pub(crate) fn overhead(kind: u32, start: Nanos, end: Nanos) -> Record {
    let mut record = new(kind::OVERHEAD);
    record.u64(8, start);
    record.u64(16, end);
    record.u64(24, thread().into());
    record.u32(32, 4);
    record.u64(40, end - start);
    record.u32(48, kind);
    record
}

fn thread() -> u32 {
    // SAFETY: always succeeds.
    (unsafe { libc::gettid() }) as u32
}
