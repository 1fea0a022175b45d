//! PTI's records of devices become ours.

use std::collections::HashMap;
use std::ffi::c_char;

use kymograph_protos::device::{DeviceSlot, GpuApi, Stage, Vendor};
use kymograph_protos::record::NANOS;
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::calls::Calls;
use super::keys::Keys;
use super::launches::Launches;
use super::layout::{COPY, FILL, Fields, KERNEL, PEER_COPY};
use super::levelzero::{self, Device};
use super::names::{self, Texts};
use super::sys::{NO_SYCL_QUEUE, Pti, kind};
use crate::device::args::Args;
use crate::device::names::INTEL;
use crate::device::present::Present;
use crate::device::ranges::Ranges;
use crate::device::raw::Raw;
use crate::device::realtime::Realtime;
use crate::device::sample;

/// External ids that wait for their activities.
const MAX_EXTERNAL: usize = 1 << 16;

/// What was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kernels: u64,
    pub(crate) copies: u64,
    pub(crate) fills: u64,
    pub(crate) calls: u64,
    pub(crate) waits: u64,
    pub(crate) collectives: u64,
    pub(crate) overheads: u64,
    /// Records of kinds that are not read.
    pub(crate) skipped: u64,
}

/// See the module.
pub(crate) struct Decoder {
    pub(crate) recorder: &'static dyn ColdRecorder,
    pub(crate) counts: Counts,
    pub(crate) clock: Realtime,
    pub(crate) present: Present,
    pub(super) keys: Keys,
    pub(super) texts: Texts,
    pub(super) all_args: bool,
    /// Whether all kinds of work are recorded.
    pub(super) all_work: bool,
    pub(super) calls: Calls,
    pub(super) launches: Launches,
    pub(super) ranges: Ranges,
    devices: Vec<Device>,
    queues: HashMap<QueueKey, u32>,
    /// Numbers of queues that only Level Zero knows, by device.
    nameless: HashMap<u32, u32>,
    contexts: HashMap<u64, u32>,
    external: HashMap<u32, u64>,
    last_queue: Option<(QueueKey, u32)>,
    last_device: Option<([u8; 16], u32)>,
    /// The device of the activity at hand.
    here: u32,
    /// Names of copies and fills, by kinds of memory.
    names: HashMap<[u32; 3], StrId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct QueueKey {
    device: u32,
    /// SYCL's number.
    sycl: Option<u64>,
    /// Level Zero's handle, where SYCL has none.
    handle: u64,
}

impl Decoder {
    pub(crate) fn new(
        recorder: &'static dyn ColdRecorder,
        clock: Realtime,
        devices: Vec<Device>,
        all_args: bool,
    ) -> Decoder {
        Decoder {
            recorder,
            counts: Counts::default(),
            clock,
            present: Present::default(),
            keys: Keys::new(recorder),
            texts: Texts::default(),
            all_args,
            all_work: false,
            calls: Calls::default(),
            launches: Launches::default(),
            ranges: Ranges::new(recorder, super::calls::OURS),
            devices,
            queues: HashMap::new(),
            nameless: HashMap::new(),
            contexts: HashMap::new(),
            external: HashMap::new(),
            last_queue: None,
            last_device: None,
            here: 0,
            names: HashMap::new(),
        }
    }

    /// All kinds of work are recorded: what is missing is counted.
    pub(crate) fn expect_all_work(&mut self) {
        self.all_work = true;
    }

    /// Calls of SYCL whose work was never reported.
    pub(crate) fn missing(&self) -> u64 {
        self.launches.missing()
    }

    /// One record.
    ///
    /// # Safety
    /// `raw` is a record as PTI wrote it: the names it points to are C strings, which PTI
    /// keeps.
    pub(crate) unsafe fn record(&mut self, raw: Raw<'_>) {
        sample::record(self.recorder, INTEL.key, raw.u32(0), raw);
        // SAFETY: the caller's promise.
        unsafe {
            match raw.u32(0) {
                kind::KERNEL => self.kernel(raw),
                kind::COPY => self.copy(raw, &COPY),
                kind::PEER_COPY => self.copy(raw, &PEER_COPY),
                kind::FILL => self.fill(raw),
                kind::RUNTIME_API | kind::DRIVER_API => self.call(raw),
                kind::SYNCHRONIZATION => self.wait(raw),
                kind::COMMUNICATION => self.collective(raw),
                kind::OVERHEAD => self.overhead(raw),
                kind::EXTERNAL_CORRELATION => {
                    if self.external.len() >= MAX_EXTERNAL {
                        self.external.clear();
                    }
                    self.external.insert(raw.u32(4), raw.u64(8));
                }
                _ => self.counts.skipped += 1,
            }
        }
    }

    /// pti_view_record_kernel and _v2.
    unsafe fn kernel(&mut self, raw: Raw<'_>) {
        self.counts.kernels += 1;
        let mut args = Args::new();
        args.slot(self.place(raw, &KERNEL, Stage::Kernel).extras());
        let text = raw.u64(KERNEL.name) as *const c_char;
        // SAFETY: the caller's promise.
        let (name, file) = unsafe {
            let name = self.texts.id(text, self.recorder, names::kernel);
            let file = raw.u64(32) as *const c_char;
            (name, self.texts.id(file, self.recorder, names::plain))
        };
        if !file.is_none() {
            args.push(Extra::new(self.keys.source_file, ArgType::Str, file.0.into()));
            args.unsigned(self.keys.source_line, raw.u64(40));
        }
        self.queue_args(&mut args, raw, &KERNEL);
        if self.all_args {
            args.unsigned(self.keys.kernel_id, raw.u64(KERNEL.id));
            self.time_arg(&mut args, self.keys.sycl_begin, raw.u64(128));
            self.time_arg(&mut args, self.keys.sycl_enqueue, raw.u64(136));
            args.unsigned(self.keys.sycl_node, raw.u64(144));
            args.unsigned(self.keys.sycl_invocation, raw.u32(160));
            if raw.has(176, 8) {
                args.unsigned(self.keys.engine, raw.u32(176));
            }
        }
        let name = if name.is_none() { self.keys.intern("<unknown>") } else { name };
        self.activity(raw, &KERNEL, name, &mut args);
    }

    /// pti_view_record_memory_copy, .._p2p and their _v2.
    unsafe fn copy(&mut self, raw: Raw<'_>, fields: &Fields) {
        self.counts.copies += 1;
        let mut args = Args::new();
        args.slot(self.place(raw, fields, Stage::MemoryTransfer).extras());
        let bytes = raw.u64(fields.submit + 8);
        self.bytes(&mut args, raw, fields, bytes);
        if fields.uuid == PEER_COPY.uuid {
            let (from, to) = (self.device(uuid(raw, 72)), self.device(uuid(raw, 88)));
            args.unsigned(self.keys.from_device, from);
            args.unsigned(self.keys.to_device, to);
        }
        let kinds = [raw.u32(4), raw.u32(8), raw.u32(12)];
        let pti = self.calls.pti;
        let name = self.name(kinds, |[copy, from, to]| {
            let (from, to) = (memory(pti, from), memory(pti, to));
            let function = pti.and_then(|pti| pti.copy_name);
            let copy = names::by_pti(function, copy, || names::copy(copy));
            format!("Memcpy {copy} ({from} -> {to})")
        });
        // SAFETY: the caller's promise.
        unsafe { self.memory_args(&mut args, raw, fields) };
        self.activity(raw, fields, name, &mut args);
    }

    /// pti_view_record_memory_fill and _v2.
    unsafe fn fill(&mut self, raw: Raw<'_>) {
        self.counts.fills += 1;
        let mut args = Args::new();
        args.slot(self.place(raw, &FILL, Stage::MemorySet).extras());
        self.bytes(&mut args, raw, &FILL, raw.u64(112));
        args.unsigned(self.keys.value, raw.u64(120));
        let pti = self.calls.pti;
        let name = self.name([u32::MAX, raw.u32(4), 0], |[_, kind, _]| {
            format!("Memset ({})", memory(pti, kind))
        });
        // SAFETY: the caller's promise.
        unsafe { self.memory_args(&mut args, raw, &FILL) };
        self.activity(raw, &FILL, name, &mut args);
    }

    /// The name of a copy or fill, which `make` makes the first time.
    fn name(&mut self, kinds: [u32; 3], make: impl FnOnce([u32; 3]) -> String) -> StrId {
        if let Some(name) = self.names.get(&kinds) {
            return *name;
        }
        let name = self.keys.intern(make(kinds));
        // A number that lies must not cost memory.
        if self.names.len() < 1024 {
            self.names.insert(kinds, name);
        }
        name
    }

    fn bytes(&self, args: &mut Args, raw: Raw<'_>, fields: &Fields, bytes: u64) {
        args.unsigned(self.keys.bytes, bytes);
        let (start, end) = (raw.u64(fields.start), raw.u64(fields.end));
        if self.all_args && end > start {
            args.float(self.keys.bandwidth, bytes as f64 / (end - start) as f64);
        }
    }

    unsafe fn memory_args(&mut self, args: &mut Args, raw: Raw<'_>, fields: &Fields) {
        self.queue_args(args, raw, fields);
        if self.all_args {
            let call = raw.u64(fields.name) as *const c_char;
            // SAFETY: the caller's promise.
            let call = unsafe { self.texts.id(call, self.recorder, names::plain) };
            if !call.is_none() {
                args.push(Extra::new(self.keys.l0_call, ArgType::Str, call.0.into()));
            }
            args.unsigned(self.keys.memory_operation, raw.u64(fields.id));
        }
    }

    /// Which queue it was, and what follows from that.
    fn queue_args(&self, args: &mut Args, raw: Raw<'_>, fields: &Fields) {
        let sycl = raw.u64(fields.sycl_queue);
        if sycl != NO_SYCL_QUEUE {
            args.unsigned(self.keys.sycl_queue, sycl);
        }
        if !self.all_args {
            return;
        }
        let handle = |text: u64| self.keys.intern(format!("{text:#018x}")).0;
        let (queue, context) = (raw.u64(fields.queue), raw.u64(fields.context));
        args.push(Extra::new(self.keys.l0_queue, ArgType::Str, handle(queue).into()));
        args.push(Extra::new(self.keys.context, ArgType::Str, handle(context).into()));
        args.signed(self.keys.device, self.here.into());
        args.unsigned(self.keys.correlation, raw.u32(fields.correlation));
        self.time_arg(args, self.keys.appended, raw.u64(fields.append));
        self.time_arg(args, self.keys.submitted, raw.u64(fields.submit));
    }

    /// A further time of an activity, in nanoseconds of the trace.
    fn time_arg(&self, args: &mut Args, key: StrId, time: u64) {
        if time != 0 {
            args.unsigned(key, self.clock.nanos(time));
        }
    }

    fn activity(&mut self, raw: Raw<'_>, fields: &Fields, site: StrId, args: &mut Args) {
        let correlation = raw.u32(fields.correlation);
        self.launches.done(correlation);
        let (start, end) = (raw.u64(fields.start), raw.u64(fields.end));
        let Some((start, end)) = self.times(start, end) else { return };
        if let Some(id) = self.external.get(&correlation) {
            args.unsigned(self.keys.external, *id);
        }
        let head = Record {
            time: start,
            other: end,
            arg: Vendor::Intel.call(correlation.into()),
            site,
            kind: Kind::Device as u8,
            tag: NANOS,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
    }

    /// The times of an activity, if it has some that can be. What has none is counted: a made-up
    /// time would be worse.
    pub(super) fn times(&mut self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (clock, recorder) = (&mut self.clock, self.recorder);
        self.present.times((start, end), clock, Realtime::nanos, Realtime::look, recorder)
    }

    /// Where an activity ran.
    fn place(&mut self, raw: Raw<'_>, fields: &Fields, stage: Stage) -> DeviceSlot {
        let device = self.device(uuid(raw, fields.uuid));
        self.here = device;
        let sycl = Some(raw.u64(fields.sycl_queue)).filter(|id| *id != NO_SYCL_QUEUE);
        let handle = if sycl.is_some() { 0 } else { raw.u64(fields.queue) };
        let key = QueueKey { device, sycl, handle };
        let queue = match self.last_queue {
            Some((last, queue)) if last == key => queue,
            _ => {
                let known = self.queues.get(&key).copied();
                let queue = known.unwrap_or_else(|| self.introduce(key, raw.u64(fields.context)));
                self.last_queue = Some((key, queue));
                queue
            }
        };
        let (queue, gpu) = (Vendor::Intel.queue(queue), Vendor::Intel.gpu(device));
        DeviceSlot { queue, gpu, stage: stage as u8, ..DeviceSlot::default() }
    }

    /// The place in the inventory of the device with this UUID.
    fn device(&mut self, uuid: [u8; 16]) -> u32 {
        if let Some((last, index)) = self.last_device
            && last == uuid
        {
            return index;
        }
        let known = self.devices.iter().position(|device| device.uuid == uuid);
        let index = known.unwrap_or_else(|| self.discover(uuid)) as u32;
        self.last_device = Some((uuid, index));
        index
    }

    /// A device that Level Zero did not list: PTI knows it by another name.
    #[cold]
    fn discover(&mut self, uuid: [u8; 16]) -> usize {
        let name = "Intel GPU".to_owned();
        let device = Device { uuid, name, units: 0, clock_mhz: 0, part: false };
        let index = self.devices.len();
        levelzero::state(self.recorder, index as u32, &device);
        self.devices.push(device);
        index
    }

    /// The first activity of a queue: describes it. Names sort as numbers do.
    #[cold]
    fn introduce(&mut self, key: QueueKey, context: u64) -> u32 {
        let number = self.queues.len() as u32;
        self.queues.insert(key, number);
        let next = self.contexts.len() as u32;
        let context = *self.contexts.entry(context).or_insert(next);
        let (name, stream) = match key.sycl {
            Some(id) => (format!("Stream {id:02}"), id),
            None => {
                let next = self.nameless.entry(key.device).or_default();
                *next += 1;
                (format!("Level Zero queue {:02}", *next - 1), u64::from(*next - 1))
            }
        };
        let mut args = Args::new();
        args.unsigned(self.keys.device, key.device);
        args.unsigned(self.keys.context, context);
        args.unsigned(self.keys.stream, stream);
        args.unsigned(self.keys.api, GpuApi::Unsaid as u64);
        let head = Record {
            other: Vendor::Intel.queue(number).into(),
            site: self.keys.intern(&name),
            kind: Kind::Queue as u8,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
        number
    }
}

fn memory(pti: Option<&Pti>, kind: u32) -> String {
    names::by_pti(pti.and_then(|pti| pti.memory_name), kind, || names::memory(kind))
}

fn uuid(raw: Raw<'_>, at: usize) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&raw.u64(at).to_ne_bytes());
    uuid[8..].copy_from_slice(&raw.u64(at + 8).to_ne_bytes());
    uuid
}
