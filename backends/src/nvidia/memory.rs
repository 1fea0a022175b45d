//! Memory that the program gets and gives back, pools of it, and memory that moves by itself.

use kymograph_protos::record::{CounterUnit, NANOS};
use kymograph_protos::{ArgType, Extra, Kind, Record};

use super::decode::Decoder;
use super::kinds::{Memory, MemoryPool, UnifiedMemory};
use super::names;
use crate::device::args::Args;

impl Decoder {
    /// Memory that the program gets or gives back.
    pub(super) fn memory(&mut self, record: Memory<'_>) {
        // CUpti_ActivityMemoryOperationType: 1 allocation, 2 release.
        let (name, sign) = match record.operation() {
            1 => ("CUDA memory allocated", 1),
            2 => ("CUDA memory released", -1),
            _ => return,
        };
        let (bytes, address, device) = (record.bytes(), record.address(), record.device());
        let time = self.clock.nanos(record.time());
        let kind = record.memory();
        let mut args = Args::new();
        args.signed(self.keys.bytes, sign * bytes as i64);
        args.push(Extra::new(self.keys.address, ArgType::Pointer, address));
        args.text(self.keys.memory_kind, self.keys.intern(names::memory_kind(kind as u16)));
        args.unsigned(self.keys.device, device);
        args.unless_zero(self.keys.correlation, record.correlation());
        // Of the host's memory, devices have nothing: pageable and pinned.
        let counted = (kind > 2)
            .then(|| self.allocated.count(device, address, (sign > 0).then_some(bytes)))
            .flatten();
        if let Some((_, total)) = counted {
            args.unsigned(self.keys.total_allocated, total);
        }
        self.moment(name, time, &args);
        if let Some((device, total)) = counted {
            let name = format!("CUDA memory of GPU {device}");
            let head = Record {
                time,
                arg: total,
                other: CounterUnit::Bytes as u64,
                site: self.recorder.intern_or_wait(self.keys.memory, name.as_bytes()),
                kind: Kind::Counter as u8,
                tag: NANOS | ArgType::U64 as u8,
                ..Record::default()
            };
            self.recorder.push(head, &[]);
        }
    }

    /// Pools of memory.
    pub(super) fn memory_pool(&mut self, record: MemoryPool<'_>) {
        // CUpti_ActivityMemoryPoolOperationType.
        let name = match record.operation() {
            1 => "CUDA memory pool created",
            2 => "CUDA memory pool destroyed",
            3 => "CUDA memory pool trimmed",
            _ => return,
        };
        let mut args = Args::new();
        args.push(Extra::new(self.keys.address, ArgType::Pointer, record.address()));
        args.unsigned(self.keys.bytes, record.bytes());
        args.unless_zero(self.keys.pool_utilized, record.utilized());
        args.unless_zero(self.keys.pool_threshold, record.threshold());
        args.unless_zero(self.keys.pool_kept, record.kept());
        args.unsigned(self.keys.device, record.device());
        args.unless_zero(self.keys.correlation, record.correlation());
        let time = self.clock.nanos(record.time());
        self.moment(name, time, &args);
    }

    /// Pages that move by themselves, and faults.
    pub(super) fn unified_memory(&mut self, record: UnifiedMemory<'_>) {
        // CUpti_ActivityUnifiedMemoryCounterKind.
        let name = match record.counter() {
            1 => "Unified memory HtoD",
            2 => "Unified memory DtoH",
            3 => "Unified memory CPU page faults",
            4 => "Unified memory GPU page faults",
            5 => "Unified memory thrashing",
            6 => "Unified memory throttling",
            7 => "Unified memory remote map",
            8 => "Unified memory DtoD",
            _ => "Unified memory",
        };
        let mut args = Args::new();
        args.push(Extra::new(self.keys.address, ArgType::Pointer, record.address()));
        // The host is -1 (`CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID`).
        let (value, from, to) = (record.value(), record.from() as i32, record.to() as i32);
        match record.counter() {
            3 => args.push(Extra::new(self.keys.program_counter, ArgType::Pointer, value)),
            4 => {
                args.unsigned(self.keys.fault_groups, value);
                args.signed(self.keys.device, from.into());
            }
            6 => args.signed(self.keys.device, from.into()),
            _ => {
                args.unsigned(self.keys.bytes, value);
                args.signed(self.keys.from_device, from.into());
                args.signed(self.keys.to_device, to.into());
            }
        }
        let start = record.start();
        let category = self.keys.unified_memory;
        self.timed(category, name, (start, record.end().max(start)), None, &args);
    }

    /// Something that took no time, on the track of the thread that reads.
    fn moment(&self, name: &str, time: u64, args: &Args) {
        let head = Record {
            time,
            site: self.recorder.intern_or_wait(self.keys.memory, name.as_bytes()),
            kind: Kind::Instant as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }
}
