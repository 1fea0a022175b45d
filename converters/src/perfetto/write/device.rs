//! Devices and what they did.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use kymograph_protos::packet::{
    self, Arg, ContextEntry, Device, KernelEntry, Name, RenderStage, Sequence, StageEntry,
    Value as Wire,
};

use super::{FACTS, FULL, Writer, flatten};
use crate::perfetto::read::GRAPHICS;
use crate::trace::{
    Activity, ActivityId, ContextId, Dim3, EventRef, KernelId, QueueId, StageId, StageKind, StrId,
    Trace, Value,
};

/// Devices with larger numbers are not described: their list has no gaps.
const MOST_DEVICES: i64 = 1024;

/// The numbers under which a sequence knows rows of the hub, and which of them it was told.
#[derive(Default)]
struct Numbers {
    queues: HashMap<QueueId, u64>,
    stages: HashMap<StageId, u64>,
    contexts: HashMap<ContextId, u64>,
    told_queues: HashSet<QueueId>,
    told_stages: HashSet<StageId>,
    told_contexts: HashSet<ContextId>,
    told_kernels: HashSet<KernelId>,
}

impl Numbers {
    fn new(trace: &Trace) -> Numbers {
        let mut numbers = Numbers::default();
        // Queues and stages share a table; queues keep their numbers if they can.
        let mut taken = HashSet::new();
        for (id, queue) in trace.queues.iter() {
            let number = free(&mut taken, queue.number);
            numbers.queues.insert(id, number);
        }
        for (id, _) in trace.stages.iter() {
            let number = free(&mut taken, id.index() as u64 + 1);
            numbers.stages.insert(id, number);
        }
        let mut taken = HashSet::new();
        for (id, context) in trace.contexts.iter() {
            let number = free(&mut taken, context.number);
            numbers.contexts.insert(id, number);
        }
        numbers
    }

    fn forget(&mut self) {
        self.told_queues.clear();
        self.told_stages.clear();
        self.told_contexts.clear();
        self.told_kernels.clear();
    }
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
        let facts: HashMap<i64, Vec<(&[u8], String)>> = known
            .iter()
            .map(|device| {
                let entries = trace.args.entries(device.properties);
                let facts = entries.map(|(name, value)| (text(name), plain(trace, value)));
                (device.number, facts.collect())
            })
            .collect();
        let mut list = Vec::new();
        for device in &known {
            let number = device.number as usize;
            if list.len() <= number {
                list.resize(number + 1, Device::default());
            }
            list[number] = Device {
                name: text(device.name),
                vendor: text(device.vendor),
                model: text(device.model),
                architecture: text(device.architecture),
                uuid: device.uuid.as_ref().map_or(&[], |uuid| &uuid[..]),
                pci: text(device.pci),
                facts: facts.get(&device.number).map_or(&[], Vec::as_slice),
            };
        }
        let says =
            |d: &Device<'_>| !(d.name.is_empty() && d.vendor.is_empty() && d.facts.is_empty());
        if list.iter().any(says) {
            let time = self.first_time();
            packet::devices(&mut self.packets, FACTS, time, &list);
        }
        self.flush(FULL)
    }

    fn first_time(&self) -> u64 {
        let activities = self.trace.activities.iter().map(|activity| activity.start.0);
        let slices = self.trace.slices.iter().map(|slice| slice.start.0);
        activities.chain(slices).filter(|time| *time >= 0).min().unwrap_or(0) as u64
    }

    pub(super) fn activities(&mut self) -> io::Result<()> {
        if self.trace.activities.is_empty() {
            return Ok(());
        }
        let mut sequence = self.sequence();
        let mut numbers = Numbers::new(self.trace);
        for id in self.trace.activities.by_queue() {
            let activity = self.trace.activities.get(id);
            if let Some(time) = self.time(activity.start) {
                if self.ready(&mut sequence, 0, time) {
                    numbers.forget();
                }
                self.activity(&mut sequence, &mut numbers, id, &activity, time);
                self.flush(FULL)?;
            }
        }
        Ok(())
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
        let (mut args, mut nested, mut graphics) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in trace.args.entries(activity.args) {
            let field = GRAPHICS.iter().find(|(_, text)| *text == trace.strings.get(name));
            match (field, value) {
                (Some((field, _)), Value::U64(n)) => graphics.push((*field, n)),
                (_, Value::Null | Value::Bool(_) | Value::Json(_)) => {
                    nested.push((name, trace.json(value)));
                }
                (_, Value::List(_) | Value::Dict(_)) => nested.push((name, trace.json(value))),
                _ => flatten(&trace.args, Name::Id(name), value, &mut args),
            }
        }
        let launches = self.launches(EventRef::Activity(id)).unwrap_or_default();
        let launch = activity.launch.map(|launch| trace.launches[launch]).unwrap_or_default();
        let kernel_args = self.kernel_args(numbers, activity.kernel);
        let stages = new_stages(trace, numbers, activity);
        let contexts = new_context(trace, numbers, activity.context);
        let kernels = new_kernel(trace, numbers, activity.kernel, &kernel_args);
        let dim = |dim: Option<Dim3>| dim.map(|dim| [dim.x, dim.y, dim.z]);
        let stage = RenderStage {
            time,
            duration: activity.dur.0.max(0) as u64,
            event_id: activity.correlation,
            gpu: trace.devices[trace.queues[activity.queue].device].number,
            context: activity.context.map(|context| numbers.contexts[&context]),
            queue: numbers.queues[&activity.queue],
            stage: activity.stage.map(|stage| numbers.stages[&stage]),
            name: Name::Id(activity.name),
            kernel: activity.kernel.map(|kernel| kernel.index() as u64 + 1),
            grid: dim(launch.grid),
            block: dim(launch.block),
            waits: &launches.waited,
            args: &args,
            nested: &nested,
            graphics: &graphics,
            new_stages: &stages,
            new_contexts: contexts.as_slice(),
            new_kernels: kernels.as_slice(),
        };
        sequence.render_stage(&mut self.packets, &trace.strings, &stage);
    }

    fn kernel_args(&self, numbers: &Numbers, kernel: Option<KernelId>) -> Vec<Arg<'static>> {
        let mut args = Vec::new();
        if let Some(kernel) = kernel.filter(|kernel| !numbers.told_kernels.contains(kernel)) {
            self.args(self.trace.kernels[kernel].args, &mut args);
            args.retain(|arg| !matches!(arg.value, Wire::Null | Wire::List(_) | Wire::Dict(_)));
        }
        args
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
    if let Some(id) = activity.stage.filter(|id| numbers.told_stages.insert(*id)) {
        let stage = trace.stages[id];
        entries.push(StageEntry {
            number: numbers.stages[&id],
            name: text(stage.name),
            description: text(stage.description),
            category: stage.kind as u64,
        });
    }
    if numbers.told_queues.insert(activity.queue) {
        let queue = trace.queues[activity.queue];
        entries.push(StageEntry {
            number: numbers.queues[&activity.queue],
            name: text(queue.name),
            description: text(queue.description),
            category: StageKind::Compute as u64,
        });
    }
    entries
}

fn new_context(
    trace: &Trace,
    numbers: &mut Numbers,
    id: Option<ContextId>,
) -> Option<ContextEntry> {
    let id = id.filter(|id| numbers.told_contexts.insert(*id))?;
    let context = trace.contexts[id];
    Some(ContextEntry { number: numbers.contexts[&id], pid: context.pid, api: context.api as u64 })
}

fn new_kernel<'a>(
    trace: &'a Trace,
    numbers: &mut Numbers,
    id: Option<KernelId>,
    args: &'a [Arg<'a>],
) -> Option<KernelEntry<'a>> {
    let id = id.filter(|id| numbers.told_kernels.insert(*id))?;
    let kernel = trace.kernels[id];
    let text = |id: StrId| trace.strings.get(id).as_bytes();
    Some(KernelEntry {
        number: id.index() as u64 + 1,
        name: text(kernel.name),
        demangled: text(kernel.demangled),
        architecture: text(kernel.architecture),
        args,
    })
}

/// A value as text; strings as they are.
fn plain(trace: &Trace, value: Value) -> String {
    match value {
        Value::Str(id) => trace.strings.get(id).to_owned(),
        value => trace.json(value),
    }
}
