//! Memory that the program gets and gives back, pools of it, and memory that moves by itself.

use std::collections::HashMap;

use kymograph_protos::record::{CounterUnit, NANOS};
use kymograph_protos::{ArgType, Extra, Kind, Record};

use super::decode::Decoder;
use super::names;
use crate::device::args::Args;
use crate::device::raw::Raw;

/// Allocations that are remembered.
const MAX_ALLOCATIONS: usize = 1 << 20;

/// What is allocated, as far as it was seen: a release of what came before the recording
/// takes nothing away.
#[derive(Debug, Default)]
pub(crate) struct Allocated {
    by_address: HashMap<u64, (u32, u64)>,
    by_device: HashMap<u32, u64>,
}

impl Allocated {
    /// What the device has now, if that has changed.
    fn count(&mut self, device: u32, address: u64, bytes: Option<u64>) -> Option<(u32, u64)> {
        let (device, sum) = match bytes {
            Some(_) if self.by_address.len() >= MAX_ALLOCATIONS => return None,
            Some(bytes) => {
                self.by_address.insert(address, (device, bytes));
                let sum = self.by_device.entry(device).or_default();
                *sum += bytes;
                (device, *sum)
            }
            None => {
                let (device, bytes) = self.by_address.remove(&address)?;
                let sum = self.by_device.get_mut(&device)?;
                *sum = sum.saturating_sub(bytes);
                (device, *sum)
            }
        };
        Some((device, sum))
    }
}

impl Decoder {
    /// CUpti_ActivityMemory2 to 4.
    pub(super) fn memory(&mut self, raw: Raw<'_>) {
        // CUpti_ActivityMemoryOperationType: 1 allocation, 2 release.
        let (name, sign) = match raw.u32(4) {
            1 => ("CUDA memory allocated", 1),
            2 => ("CUDA memory released", -1),
            _ => return,
        };
        let (bytes, address, device) = (raw.u64(24), raw.u64(16), raw.u32(52));
        let time = self.clock.nanos(raw.u64(32));
        let kind = raw.u32(8);
        let mut args = Args::new();
        args.signed(self.keys.bytes, sign * bytes as i64);
        args.push(Extra::new(self.keys.address, ArgType::Pointer, address));
        args.text(self.keys.memory_kind, self.keys.intern(names::memory_kind(kind as u16)));
        args.unsigned(self.keys.device, device);
        args.unless_zero(self.keys.correlation, raw.u32(12));
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
                site: self.recorder.intern_patiently(self.keys.memory, name.as_bytes()),
                kind: Kind::Counter as u8,
                tag: NANOS | ArgType::U64 as u8,
                ..Record::default()
            };
            self.recorder.push(head, &[]);
        }
    }

    /// CUpti_ActivityMemoryPool2 and 3.
    pub(super) fn memory_pool(&mut self, raw: Raw<'_>) {
        // CUpti_ActivityMemoryPoolOperationType.
        let name = match raw.u32(4) {
            1 => "CUDA memory pool created",
            2 => "CUDA memory pool destroyed",
            3 => "CUDA memory pool trimmed",
            _ => return,
        };
        let mut args = Args::new();
        args.push(Extra::new(self.keys.address, ArgType::Pointer, raw.u64(32)));
        args.unsigned(self.keys.bytes, raw.u64(40));
        args.unless_zero(self.keys.pool_utilized, raw.u64(64));
        args.unless_zero(self.keys.pool_threshold, raw.u64(48));
        args.unless_zero(self.keys.pool_kept, raw.u64(24));
        args.unsigned(self.keys.device, raw.u32(20));
        args.unless_zero(self.keys.correlation, raw.u32(12));
        let time = self.clock.nanos(raw.u64(56));
        self.moment(name, time, &args);
    }

    /// CUpti_ActivityUnifiedMemoryCounter2 and 3.
    pub(super) fn unified_memory(&mut self, raw: Raw<'_>) {
        // CUpti_ActivityUnifiedMemoryCounterKind.
        let name = match raw.u32(4) {
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
        args.push(Extra::new(self.keys.address, ArgType::Pointer, raw.u64(32)));
        // The host is -1 (`CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID`).
        let (value, from, to) = (raw.u64(8), raw.u32(40) as i32, raw.u32(44) as i32);
        match raw.u32(4) {
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
        let start = raw.u64(16);
        let category = self.keys.unified_memory;
        self.timed(category, name, (start, raw.u64(24).max(start)), None, &args);
    }

    /// Something that took no time, on the track of the thread that reads.
    fn moment(&self, name: &str, time: u64, args: &Args) {
        let head = Record {
            time,
            site: self.recorder.intern_patiently(self.keys.memory, name.as_bytes()),
            kind: Kind::Instant as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }
}
