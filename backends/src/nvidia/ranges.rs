//! What belongs to no queue and no thread: overheads, waits, memory.

use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, Extra, Kind, Record, StrId};

use super::decode::Decoder;
use super::names;
use crate::vendor::args::Args;
use crate::vendor::raw::Raw;

impl Decoder {
    /// CUpti_ActivityOverhead to 3.
    pub(super) fn overhead(&mut self, raw: Raw<'_>) {
        let name = names::overhead(raw.u32(4));
        self.range(self.keys.overhead, name, raw.u64(24), raw.u64(32), &Args::new());
    }

    /// CUpti_ActivityMemory2 to 4.
    pub(super) fn memory(&mut self, raw: Raw<'_>) {
        // CUpti_ActivityMemoryOperationType: 1 allocation, 2 release.
        let (name, sign) = match raw.u32(4) {
            1 => ("CUDA memory allocated", 1),
            2 => ("CUDA memory released", -1),
            _ => return,
        };
        let mut args = Args::new();
        args.signed(self.keys.bytes, sign * raw.u64(24) as i64);
        args.push(Extra::new(self.keys.address, ArgType::Pointer, raw.u64(16)));
        args.unsigned(self.keys.device, raw.u32(52));
        args.unless_zero(self.keys.correlation, raw.u32(12));
        let head = Record {
            time: self.clock.nanos(raw.u64(32)),
            site: self.recorder.intern(self.keys.memory, name.as_bytes()),
            kind: Kind::Instant as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
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
        args.unsigned(self.keys.value, raw.u64(8));
        args.push(Extra::new(self.keys.address, ArgType::Pointer, raw.u64(32)));
        args.unsigned(self.keys.from_device, raw.u32(40));
        args.unsigned(self.keys.to_device, raw.u32(44));
        let start = raw.u64(16);
        self.range(self.keys.unified_memory, name, start, raw.u64(24).max(start), &args);
    }

    /// A slice that belongs to no queue and no thread.
    pub(super) fn range(&mut self, category: StrId, name: &str, start: u64, end: u64, args: &Args) {
        if start == 0 || end < start {
            self.counts.timeless += 1;
            self.recorder.lost(1);
            return;
        }
        self.ranges += 1;
        // Upper bits of our own ("CU"): other sources number their ranges too.
        let other = 0x4355 << 48 | self.ranges;
        let head = Record {
            time: self.clock.nanos(start),
            other,
            site: self.recorder.intern(category, name.as_bytes()),
            kind: Kind::RangeBegin as u8,
            tag: NANOS,
            ..Record::default()
        };
        if self.recorder.push(head, args.extras()) {
            let end = Record {
                time: self.clock.nanos(end),
                other,
                kind: Kind::RangeEnd as u8,
                tag: NANOS,
                ..Record::default()
            };
            self.recorder.push(end, &[]);
        }
    }
}
