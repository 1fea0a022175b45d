//! Device activity and inventory.

use hashbrown::HashMap;
use kymograph_protos::device::Stage as Known;
use kymograph_protos::fields::gpu_render_stage_event::{
    compute_kernel_launch, dim3, extra_compute_arg,
};
use kymograph_protos::fields::{
    gpu_info, gpu_info::gpu, gpu_render_stage_event, interned_compute_kernel, interned_data,
    interned_gpu_counter_descriptor, interned_gpu_render_stage_specification,
    interned_graphics_context,
};

use super::Reader;
use super::gpu_counters::descriptor_series;
use super::launch::{self, Maker};
use super::origin::Origin;
use super::property::{extra_fact, property};
use super::sequence::{Tables, iid, intern_text};
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{
    Activity, Api, Context, ContextId, Device, DeviceId, Dim3, EventRef, Kernel, KernelId, Launch,
    LaunchId, LaunchKind, LaunchLink, Nanos, Queue, QueueId, SeriesId, Stage, StageId, StageKind,
    StrId, StringTable, Trace, Value,
};

/// Rows of the hub, by what they say.
#[derive(Debug, Default)]
pub struct Gpu {
    devices: HashMap<(u32, i64), DeviceId>,
    queues: HashMap<Queue, QueueId>,
    contexts: HashMap<Context, ContextId>,
    stages: HashMap<Stage, StageId>,
    kernels: HashMap<Kernel, KernelId>,
    launches: HashMap<Launch, LaunchId>,
    /// Counters whose descriptor stands in the event, by device and Perfetto's id.
    pub(super) counters: HashMap<(DeviceId, u64), SeriesId>,
    pub(super) memory: HashMap<(DeviceId, i64), SeriesId>,
    pub(super) frequency: HashMap<DeviceId, SeriesId>,
}

impl Gpu {
    /// The device with this number; a new one if there is none.
    pub fn device(&mut self, trace: &mut Trace, machine: u32, number: i64) -> DeviceId {
        *self
            .devices
            .entry((machine, number))
            .or_insert_with(|| trace.devices.push(Device { machine, ..Device::new(number) }))
    }

    fn context(&mut self, trace: &mut Trace, tables: &Tables, iid: u64) -> ContextId {
        let unknown = Context { number: iid, pid: 0, api: Api::Unknown };
        let context = tables.contexts.get(iid).copied().unwrap_or(unknown);
        *self.contexts.entry(context).or_insert_with(|| trace.contexts.push(context))
    }

    fn queue(&mut self, trace: &mut Trace, queue: Queue) -> QueueId {
        *self.queues.entry(queue).or_insert_with(|| trace.queues.push(queue))
    }

    fn stage(&mut self, trace: &mut Trace, stage: Stage) -> StageId {
        *self.stages.entry(stage).or_insert_with(|| trace.stages.push(stage))
    }

    fn launch(&mut self, trace: &mut Trace, launch: Launch) -> LaunchId {
        *self.launches.entry(launch).or_insert_with(|| trace.launches.push(launch))
    }
}

/// A `GpuRenderStageEvent`'s references.
#[derive(Default)]
struct Refs {
    has_id: bool,
    gpu: i64,
    context: Option<u64>,
    queue: Option<u64>,
    stage: Option<u64>,
    kernel: Option<u64>,
    waits: Vec<u64>,
}

/// The stage of ranges that our writers put beside queues.
const OURS: Known = Known::Annotation;

/// Numbers that only graphics has, kept as arguments under trace_processor's names.
pub const GRAPHICS: [(u32, &str); 5] = [
    (gpu_render_stage_event::RENDER_TARGET_HANDLE, "render_target"),
    (gpu_render_stage_event::RENDER_PASS_HANDLE, "render_pass"),
    (gpu_render_stage_event::SUBMISSION_ID, "submission_id"),
    (gpu_render_stage_event::COMMAND_BUFFER_HANDLE, "command_buffer"),
    (gpu_render_stage_event::RENDER_PASS_INSTANCE_ID, "render_pass_instance_id"),
];

impl Reader {
    /// A `GpuRenderStageEvent` on the sequence in row `row`.
    pub(super) fn render_stage(
        &mut self,
        (row, machine): (usize, u32),
        time: i64,
        bytes: &[u8],
        origin: &Origin<'_>,
    ) {
        let mut refs = Refs::default();
        let mut launch = None;
        let mut name = StrId::NONE;
        let mut correlation = 0;
        let mut dur = 0;
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        let sequence = &self.sequences[row];
        let strings = &mut self.trace.strings;
        for (number, field) in Fields::new(bytes) {
            match number {
                gpu_render_stage_event::EVENT_ID => {
                    (correlation, refs.has_id) = (field.uint(), true)
                }
                gpu_render_stage_event::DURATION => {
                    dur = i64::try_from(field.uint()).unwrap_or(i64::MAX)
                }
                gpu_render_stage_event::CONTEXT => refs.context = Some(field.uint()),
                gpu_render_stage_event::EXTRA_DATA => entries.push(extra_fact(field, strings)),
                gpu_render_stage_event::GPU_ID => refs.gpu = i64::from(field.int() as i32),
                gpu_render_stage_event::HW_QUEUE_IID => refs.queue = Some(field.uint()),
                gpu_render_stage_event::STAGE_IID => refs.stage = Some(field.uint()),
                gpu_render_stage_event::NAME => name = intern_text(strings, field.bytes()),
                gpu_render_stage_event::EVENT_WAIT_IDS => refs.waits.extend(field.numbers()),
                gpu_render_stage_event::KERNEL_IID => refs.kernel = Some(field.uint()),
                gpu_render_stage_event::NAME_IID => match sequence.tables.names.get(field.uint()) {
                    Some(id) => name = *id,
                    None => self.oddities.missing_iids += 1,
                },
                gpu_render_stage_event::LAUNCH => {
                    let missing = &mut self.oddities.missing_iids;
                    launch = read_launch(field, &sequence.tables, strings, &mut entries, missing);
                }
                0 => self.oddities.damaged += 1,
                _ => match GRAPHICS.iter().find(|(n, _)| *n == number) {
                    Some((_, name)) if field.uint() != 0 => {
                        entries.push((strings.intern(name), Value::U64(field.uint())));
                    }
                    _ => {}
                },
            }
        }
        // For viewers only: they are read from tracks of their own.
        if refs.stage.is_some() && refs.stage == sequence.tables.annotation {
            self.trace.annotated = true;
            self.entries = entries;
            return;
        }
        launch::of_activity(&mut entries, &self.trace.strings, self.maker, correlation);
        let trace = &mut self.trace;
        let args = trace.args.add(&entries);
        self.entries = entries;
        if !refs.has_id {
            self.odd("device activity without an id, which viewers leave out");
        }
        let queue = self.queue_row(row, machine, &refs);
        let stage = refs.stage.and_then(|iid| self.stage_row(row, iid));
        let trace = &mut self.trace;
        let tables = &self.sequences[row].tables;
        let context = refs.context.map(|iid| self.gpu.context(trace, tables, iid));
        let kernel = refs.kernel.and_then(|iid| tables.kernels.get(iid).copied());
        if refs.kernel.is_some() && kernel.is_none() {
            self.oddities.missing_iids += 1;
        }
        let launch = launch.map(|launch| self.gpu.launch(trace, launch));
        let launch = launch.or(kernel.and_then(|(_, launch)| launch));
        let kernel = kernel.map(|(kernel, _)| kernel);
        let (start, dur) = (Nanos(time), Nanos(dur));
        let activity =
            Activity { queue, start, dur, name, stage, context, kernel, launch, correlation, args };
        let id = trace.activities.push(activity);
        trace.activities.set_position(id, self.position);
        trace.flows.links.extend(refs.waits.into_iter().map(|correlation| LaunchLink {
            event: EventRef::Activity(id),
            correlation,
            kind: LaunchKind::Wait,
            api: Api::Unknown,
        }));
        self.besides(origin, EventRef::Activity(id), time);
    }

    fn queue_row(&mut self, row: usize, machine: u32, refs: &Refs) -> QueueId {
        let number = refs.queue.unwrap_or(0);
        let key = (refs.gpu, number);
        if let Some(queue) = self.sequences[row].tables.queue_rows.get(&key) {
            return *queue;
        }
        let device = self.gpu.device(&mut self.trace, machine, refs.gpu);
        let spec = self.sequences[row].tables.stages.get(number).copied();
        if spec.is_none() {
            self.odd("device activity on an unknown queue, which viewers leave out");
        }
        let (name, description) = spec.map_or_else(Default::default, |s| (s.name, s.description));
        let queue = Queue { device, number, name, description };
        let queue = self.gpu.queue(&mut self.trace, queue);
        self.sequences[row].tables.queue_rows.insert(key, queue);
        queue
    }

    fn stage_row(&mut self, row: usize, iid: u64) -> Option<StageId> {
        let tables = &mut self.sequences[row].tables;
        if let Some(stage) = tables.stage_rows.get(iid) {
            return Some(*stage);
        }
        let Some(stage) = tables.stages.get(iid).copied() else {
            self.oddities.missing_iids += 1;
            return None;
        };
        let stage = self.gpu.stage(&mut self.trace, stage);
        self.sequences[row].tables.stage_rows.insert(iid, stage);
        Some(stage)
    }

    /// An entry of `InternedData` about devices; returns false if it is about something
    /// else. Kernels refer to other entries of the same packet and come after them.
    pub(super) fn intern_gpu(&mut self, row: usize, number: u32, field: Field<'_>) -> bool {
        let tables = &mut self.sequences[row].tables;
        let strings = &mut self.trace.strings;
        match number {
            interned_data::GRAPHICS_CONTEXTS => {
                let mut context = Context { number: iid(field), pid: 0, api: Api::Unknown };
                for (number, field) in field.fields() {
                    match number {
                        interned_graphics_context::PID => {
                            context.pid = i64::from(field.int() as i32)
                        }
                        interned_graphics_context::API => {
                            context.api = Api::from_number(field.uint())
                        }
                        _ => {}
                    }
                }
                tables.contexts.insert(context.number, context);
            }
            interned_data::GPU_SPECIFICATIONS => {
                let (name, description) = (StrId::NONE, StrId::NONE);
                let mut stage = Stage { name, description, kind: StageKind::Other };
                for (number, field) in field.fields() {
                    match number {
                        interned_gpu_render_stage_specification::NAME => {
                            stage.name = intern_text(strings, field.bytes())
                        }
                        interned_gpu_render_stage_specification::DESCRIPTION => {
                            stage.description = intern_text(strings, field.bytes())
                        }
                        interned_gpu_render_stage_specification::CATEGORY => {
                            stage.kind = match field.uint() {
                                1 => StageKind::Graphics,
                                2 => StageKind::Compute,
                                _ => StageKind::Other,
                            }
                        }
                        _ => {}
                    }
                }
                let said = (strings.get(stage.name), strings.get(stage.description));
                if said == (OURS.name(), OURS.description()) && self.maker != Maker::Other {
                    tables.annotation = Some(iid(field));
                }
                tables.stages.insert(iid(field), stage);
            }
            interned_data::COMPUTE_KERNELS => {
                let (kernel, launch) = self.read_kernel(row, field);
                let kernels = &mut self.gpu.kernels;
                let id = *kernels.entry(kernel).or_insert_with(|| self.trace.kernels.push(kernel));
                let launch = launch.map(|launch| self.gpu.launch(&mut self.trace, launch));
                self.sequences[row].tables.kernels.insert(iid(field), (id, launch));
            }
            interned_data::GPU_COUNTER_DESCRIPTORS => {
                let gpu = field
                    .fields()
                    .find(|(n, _)| *n == interned_gpu_counter_descriptor::GPU_ID)
                    .map_or(0, |(_, f)| f.int());
                let descriptor = field
                    .fields()
                    .find(|(n, _)| *n == interned_gpu_counter_descriptor::COUNTER_DESCRIPTOR);
                let device = self.gpu.device(&mut self.trace, 0, i64::from(gpu as i32));
                let series = descriptor.map_or_else(Vec::new, |(_, descriptor)| {
                    descriptor_series(&mut self.trace, device, descriptor)
                });
                self.sequences[row].tables.counters.insert(iid(field), series);
            }
            _ => return false,
        }
        true
    }

    fn read_kernel(&mut self, row: usize, field: Field<'_>) -> (Kernel, Option<Launch>) {
        let (mut name, mut demangled, mut architecture) = Default::default();
        let mut entries = Vec::new();
        let tables = &self.sequences[row].tables;
        let strings = &mut self.trace.strings;
        for (number, field) in field.fields() {
            match number {
                interned_compute_kernel::NAME => name = intern_text(strings, field.bytes()),
                interned_compute_kernel::DEMANGLED_NAME => {
                    demangled = intern_text(strings, field.bytes())
                }
                interned_compute_kernel::ARCH => architecture = intern_text(strings, field.bytes()),
                interned_compute_kernel::ARGS => {
                    let missing = &mut self.oddities.missing_iids;
                    entries.push(compute_arg(field, tables, strings, missing));
                }
                _ => {}
            }
        }
        let launch = launch::of_kernel(&mut entries, strings, self.maker);
        let args = self.trace.args.add(&entries);
        (Kernel { name, demangled, architecture, args }, launch)
    }

    /// A `GpuInfo`.
    pub(super) fn gpu_info(&mut self, machine: u32, bytes: &[u8]) {
        let gpus = Fields::new(bytes).filter(|(number, _)| *number == gpu_info::GPUS);
        for (number, (_, gpu)) in gpus.enumerate() {
            // A place that is another process's to describe.
            if gpu.bytes().is_empty() {
                continue;
            }
            let id = self.gpu.device(&mut self.trace, machine, number as i64);
            let trace = &mut self.trace;
            let mut extra = Vec::new();
            for (number, field) in gpu.fields() {
                let device = &mut trace.devices[id];
                match number {
                    gpu::NAME => device.name = intern_text(&mut trace.strings, field.bytes()),
                    gpu::VENDOR => device.vendor = intern_text(&mut trace.strings, field.bytes()),
                    gpu::MODEL => device.model = intern_text(&mut trace.strings, field.bytes()),
                    gpu::ARCHITECTURE => {
                        device.architecture = intern_text(&mut trace.strings, field.bytes())
                    }
                    gpu::UUID => device.uuid = field.bytes().try_into().ok(),
                    gpu::EXTRA_INFO => extra.push(property(field, &mut trace.strings)),
                    gpu::PCI_BDF => device.pci = intern_text(&mut trace.strings, field.bytes()),
                    _ => {}
                }
            }
            trace.devices[id].properties = trace.args.add(&extra);
        }
    }
}

fn read_launch(
    field: Field<'_>,
    tables: &Tables,
    strings: &mut StringTable,
    entries: &mut Vec<(StrId, Value)>,
    missing: &mut u64,
) -> Option<Launch> {
    let mut launch = Launch::default();
    for (number, field) in field.fields() {
        match number {
            compute_kernel_launch::GRID_SIZE => launch.grid = Some(dim3(field)),
            compute_kernel_launch::WORKGROUP_SIZE => launch.block = Some(dim3(field)),
            compute_kernel_launch::ARGS => {
                entries.push(compute_arg(field, tables, strings, missing))
            }
            _ => {}
        }
    }
    (launch != Launch::default()).then_some(launch)
}

fn dim3(field: Field<'_>) -> Dim3 {
    let mut dim = Dim3::default();
    for (number, field) in field.fields() {
        match number {
            dim3::X => dim.x = field.uint() as u32,
            dim3::Y => dim.y = field.uint() as u32,
            dim3::Z => dim.z = field.uint() as u32,
            _ => {}
        }
    }
    dim
}

/// An `ExtraComputeArg`.
fn compute_arg(
    field: Field<'_>,
    tables: &Tables,
    strings: &mut StringTable,
    missing: &mut u64,
) -> (StrId, Value) {
    let (mut name, mut value) = (StrId::NONE, Value::Null);
    let mut known = |id: Option<&StrId>| {
        id.copied().unwrap_or_else(|| {
            *missing += 1;
            StrId::NONE
        })
    };
    for (number, field) in field.fields() {
        match number {
            extra_compute_arg::NAME_IID => name = known(tables.compute_args.get(field.uint())),
            extra_compute_arg::NAME => name = intern_text(strings, field.bytes()),
            extra_compute_arg::INT_VALUE => value = Value::I64(field.int()),
            extra_compute_arg::UINT_VALUE => value = Value::U64(field.uint()),
            extra_compute_arg::DOUBLE_VALUE => value = Value::F64(field.double()),
            extra_compute_arg::STRING_VALUE => {
                value = Value::Str(intern_text(strings, field.bytes()))
            }
            extra_compute_arg::STRING_VALUE_IID => {
                value = Value::Str(known(tables.strings.get(field.uint())))
            }
            _ => {}
        }
    }
    (name, value)
}
