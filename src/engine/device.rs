//! What backends say about devices: queues, activities, the inventory, facts.

use kymograph_protos::device::{GpuApi, Stage};
use kymograph_protos::packet::{
    self, Activity, Fact, Gpu, Kernel, Launch, Queue, Sequence, Strings,
};
use kymograph_protos::record::{ArgType, Record, TYPE_BITS};

use super::context::Context;
use super::record::Decoded;
use crate::intern::Interner;

/// A queue, as its record described it.
#[derive(Clone, Debug, Default)]
struct Described {
    name: Vec<u8>,
    description: Vec<u8>,
    context: u32,
    api: GpuApi,
}

/// A device of the inventory.
#[derive(Clone, Debug, Default)]
struct Item {
    name: Vec<u8>,
    facts: Vec<(Vec<u8>, String)>,
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
    queues: Vec<Described>,
    /// The inventory, by index; said whole whenever it grows.
    gpus: Vec<Item>,
    launched: Vec<u64>,
    waited: Vec<u64>,
}

/// Contexts that a process may have before their numbers meet the next one's.
const CONTEXTS: u32 = 256;

impl Devices {
    pub fn new(salt: u32) -> Devices {
        Devices {
            salt,
            queues: Vec::new(),
            gpus: Vec::new(),
            launched: Vec::new(),
            waited: Vec::new(),
        }
    }

    /// The id of device work in the trace.
    fn event_id(&self, correlation: u64) -> u64 {
        u64::from(self.salt) << 32 | correlation & 0xffff_ffff
    }

    /// The ids of what an event asked for and waited for.
    pub fn event_ids(&mut self, decoded: &Decoded) -> (&[u64], &[u64]) {
        if decoded.launched.is_empty() && decoded.waited.is_empty() {
            return (&[], &[]);
        }
        self.launched.clear();
        self.waited.clear();
        let salt = u64::from(self.salt) << 32;
        let salted = |id: &u64| salt | id & 0xffff_ffff;
        self.launched.extend(decoded.launched.iter().map(salted));
        self.waited.extend(decoded.waited.iter().map(salted));
        (&self.launched, &self.waited)
    }

    /// A queue is described.
    pub fn queue(&mut self, head: &Record, decoded: &Decoded, strings: &Interner) {
        /// Queues of a process at most: a number that lies must not cost memory.
        const MOST: usize = 1 << 16;
        let number = head.other as usize;
        if number >= MOST {
            return;
        }
        if self.queues.len() <= number {
            self.queues.resize_with(number + 1, Described::default);
        }
        let value = |name: &str| decoded.number(name.as_bytes(), strings).unwrap_or(0);
        let pid = std::process::id();
        let name = String::from_utf8_lossy(strings.text(head.site).bytes);
        let (device, context, stream) = (value("device"), value("context"), value("stream"));
        self.queues[number] = Described {
            name: format!("{name} ({pid})").into_bytes(),
            description: format!(
                "stream {stream} of context {context}, device {device}, process {pid}"
            )
            .into_bytes(),
            context: self.salt.wrapping_mul(CONTEXTS).wrapping_add(context as u32 % CONTEXTS),
            api: GpuApi::from_u8(value("api") as u8),
        };
    }
}

impl Context<'_> {
    /// A device did something.
    pub fn device_activity(&mut self, head: &Record, decoded: &Decoded, sequence: &mut Sequence) {
        self.totals.events += 1;
        let none = Described::default();
        let devices = &self.process.devices;
        let queue = devices.queues.get(decoded.device.queue as usize).unwrap_or(&none);
        let begin = self.time(head, head.time);
        let kernel = decoded.launch.map(|launch| Kernel {
            name: if decoded.device.kernel.is_none() { head.site } else { decoded.device.kernel },
            registers: launch.registers,
            shared: launch.shared,
        });
        let activity = Activity {
            time: begin,
            duration: self.time(head, head.other).saturating_sub(begin),
            event_id: devices.event_id(head.arg),
            gpu: decoded.device.gpu,
            queue: Queue {
                number: decoded.device.queue,
                name: &queue.name,
                description: &queue.description,
                context: queue.context,
                pid: self.process.pid,
                api: queue.api,
            },
            stage: Stage::from_u8(decoded.device.stage),
            name: decoded.name(head.site),
            kernel,
            launch: decoded.launch.map(|l| Launch { grid: l.grid, block: l.block }),
            args: &[],
        };
        decoded.with_args(|args| {
            sequence.activity(self.out, self.strings, &Activity { args, ..activity });
        });
        let duration = activity.duration;
        self.took(decoded.name(head.site), duration);
    }

    /// A device is described: states the inventory as far as it is known.
    pub fn device(&mut self, head: &Record, decoded: &Decoded, sequence: &Sequence) {
        /// Devices of a machine at most.
        const MOST: usize = 1 << 10;
        let index = head.other as usize;
        if index >= MOST {
            return;
        }
        let gpus = &mut self.process.devices.gpus;
        if gpus.len() <= index {
            gpus.resize_with(index + 1, Item::default);
        }
        let facts = decoded.texts(self.strings);
        gpus[index] = Item { name: self.strings.text(head.site).bytes.to_vec(), facts };
        let known: Vec<Gpu<'_>> = gpus.iter().map(Item::as_gpu).collect();
        packet::gpu_info(self.out, sequence.id(), self.clocks.boottime, &known);
    }

    /// Says the inventory anew.
    pub fn restate_devices(&mut self, sequence: u32) {
        let gpus = &self.process.devices.gpus;
        if !gpus.is_empty() {
            let known: Vec<Gpu<'_>> = gpus.iter().map(Item::as_gpu).collect();
            packet::gpu_info(self.out, sequence, self.clocks.boottime, &known);
        }
    }

    /// A fact about the job.
    pub fn fact(&mut self, head: &Record, decoded: &Decoded, sequence: &Sequence) {
        let key = String::from_utf8_lossy(self.strings.text(head.site).bytes);
        let fact = match ArgType::from_u8(head.tag & TYPE_BITS) {
            Some(ArgType::Str) => {
                let id = kymograph_protos::StrId(head.arg as u32);
                OwnFact::Text(String::from_utf8_lossy(self.strings.text(id).bytes).into_owned())
            }
            Some(ArgType::None) | None => {
                OwnFact::Text(String::from_utf8_lossy(decoded.bytes()).into_owned())
            }
            Some(_) => OwnFact::Number(head.arg as i64),
        };
        packet::trace_attributes(self.out, sequence.id(), &[(&key, fact.as_fact())]);
        if self.chapters {
            self.process.facts.insert(key.into_owned(), fact);
        }
    }
}

impl Item {
    /// The device, with the facts that have a place of their own in it.
    fn as_gpu(&self) -> Gpu<'_> {
        let mut gpu = Gpu { name: &self.name, ..Gpu::default() };
        for (key, value) in &self.facts {
            match key.as_slice() {
                b"vendor" => gpu.vendor = value.as_bytes(),
                b"architecture" => gpu.architecture = value.as_bytes(),
                b"pci" => gpu.pci = value.as_bytes(),
                _ => gpu.facts.push((key, value.clone())),
            }
        }
        gpu
    }
}
