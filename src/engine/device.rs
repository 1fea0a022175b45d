//! What backends say about devices: queues, activities, the inventory, metadata.

use kymograph_protos::device::{GpuApi, GpuUnit, Stage, Vendor};
use kymograph_protos::packet::{
    self, Activity, Annotation, Correlation, Event, EventType, Fact, Kernel, Launch, Queue,
    Sequence, Strings,
};
use kymograph_protos::record::{ArgType, Record, StrId, TYPE_BITS};
use kymograph_protos::rows::{self, Beside, Of};

use super::context::Context;
use super::inventory::Inventory;
use super::process::{Process, value};
use super::record::Decoded;
use super::spans::{Edge, Known, Spans, Told, Whole};
use crate::intern::Interner;
use crate::process::identity::mix;

/// A queue, as its record described it.
#[derive(Clone, Debug, Default)]
struct Described {
    /// What it is called in the trace: those of all vendors, dense from 1.
    number: u32,
    name: Vec<u8>,
    /// What the row beside it is called.
    beside: Vec<u8>,
    description: Vec<u8>,
    context: u32,
    api: GpuApi,
    /// The device's number in the trace, once the queue has worked.
    gpu: u32,
    stream: u64,
}

/// A fact about the job, kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnFact {
    Number(i64),
    Text(String),
}

impl OwnFact {
    pub fn as_fact(&self) -> Fact<'_> {
        match self {
            OwnFact::Number(number) => Fact::Number(*number),
            OwnFact::Text(text) => Fact::Text(text),
        }
    }
}

/// The devices that this process uses.
#[derive(Debug)]
pub struct Devices {
    /// Makes ids differ from those of other processes.
    salt: u32,
    /// The number of this process among those that write the trace, from 1; 0 if it is alone.
    pub serial: u32,
    /// By vendor, and by the vendor's number.
    queues: [Vec<Described>; Vendor::COUNT],
    described: u32,
    pub inventory: Inventory,
    launched: Vec<u64>,
    waited: Vec<u64>,
}

/// What the row beside a queue shows.
const ROW_BESIDE: &[u8] = b"The program's ranges, while the queue worked for them";
/// Contexts that a process may have before their numbers meet the next one's.
const CONTEXTS: u32 = 256;
/// Processes, and queues of each, that have numbers of their own.
const PROCESSES: u32 = 256;
const QUEUES: u32 = 64;
/// What is added to a queue's number for the row beside it.
const BESIDE: u32 = PROCESSES * QUEUES;

impl Devices {
    pub fn new(salt: u32) -> Devices {
        Devices {
            salt,
            serial: 0,
            queues: Default::default(),
            described: 0,
            inventory: Inventory::default(),
            launched: Vec::new(),
            waited: Vec::new(),
        }
    }

    /// The id of device work in the trace.
    fn event_id(&self, number: u64) -> u64 {
        let (vendor, correlation) = Vendor::of_call(number);
        u64::from(self.salt_of(vendor)) << 32 | u64::from(correlation)
    }

    /// A number that no other vendor in any process of the trace has.
    fn salt_of(&self, vendor: u32) -> u32 {
        self.salt.wrapping_mul(Vendor::COUNT as u32).wrapping_add(vendor)
    }

    /// The arrows of an event: to what it asked for, from what it waited for.
    pub fn correlation(&mut self, decoded: &Decoded) -> Option<Correlation<'_>> {
        if decoded.launched.is_empty() && decoded.waited.is_empty() {
            return None;
        }
        self.launched.clear();
        self.waited.clear();
        for id in &decoded.launched {
            self.launched.push(self.event_id(*id));
        }
        for id in &decoded.waited {
            self.waited.push(self.event_id(*id));
        }
        Some(Correlation { launched: &self.launched, waited: &self.waited, api: GpuApi::Unsaid })
    }

    /// A queue is described.
    pub fn queue(
        &mut self,
        head: &Record,
        decoded: &Decoded,
        strings: &Interner,
        (pid, rank): (u32, Option<i64>),
    ) {
        let (vendor, number) = Vendor::of_queue(head.other as u32);
        let queues = &mut self.queues[vendor];
        if queues.len() <= number {
            queues.resize_with(number + 1, Described::default);
        }
        if queues[number].number == 0 {
            self.described += 1;
            // Readers take queues of one number and name for the same.
            queues[number].number = self.serial % PROCESSES * QUEUES + self.described;
        }
        let value = |name: &str| decoded.number(name.as_bytes(), strings).unwrap_or(0);
        // Streams of several processes are told apart by their ranks, or else by their ids.
        let of = match rank {
            Some(rank) => format!("rank {rank}"),
            None if self.serial > 1 => format!("pid {pid}"),
            None => String::new(),
        };
        let name = String::from_utf8_lossy(strings.text(head.site).bytes);
        let (device, context, stream) = (value("device"), value("context"), value("stream"));
        let device = self.inventory.shown(Vendor::from_index(vendor), device as i64);
        let salt = self.salt_of(vendor as u32);
        // How urgent its work is: the lower the number, the more.
        let priority = decoded.number(b"priority", strings).filter(|priority| *priority != 0);
        let priority = priority.map_or_else(String::new, |p| format!(", priority {}", p as i64));
        let queue = &mut self.queues[vendor][number];
        let name = rows::queue(&name, &of);
        *queue = Described {
            number: queue.number,
            beside: rows::annotations(&name).into_bytes(),
            name: name.into_bytes(),
            description: format!(
                "stream {stream} of context {context}, device {device}, process {pid}{priority}"
            )
            .into_bytes(),
            context: salt.wrapping_mul(CONTEXTS).wrapping_add(context as u32 % CONTEXTS),
            api: GpuApi::from_u8(value("api") as u8),
            gpu: queue.gpu,
            stream,
        };
    }

    /// The queue with this number in records.
    fn described(&self, queue: u32) -> Option<&Described> {
        let (vendor, number) = Vendor::of_queue(queue);
        self.queues[vendor].get(number)
    }
}

impl Context<'_> {
    /// A device did something.
    pub fn device_activity(&mut self, head: &Record, decoded: &Decoded, sequence: &mut Sequence) {
        self.totals.events += 1;
        let none = Described::default();
        let begin = self.time(head, head.time);
        let devices = &mut self.process.devices;
        let gpu = devices.inventory.place(decoded.device.gpu);
        let (vendor, number) = Vendor::of_queue(decoded.device.queue);
        if let Some(queue) = devices.queues[vendor].get_mut(number) {
            queue.gpu = gpu;
        }
        let devices = &self.process.devices;
        let queue = devices.described(decoded.device.queue).unwrap_or(&none);
        let kernel = decoded.launch.map(|launch| Kernel {
            name: if decoded.device.kernel.is_none() { head.site } else { decoded.device.kernel },
            symbol: decoded.device.symbol,
            registers: launch.registers,
            shared: launch.shared,
        });
        let activity = Activity {
            time: begin,
            duration: self.time(head, head.other).saturating_sub(begin),
            event_id: devices.event_id(head.arg),
            submission: Vendor::of_call(head.arg).1,
            gpu,
            architecture: devices.inventory.code(decoded.device.gpu),
            queue: Queue {
                number: queue.number,
                name: &queue.name,
                description: &queue.description,
                context: queue.context,
                pid: self.process.pid,
                process: &self.process.row,
                stream: queue.stream,
                api: queue.api,
            },
            stage: Stage::from_u8(decoded.device.stage),
            name: decoded.name(head.site),
            kernel,
            launch: decoded.launch.map(|l| Launch { grid: l.grid, block: l.block }),
            args: &[],
        };
        decoded.with_args(|args| {
            let vendor = Vendor::of_gpu(decoded.device.gpu).0;
            let renumbered = devices.inventory.renumber(args, vendor, self.strings);
            let args = renumbered.as_deref().unwrap_or(args);
            sequence.activity(self.out, self.strings, &Activity { args, ..activity });
        });
        let duration = activity.duration;
        self.process.steps.device_worked(begin + duration);
        if head.arg != 0 {
            let times = (begin, begin + duration);
            let queue = decoded.device.queue;
            self.process.spans.work(head.arg, queue, times, self.clocks.boottime);
        }
        self.took(decoded.name(head.site), duration);
    }

    /// Writes the ranges that devices are known to have worked for.
    pub fn settle_spans(&mut self, known: Known) {
        let now = self.clocks.boottime;
        self.write_spans(|spans, write| spans.settle(now, known, write));
    }

    /// Writes those that are open once more.
    pub fn restate_spans(&mut self) {
        self.write_spans(|spans, write| spans.restate(|edge| write(Told::Edge(edge))));
    }

    fn write_spans(&mut self, told: impl FnOnce(&mut Spans, &mut dyn FnMut(Told<'_>))) {
        let mut spans = std::mem::take(&mut self.process.spans);
        let category = spans.category();
        told(&mut spans, &mut |told| match told {
            Told::Edge(edge) => self.write_edge(&edge, category),
            Told::Whole(whole) => self.write_whole(whole),
        });
        self.process.spans = spans;
    }

    fn write_edge(&mut self, edge: &Edge<'_>, category: StrId) {
        let Process { uuid: process, sequence, devices, groups, .. } = &mut *self.process;
        let track =
            mix(&[*process, 0x7370_616e, edge.line.into(), edge.queue.into(), edge.side.0.into()]);
        if edge.is_new_track {
            let none = Described::default();
            let queue = devices.described(edge.queue).unwrap_or(&none);
            let (device, stream) = (queue.gpu.into(), queue.stream as i64);
            let row = Beside { device, stream, of: Of::Annotations };
            groups.write(self.out, *process, (track, row), sequence.id());
        }
        let ty = if edge.begins { EventType::Begin } else { EventType::End };
        let event = Event { track, category, name: edge.name, ..Event::new(ty, edge.time) };
        sequence.event(self.out, self.strings, &event);
    }

    /// A range in the row beside a queue.
    fn write_whole(&mut self, whole: &Whole) {
        let Process { sequence, devices, pid, .. } = &mut *self.process;
        let Some(queue) = devices.described(whole.queue) else { return };
        let row = Queue {
            number: BESIDE + queue.number,
            name: &queue.beside,
            description: ROW_BESIDE,
            context: queue.context,
            pid: *pid,
            process: &[],
            stream: queue.stream,
            api: queue.api,
        };
        let (time, duration) = (whole.since, whole.until - whole.since);
        let annotation = Annotation { time, duration, gpu: queue.gpu, row, name: whole.name() };
        sequence.gpu_annotation(self.out, self.strings, &annotation);
    }

    /// A counter of a device has a value.
    pub fn gpu_counter(&mut self, head: &Record, decoded: &Decoded) {
        self.totals.events += 1;
        let gpu = self.process.devices.inventory.place(head.other as u32);
        let unit = decoded.number(b"", self.strings).map_or(GpuUnit::default(), GpuUnit::from_bits);
        let time = self.time(head, head.time);
        self.process.gpu_counters.value(gpu, (head.site, unit), time, value(head));
    }

    /// Writes the values of counters that came in this pass.
    pub fn write_gpu_counters(&mut self) {
        let Process { sequence, gpu_counters, .. } = &mut *self.process;
        gpu_counters.write(self.out, sequence, self.strings);
    }

    /// A device is described: states the inventory as far as it is known.
    pub fn device(&mut self, head: &Record, decoded: &Decoded, sequence: &Sequence) {
        let metadata = decoded.texts(self.strings);
        let name = self.strings.text(head.site).bytes.to_vec();
        self.process.devices.inventory.describe(head.other as u32, name, metadata);
        self.restate_devices(sequence.id());
    }

    /// Says the inventory anew.
    pub fn restate_devices(&mut self, sequence: u32) {
        self.process.devices.inventory.write(self.out, sequence, self.clocks.boottime);
    }

    /// A fact about the job.
    pub fn fact(&mut self, head: &Record, decoded: &Decoded, sequence: &Sequence) {
        let key = String::from_utf8_lossy(self.strings.text(head.site).bytes);
        let fact = match ArgType::from_u8(head.tag & TYPE_BITS) {
            Some(ArgType::Str) => {
                let id = StrId(head.arg as u32);
                OwnFact::Text(String::from_utf8_lossy(self.strings.text(id).bytes).into_owned())
            }
            Some(ArgType::None) | None => {
                OwnFact::Text(String::from_utf8_lossy(decoded.bytes()).into_owned())
            }
            Some(_) => OwnFact::Number(head.arg as i64),
        };
        packet::trace_attributes(self.out, sequence.id(), &[(&key, fact.as_fact())]);
        if self.restarts {
            self.process.metadata.insert(key.into_owned(), fact);
        }
    }
}
