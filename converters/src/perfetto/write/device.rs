//! Devices and what they did.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use kymograph_protos::packet::{
    self, Arg, ContextEntry, Device, EventType, KernelEntry, Name, RenderStage, Sequence,
    StageEntry, Value as Wire,
};
use kymograph_protos::rows;

use super::launch::{About, Variant, Variants, theirs};
use super::{FACTS, FULL, Writer, wire};
use crate::perfetto::read::{GRAPHICS, is_text};
use crate::trace::{
    Activity, ActivityId, ContextId, Dim3, EventRef, QueueId, StageKind, StrId, Trace, Value,
};

/// Devices with larger numbers are not described: their list has no gaps.
const MOST_DEVICES: i64 = 1024;
/// The field of an event that says the number of the call which asked for it.
const SUBMISSION: u32 = 10;

/// The numbers under which a sequence knows rows of the hub, by row, and which of them it
/// was told.
#[derive(Default)]
pub(super) struct Numbers {
    queues: Vec<u64>,
    stages: Vec<u64>,
    pub(super) contexts: Vec<u64>,
    /// Those of the rows beside queues, and of what stands there.
    pub(super) beside: Vec<u64>,
    pub(super) annotation: u64,
    told: Told,
    /// Names of arguments that are fields of the event.
    graphics: Vec<(StrId, u32)>,
    /// Arguments that activities of the trace have from its recorder.
    theirs: Vec<&'static str>,
}

#[derive(Default)]
struct Told {
    queues: Vec<bool>,
    stages: Vec<bool>,
    contexts: Vec<bool>,
    beside: Vec<bool>,
    annotation: bool,
    kernels: Variants,
}

impl Numbers {
    fn new(trace: &Trace) -> Numbers {
        // Queues and stages share a table; queues keep their numbers if they can.
        let mut taken = HashSet::new();
        let queues = trace.queues.iter().map(|(_, queue)| free(&mut taken, queue.number)).collect();
        let stages = trace.stages.iter().map(|(id, _)| free(&mut taken, id.index() as u64 + 1));
        let stages = stages.collect();
        let mut rest = (1..).filter(|number| !taken.contains(number));
        let annotation = rest.next().unwrap_or_default();
        let beside = rest.take(trace.queues.len()).collect();
        let mut taken = HashSet::new();
        let contexts = trace.contexts.iter();
        let contexts = contexts.map(|(_, context)| free(&mut taken, context.number)).collect();
        let graphics = GRAPHICS.iter();
        let graphics =
            graphics.filter_map(|(field, name)| Some((trace.strings.find(name)?, *field)));
        let graphics = graphics.collect();
        let (told, theirs) = (Told::default(), theirs(trace));
        Numbers { queues, stages, contexts, beside, annotation, told, graphics, theirs }
    }

    pub(super) fn forget(&mut self) {
        self.told = Told::default();
    }

    /// An annotation beside this queue is written: whether it is the first of all, and there.
    pub(super) fn tell_annotation(&mut self, queue: QueueId) -> (bool, bool) {
        let is_first = !std::mem::replace(&mut self.told.annotation, true);
        (is_first, is_new(&mut self.told.beside, queue.index()))
    }
}

/// Marks a row; says whether it was not marked before.
#[inline]
fn is_new(told: &mut Vec<bool>, row: usize) -> bool {
    if told.len() <= row {
        told.resize(row + 1, false);
    }
    !std::mem::replace(&mut told[row], true)
}

/// `wanted`, or the next number that is not taken; readers keep 32 bits of it.
fn free(taken: &mut HashSet<u64>, wanted: u64) -> u64 {
    let mut number = if (1..1 << 32).contains(&wanted) { wanted } else { 1 };
    while !taken.insert(number) {
        number += 1;
    }
    number
}

impl<W: Write> Writer<'_, W> {
    /// The inventory.
    pub(super) fn devices(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let text = |id: StrId| trace.strings.get(id).as_bytes();
        let known = trace.devices.iter().map(|(_, device)| device);
        let known: Vec<_> =
            known.filter(|d| (0..MOST_DEVICES).contains(&d.number) && d.machine == 0).collect();
        let mut facts: HashMap<i64, Vec<(&[u8], String)>> = known
            .iter()
            .map(|device| {
                let entries = trace.args.entries(device.properties);
                let facts = entries.map(|(name, value)| (text(name), plain(trace, value)));
                (device.number, facts.collect())
            })
            .collect();
        let model = |device: &crate::trace::Device| match device.model {
            StrId::NONE => device.name,
            model => model,
        };
        let names: Vec<String> = known
            .iter()
            .map(|device| rows::device(device.number, trace.strings.get(device.name)))
            .collect();
        let mut list = Vec::new();
        for (device, name) in known.iter().zip(&names) {
            let number = device.number as usize;
            if list.len() <= number {
                list.resize(number + 1, Device::default());
            }
            list[number] = Device {
                name: name.as_bytes(),
                vendor: text(device.vendor),
                model: text(model(device)),
                architecture: text(device.architecture),
                uuid: device.uuid.as_ref().map_or(&[], |uuid| &uuid[..]),
                pci: text(device.pci),
                facts: facts.remove(&device.number).unwrap_or_default(),
            };
        }
        let says =
            |d: &Device<'_>| !(d.model.is_empty() && d.vendor.is_empty() && d.facts.is_empty());
        if list.iter().any(says) {
            let time = self.first_time();
            packet::devices(&mut self.packets, FACTS, time, &list);
        }
        self.flush(FULL)
    }

    fn first_time(&self) -> u64 {
        let (activities, slices) = (self.trace.activities.starts(), self.trace.slices.starts());
        let times = activities.iter().chain(slices).map(|time| time.saturating_add(self.shift));
        times.filter(|time| *time >= 0).min().unwrap_or(0) as u64
    }

    pub(super) fn activities(&mut self) -> io::Result<()> {
        if self.trace.activities.is_empty() {
            return Ok(());
        }
        let mut sequence = self.sequence();
        let mut numbers = Numbers::new(self.trace);
        let mut contexts = HashMap::new();
        for id in self.trace.activities.by_queue() {
            let activity = self.trace.activities.get(id);
            if let Some(context) = activity.context {
                contexts.entry(activity.queue).or_insert(context);
            }
            if let Some(time) = self.time(activity.start) {
                if self.ready(&mut sequence, 0, time) {
                    numbers.forget();
                }
                self.activity(&mut sequence, &mut numbers, id, &activity, time);
                self.flush(FULL)?;
            }
        }
        self.annotations(&mut sequence, &mut numbers, &contexts)
    }

    fn activity(
        &mut self,
        sequence: &mut Sequence,
        numbers: &mut Numbers,
        id: ActivityId,
        activity: &Activity,
        time: u64,
    ) {
        let trace = self.trace;
        let (mut nested, mut graphics) = (Vec::new(), Vec::new());
        let mut args = std::mem::take(&mut self.args);
        args.clear();
        trace.args.each(activity.args, |name, value| {
            let field = numbers.graphics.iter().find(|(id, _)| *id == name);
            match (field, value) {
                (Some((_, field)), Value::U64(n)) => graphics.push((*field, n)),
                (_, Value::Null | Value::Bool(_) | Value::Json(_)) => {
                    nested.push((name, trace.json(value)));
                }
                (_, Value::List(_) | Value::Dict(_)) => nested.push((name, trace.json(value))),
                _ => args.push(Arg { name: Name::Id(name), value: wire(value) }),
            }
        });
        if !self.arrows.launches(EventRef::Activity(id), &mut self.launches) {
            self.launches.waited.clear();
        }
        let launch = activity.launch.map(|launch| trace.launches[launch]).unwrap_or_default();
        let about = About::new(trace, activity, &numbers.theirs);
        let variant = numbers.told.kernels.of(activity);
        about.event_args(&mut args, variant.map(|(_, variant)| variant));
        if activity.correlation != 0 && !graphics.iter().any(|(field, _)| *field == SUBMISSION) {
            graphics.push((SUBMISSION, activity.correlation & 0xffff_ffff));
        }
        let mut kernel_args = Vec::new();
        let is_new = |(number, _): &(u64, _)| numbers.told.kernels.is_new(*number);
        let new = variant.filter(is_new);
        if let Some((_, variant)) = new {
            self.args(trace.kernels[variant.kernel].args, &mut kernel_args);
            kernel_args.retain(|arg| !matches!(arg.value, Wire::Null | Wire::Tree(_)));
            about.kernel_args(&mut kernel_args, variant);
        }
        self.stands(sequence, EventRef::Activity(id), EventType::Instant);
        let stages = new_stages(trace, numbers, activity);
        let contexts = new_context(trace, numbers, activity.context);
        let kernels = new.map(|(number, variant)| new_kernel(trace, number, variant, &kernel_args));
        let dim = |dim: Option<Dim3>| dim.map(|dim| [dim.x, dim.y, dim.z]);
        let stage = RenderStage {
            time,
            duration: activity.dur.0.max(0) as u64,
            event_id: activity.correlation,
            gpu: trace.devices[trace.queues[activity.queue].device].number,
            context: activity.context.map(|context| numbers.contexts[context.index()]),
            queue: numbers.queues[activity.queue.index()],
            stage: activity.stage.map(|stage| numbers.stages[stage.index()]),
            name: Name::Id(activity.name),
            kernel: variant.map(|(number, _)| number),
            grid: dim(launch.grid),
            block: dim(launch.block),
            waits: &self.launches.waited,
            args: &args,
            more_args: &[],
            nested: &nested,
            graphics: &graphics,
            new_stages: &stages,
            new_contexts: contexts.as_slice(),
            new_kernels: kernels.as_slice(),
        };
        let start = self.packets.len();
        sequence.render_stage(&mut self.packets, &self.texts, &stage);
        self.args = args;
        self.arrow_ends(start, EventRef::Activity(id), activity.start);
    }
}

/// The queue and the stage of an activity, if they are new.
fn new_stages<'a>(
    trace: &'a Trace,
    numbers: &mut Numbers,
    activity: &Activity,
) -> Vec<StageEntry<'a>> {
    let text = |id: StrId| trace.strings.get(id).as_bytes();
    let mut entries = Vec::new();
    if let Some(id) = activity.stage.filter(|id| is_new(&mut numbers.told.stages, id.index())) {
        let stage = trace.stages[id];
        entries.push(StageEntry {
            number: numbers.stages[id.index()],
            name: text(stage.name),
            description: text(stage.description),
            category: stage.kind as u64,
        });
    }
    if is_new(&mut numbers.told.queues, activity.queue.index()) {
        let queue = trace.queues[activity.queue];
        entries.push(StageEntry {
            number: numbers.queues[activity.queue.index()],
            name: text(queue.name),
            description: text(queue.description),
            category: StageKind::Compute as u64,
        });
    }
    entries
}

pub(super) fn new_context(
    trace: &Trace,
    numbers: &mut Numbers,
    id: Option<ContextId>,
) -> Option<ContextEntry> {
    let id = id.filter(|id| is_new(&mut numbers.told.contexts, id.index()))?;
    let context = trace.contexts[id];
    Some(ContextEntry {
        number: numbers.contexts[id.index()],
        pid: context.pid,
        api: context.api as u64,
    })
}

fn new_kernel<'a>(
    trace: &'a Trace,
    number: u64,
    variant: Variant,
    args: &'a [Arg<'a>],
) -> KernelEntry<'a> {
    let kernel = trace.kernels[variant.kernel];
    let text = |id: StrId| trace.strings.get(id).as_bytes();
    KernelEntry {
        number,
        name: text(kernel.name),
        demangled: text(kernel.demangled),
        architecture: text(kernel.architecture),
        args,
    }
}

/// A property as text; strings as they are, unless they would be taken for something else.
fn plain(trace: &Trace, value: Value) -> String {
    match value {
        Value::Str(id) if is_text(trace.strings.get(id)) => trace.strings.get(id).to_owned(),
        Value::Str(id) => format!("\"{}\"", trace.strings.get(id)),
        value => trace.json(value),
    }
}
