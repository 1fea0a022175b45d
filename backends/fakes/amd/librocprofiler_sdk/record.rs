//! Records, as the emulated version lays them out (buffer_tracing.h).

use crate::kinds;
use crate::settings::toolkit;

/// A record, in whole words so that it is aligned.
pub(crate) struct Record {
    pub(crate) category: u32,
    pub(crate) kind: u32,
    pub(crate) words: Box<[u64]>,
}

/// Bytes of a correlation id where it has an ancestor.
fn long() -> usize {
    if toolkit() < 100 { 16 } else { 24 }
}

impl Record {
    /// None if this version has no such kind.
    pub(crate) fn new(kind: &std::ffi::CStr, operation: u32, size: usize) -> Option<Record> {
        let kind = kinds::buffer(kind)? as u32;
        let mut record = Record { category: 1, kind, words: vec![0; size / 8].into() };
        record.put(0, size as u64, 8);
        record.put(8, kind.into(), 4);
        record.put(12, operation.into(), 4);
        Some(record)
    }

    pub(crate) fn put(&mut self, at: usize, value: u64, width: usize) {
        let (word, shift) = (at / 8, at % 8 * 8);
        let mask = if width == 8 { u64::MAX } else { (1 << (width * 8)) - 1 };
        self.words[word] = self.words[word] & !(mask << shift) | (value & mask) << shift;
    }

    pub(crate) fn three(&mut self, at: usize, values: [u32; 3]) {
        for (axis, value) in values.into_iter().enumerate() {
            self.put(at + 4 * axis, value.into(), 4);
        }
    }
}

/// What all records of device work have.
pub(crate) struct When {
    pub(crate) correlation: u64,
    pub(crate) thread: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

fn work(record: &mut Record, when: &When) {
    record.put(16, when.correlation, 8);
    record.put(32, when.thread, 8);
    record.put(40, when.start, 8);
    record.put(48, when.end, 8);
}

pub(crate) struct Dispatch {
    pub(crate) agent: u64,
    pub(crate) queue: u64,
    pub(crate) kernel: u64,
    pub(crate) private: u32,
    pub(crate) group: u32,
    pub(crate) workgroup: [u32; 3],
    /// In work-items.
    pub(crate) grid: [u32; 3],
}

pub(crate) fn kernel(when: &When, dispatch: &Dispatch) -> Option<Record> {
    let size = if toolkit() < 103 { 184 } else { 192 };
    // `ROCPROFILER_KERNEL_DISPATCH_COMPLETE`
    let mut record = Record::new(c"KERNEL_DISPATCH", 2, size)?;
    work(&mut record, when);
    record.put(56, 128, 8);
    record.put(64, dispatch.agent, 8);
    record.put(72, dispatch.queue, 8);
    record.put(80, dispatch.kernel, 8);
    record.put(88, when.correlation, 8);
    record.put(96, dispatch.private.into(), 4);
    record.put(100, dispatch.group.into(), 4);
    record.three(104, dispatch.workgroup);
    record.three(116, dispatch.grid);
    if size > 184 {
        record.put(184, u64::from(u32::MAX), 4);
    }
    Some(record)
}

pub(crate) fn copy(when: &When, direction: u32, to: u64, from: u64, bytes: u64) -> Option<Record> {
    let size = if toolkit() < 100 { 80 } else { 96 };
    let mut record = Record::new(c"MEMORY_COPY", direction, size)?;
    work(&mut record, when);
    record.put(56, to, 8);
    record.put(64, from, 8);
    record.put(72, bytes, 8);
    if size > 80 {
        record.put(80, 0x7e00_0000_0000, 8);
        record.put(88, 0x7d00_0000_0000, 8);
    }
    Some(record)
}

pub(crate) fn scratch(
    when: &When,
    operation: u32,
    agent: u64,
    queue: u64,
    bytes: u64,
) -> Option<Record> {
    if toolkit() < 6 {
        let mut record = Record::new(c"SCRATCH_MEMORY", operation, 80)?;
        let fields = [agent, queue, when.thread, when.start, when.end, when.correlation];
        fields.into_iter().enumerate().for_each(|(at, value)| record.put(16 + 8 * at, value, 8));
        return Some(record);
    }
    // 80 bytes again in 0.6, and in another order; 88 in 1.0.0 as released with ROCm 7.0.
    let size = match toolkit() {
        ..100 => 80,
        100 => 88,
        _ => 96,
    };
    let mut record = Record::new(c"SCRATCH_MEMORY", operation, size)?;
    record.put(16, when.correlation, 8);
    let fields = [agent, queue, when.thread, when.start, when.end, 0, bytes];
    let first = 16 + long();
    for (at, value) in (first..size).step_by(8).zip(fields) {
        record.put(at, value, 8);
    }
    Some(record)
}

pub(crate) fn allocation(when: &When, agent: u64, address: u64, bytes: i64) -> Option<Record> {
    // Allocate 1, free 3.
    let operation = if bytes < 0 { 3 } else { 1 };
    let mut record = Record::new(c"MEMORY_ALLOCATION", operation, 64 + long())?;
    record.put(16, when.correlation, 8);
    let fields = [when.thread, when.start, when.end, agent, address, bytes.max(0) as u64];
    let first = 16 + long();
    fields.into_iter().enumerate().for_each(|(at, value)| record.put(first + 8 * at, value, 8));
    Some(record)
}

pub(crate) fn graph(
    when: &When,
    agent: u64,
    queue: u64,
    exec: u64,
    kernels: u64,
) -> Option<Record> {
    let mut record = Record::new(c"HIP_GRAPH", 1, 96)?;
    record.put(16, when.correlation, 8);
    let fields = [when.thread, when.start, when.end, agent, queue, exec, kernels];
    let first = 16 + long();
    fields.into_iter().enumerate().for_each(|(at, value)| record.put(first + 8 * at, value, 8));
    Some(record)
}

/// What the driver says of pages, of which this process is not the only user.
pub(crate) fn pages(
    (start, end): (u64, u64),
    moved: bool,
    agents: [u64; 2],
    (address, bytes): (u64, u64),
) -> Option<Record> {
    let [host, agent] = agents;
    let (kind, size) = match moved {
        true => (c"KFD_PAGE_MIGRATE", 96),
        false => (c"KFD_PAGE_FAULT", 56),
    };
    // A GPU page fault moved them; a write fault that was resolved by moving.
    let mut record = Record::new(kind, if moved { 1 } else { 2 }, size)?;
    record.put(16, start, 8);
    record.put(24, end, 8);
    record.put(32, std::process::id().into(), 4);
    let fields: &[u64] = match moved {
        true => &[address, address + bytes, host, agent, 0, agent],
        false => &[agent, address],
    };
    fields.iter().enumerate().for_each(|(at, value)| record.put(40 + 8 * at, *value, 8));
    Some(record)
}

/// A barrier that waits for an event, or that is one.
pub(crate) fn event(
    when: &When,
    operation: u32,
    agent: u64,
    (queue, source): (u64, u64),
    event: u64,
) -> Option<Record> {
    let mut record = Record::new(c"HIP_EVENT", operation, 88)?;
    work(&mut record, when);
    let fields = [agent, queue, event, source];
    fields.into_iter().enumerate().for_each(|(at, value)| record.put(56 + 8 * at, value, 8));
    Some(record)
}

/// Of a kind that this version does not name.
pub(crate) fn unknown() -> Record {
    Record { category: 1, kind: 99, words: vec![64, 99, 7, 7, 7, 7, 7, 7].into() }
}
