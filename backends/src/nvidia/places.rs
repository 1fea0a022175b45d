//! Where records belong that are no work of a queue: tracks beside the queues, named as in
//! traces that come from Kineto's JSON, so that they go back to where Kineto has them.

use std::collections::{HashMap, HashSet};

use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::kinds::Context;
use super::sync::NO_STREAM;
use crate::device::ranges::Ids;

/// Of the tracks beside the queues.
const TRACKS: Ids = Ids::of(*b"CT");

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The devices of contexts, and the streams that are their default one.
    contexts: HashMap<u32, (u32, Option<u32>)>,
    described: HashSet<u64>,
}

/// A track: the argument that puts an event on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Track {
    /// What recording costs.
    Overhead,
    /// Waits: by the stream that they were for.
    Waits { device: u32, stream: u32, of_stream: bool },
}

impl Places {
    /// The device and the default stream of a context.
    pub(crate) fn context(&mut self, record: Context<'_>) {
        let stream = record.default_stream().into();
        self.contexts.insert(record.context(), (record.device(), Some(stream)));
    }

    /// Work was done in a context: its device, should there be no record of the context.
    pub(crate) fn seen(&mut self, context: u32, device: u32) {
        self.contexts.entry(context).or_insert((device, None));
    }

    pub(crate) fn device_of(&self, context: u32) -> Option<u32> {
        self.contexts.get(&context).map(|(device, _)| *device)
    }

    /// The devices in which the process has contexts.
    pub(crate) fn devices(&self) -> impl Iterator<Item = u32> + '_ {
        let mut devices: Vec<u32> = self.contexts.values().map(|(device, _)| *device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices.into_iter()
    }

    /// Whether it is the default stream of its context.
    pub(crate) fn is_default(&self, context: u32, stream: u32) -> bool {
        self.contexts.get(&context).is_some_and(|(_, default)| *default == Some(stream))
    }

    /// Describes the track if need be. Returns the argument that puts an event on it.
    pub(crate) fn track(&mut self, track: Track, recorder: &dyn ColdRecorder) -> Extra {
        // Upper bits of our own ("CT"): others number tracks too.
        let (id, name) = match track {
            Track::Overhead => (1 << 40, "Overhead".to_owned()),
            Track::Waits { device, stream: NO_STREAM, .. } => {
                (2 << 40 | u64::from(device), format!("GPU {device} waits"))
            }
            // Beside the other waits, which would overlap them: a thread waits for a stream
            // while the stream waits for an event.
            Track::Waits { device, stream, of_stream } => {
                let what = if of_stream { "sync" } else { "waits" };
                let id = (3 + u64::from(of_stream)) << 40 | u64::from(device as u8) << 32;
                (id | u64::from(stream), format!("GPU {device} stream {stream:02} {what}"))
            }
        };
        let id = TRACKS.id(id);
        if self.described.insert(id) {
            let site = recorder.intern_or_wait(StrId::NONE, name.as_bytes());
            let head = Record { other: id, site, kind: Kind::Track as u8, ..Record::default() };
            recorder.push(head, &[]);
        }
        Extra::new(StrId::NONE, ArgType::Track, id)
    }
}
