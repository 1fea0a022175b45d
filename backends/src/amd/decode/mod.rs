//! Records of rocprofiler-sdk become ours.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;

use kymograph_protos::device::{DeviceSlot, LaunchSlot, Stage, Vendor};
use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::calls::blocks;
use super::clock::Clock;
use super::device::Agents;
use super::kernels::{self, Known};
use super::keys::Keys;
use super::kinds::{Kinds, Selection};
use super::launches::{self, Asked};
use super::layout::{self, Form, Times, WORK};
use super::streams::Streams;
use super::sys::{CATEGORY_TRACING, RecordHeader, Sdk};
use crate::device::args::Args;
use crate::device::clock::boottime;
use crate::device::names;
use crate::device::present::Present;
use crate::device::ranges::{Ids, Ranges};
use crate::device::raw::Raw;
use crate::device::sample;

/// Bytes of a record that are looked at, at most: more than any kind has that is read.
const MAX_RECORD_BYTES: usize = 1024;

/// What was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: u64,
    pub(crate) copies: u64,
    pub(crate) sets: u64,
    pub(crate) graphs: u64,
    /// Migrations of pages, and faults.
    pub(crate) pages: u64,
    pub(crate) waits: u64,
    /// Kernels that no code object registered.
    pub(crate) unnamed: u64,
    /// Records that are laid out in no way that is known, by the size that they say.
    pub(crate) broken: u64,
    /// Records of kinds that were not asked for.
    pub(crate) skipped: u64,
}

/// Kinds of records in the library at hand; none: it has no such kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) kernel: Option<c_int>,
    pub(crate) copy: Option<c_int>,
    pub(crate) scratch: Option<c_int>,
    pub(crate) allocation: Option<c_int>,
    pub(crate) graph: Option<c_int>,
    pub(crate) migration: Option<c_int>,
    pub(crate) fault: Option<c_int>,
    pub(crate) event: Option<c_int>,
}

impl Numbers {
    pub(crate) fn new(kinds: &Kinds) -> Numbers {
        Numbers {
            kernel: kinds.buffer("KERNEL_DISPATCH"),
            copy: kinds.buffer("MEMORY_COPY"),
            scratch: kinds.buffer("SCRATCH_MEMORY"),
            allocation: kinds.buffer("MEMORY_ALLOCATION"),
            graph: kinds.buffer("HIP_GRAPH"),
            migration: kinds.buffer("KFD_PAGE_MIGRATE"),
            fault: kinds.buffer("KFD_PAGE_FAULT"),
            event: kinds.buffer("HIP_EVENT"),
        }
    }

    /// Those of what is recorded.
    pub(crate) fn of(self, selection: Selection) -> Numbers {
        Numbers {
            // A fill is a kernel of the runtime's.
            kernel: self.kernel.filter(|_| selection.kernels || selection.sets),
            copy: self.copy.filter(|_| selection.copies),
            scratch: self.scratch.filter(|_| selection.overhead),
            allocation: self.allocation.filter(|_| selection.memory),
            graph: self.graph.filter(|_| selection.graphs),
            migration: self.migration.filter(|_| selection.unified),
            fault: self.fault.filter(|_| selection.unified),
            event: self.event.filter(|_| selection.waits),
        }
    }

    pub(crate) fn all(self) -> impl Iterator<Item = c_int> {
        let Numbers { kernel, copy, scratch, allocation, graph, .. } = self;
        let more = [self.migration, self.fault, self.event];
        [kernel, copy, scratch, allocation, graph].into_iter().chain(more).flatten()
    }
}

/// Where and when an activity ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) device: u32,
    pub(super) correlation: u64,
    /// The HSA queue, if the record says it.
    pub(super) queue: Option<u64>,
}

/// See the module.
pub(crate) struct Decoder {
    pub(super) recorder: &'static dyn ColdRecorder,
    pub(crate) counts: Counts,
    pub(crate) clock: Clock,
    pub(crate) present: Present,
    /// Whose clock it is.
    pub(crate) sdk: Option<Sdk>,
    pub(super) agents: Agents,
    pub(super) keys: Keys,
    selection: Selection,
    numbers: Numbers,
    all_args: bool,
    described: bool,
    kernels: Known,
    streams: Streams,
    /// Names that do not change: kernels, sets, copies by direction.
    dispatch: StrId,
    set_name: StrId,
    copies: [(StrId, StrId); 6],
    pub(super) ranges: Ranges,
    /// Bytes of allocations by address: what a release does not say.
    pub(super) allocated: HashMap<u64, u64>,
    /// Records that fit no layout, by kind and size.
    pub(crate) misfits: BTreeMap<(&'static str, usize), u64>,
}

/// Kinds and sizes of such records at most.
const MAX_MISFITS: usize = 32;

/// How a kind of records is read: what it is called where it cannot be, and its sizes.
#[derive(Clone, Copy)]
struct Reader {
    name: &'static str,
    fits: fn(usize) -> bool,
    read: fn(&mut Decoder, Raw<'_>),
}

const KERNEL: Reader =
    Reader { name: "kernel", fits: |size| size >= layout::kernel::BYTES, read: Decoder::kernel };
const COPY: Reader =
    Reader { name: "copy", fits: |size| size >= layout::copy::BYTES, read: Decoder::copy };
const SCRATCH: Reader = Reader {
    name: "scratch",
    fits: |size| layout::SCRATCH.iter().any(|form| form.fits(size)),
    read: Decoder::scratch,
};
const ALLOCATION: Reader = Reader {
    name: "allocation",
    fits: |size| layout::ALLOCATION.iter().any(|form| form.fits(size)),
    read: Decoder::allocation,
};
const GRAPH: Reader =
    Reader { name: "graph", fits: |size| size >= layout::graph::BYTES, read: Decoder::graph };
const MIGRATION: Reader = Reader {
    name: "migration",
    fits: |size| size >= layout::migration::BYTES,
    read: Decoder::migration,
};
const FAULT: Reader =
    Reader { name: "fault", fits: |size| size >= layout::fault::BYTES, read: Decoder::fault };
const EVENT: Reader =
    Reader { name: "event", fits: |size| size >= layout::event::BYTES, read: Decoder::event };

/// Directions of copies (`rocprofiler_memory_copy_operation_t`, the same in all versions),
/// and between devices.
const COPIES: [(&str, &str); 6] = [
    ("Memcpy <unknown>", "<unknown>"),
    ("Memcpy HtoH (Host -> Host)", "HtoH"),
    ("Memcpy HtoD (Host -> Device)", "HtoD"),
    ("Memcpy DtoH (Device -> Host)", "DtoH"),
    ("Memcpy DtoD (Device -> Device)", "DtoD"),
    ("Memcpy PtoP (Device -> Device)", "PtoP"),
];
const DEVICE_TO_DEVICE: usize = 4;
const PEER: usize = 5;

impl Decoder {
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        agents: Agents,
        selection: Selection,
        numbers: Numbers,
        all_args: bool,
    ) -> Decoder {
        let id = |text: &str| recorder.intern_or_wait(StrId::NONE, text.as_bytes());
        Decoder {
            recorder,
            counts: Counts::default(),
            clock: Clock::default(),
            present: Present::default(),
            sdk: None,
            agents,
            keys: Keys::new(recorder),
            selection,
            numbers: numbers.of(selection),
            all_args,
            described: false,
            kernels: Known::default(),
            streams: Streams::default(),
            dispatch: id("Dispatch Kernel"),
            set_name: id("Memset (Device)"),
            copies: COPIES.map(|(name, kind)| (id(name), id(kind))),
            ranges: Ranges::new(recorder, Ids::of(*b"HI")),
            allocated: HashMap::new(),
            misfits: BTreeMap::new(),
        }
    }

    pub(crate) fn recorder(&self) -> &'static dyn ColdRecorder {
        self.recorder
    }

    /// Puts the devices into the inventory, once: in the thread that pushes what they do,
    /// and before that.
    pub(crate) fn describe_devices(&mut self) {
        if !self.described {
            self.described = true;
            self.agents.describe(self.recorder);
        }
    }

    /// One record.
    ///
    /// # Safety
    /// `header` is as the library passed it: its payload begins with its size.
    pub(crate) unsafe fn record(&mut self, header: &RecordHeader) {
        if header.category != CATEGORY_TRACING || header.payload.is_null() {
            self.counts.skipped += 1;
            return;
        }
        // SAFETY: the caller's promise.
        let raw = unsafe {
            let size = header.payload.cast::<u64>().read_unaligned() as usize;
            Raw::new(std::slice::from_raw_parts(header.payload, size.min(MAX_RECORD_BYTES)))
        };
        sample::record(self.recorder, names::AMD.key, header.kind, raw);
        let kind = Some(header.kind as c_int);
        let Numbers { kernel, copy, scratch, allocation, graph, .. } = self.numbers;
        let Numbers { migration, fault, event, .. } = self.numbers;
        let reader = match kind {
            _ if kind == kernel => KERNEL,
            _ if kind == copy => COPY,
            _ if kind == scratch => SCRATCH,
            _ if kind == allocation => ALLOCATION,
            _ if kind == graph => GRAPH,
            _ if kind == migration => MIGRATION,
            _ if kind == fault => FAULT,
            _ if kind == event => EVENT,
            _ => {
                self.counts.skipped += 1;
                return;
            }
        };
        match (reader.fits)(raw.len()) {
            true => (reader.read)(self, raw),
            false => self.misfit(reader.name, raw.len()),
        }
    }

    fn misfit(&mut self, kind: &'static str, size: usize) {
        self.counts.broken += 1;
        self.recorder.lost(1);
        let known = self.misfits.len() < MAX_MISFITS || self.misfits.contains_key(&(kind, size));
        if known {
            *self.misfits.entry((kind, size)).or_default() += 1;
        }
    }

    /// The form of a record: where several have its size, the one whose times are nearest to
    /// now.
    pub(super) fn form(&self, forms: &'static [Form], raw: Raw<'_>) -> Form {
        let mut fitting = forms.iter().filter(|form| form.fits(raw.len()));
        let first = *fitting.next().unwrap_or(&forms[0]);
        let now = boottime();
        let distance = |form: &Form| {
            let (start, end) = (raw.u64(form.times.start), raw.u64(form.times.end));
            let possible = start != 0 && end >= start;
            if possible { self.clock.nanos(end).abs_diff(now) } else { u64::MAX }
        };
        fitting
            .fold(first, |best, form| if distance(form) < distance(&best) { *form } else { best })
    }

    pub(super) fn placed(
        &self,
        raw: Raw<'_>,
        times: Times,
        device: u32,
        queue: Option<u64>,
    ) -> Placed {
        Placed {
            start: raw.u64(times.start),
            end: raw.u64(times.end),
            device,
            correlation: raw.u64(times.correlation),
            queue,
        }
    }

    fn kernel(&mut self, raw: Raw<'_>) {
        use layout::kernel;
        let device = self.agents.gpu(raw.u64(kernel::AGENT)).unwrap_or(0);
        let placed = self.placed(raw, WORK, device, Some(raw.u64(kernel::QUEUE)));
        let found = self.kernels.get(raw.u64(kernel::KERNEL));
        let asked = launches::find(placed.correlation);
        if found.is_some_and(|kernel| kernel.fills) {
            if self.selection.sets {
                self.set(&placed, asked);
            }
            return;
        }
        if !self.selection.kernels {
            return;
        }
        self.counts.kernels += 1;
        self.counts.unnamed += u64::from(found.is_none());
        let name = found.map_or_else(|| kernels::unnamed(self.recorder), |kernel| kernel.name);
        let three = |at| [raw.u32(at), raw.u32(at + 4), raw.u32(at + 8)];
        let block = three(kernel::WORKGROUP);
        let group = raw.u32(kernel::GROUP);
        let fixed = found.map_or(group, |kernel| kernel.shared.min(group));
        let launch = LaunchSlot {
            grid: blocks(three(kernel::GRID), block),
            block,
            registers: found.map_or(0, |kernel| kernel.vgprs),
            shared: fixed,
        };
        let (slot, stream) = self.place(&placed, asked, Stage::Kernel);
        let device = DeviceSlot { kernel: name.full, symbol: name.symbol, launch: 1, ..slot };
        let mut args = Args::new();
        args.slot(device.extras());
        args.slot(launch.extras());
        args.unsigned(self.keys.hsa_queue, raw.u64(kernel::QUEUE));
        args.push(Extra::new(self.keys.kind, ArgType::Str, self.dispatch.0.into()));
        args.unless_zero(self.keys.shared_dynamic, group - fixed);
        args.unless_zero(self.keys.private_per_work_item, raw.u32(kernel::PRIVATE));
        if self.all_args {
            self.place_args(&mut args, &placed, stream);
            args.unsigned(self.keys.registers, launch.registers);
            args.unsigned(self.keys.shared, group);
            if let Some(kernel) = found {
                args.unsigned(self.keys.accum_vgprs, kernel.accum_vgprs);
                args.unsigned(self.keys.sgprs, kernel.sgprs);
            }
        }
        self.activity(&placed, name.short, &args);
    }

    /// A kernel of the runtime's that fills memory.
    fn set(&mut self, placed: &Placed, asked: Option<Asked>) {
        self.counts.sets += 1;
        let (slot, stream) = self.place(placed, asked, Stage::MemorySet);
        let mut args = Args::new();
        args.slot(slot.extras());
        args.unsigned(self.keys.hsa_queue, placed.queue.unwrap_or(0));
        if let Some(asked) = asked {
            self.amount(&mut args, placed, asked.bytes);
        }
        if self.all_args {
            self.place_args(&mut args, placed, stream);
        }
        self.activity(placed, self.set_name, &args);
    }

    fn copy(&mut self, raw: Raw<'_>) {
        use layout::copy;
        self.counts.copies += 1;
        let to = self.agents.gpu(raw.u64(copy::TO_AGENT));
        let from = self.agents.gpu(raw.u64(copy::FROM_AGENT));
        // Where it is shown: on the GPU whose engine copies (rocr-runtime's runtime.cpp,
        // `CopyMemory`), and not on the processor at its other end.
        let device = from.or(to).unwrap_or(0);
        let placed = self.placed(raw, WORK, device, None);
        let mut direction = raw.u32(12) as usize;
        if direction == DEVICE_TO_DEVICE && to != from {
            direction = PEER;
        }
        let (name, kind) = self.copies.get(direction).copied().unwrap_or(self.copies[0]);
        let asked = launches::find(placed.correlation);
        let (slot, stream) = self.place(&placed, asked, Stage::MemoryTransfer);
        let mut args = Args::new();
        args.slot(slot.extras());
        // As in Kineto's traces: the record does not say.
        args.unsigned(self.keys.hsa_queue, 0_u64);
        args.push(Extra::new(self.keys.kind, ArgType::Str, kind.0.into()));
        self.amount(&mut args, &placed, raw.u64(copy::AMOUNT));
        if let (PEER, Some(from), Some(to)) = (direction, from, to) {
            args.unsigned(self.keys.from_device, from);
            args.unsigned(self.keys.to_device, to);
        }
        if self.all_args {
            self.place_args(&mut args, &placed, stream);
        }
        self.activity(&placed, name, &args);
    }

    fn amount(&self, args: &mut Args, placed: &Placed, bytes: u64) {
        args.unsigned(self.keys.bytes, bytes);
        if self.all_args && placed.end > placed.start {
            let rate = bytes as f64 / (placed.end - placed.start) as f64;
            args.float(self.keys.bandwidth, rate);
        }
    }

    /// What the queue and the arrow say already.
    fn place_args(&self, args: &mut Args, placed: &Placed, stream: Option<u32>) {
        args.signed(self.keys.device, placed.device.into());
        if let Some(stream) = stream {
            args.unsigned(self.keys.stream, stream);
        }
        args.unsigned(self.keys.correlation, placed.correlation & 0xffff_ffff);
    }

    /// The queue of an activity, and its stream's number.
    pub(super) fn place(
        &mut self,
        placed: &Placed,
        asked: Option<Asked>,
        stage: Stage,
    ) -> (DeviceSlot, Option<u32>) {
        let row = self.streams.row(placed.device, asked, placed.queue);
        let (keys, recorder) = (&self.keys, self.recorder);
        let named = self.streams.name(placed.device, row);
        let queue = self.streams.queue(placed.device, row, |number| {
            row.describe(number, placed.device, &named, keys, recorder);
        });
        let slot = DeviceSlot {
            queue: Vendor::Amd.queue(queue),
            gpu: Vendor::Amd.gpu(placed.device),
            stage: stage as u8,
            ..DeviceSlot::default()
        };
        (slot, row.stream())
    }

    pub(super) fn activity(&mut self, placed: &Placed, site: StrId, args: &Args) {
        if !self.has_times(placed.start, placed.end) {
            return;
        }
        let head = Record {
            time: self.clock.nanos(placed.start),
            other: self.clock.nanos(placed.end),
            arg: Vendor::Amd.call(placed.correlation),
            site,
            kind: Kind::Device as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }

    /// Whether an activity has times that can be. What has none is counted: a made-up time would
    /// be worse.
    pub(super) fn has_times(&mut self, start: u64, end: u64) -> bool {
        let (sdk, nanos) = (self.sdk, |clock: &Clock, time| clock.nanos(time));
        let look = |clock: &mut Clock| sdk.into_iter().for_each(|sdk| clock.look(&sdk));
        let (clock, recorder) = (&mut self.clock, self.recorder);
        self.present.times((start, end), clock, nanos, look, recorder).is_some()
    }
}

#[cfg(test)]
mod tests;
