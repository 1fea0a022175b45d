//! What belongs to no queue and no thread: graphs as a whole, scratch memory, allocations.

use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, Extra, Kind, Record};

use super::decode::Decoder;
use super::layout::{self, Times};
use crate::device::args::Args;
use crate::device::raw::Raw;

/// Allocations whose size is remembered.
const MAX_ALLOCATIONS: usize = 1 << 16;

impl Decoder {
    /// A launch of a graph: its kernels have records of their own.
    pub(super) fn graph(&mut self, raw: Raw<'_>) {
        use layout::graph;
        self.counts.graphs += 1;
        let mut args = Args::new();
        args.unsigned(self.keys.graph_exec, raw.u64(graph::EXEC));
        args.unsigned(self.keys.kernels, raw.u64(graph::KERNELS));
        args.unsigned(self.keys.hsa_queue, raw.u64(graph::QUEUE));
        self.device_arg(&mut args, raw.u64(graph::AGENT));
        self.range("graph_trace", "HIP graph", raw, graph::TIMES, &args);
    }

    /// The runtime makes room for what kernels spill.
    pub(super) fn scratch(&mut self, raw: Raw<'_>) {
        let form = self.form(&layout::SCRATCH, raw);
        // rocprofiler_scratch_memory_operation_t, the same in all versions.
        let name = match raw.u32(12) {
            1 => "Scratch memory allocated",
            2 => "Scratch memory released",
            3 => "Scratch memory reclaimed",
            _ => "Scratch memory",
        };
        let mut args = Args::new();
        if raw.has(form.amount, 8) {
            args.unless_zero(self.keys.bytes, raw.u64(form.amount));
        }
        args.unsigned(self.keys.hsa_queue, raw.u64(form.queue));
        self.device_arg(&mut args, raw.u64(form.agent));
        self.range("overhead", name, raw, form.times, &args);
    }

    /// Memory was allocated or released.
    pub(super) fn allocation(&mut self, raw: Raw<'_>) {
        let form = self.form(&layout::ALLOCATION, raw);
        let (start, end) = (raw.u64(form.times.start), raw.u64(form.times.end));
        if !self.has_times(start, end) {
            return;
        }
        let (address, said) = (raw.u64(form.address), raw.u64(form.amount));
        // rocprofiler_memory_allocation_operation_t: 1 and 2 allocate, 3 and 4 release.
        let (name, bytes) = match raw.u32(12) {
            1 | 2 => {
                if self.allocated.len() < MAX_ALLOCATIONS {
                    self.allocated.insert(address, said);
                }
                ("HIP memory allocated", said as i64)
            }
            3 | 4 => {
                let bytes = self.allocated.remove(&address).unwrap_or(said);
                ("HIP memory released", -(bytes as i64))
            }
            _ => return,
        };
        let mut args = Args::new();
        args.signed(self.keys.bytes, bytes);
        args.push(Extra::new(self.keys.address, ArgType::Pointer, address));
        self.device_arg(&mut args, raw.u64(form.agent));
        let category = self.keys.intern("hip_memory");
        let head = Record {
            time: self.clock.nanos(end),
            site: self.recorder.intern_or_wait(category, name.as_bytes()),
            kind: Kind::Instant as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }

    pub(super) fn device_arg(&self, args: &mut Args, agent: u64) {
        if let Some(device) = self.agents.gpu(agent) {
            args.unsigned(self.keys.device, device);
        }
    }

    /// A slice that belongs to no queue and no thread.
    pub(super) fn range(
        &mut self,
        category: &str,
        name: &str,
        raw: Raw<'_>,
        times: Times,
        args: &Args,
    ) {
        let (start, end) = (raw.u64(times.start), raw.u64(times.end));
        if !self.has_times(start, end) {
            return;
        }
        let category = self.keys.intern(category);
        let site = self.recorder.intern_or_wait(category, name.as_bytes());
        self.ranges.push(site, (self.clock.nanos(start), self.clock.nanos(end)), args.extras());
    }
}
