//! Streams become queues: which one an activity ran on, described when it is first seen.

use kymograph_protos::device::{DeviceSlot, GpuApi, Stage, Vendor};
use kymograph_protos::{Kind, Record};

use super::decode::{Decoder, Placed};
use crate::device::args::Args;

impl Decoder {
    /// Where an activity ran.
    #[inline]
    pub(super) fn place(&mut self, placed: &Placed, stage: Stage) -> DeviceSlot {
        let stream = (placed.context, placed.stream);
        let queue = if self.last.0 == stream && self.last.1 != u32::MAX {
            self.last.1
        } else {
            let queue = match self.queues.get(&stream) {
                Some(queue) => *queue,
                None => self.introduce(placed),
            };
            self.last = (stream, queue);
            queue
        };
        let gpu = Vendor::Nvidia.gpu(placed.device);
        DeviceSlot { queue, gpu, stage: stage as u8, ..DeviceSlot::default() }
    }

    /// The first activity of a stream: describes its queue. Names sort as numbers do.
    #[cold]
    fn introduce(&mut self, placed: &Placed) -> u32 {
        let number = Vendor::Nvidia.queue(self.queues.len() as u32);
        self.queues.insert((placed.context, placed.stream), number);
        self.places.seen(placed.context, placed.device);
        let first = *self.first_context.entry(placed.device).or_insert(placed.context);
        let mut name = format!("Stream {:02}", placed.stream);
        if self.places.is_default(placed.context, placed.stream) {
            name += " default";
        }
        if first != placed.context {
            name += &format!(" of context {}", placed.context);
        }
        let mut args = Args::new();
        args.unsigned(self.keys.device, placed.device);
        args.unsigned(self.keys.context, placed.context);
        args.unsigned(self.keys.stream, placed.stream);
        args.unsigned(self.keys.api, GpuApi::Cuda as u64);
        if let Some(priority) = self.priorities.get(&(placed.context, placed.stream)) {
            args.signed(self.keys.priority, i64::from(*priority as i32));
        }
        let head = Record {
            other: number.into(),
            site: self.keys.intern(&name),
            kind: Kind::Queue as u8,
            ..Record::default()
        };
        self.recorder.push(head, args.extras());
        number
    }
}
