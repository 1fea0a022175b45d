//! Device activities of our own recordings: one `GpuRenderStageEvent` each.
//!
//! A render stage carries its duration, so activities of one queue may overlap (readers
//! open lanes), and its `event_id`, by which readers draw arrows from the call that asked
//! for it, whichever comes first in the file. What many activities share is said once per
//! sequence: queues and stages (one table, `gpu_specifications`), contexts, kernels, names
//! of arguments.
//!
//! Readers take `event_id` and context numbers for global to the machine and queue numbers
//! for global together with the queue's name: the caller makes them differ between
//! processes.
//!
//! This file gives numbers and knows what was stated before; how it is written is in
//! [`super::stage`], and what a launch states of itself in [`super::launch`].

use super::event::{Arg, Name};
use super::launch::Launches;
use super::sequence::Sequence;
use super::stage::{ContextEntry, RenderStage, StageEntry};
use super::text::Strings;
use crate::StrId;
use crate::device::{GpuApi, Stage};
use crate::fields::gpu_render_stage_event;

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
    /// What it is called.
    pub process: &'a [u8],
    /// What its vendor calls the queue.
    pub stream: u64,
    /// The interface.
    pub api: GpuApi,
}

/// A kernel: what all its launches share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kernel {
    /// Its full name.
    pub name: StrId,
    /// Its symbol; none if that is the same.
    pub symbol: StrId,
    /// Registers per thread.
    pub registers: u32,
    /// Static shared memory, in bytes per block.
    pub shared: u32,
}

/// How often a kernel runs at once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// The vendor's number of the call that asked for it.
    pub submission: u32,
    /// Index of the device in the inventory.
    pub gpu: u32,
    /// What its kernels are compiled for; may be empty.
    pub architecture: &'a [u8],
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

/// A range of the program, while a queue worked for it: in a row beside that of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Annotation<'a> {
    /// When the queue began, in nanoseconds of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// How long it worked, in nanoseconds.
    pub duration: u64,
    /// Index of the device in the inventory.
    pub gpu: u32,
    /// The row, which has a number of its own.
    pub row: Queue<'a>,
    /// What viewers show.
    pub name: Name<'a>,
}

/// What a sequence has said about devices.
#[derive(Debug, Default)]
pub(super) struct GpuTables {
    /// Stages and queues, by number.
    specifications: Vec<bool>,
    contexts: Vec<u32>,
    pub(super) arg_names: super::sequence::Iids,
    pub(super) launches: Launches,
    /// Kept for its memory.
    args: Vec<u8>,
}

impl GpuTables {
    pub(super) fn clear(&mut self) {
        self.specifications.clear();
        self.contexts.clear();
        self.arg_names.clear();
        self.launches.clear();
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
        let args = std::mem::take(&mut self.gpu.args);
        let told = self.tell_launch(strings, activity, args);
        let submission = [(gpu_render_stage_event::SUBMISSION_ID, activity.submission.into())];
        let stage = RenderStage {
            time: activity.time,
            duration: activity.duration,
            event_id: activity.event_id,
            gpu: activity.gpu.into(),
            context: Some(queue.context.into()),
            queue: (FIRST_QUEUE + queue.number).into(),
            stage: Some(activity.stage as u64),
            name: activity.name,
            kernel: told.kernel.map(u64::from),
            grid: told.launch.map(|launch| launch.grid),
            block: told.launch.map(|launch| launch.block),
            args: activity.args,
            more_args: &told.args,
            graphics: if submission[0].1 == 0 { &[] } else { &submission },
            ..RenderStage::default()
        };
        self.render_stage(out, strings, &stage);
        self.gpu.args = told.args;
    }

    /// Appends an annotation. The sequence must have been started. It has no arguments: those
    /// that say a device and a stream would put it among the work of that.
    pub fn gpu_annotation(
        &mut self,
        out: &mut Vec<u8>,
        strings: &impl Strings,
        annotation: &Annotation<'_>,
    ) {
        let Annotation { time, duration, gpu, row, name } = *annotation;
        self.introduce_queue(&row, Stage::Annotation);
        let stage = RenderStage {
            time,
            duration,
            gpu: gpu.into(),
            context: Some(row.context.into()),
            queue: (FIRST_QUEUE + row.number).into(),
            stage: Some(Stage::Annotation as u64),
            name,
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
                description: stage.description().as_bytes(),
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
                category: if stage == Stage::Annotation { 0 } else { COMPUTE },
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
}
