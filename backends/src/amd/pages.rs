//! What the driver does with pages, and what streams wait for: recorded on request.

use kymograph_protos::device::Stage;
use kymograph_protos::{ArgType, Extra};

use super::decode::Decoder;
use super::layout::{self, WORK};
use crate::device::args::Args;
use crate::device::raw::Raw;

/// What a migration was made for (`rocprofiler_kfd_page_migrate_operation_t`).
const MIGRATIONS: [&str; 4] = [
    "Pages moved: prefetch",
    "Pages moved: GPU page fault",
    "Pages moved: CPU page fault",
    "Pages moved: eviction",
];
/// What a fault was, and how it was resolved (`rocprofiler_kfd_page_fault_operation_t`).
const FAULTS: [&str; 4] = [
    "GPU page fault: read, moved",
    "GPU page fault: read, mapped",
    "GPU page fault: write, moved",
    "GPU page fault: write, mapped",
];

impl Decoder {
    /// Pages were moved between devices and the host.
    pub(super) fn migration(&mut self, raw: Raw<'_>) {
        use layout::migration;
        self.counts.pages += 1;
        let (from, to) = (raw.u64(migration::FROM), raw.u64(migration::TO));
        let mut args = Args::new();
        args.push(Extra::new(self.keys.address, ArgType::Pointer, from));
        args.unsigned(self.keys.bytes, to.saturating_sub(from));
        // As CUPTI has it: the host is -1.
        let device = |at| self.agents.gpu(raw.u64(at)).map_or(-1, i64::from);
        args.signed(self.keys.from_device, device(migration::FROM_AGENT));
        args.signed(self.keys.to_device, device(migration::TO_AGENT));
        if raw.u32(migration::ERROR) != 0 {
            args.signed(self.keys.error, i64::from(raw.u32(migration::ERROR) as i32));
        }
        let name = MIGRATIONS.get(raw.u32(12) as usize).copied().unwrap_or("Pages moved");
        self.range("unified_memory", name, raw, migration::TIMES, &args);
    }

    /// A device needed a page that was not there.
    pub(super) fn fault(&mut self, raw: Raw<'_>) {
        use layout::fault;
        self.counts.pages += 1;
        let mut args = Args::new();
        args.push(Extra::new(self.keys.address, ArgType::Pointer, raw.u64(fault::ADDRESS)));
        self.device_arg(&mut args, raw.u64(fault::AGENT));
        let name = FAULTS.get(raw.u32(12) as usize).copied().unwrap_or("GPU page fault");
        self.range("unified_memory", name, raw, fault::TIMES, &args);
    }

    /// A queue waited for an event. (Events that are recorded take no time.)
    pub(super) fn event(&mut self, raw: Raw<'_>) {
        use layout::event;
        if raw.u32(12) != event::WAIT {
            return;
        }
        self.counts.waits += 1;
        let device = self.agents.gpu(raw.u64(event::AGENT)).unwrap_or(0);
        let queue = raw.u64(event::QUEUE);
        let mut placed = self.placed(raw, WORK, device, Some(queue));
        // The call that asked for it is no launch: there is no arrow.
        placed.correlation = 0;
        let (slot, _) = self.place(&placed, None, Stage::Other);
        let mut args = Args::new();
        args.slot(slot.extras());
        args.unsigned(self.keys.hsa_queue, queue);
        args.push(Extra::new(self.keys.event, ArgType::Pointer, raw.u64(event::HANDLE)));
        args.unsigned(self.keys.hsa_queue_of_event, raw.u64(event::SOURCE));
        let name = self.keys.intern("Stream Wait Event");
        self.activity(&placed, name, &args);
    }
}
