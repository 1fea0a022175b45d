//! Device activities: one `GpuRenderStageEvent` each.
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

use std::collections::HashMap;

use super::event::{Arg, Name, Value};
use super::message::Message;
use super::packet;
use super::sequence::{NAMES, Sequence, introduce};
use super::text::Strings;
use crate::StrId;
use crate::device::{GpuApi, Stage};

/// Numbers of `gpu_specifications` below this are stages; queues start here.
const FIRST_QUEUE: u32 = 16;
/// Fields of `InternedData`.
const CONTEXTS: u32 = 23;
const SPECIFICATIONS: u32 = 24;
const KERNELS: u32 = 1000;
const COMPUTE_ARGS: u32 = 1001;
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
    arg_names: super::sequence::Iids,
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
        let start = out.len();
        let delta = self.advance(activity.time);
        let mut fresh = std::mem::take(&mut self.fresh);
        packet(out, |p| {
            p.uint(8, delta).uint(13, 2).uint(10, self.id().into());
            p.message(53, |e| self.stage_event(e, &mut fresh, strings, activity));
            if !fresh.is_empty() {
                p.bytes(12, &fresh);
            }
        });
        fresh.clear();
        self.fresh = fresh;
        self.count_bytes(out.len() - start);
    }

    fn stage_event(
        &mut self,
        event: &mut Message<'_>,
        fresh: &mut Vec<u8>,
        strings: &impl Strings,
        activity: &Activity<'_>,
    ) {
        let queue = &activity.queue;
        self.introduce_queue(fresh, queue, activity.stage);
        event.uint(1, activity.event_id).uint(2, activity.duration);
        event.uint(5, queue.context.into());
        if activity.gpu != 0 {
            event.uint(11, activity.gpu.into());
        }
        event.uint(13, (FIRST_QUEUE + queue.number).into()).uint(14, activity.stage as u64);
        match activity.name {
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
        if let Some(kernel) = activity.kernel {
            event.uint(19, self.kernel_iid(fresh, strings, kernel).into());
        }
        if activity.launch.is_none() && activity.args.is_empty() {
            return;
        }
        event.message(21, |launch| {
            if let Some(Launch { grid, block }) = activity.launch {
                for (field, size) in [(1, grid), (2, block)] {
                    launch.message(field, |d| {
                        d.uint(1, size[0].into()).uint(2, size[1].into()).uint(3, size[2].into());
                    });
                }
            }
            for arg in activity.args {
                launch.message(3, |a| self.compute_arg(a, fresh, strings, arg));
            }
        });
    }

    fn introduce_queue(&mut self, fresh: &mut Vec<u8>, queue: &Queue<'_>, stage: Stage) {
        if self.gpu.is_new(stage as u32) {
            Message::new(fresh).message(SPECIFICATIONS, |s| {
                s.uint(1, stage as u64).text(2, stage.name().as_bytes());
                if matches!(stage, Stage::Kernel | Stage::Graph) {
                    s.uint(4, COMPUTE);
                }
            });
        }
        if self.gpu.is_new(FIRST_QUEUE + queue.number) {
            Message::new(fresh).message(SPECIFICATIONS, |s| {
                s.uint(1, (FIRST_QUEUE + queue.number).into()).text(2, queue.name);
                s.text(3, queue.description).uint(4, COMPUTE);
            });
        }
        if !self.gpu.contexts.contains(&queue.context) {
            self.gpu.contexts.push(queue.context);
            Message::new(fresh).message(CONTEXTS, |c| {
                c.uint(1, queue.context.into()).uint(2, queue.pid.into());
                if queue.api != GpuApi::Unsaid {
                    c.uint(3, queue.api as u64);
                }
            });
        }
    }

    fn kernel_iid(&mut self, fresh: &mut Vec<u8>, strings: &impl Strings, kernel: Kernel) -> u32 {
        if let Some((last, iid)) = self.gpu.last_kernel
            && last == kernel
        {
            return iid;
        }
        let next = self.gpu.kernels.len() as u32 + 1;
        let iid = *self.gpu.kernels.entry(kernel).or_insert(next);
        self.gpu.last_kernel = Some((kernel, iid));
        if iid == next {
            Message::new(fresh).message(KERNELS, |k| {
                let name = strings.text(kernel.name).bytes;
                k.uint(1, iid.into()).text(2, name).text(3, name);
                let facts = [
                    ("registers_per_thread", kernel.registers),
                    ("shared_mem_static", kernel.shared),
                ];
                for (name, value) in facts {
                    k.message(5, |a| {
                        a.text(2, name.as_bytes()).uint(4, value.into());
                    });
                }
            });
        }
        iid
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

/// A device of the inventory.
#[derive(Clone, Debug, Default)]
pub struct Gpu<'a> {
    /// What viewers show.
    pub name: &'a [u8],
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
    packet(out, |p| {
        p.uint(10, sequence.into()).uint(8, time).uint(58, super::sequence::BOOTTIME);
        p.message(128, |info| {
            for gpu in gpus {
                info.message(1, |g| {
                    let texts =
                        [(1, gpu.name), (2, gpu.vendor), (3, gpu.name), (4, gpu.architecture)];
                    for (field, text) in texts {
                        g.text(field, text);
                    }
                    g.bytes(5, gpu.uuid).text(7, gpu.pci);
                    for (key, value) in &gpu.facts {
                        g.message(6, |f| {
                            f.text(1, key).text(2, value.as_bytes());
                        });
                    }
                });
            }
        });
    });
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
