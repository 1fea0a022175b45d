//! Device activities of any origin: one `GpuRenderStageEvent` each, and the tables it refers
//! to. Traces that are converted are written with these; what we record ourselves goes through
//! [`super::Activity`], which knows less and keeps the books.
//!
//! Queues, stages, contexts and kernels keep the numbers that their trace gave them. The
//! caller knows which of them a sequence has been told since its last restart, and gives
//! the others along with the first activity that refers to them.

use super::event::{Arg, Name, Value};
use super::message::Message;
use super::packet;
use super::sequence::{NAMES, Sequence, introduce};
use super::text::Strings;
use crate::StrId;
use crate::fields::{
    gpu_render_stage_event,
    gpu_render_stage_event::{compute_kernel_launch, dim3, extra_compute_arg, extra_data},
    interned_compute_kernel, interned_data,
    interned_gpu_render_stage_specification as specification, interned_graphics_context,
    trace_packet,
};

pub(super) use interned_data::{COMPUTE_ARG_NAMES as COMPUTE_ARGS, COMPUTE_KERNELS as KERNELS};

/// A queue or a stage: they share a table.
#[derive(Clone, Copy, Debug)]
pub struct StageEntry<'a> {
    /// Its number, not 0.
    pub number: u64,
    /// What viewers show.
    pub name: &'a [u8],
    /// A sentence about it; may be empty.
    pub description: &'a [u8],
    /// `RenderStageCategory`: 0 other, 1 graphics, 2 compute.
    pub category: u64,
}

/// A device context.
#[derive(Clone, Copy, Debug)]
pub struct ContextEntry {
    /// Its number, different for every context of the trace.
    pub number: u64,
    /// The kernel's id of its process.
    pub pid: i64,
    /// `InternedGraphicsContext.Api`.
    pub api: u64,
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelEntry<'a> {
    /// Its number, not 0.
    pub number: u64,
    /// Its symbol.
    pub name: &'a [u8],
    /// Its signature; may be empty.
    pub demangled: &'a [u8],
    /// The architecture it was compiled for; may be empty.
    pub architecture: &'a [u8],
    /// What all its launches have in common.
    pub args: &'a [Arg<'a>],
}

/// Work that a device did.
#[derive(Clone, Copy, Debug, Default)]
pub struct RenderStage<'a> {
    /// When it began, in nanoseconds of the trace's clock.
    pub time: u64,
    /// How long it took, in nanoseconds.
    pub duration: u64,
    /// What arrows to it name.
    pub event_id: u64,
    /// Index of the device in the inventory.
    pub gpu: i64,
    /// Number of its context.
    pub context: Option<u64>,
    /// Number of its queue.
    pub queue: u64,
    /// Number of its stage.
    pub stage: Option<u64>,
    /// What viewers show; none for the stage's name.
    pub name: Name<'a>,
    /// Number of its kernel.
    pub kernel: Option<u64>,
    /// Blocks of the launch, if known.
    pub grid: Option<[u32; 3]>,
    /// Threads in each block, if known.
    pub block: Option<[u32; 3]>,
    /// `event_id`s of activities that it waited for.
    pub waits: &'a [u64],
    /// Further facts: numbers and strings.
    pub args: &'a [Arg<'a>],
    /// More of them, encoded: `ExtraComputeArg`s as they stand in the launch.
    pub more_args: &'a [u8],
    /// Facts of any other type, as JSON text.
    pub nested: &'a [(StrId, String)],
    /// Fields of the event itself that only graphics has, by number.
    pub graphics: &'a [(u32, u64)],
    /// Queues and stages that the sequence has not been told yet,
    pub new_stages: &'a [StageEntry<'a>],
    /// contexts,
    pub new_contexts: &'a [ContextEntry],
    /// and kernels.
    pub new_kernels: &'a [KernelEntry<'a>],
}

impl StageEntry<'_> {
    pub(super) fn write(&self, fresh: &mut Vec<u8>) {
        Message::new(fresh).message(interned_data::GPU_SPECIFICATIONS, |e| {
            e.uint(specification::IID, self.number).text(specification::NAME, self.name);
            if !self.description.is_empty() {
                e.text(specification::DESCRIPTION, self.description);
            }
            if self.category != 0 {
                e.uint(specification::CATEGORY, self.category);
            }
        });
    }
}

impl ContextEntry {
    pub(super) fn write(&self, fresh: &mut Vec<u8>) {
        Message::new(fresh).message(interned_data::GRAPHICS_CONTEXTS, |e| {
            e.uint(interned_graphics_context::IID, self.number)
                .int(interned_graphics_context::PID, self.pid);
            if self.api != 0 {
                e.uint(interned_graphics_context::API, self.api);
            }
        });
    }
}

impl Sequence {
    /// Appends a device activity. The sequence must have been started.
    pub fn render_stage(
        &mut self,
        out: &mut Vec<u8>,
        strings: &impl Strings,
        stage: &RenderStage<'_>,
    ) {
        let start = out.len();
        let delta = self.advance(stage.time);
        stage.new_stages.iter().for_each(|entry| entry.write(&mut self.fresh));
        stage.new_contexts.iter().for_each(|entry| entry.write(&mut self.fresh));
        stage.new_kernels.iter().for_each(|entry| self.introduce_kernel(strings, entry));
        let mut fresh = std::mem::take(&mut self.fresh);
        let (besides, len) = self.take_besides();
        packet(out, |p| {
            p.uint(trace_packet::TIMESTAMP, delta)
                .uint(trace_packet::SEQUENCE_FLAGS, 2)
                .uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.id().into())
                .raw(&besides[..len]);
            p.message(trace_packet::GPU_RENDER_STAGE_EVENT, |event| {
                self.render_stage_event(event, &mut fresh, strings, stage)
            });
            if !fresh.is_empty() {
                p.bytes(trace_packet::INTERNED_DATA, &fresh);
            }
        });
        fresh.clear();
        self.fresh = fresh;
        self.count_bytes(out.len() - start);
    }

    /// Tells the sequence of a kernel. Names of its arguments that are new come behind it:
    /// what refers to them is read after all of a packet's tables.
    pub(super) fn introduce_kernel(&mut self, strings: &impl Strings, entry: &KernelEntry<'_>) {
        let mut fresh = std::mem::take(&mut self.fresh);
        let mut names = Vec::new();
        Message::new(&mut fresh).message(KERNELS, |e| {
            e.uint(interned_compute_kernel::IID, entry.number)
                .text(interned_compute_kernel::NAME, entry.name);
            for (field, text) in [
                (interned_compute_kernel::DEMANGLED_NAME, entry.demangled),
                (interned_compute_kernel::ARCH, entry.architecture),
            ] {
                if !text.is_empty() {
                    e.text(field, text);
                }
            }
            for arg in entry.args {
                e.message(interned_compute_kernel::ARGS, |a| {
                    self.compute_arg(a, &mut names, strings, arg)
                });
            }
        });
        fresh.append(&mut names);
        self.fresh = fresh;
    }

    fn render_stage_event(
        &mut self,
        event: &mut Message<'_>,
        fresh: &mut Vec<u8>,
        strings: &impl Strings,
        stage: &RenderStage<'_>,
    ) {
        event
            .uint(gpu_render_stage_event::EVENT_ID, stage.event_id)
            .uint(gpu_render_stage_event::DURATION, stage.duration);
        if let Some(context) = stage.context {
            event.uint(gpu_render_stage_event::CONTEXT, context);
        }
        for (name, json) in stage.nested {
            event.message(gpu_render_stage_event::EXTRA_DATA, |extra| {
                extra
                    .text(extra_data::NAME, strings.text(*name).bytes)
                    .text(extra_data::VALUE, json.as_bytes());
            });
        }
        for (field, value) in stage.graphics {
            event.uint(*field, *value);
        }
        if stage.gpu != 0 {
            event.int(gpu_render_stage_event::GPU_ID, stage.gpu);
        }
        event.uint(gpu_render_stage_event::HW_QUEUE_IID, stage.queue);
        if let Some(number) = stage.stage {
            event.uint(gpu_render_stage_event::STAGE_IID, number);
        }
        match stage.name {
            Name::Id(StrId::NONE) => {}
            Name::Id(id) => {
                let iid = match self.names.get(id) {
                    0 => introduce(&mut self.names, fresh, NAMES, strings, id),
                    iid => iid,
                };
                event.uint(gpu_render_stage_event::NAME_IID, iid.into());
            }
            Name::Bytes(bytes) => {
                event.text(gpu_render_stage_event::NAME, bytes);
            }
        }
        for id in stage.waits {
            event.uint(gpu_render_stage_event::EVENT_WAIT_IDS, *id);
        }
        if let Some(kernel) = stage.kernel {
            event.uint(gpu_render_stage_event::KERNEL_IID, kernel);
        }
        let args = stage.args.len() + stage.more_args.len();
        if stage.grid.is_none() && stage.block.is_none() && args == 0 {
            return;
        }
        event.message(gpu_render_stage_event::LAUNCH, |launch| {
            for (field, size) in [
                (compute_kernel_launch::GRID_SIZE, stage.grid),
                (compute_kernel_launch::WORKGROUP_SIZE, stage.block),
            ] {
                if let Some([x, y, z]) = size {
                    launch.message(field, |dim| {
                        dim.uint(dim3::X, x.into()).uint(dim3::Y, y.into()).uint(dim3::Z, z.into());
                    });
                }
            }
            for arg in stage.args {
                launch.message(compute_kernel_launch::ARGS, |a| {
                    self.compute_arg(a, fresh, strings, arg)
                });
            }
            launch.encoded(stage.more_args);
        });
    }

    /// An `ExtraComputeArg`.
    pub(super) fn compute_arg(
        &mut self,
        to: &mut Message<'_>,
        fresh: &mut Vec<u8>,
        strings: &impl Strings,
        arg: &Arg<'_>,
    ) {
        match arg.name {
            Name::Id(id) => {
                let iid = match self.gpu.arg_names.get(id) {
                    0 => introduce(&mut self.gpu.arg_names, fresh, COMPUTE_ARGS, strings, id),
                    iid => iid,
                };
                to.uint(extra_compute_arg::NAME_IID, iid.into())
            }
            Name::Bytes(bytes) => to.text(extra_compute_arg::NAME, bytes),
        };
        match arg.value {
            Value::Bool(b) => to.uint(extra_compute_arg::UINT_VALUE, b.into()),
            Value::I64(n) => to.int(extra_compute_arg::INT_VALUE, n),
            Value::U64(n) | Value::Pointer(n) => to.uint(extra_compute_arg::UINT_VALUE, n),
            Value::F64(x) => to.double(extra_compute_arg::DOUBLE_VALUE, x),
            Value::Str(id) => to.text(extra_compute_arg::STRING_VALUE, strings.text(id).bytes),
            Value::Bytes(bytes) => to.text(extra_compute_arg::STRING_VALUE, bytes),
            // An activity's arguments are flat: see `RenderStage::nested`.
            Value::Null | Value::Json(_) => to,
            Value::List(_) | Value::Dict(_) | Value::Tree(_) => to,
        };
    }
}
