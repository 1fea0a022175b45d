//! Device activities of our own recordings: one `GpuRenderStageEvent` each.
//!
//! A render stage carries its duration, so activities of one queue may overlap (readers
//! open lanes), and its `event_id`, by which readers draw arrows from the call that asked
//! for it, whichever comes first in the file. What many activities share is said once per
//! sequence: queues and stages (one table, `gpu_specifications`), contexts, kernels, names
//! of arguments.
//!
//! Readers take `event_id` and context numbers for global to the machine and queue numbers
//! for global together with the queue's name: whoever calls this makes them differ between
//! processes.
//!
//! Here is who gets which number and what was said before; how it is written is in
//! [`super::stage`].

use std::collections::HashMap;

use super::event::{Arg, Name, Value};
use super::inventory::{Device, devices};
use super::sequence::Sequence;
use super::stage::{ContextEntry, KernelEntry, RenderStage, StageEntry};
use super::text::Strings;
use crate::StrId;
use crate::device::{GpuApi, Stage};

/// Numbers of `gpu_specifications` below this are stages; queues start here.
const FIRST_QUEUE: u32 = 16;
/// `RenderStageCategory`.
const COMPUTE: u64 = 2;

/// A queue of a device, in a context of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue<'a> {
    /// Its number within this sequence's process, dense from 0.
    pub number: u32,
    /// What viewers show; they sort by it and merge equal ones.
    pub name: &'a [u8],
    /// A sentence about it.
    pub description: &'a [u8],
    /// The context's number, different for every (process, context) of the trace.
    pub context: u32,
    /// The process.
    pub pid: u32,
    /// The interface.
    pub api: GpuApi,
}

/// A kernel: what all its launches share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// Its full name.
    pub name: StrId,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory, in bytes per block.
    pub shared: u32,
}

/// How often a kernel runs at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks in the grid.
    pub grid: [u32; 3],
    /// Threads in a block.
    pub block: [u32; 3],
}

/// Work that a device did.
#[derive(Clone, Copy, Debug)]
pub struct Activity<'a> {
    /// When it began, in nanoseconds of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// How long it took, in nanoseconds.
    pub duration: u64,
    /// What arrows to it name; several may share one.
    pub event_id: u64,
    /// Index of the device in the inventory.
    pub gpu: u32,
    /// Where it ran.
    pub queue: Queue<'a>,
    /// What it was.
    pub stage: Stage,
    /// What viewers show.
    pub name: Name<'a>,
    /// The kernel, if it was one.
    pub kernel: Option<Kernel>,
    /// How it was launched, if it was a kernel.
    pub launch: Option<Launch>,
    /// Further facts.
    pub args: &'a [Arg<'a>],
}

/// What a sequence has said about devices.
#[derive(Debug, Default)]
pub(super) struct GpuTables {
    /// Stages and queues, by number.
    specifications: Vec<bool>,
    contexts: Vec<u32>,
    kernels: HashMap<Kernel, u32>,
    pub(super) arg_names: super::sequence::Iids,
    /// The kernel before, and its number: launches come in runs.
    last_kernel: Option<(Kernel, u32)>,
}

impl GpuTables {
    pub(super) fn clear(&mut self) {
        self.specifications.clear();
        self.contexts.clear();
        self.kernels.clear();
        self.arg_names.clear();
        self.last_kernel = None;
    }

    /// Whether this is the first use of a specification.
    fn is_new(&mut self, number: u32) -> bool {
        let index = number as usize;
        if self.specifications.len() <= index {
            self.specifications.resize(index + 1, false);
        }
        !std::mem::replace(&mut self.specifications[index], true)
    }
}

impl Sequence {
    /// Appends a device activity. The sequence must have been started.
    pub fn activity(&mut self, out: &mut Vec<u8>, strings: &impl Strings, activity: &Activity<'_>) {
        let queue = &activity.queue;
        self.introduce_queue(queue, activity.stage);
        let kernel = activity.kernel.map(|kernel| self.kernel_iid(strings, kernel));
        let stage = RenderStage {
            time: activity.time,
            duration: activity.duration,
            event_id: activity.event_id,
            gpu: activity.gpu.into(),
            context: Some(queue.context.into()),
            queue: (FIRST_QUEUE + queue.number).into(),
            stage: Some(activity.stage as u64),
            name: activity.name,
            kernel: kernel.map(u64::from),
            grid: activity.launch.map(|launch| launch.grid),
            block: activity.launch.map(|launch| launch.block),
            args: activity.args,
            ..RenderStage::default()
        };
        self.render_stage(out, strings, &stage);
    }

    fn introduce_queue(&mut self, queue: &Queue<'_>, stage: Stage) {
        if self.gpu.is_new(stage as u32) {
            let computes = matches!(stage, Stage::Kernel | Stage::Graph);
            let entry = StageEntry {
                number: stage as u64,
                name: stage.name().as_bytes(),
                description: &[],
                category: if computes { COMPUTE } else { 0 },
            };
            entry.write(&mut self.fresh);
        }
        let number = FIRST_QUEUE + queue.number;
        if self.gpu.is_new(number) {
            let entry = StageEntry {
                number: number.into(),
                name: queue.name,
                description: queue.description,
                category: COMPUTE,
            };
            entry.write(&mut self.fresh);
        }
        if !self.gpu.contexts.contains(&queue.context) {
            self.gpu.contexts.push(queue.context);
            let number = queue.context.into();
            let entry = ContextEntry { number, pid: queue.pid.into(), api: queue.api as u64 };
            entry.write(&mut self.fresh);
        }
    }

    fn kernel_iid(&mut self, strings: &impl Strings, kernel: Kernel) -> u32 {
        if let Some((last, iid)) = self.gpu.last_kernel
            && last == kernel
        {
            return iid;
        }
        let next = self.gpu.kernels.len() as u32 + 1;
        let iid = *self.gpu.kernels.entry(kernel).or_insert(next);
        self.gpu.last_kernel = Some((kernel, iid));
        if iid == next {
            let name = strings.text(kernel.name).bytes;
            let args =
                [("registers_per_thread", kernel.registers), ("shared_mem_static", kernel.shared)];
            let args = args.map(|(name, value)| Arg {
                name: Name::Bytes(name.as_bytes()),
                value: Value::U64(value.into()),
            });
            let entry = KernelEntry {
                number: iid.into(),
                name,
                demangled: name,
                architecture: &[],
                args: &args,
            };
            self.introduce_kernel(strings, &entry);
        }
        iid
    }
}

/// A device of the inventory.
#[derive(Clone, Debug, Default)]
pub struct Gpu<'a> {
    /// What viewers show.
    pub name: &'a [u8],
    /// Its model.
    pub model: &'a [u8],
    /// Who made it.
    pub vendor: &'a [u8],
    /// Its architecture.
    pub architecture: &'a [u8],
    /// 16 bytes that identify it, if known.
    pub uuid: &'a [u8],
    /// Its address on the bus.
    pub pci: &'a [u8],
    /// Further facts, as texts.
    pub facts: Vec<(&'a [u8], String)>,
}

/// States the devices of the machine, in the order of their indices. Comes before any
/// activity.
pub fn gpu_info(out: &mut Vec<u8>, sequence: u32, time: u64, gpus: &[Gpu<'_>]) {
    let device = |gpu| {
        let &Gpu { name, model, vendor, architecture, uuid, pci, ref facts } = gpu;
        Device { name, vendor, model, architecture, uuid, pci, facts }
    };
    let list: Vec<Device<'_>> = gpus.iter().map(device).collect();
    devices(out, sequence, time, &list);
}

/// Arrows between a host event and device work: fields of the event itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Correlation<'a> {
    /// `event_id`s of work that the event asked for.
    pub launched: &'a [u64],
    /// `event_id`s of work that it waited for.
    pub waited: &'a [u64],
    /// By which interface.
    pub api: GpuApi,
}
