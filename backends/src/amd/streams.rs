//! Which stream an activity ran on, and the rows of the trace.
//!
//! HIP's streams are handles; the trace numbers them per device, from 1 in the order in which
//! they are met, and the null stream is 0. What was not asked for by a call that we saw has
//! only an HSA queue: that of one stream belongs to it, others are rows of their own.

use std::collections::HashMap;

use kymograph_protos::device::{GpuApi, Vendor};
use kymograph_protos::{ColdRecorder, Kind, Record, StrId};

use super::keys::Keys;
use super::launches::Asked;
use super::stream_names;
use crate::device::args::Args;

/// A stream that a call did not say.
pub(crate) const UNKNOWN: u64 = u64::MAX;
/// Upper bits of what is no handle: the number that the library gave a stream, and a thread,
/// for the stream that each has of its own.
const NUMBERED: u64 = 1 << 62;
const OWN: u64 = 1 << 61;
/// `hipStreamLegacy`, another name of the null stream, and `hipStreamPerThread`
/// (hip_runtime_api.h).
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

/// What a stream is known by: as the library numbered it, or by its handle. `own` says that
/// the function takes no stream for the thread's own one (those that end in `_spt`).
pub(crate) fn key(numbered: Option<u64>, handle: Option<u64>, own: bool, thread: u64) -> u64 {
    match (numbered, handle) {
        (_, Some(PER_THREAD)) => OWN | thread,
        (None | Some(0), None | Some(0)) if own => OWN | thread,
        (Some(0), _) => 0,
        (Some(number), _) => NUMBERED | number,
        (None, None | Some(0 | LEGACY)) => 0,
        (None, Some(handle)) => handle,
    }
}
/// Streams and queues that are told apart at most: wrong handles must not cost memory.
const MAX_STREAMS: usize = 1 << 14;

/// Where an activity is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Row {
    /// A stream, by its number.
    Stream(u32),
    /// An HSA queue of no known stream.
    Queue(u64),
    /// A copy of no known stream.
    Copies,
}

/// The streams that an HSA queue served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Served {
    One(u32),
    Several,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Numbers by device and handle.
    numbers: HashMap<(u32, u64), u32>,
    /// How many streams a device has.
    counts: HashMap<u32, u32>,
    /// What the program calls some of them, by device and number.
    names: HashMap<(u32, u32), String>,
    served: HashMap<u64, Served>,
    queues: HashMap<(u32, Row), u32>,
    last: Option<((u32, Row), u32)>,
}

impl Streams {
    /// Where an activity is shown that a call asked for, on an HSA queue.
    pub(crate) fn row(&mut self, device: u32, asked: Option<Asked>, queue: Option<u64>) -> Row {
        let asked = asked.map(|asked| asked.stream).filter(|stream| *stream != UNKNOWN);
        if let Some(handle) = asked {
            let stream = self.number(device, handle);
            if let Some(queue) = queue {
                self.serve(queue, stream);
            }
            return Row::Stream(stream);
        }
        match queue.map(|queue| (queue, self.served.get(&queue))) {
            Some((_, Some(Served::One(stream)))) => Row::Stream(*stream),
            Some((queue, _)) => Row::Queue(queue),
            None => Row::Copies,
        }
    }

    fn number(&mut self, device: u32, handle: u64) -> u32 {
        if handle == 0 {
            return 0;
        }
        if let Some(number) = self.numbers.get(&(device, handle)) {
            return *number;
        }
        if self.numbers.len() >= MAX_STREAMS {
            self.numbers.clear();
        }
        let count = self.counts.entry(device).or_default();
        *count += 1;
        self.numbers.insert((device, handle), *count);
        if let Some(name) = stream_names::of(handle) {
            self.names.insert((device, *count), name);
        }
        *count
    }

    fn serve(&mut self, queue: u64, stream: u32) {
        let full = self.served.len() >= MAX_STREAMS;
        match self.served.get_mut(&queue) {
            Some(Served::One(known)) if *known == stream => {}
            Some(served) => *served = Served::Several,
            None if full => {}
            None => {
                self.served.insert(queue, Served::One(stream));
            }
        }
    }

    /// What the program calls the stream of a row, with a space before it; empty if it is unnamed.
    pub(crate) fn name(&self, device: u32, row: Row) -> String {
        let name = row.stream().and_then(|stream| self.names.get(&(device, stream)));
        name.map_or_else(String::new, |name| format!(" {name}"))
    }

    /// The number of a row, which `introduce` is called with when it is a new one.
    pub(crate) fn queue(&mut self, device: u32, row: Row, introduce: impl FnOnce(u32)) -> u32 {
        let key = (device, row);
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        if self.queues.len() >= MAX_STREAMS && !self.queues.contains_key(&key) {
            return 0;
        }
        let next = self.queues.len() as u32;
        let number = *self.queues.entry(key).or_insert(next);
        if number == next {
            introduce(number);
        }
        self.last = Some((key, number));
        number
    }
}

impl Row {
    /// The stream's number, if it is one.
    pub(crate) fn stream(self) -> Option<u32> {
        match self {
            Row::Stream(number) => Some(number),
            Row::Queue(_) | Row::Copies => None,
        }
    }

    /// Describes the queue. Names sort as numbers do.
    /// `named` follows a stream's number.
    pub(crate) fn describe(
        self,
        number: u32,
        device: u32,
        named: &str,
        keys: &Keys,
        recorder: &dyn ColdRecorder,
    ) {
        let (name, stream) = match self {
            Row::Stream(stream) => (format!("Stream {stream:02}{named}"), stream.into()),
            Row::Queue(queue) => (format!("HSA queue {queue}"), queue),
            Row::Copies => ("Copies".to_owned(), 0),
        };
        let mut args = Args::new();
        args.unsigned(keys.device, device);
        // HIP has one context per device and process.
        args.unsigned(keys.context, device);
        args.unsigned(keys.stream, stream);
        args.unsigned(keys.api, GpuApi::Hip as u64);
        let head = Record {
            other: Vendor::Amd.queue(number).into(),
            site: recorder.intern_or_wait(StrId::NONE, name.as_bytes()),
            kind: Kind::Queue as u8,
            ..Record::default()
        };
        recorder.push(head, args.extras());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_handles_are_streams_too() {
        assert_eq!([key(None, Some(0), false, 7), key(None, Some(LEGACY), false, 7)], [0, 0]);
        assert_eq!(key(None, Some(0x7f10), false, 7), 0x7f10);
        let own = key(None, Some(PER_THREAD), false, 7);
        assert_eq!(own, key(None, Some(0), true, 7));
        assert_eq!(own, key(None, None, true, 7));
        assert_eq!(own, key(Some(5), Some(PER_THREAD), false, 7), "whatever its number is");
        assert_ne!(own, key(None, Some(PER_THREAD), false, 8));
        assert_eq!(key(Some(0), Some(LEGACY), false, 7), 0);
        assert_ne!(key(Some(3), Some(0x7f10), false, 7), key(Some(4), Some(0x7f10), false, 7));
    }

    fn on(stream: u64) -> Option<Asked> {
        Some(Asked { stream, bytes: 0 })
    }

    #[test]
    fn streams_are_numbered_by_device() {
        let mut streams = Streams::default();
        assert_eq!(streams.row(0, on(0), Some(1)), Row::Stream(0));
        assert_eq!(streams.row(0, on(0x7f10), Some(2)), Row::Stream(1));
        assert_eq!(streams.row(0, on(0x7f20), None), Row::Stream(2));
        assert_eq!(streams.row(1, on(0x7f10), None), Row::Stream(1));
        assert_eq!(streams.row(0, on(0x7f10), None), Row::Stream(1));
    }

    #[test]
    fn a_queue_of_one_stream_belongs_to_it() {
        let mut streams = Streams::default();
        assert_eq!(streams.row(0, None, Some(9)), Row::Queue(9));
        assert_eq!(streams.row(0, on(0x7f10), Some(9)), Row::Stream(1));
        assert_eq!(streams.row(0, None, Some(9)), Row::Stream(1));
        assert_eq!(streams.row(0, on(UNKNOWN), Some(9)), Row::Stream(1));
        assert_eq!(streams.row(0, on(0x7f20), Some(9)), Row::Stream(2));
        assert_eq!(streams.row(0, None, Some(9)), Row::Queue(9));
        assert_eq!(streams.row(0, None, None), Row::Copies);
    }

    #[test]
    fn rows_are_introduced_once() {
        let mut streams = Streams::default();
        let mut told = Vec::new();
        let rows = [Row::Stream(1), Row::Copies, Row::Stream(1), Row::Queue(4), Row::Copies];
        let numbers = rows.map(|row| streams.queue(0, row, |number| told.push(number)));
        assert_eq!((numbers, told), ([0, 1, 0, 2, 1], vec![0, 1, 2]));
        assert_eq!(streams.queue(1, Row::Stream(1), |_| {}), 3);
    }
}
