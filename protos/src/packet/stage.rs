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

/// Fields of `InternedData`.
const CONTEXTS: u32 = 23;
const SPECIFICATIONS: u32 = 24;
pub(super) const KERNELS: u32 = 1000;
pub(super) const COMPUTE_ARGS: u32 = 1001;

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
        Message::new(fresh).message(SPECIFICATIONS, |e| {
            e.uint(1, self.number).text(2, self.name);
            if !self.description.is_empty() {
                e.text(3, self.description);
            }
            if self.category != 0 {
                e.uint(4, self.category);
            }
        });
    }
}

impl ContextEntry {
    pub(super) fn write(&self, fresh: &mut Vec<u8>) {
        Message::new(fresh).message(CONTEXTS, |e| {
            e.uint(1, self.number).int(2, self.pid);
            if self.api != 0 {
                e.uint(3, self.api);
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
        packet(out, |p| {
            p.uint(8, delta).uint(13, 2).uint(10, self.id().into());
            p.message(53, |event| self.render_stage_event(event, &mut fresh, strings, stage));
            if !fresh.is_empty() {
                p.bytes(12, &fresh);
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
            e.uint(1, entry.number).text(2, entry.name);
            for (field, text) in [(3, entry.demangled), (4, entry.architecture)] {
                if !text.is_empty() {
                    e.text(field, text);
                }
            }
            for arg in entry.args {
                e.message(5, |a| self.compute_arg(a, &mut names, strings, arg));
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
        event.uint(1, stage.event_id).uint(2, stage.duration);
        if let Some(context) = stage.context {
            event.uint(5, context);
        }
        for (name, json) in stage.nested {
            event.message(6, |extra| {
                extra.text(1, strings.text(*name).bytes).text(2, json.as_bytes());
            });
        }
        for (field, value) in stage.graphics {
            event.uint(*field, *value);
        }
        if stage.gpu != 0 {
            event.int(11, stage.gpu);
        }
        event.uint(13, stage.queue);
        if let Some(number) = stage.stage {
            event.uint(14, number);
        }
        match stage.name {
            Name::Id(StrId::NONE) => {}
            Name::Id(id) => {
                let iid = match self.names.get(id) {
                    0 => introduce(&mut self.names, fresh, NAMES, strings, id),
                    iid => iid,
                };
                event.uint(20, iid.into());
            }
            Name::Bytes(bytes) => {
                event.text(17, bytes);
            }
        }
        for id in stage.waits {
            event.uint(18, *id);
        }
        if let Some(kernel) = stage.kernel {
            event.uint(19, kernel);
        }
        let args = stage.args.len() + stage.more_args.len();
        if stage.grid.is_none() && stage.block.is_none() && args == 0 {
            return;
        }
        event.message(21, |launch| {
            for (field, size) in [(1, stage.grid), (2, stage.block)] {
                if let Some([x, y, z]) = size {
                    launch.message(field, |dim| {
                        dim.uint(1, x.into()).uint(2, y.into()).uint(3, z.into());
                    });
                }
            }
            for arg in stage.args {
                launch.message(3, |a| self.compute_arg(a, fresh, strings, arg));
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
                to.uint(1, iid.into())
            }
            Name::Bytes(bytes) => to.text(2, bytes),
        };
        match arg.value {
            Value::Bool(b) => to.uint(4, b.into()),
            Value::I64(n) => to.int(3, n),
            Value::U64(n) | Value::Pointer(n) => to.uint(4, n),
            Value::F64(x) => to.double(5, x),
            Value::Str(id) => to.text(6, strings.text(id).bytes),
            Value::Bytes(bytes) => to.text(6, bytes),
            // An activity's arguments are flat: see `RenderStage::nested`.
            Value::Null | Value::Json(_) => to,
            Value::List(_) | Value::Dict(_) | Value::Tree(_) => to,
        };
    }
}
