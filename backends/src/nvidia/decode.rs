//! CUPTI's activity records become ours.

use std::collections::HashMap;

use kymograph_protos::device::{DeviceSlot, LaunchSlot, Stage};
use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, Extra, Kind, Record, Recorder, StrId};

use super::clock::Clock;
use super::device::Limits;
use super::direct;
use super::keys::Keys;
use super::memory::Allocated;
use super::names::{self, Kernels};
use super::occupancy;
use super::places::Places;
use super::sync;
use super::sys::kind;
use super::waits::Waits;
use crate::device::args::{Args, MAX_ARGS};
use crate::device::present::{Doubt, Present};
use crate::device::ranges::{Ids, Ranges};
use crate::device::raw::Raw;
use crate::device::sample;

/// External ids that wait for their activities.
const MAX_EXTERNAL: usize = 1 << 16;

/// What was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: u64,
    pub(crate) copies: u64,
    pub(crate) sets: u64,
    pub(crate) graphs: u64,
    pub(crate) waits: u64,
    /// Kernels whose launch was not watched: no slice has an arrow to them.
    pub(crate) uncalled: u64,
    /// Activities whose times CUPTI lost.
    pub(crate) timeless: u64,
    /// Activities that end later than they were read.
    pub(crate) future: u64,
    /// Records that nobody asked us to read: what others enabled.
    pub(crate) skipped: u64,
}

/// See the module.
pub(crate) struct Decoder {
    pub(crate) recorder: &'static dyn Recorder,
    pub(crate) counts: Counts,
    pub(crate) clock: Clock,
    present: Present,
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) correlation: u32,
}

impl Placed {
    /// Of a copy or a set, which differ in where they have their correlation id.
    fn of_transfer(raw: Raw<'_>, correlation: usize) -> Placed {
        Placed {
            start: raw.u64(16),
            end: raw.u64(24),
            device: raw.u32(32),
            context: raw.u32(36),
            stream: raw.u32(40),
            correlation: raw.u32(correlation),
        }
    }
}

impl Decoder {
    pub(crate) fn new(
        recorder: &'static dyn Recorder,
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
        sample::record(self.recorder, "cuda", raw.u32(0), raw);
        match raw.u32(0) {
            // SAFETY: the caller's promise.
            kind::KERNEL | kind::CONCURRENT_KERNEL => unsafe { self.kernel(raw) },
            kind::MEMCPY => self.copy(raw),
            kind::MEMCPY2 => self.peer_copy(raw),
            kind::MEMSET => self.set(raw),
            kind::GRAPH_TRACE => self.graph(raw),
            kind::OVERHEAD => self.overhead(raw),
            kind::STREAM => {
                self.priorities.insert((raw.u32(4), raw.u32(8)), raw.u32(12));
            }
            kind::EXTERNAL_CORRELATION => {
                if self.external.len() >= MAX_EXTERNAL {
                    self.external.clear();
                }
                self.external.insert(raw.u32(16), raw.u64(8));
            }
            kind::CONTEXT => self.places.context(raw),
            kind::MEMORY2 => self.memory(raw),
            kind::MEMORY_POOL => self.memory_pool(raw),
            kind::UNIFIED_MEMORY_COUNTER => self.unified_memory(raw),
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

    /// CUpti_ActivityKernel4 to 13.
    unsafe fn kernel(&mut self, raw: Raw<'_>) {
        self.counts.kernels += 1;
        let placed = Placed {
            start: raw.u64(16),
            end: raw.u64(24),
            device: raw.u32(40),
            context: raw.u32(44),
            stream: raw.u32(48),
            correlation: raw.u32(92),
        };
        self.counts.uncalled += u64::from(!direct::is_known(placed.correlation));
        let launch = LaunchSlot {
            grid: [raw.u32(52), raw.u32(56), raw.u32(60)],
            block: [raw.u32(64), raw.u32(68), raw.u32(72)],
            registers: raw.u16(6).into(),
            shared: raw.u32(76),
        };
        let text = raw.u64(104) as *const std::ffi::c_char;
        // SAFETY: the caller's promise.
        let name = unsafe { self.kernels.name(text, self.recorder) };
        let place = self.place(&placed, Stage::Kernel);
        let (kernel, symbol) = (name.full, name.symbol);
        let device = DeviceSlot { kernel, symbol, launch: 1, ..place };
        let mut args = Args::new();
        args.slot(device.extras());
        args.slot(launch.extras());
        let dynamic = raw.u32(80);
        args.unless_zero(self.keys.shared_dynamic, dynamic);
        args.unless_zero(self.keys.local_per_thread, raw.u32(84));
        let cluster = [self.keys.cluster_x, self.keys.cluster_y, self.keys.cluster_z];
        for (key, at) in cluster.into_iter().zip([176, 180, 184]) {
            // 0 and 1: no cluster.
            args.unless_zero(key, raw.u32(at).saturating_sub(1).min(1) * raw.u32(at));
        }
        // Padding until 13.0.
        if self.version >= 130_000 && raw.u8(208) != 0 {
            args.unsigned(self.keys.device_launched, 1_u64);
        }
        if raw.has(216, 4) && self.version >= 130_100 && raw.u32(216) != 0 {
            args.signed(self.keys.priority, i64::from(raw.u32(216) as i32));
        }
        self.graph_args(&mut args, raw.u32(156), raw.u64(144));
        if self.all_args {
            self.place_args(&mut args, &placed);
            args.unsigned(self.keys.registers, launch.registers);
            args.unsigned(self.keys.shared, u64::from(launch.shared) + u64::from(dynamic));
            self.occupancy(&mut args, &placed, &launch, dynamic);
            args.unsigned(self.keys.channel, raw.u32(168));
            args.unsigned(self.keys.channel_type, raw.u32(172));
            if !name.full.is_none() && !text.is_null() {
                // What tools for binaries know it by.
                // SAFETY: the caller's promise.
                let mangled = unsafe { std::ffi::CStr::from_ptr(text) }.to_bytes();
                args.text(self.keys.mangled, self.recorder.intern_patiently(StrId::NONE, mangled));
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

    /// CUpti_ActivityMemcpy5 to 7.
    fn copy(&mut self, raw: Raw<'_>) {
        self.counts.copies += 1;
        let placed = Placed::of_transfer(raw, 44);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemoryTransfer).extras());
        self.bytes(&mut args, &placed, raw.u64(8));
        self.graph_args(&mut args, raw.u32(72), raw.u64(64));
        if raw.has(88, 8) && raw.u64(88) > 1 {
            args.unsigned(self.keys.copy_count, raw.u64(88));
        }
        self.channel_args(&mut args, &placed, raw, 76);
        self.activity(&placed, self.copy_name(raw), &[], &args);
    }

    /// CUpti_ActivityMemcpyPtoP4: its correlation id is not where the others have it.
    fn peer_copy(&mut self, raw: Raw<'_>) {
        self.counts.copies += 1;
        let placed = Placed::of_transfer(raw, 60);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemoryTransfer).extras());
        self.bytes(&mut args, &placed, raw.u64(8));
        let keys = &self.keys;
        let sides = [
            (keys.from_device, 44),
            (keys.in_device, 32),
            (keys.to_device, 52),
            (keys.from_context, 48),
            (keys.in_context, 36),
            (keys.to_context, 56),
        ];
        sides.into_iter().for_each(|(key, at)| args.unsigned(key, raw.u32(at)));
        self.graph_args(&mut args, raw.u32(80), raw.u64(72));
        if self.all_args {
            args.unsigned(self.keys.stream, placed.stream);
            args.unsigned(self.keys.correlation, placed.correlation);
        }
        self.activity(&placed, self.copy_name(raw), &[], &args);
    }

    fn copy_name(&self, raw: Raw<'_>) -> StrId {
        let memory = |at| names::memory_kind(raw.u8(at).into());
        let kind = names::memcpy_kind(raw.u8(4));
        self.keys.intern(format!("Memcpy {kind} ({} -> {})", memory(5), memory(6)))
    }

    /// CUpti_ActivityMemset4 and 5.
    fn set(&mut self, raw: Raw<'_>) {
        self.counts.sets += 1;
        let placed = Placed::of_transfer(raw, 44);
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::MemorySet).extras());
        self.bytes(&mut args, &placed, raw.u64(8));
        args.unsigned(self.keys.value, raw.u32(4));
        self.graph_args(&mut args, raw.u32(72), raw.u64(64));
        self.channel_args(&mut args, &placed, raw, 76);
        let name = self.keys.intern(format!("Memset ({})", names::memory_kind(raw.u16(50))));
        self.activity(&placed, name, &[], &args);
    }

    /// CUpti_ActivityGraphTrace and 2: a graph as a whole.
    fn graph(&mut self, raw: Raw<'_>) {
        self.counts.graphs += 1;
        let placed = Placed {
            start: raw.u64(8),
            end: raw.u64(16),
            device: raw.u32(24),
            context: raw.u32(32),
            stream: raw.u32(36),
            correlation: raw.u32(4),
        };
        let mut args = Args::new();
        args.slot(self.place(&placed, Stage::Graph).extras());
        args.unsigned(self.keys.graph, raw.u32(28));
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
    fn channel_args(&self, args: &mut Args, placed: &Placed, raw: Raw<'_>, channel: usize) {
        if self.all_args {
            self.place_args(args, placed);
            args.unsigned(self.keys.channel, raw.u32(channel));
            args.unsigned(self.keys.channel_type, raw.u32(channel + 4));
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
        let times = self.present.times((start, end), &mut self.clock, Clock::nanos, Clock::look);
        times.map_err(|doubt| self.lost(doubt)).ok()
    }

    #[cold]
    fn lost(&mut self, doubt: Doubt) {
        match doubt {
            Doubt::None => self.counts.timeless += 1,
            Doubt::Future => self.counts.future += 1,
        }
        self.recorder.lost(1);
    }
}

#[cfg(test)]
mod tests;
