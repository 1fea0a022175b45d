//! CUPTI's activity records become ours.

use std::collections::HashMap;

use kymograph_protos::device::{DeviceSlot, LaunchSlot, Stage};
use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::allocated::Allocated;
use super::clock::Clock;
use super::device::Limits;
use super::direct;
use super::keys::Keys;
use super::kinds::{
    Context, Copy, External, Graph, Kernel, Memory, MemoryPool, Overhead, PeerCopy, Set, Stream,
    UnifiedMemory, kind,
};
use super::names::{self, Kernels};
use super::occupancy;
use super::places::Places;
use super::sync;
use super::waits::Waits;
use crate::device::args::{Args, MAX_ARGS};
use crate::device::names::NVIDIA;
use crate::device::present::Present;
use crate::device::ranges::{Ids, Ranges};
use crate::device::raw::Raw;
use crate::device::sample;

/// External ids that wait for their activities.
const MAX_EXTERNAL: usize = 1 << 16;

/// What was decoded.
#[derive(Clone, std::marker::Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: u64,
    pub(crate) copies: u64,
    pub(crate) sets: u64,
    pub(crate) graphs: u64,
    pub(crate) waits: u64,
    /// Kernels whose launch was not watched: no slice has an arrow to them.
    pub(crate) uncalled: u64,
    /// Records of kinds that are not read, which another user of CUPTI enabled.
    pub(crate) skipped: u64,
}

/// See the module.
pub(crate) struct Decoder {
    pub(crate) recorder: &'static dyn ColdRecorder,
    pub(crate) counts: Counts,
    pub(crate) clock: Clock,
    pub(crate) present: Present,
    pub(crate) devices: Vec<Limits>,
    pub(super) keys: Keys,
    all_args: bool,
    version: u32,
    kernels: Kernels,
    /// Numbers of queues, by context and stream.
    pub(super) queues: HashMap<(u32, u32), u32>,
    /// The first context of each device: its streams need not say which they are of.
    pub(super) first_context: HashMap<u32, u32>,
    pub(super) priorities: HashMap<(u32, u32), u32>,
    external: HashMap<u32, u64>,
    waits: Waits,
    pub(crate) places: Places,
    pub(super) allocated: Allocated,
    pub(super) last: ((u32, u32), u32),
    pub(super) ranges: Ranges,
}

/// Where and when an activity ran: the fields that all have.
#[derive(Clone, std::marker::Copy, Debug)]
pub(super) struct Placed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) correlation: u32,
}

/// Those of a record.
macro_rules! placed {
    ($record:ident) => {
        Placed {
            start: $record.start(),
            end: $record.end(),
            device: $record.device(),
            context: $record.context(),
            stream: $record.stream(),
            correlation: $record.correlation(),
        }
    };
}

impl Decoder {
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        clock: Clock,
        version: u32,
        all_args: bool,
    ) -> Decoder {
        Decoder {
            recorder,
            counts: Counts::default(),
            clock,
            present: Present::default(),
            devices: Vec::new(),
            keys: Keys::new(recorder),
            all_args,
            version,
            kernels: Kernels::default(),
            queues: HashMap::new(),
            first_context: HashMap::new(),
            priorities: HashMap::new(),
            external: HashMap::new(),
            waits: Waits::default(),
            places: Places::default(),
            allocated: Allocated::default(),
            last: ((0, 0), u32::MAX),
            ranges: Ranges::new(recorder, Ids::of(*b"CU")),
        }
    }

    /// One record.
    ///
    /// # Safety
    /// `raw` is a record as CUPTI wrote it: the names it points to are C strings, which
    /// CUPTI keeps.
    pub(crate) unsafe fn record(&mut self, raw: Raw<'_>) {
        sample::record(self.recorder, NVIDIA.key, raw.u32(0), raw);
        match raw.u32(0) {
            // SAFETY: the caller's promise.
            kind::KERNEL | kind::CONCURRENT_KERNEL => unsafe { self.kernel(Kernel(raw)) },
            kind::MEMCPY => self.copy(Copy(raw)),
            kind::MEMCPY2 => self.peer_copy(PeerCopy(raw)),
            kind::MEMSET => self.set(Set(raw)),
            kind::GRAPH_TRACE => self.graph(Graph(raw)),
            kind::OVERHEAD => self.overhead(Overhead(raw)),
            kind::STREAM => {
                let record = Stream(raw);
                let stream = (record.context(), record.stream());
                self.priorities.insert(stream, record.priority());
            }
            kind::EXTERNAL_CORRELATION => {
                if self.external.len() >= MAX_EXTERNAL {
                    self.external.clear();
                }
                let record = External(raw);
                self.external.insert(record.correlation(), record.id());
            }
            kind::CONTEXT => self.places.context(Context(raw)),
            kind::MEMORY2 => self.memory(Memory(raw)),
            kind::MEMORY_POOL => self.memory_pool(MemoryPool(raw)),
            kind::UNIFIED_MEMORY_COUNTER => self.unified_memory(UnifiedMemory(raw)),
            // Needed for external correlation; the calls are recorded as they happen.
            kind::RUNTIME | kind::DRIVER => {}
            _ => self.counts.skipped += 1,
        }
    }

    /// Calls that wait, and that are over.
    pub(crate) fn waited(&mut self) {
        while let Some(called) = sync::take() {
            self.waits.called(called);
            if self.waits.is_full() {
                self.settle(true);
            }
        }
    }

    /// Says what the waits were for. Called when all was read that CUPTI had when they were
    /// over; `last`: when no more will come.
    pub(crate) fn settle(&mut self, last: bool) {
        let mut waits = std::mem::take(&mut self.waits);
        waits.settle(last, |wait| self.wait(&wait));
        self.waits = waits;
    }

    /// # Safety
    /// As for [`Decoder::record`].
    unsafe fn kernel(&mut self, record: Kernel<'_>) {
        self.counts.kernels += 1;
        let placed = placed!(record);
        self.counts.uncalled += u64::from(!direct::is_known(placed.correlation));
        let launch = LaunchSlot {
            grid: record.grid(),
            block: record.block(),
            registers: record.registers().into(),
            shared: record.shared_static(),
        };
        let text = record.name() as *const std::ffi::c_char;
        // SAFETY: the caller's promise.
        let name = unsafe { self.kernels.name(text, self.recorder) };
        let place = self.place(&placed, Stage::Kernel);
        let (kernel, symbol) = (name.full, name.symbol);
        let device = DeviceSlot { kernel, symbol, launch: 1, ..place };
        let mut args = Args::new();
        args.slot(device.extras());
        args.slot(launch.extras());
        let dynamic = record.shared_dynamic();
        args.unless_zero(self.keys.shared_dynamic, dynamic);
        args.unless_zero(self.keys.local_per_thread, record.local_per_thread());
        let cluster = [self.keys.cluster_x, self.keys.cluster_y, self.keys.cluster_z];
        for (key, blocks) in cluster.into_iter().zip(record.cluster()) {
            // 0 and 1: no cluster.
            args.unless_zero(key, blocks.saturating_sub(1).min(1) * blocks);
        }
        // Padding until 13.0.
        if self.version >= 130_000 && record.device_launched() != 0 {
            args.unsigned(self.keys.device_launched, 1_u64);
        }
        if self.version >= 130_100 && record.priority() != 0 {
            args.signed(self.keys.priority, i64::from(record.priority() as i32));
        }
        self.graph_args(&mut args, record.graph(), record.graph_node());
        if self.all_args {
            self.place_args(&mut args, &placed);
            args.unsigned(self.keys.registers, launch.registers);
            args.unsigned(self.keys.shared, u64::from(launch.shared) + u64::from(dynamic));
            self.occupancy(&mut args, &placed, &launch, dynamic);
            args.unsigned(self.keys.channel, record.channel());
            args.unsigned(self.keys.channel_type, record.channel_type());
            if !name.full.is_none() && !text.is_null() {
                // What tools for binaries know it by.
                // SAFETY: the caller's promise.
                let mangled = unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes();
                args.text(self.keys.mangled, self.recorder.intern_or_wait(StrId::NONE, mangled));
            }
        }
        if name.short.is_none() && !text.is_null() {
            // The interner is full: the name travels by value.
            // SAFETY: the caller's promise.
            let bytes = unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes();
            return self.activity(&placed, StrId::NONE, &bytes[..bytes.len().min(4096)], &args);
        }
        self.activity(&placed, name.short, &[], &args);
    }

    fn occupancy(&self, args: &mut Args, placed: &Placed, launch: &LaunchSlot, dynamic: u32) {
        let Some(limits) = self.devices.get(placed.device as usize) else { return };
        let estimate = occupancy::estimate(limits, launch, dynamic);
        args.float(self.keys.blocks_per_sm, estimate.blocks_per_multiprocessor);
        args.float(self.keys.warps_per_sm, estimate.warps_per_multiprocessor);
        args.signed(self.keys.occupancy, estimate.percent);
    }

    fn copy(&mut self, record: Copy<'_>) {
        self.counts.copies += 1;
        let placed = placed!(record);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemoryTransfer).extras());
        self.bytes(&mut args, &placed, record.bytes());
        self.graph_args(&mut args, record.graph(), record.graph_node());
        if record.copies() > 1 {
            args.unsigned(self.keys.copy_count, record.copies());
        }
        self.channel_args(&mut args, &placed, record.channel(), record.channel_type());
        let name = self.copy_name(record.direction(), record.from(), record.to());
        self.activity(&placed, name, &[], &args);
    }

    fn peer_copy(&mut self, record: PeerCopy<'_>) {
        self.counts.copies += 1;
        let placed = placed!(record);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemoryTransfer).extras());
        self.bytes(&mut args, &placed, record.bytes());
        let keys = &self.keys;
        let sides = [
            (keys.from_device, record.from_device()),
            (keys.in_device, placed.device),
            (keys.to_device, record.to_device()),
            (keys.from_context, record.from_context()),
            (keys.in_context, placed.context),
            (keys.to_context, record.to_context()),
        ];
        sides.into_iter().for_each(|(key, value)| args.unsigned(key, value));
        self.graph_args(&mut args, record.graph(), record.graph_node());
        if self.all_args {
            args.unsigned(self.keys.stream, placed.stream);
            args.unsigned(self.keys.correlation, placed.correlation);
        }
        let name = self.copy_name(record.direction(), record.from(), record.to());
        self.activity(&placed, name, &[], &args);
    }

    fn copy_name(&self, direction: u8, from: u8, to: u8) -> StrId {
        let [from, to] = [from, to].map(|memory| names::memory_kind(memory.into()));
        self.keys.intern(format!("Memcpy {} ({from} -> {to})", names::memcpy_kind(direction)))
    }

    fn set(&mut self, record: Set<'_>) {
        self.counts.sets += 1;
        let placed = placed!(record);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemorySet).extras());
        self.bytes(&mut args, &placed, record.bytes());
        args.unsigned(self.keys.value, record.value());
        self.graph_args(&mut args, record.graph(), record.graph_node());
        self.channel_args(&mut args, &placed, record.channel(), record.channel_type());
        let name = self.keys.intern(format!("Memset ({})", names::memory_kind(record.memory())));
        self.activity(&placed, name, &[], &args);
    }

    fn graph(&mut self, record: Graph<'_>) {
        self.counts.graphs += 1;
        let placed = placed!(record);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::Graph).extras());
        args.unsigned(self.keys.graph, record.graph());
        if self.all_args {
            self.place_args(&mut args, &placed);
        }
        let name = self.keys.intern("CUDA graph");
        self.activity(&placed, name, &[], &args);
    }

    fn bytes(&self, args: &mut Args, placed: &Placed, bytes: u64) {
        args.unsigned(self.keys.bytes, bytes);
        if self.all_args && placed.end > placed.start {
            let rate = bytes as f64 / (placed.end - placed.start) as f64;
            args.float(self.keys.bandwidth, rate);
        }
    }

    fn graph_args(&self, args: &mut Args, graph: u32, node: u64) {
        args.unless_zero(self.keys.graph, graph);
        args.unless_zero(self.keys.graph_node, node);
    }

    /// What the queue says already.
    fn place_args(&self, args: &mut Args, placed: &Placed) {
        args.signed(self.keys.device, placed.device.into());
        args.unsigned(self.keys.context, placed.context);
        args.unsigned(self.keys.stream, placed.stream);
        args.unsigned(self.keys.correlation, placed.correlation);
    }

    /// The same, and the hardware's own queue.
    fn channel_args(&self, args: &mut Args, placed: &Placed, channel: u32, channel_type: u32) {
        if self.all_args {
            self.place_args(args, placed);
            args.unsigned(self.keys.channel, channel);
            args.unsigned(self.keys.channel_type, channel_type);
        }
    }

    fn activity(&mut self, placed: &Placed, site: StrId, name: &[u8], args: &Args) {
        let Some((start, end)) = self.times(placed.start, placed.end) else { return };
        self.waits.work(placed.context, placed.stream, placed.correlation);
        let head = Record {
            time: start,
            other: end,
            arg: placed.correlation.into(),
            site,
            kind: Kind::Device as u8,
            tag: NANOS,
            ..Record::default()
        };
        match self.external.get(&placed.correlation).filter(|_| args.extras().len() < MAX_ARGS) {
            None => self.recorder.push_named(head, args.extras(), name),
            Some(id) => {
                let mut all = [Extra::new(StrId::NONE, ArgType::None, 0); MAX_ARGS];
                let len = args.extras().len();
                all[..len].copy_from_slice(args.extras());
                all[len] = Extra::new(self.keys.external, ArgType::U64, *id);
                self.recorder.push_named(head, &all[..=len], name)
            }
        };
    }

    /// The times of an activity, if it has some that can be. CUPTI cannot tell them always (a
    /// forced flush takes records of work that still runs): counted, since a made-up time would
    /// be worse.
    pub(super) fn times(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (clock, recorder) = (&mut self.clock, self.recorder);
        self.present.times((start, end), clock, Clock::nanos, Clock::look, recorder)
    }
}

#[cfg(test)]
mod tests;
