//! Waiting for devices: which record of an event a wait was for, and which work that was.
//!
//! The record of a wait says an event's number, and numbers are used again. The event
//! that was meant is the one recorded last before the wait; where CUPTI gives events an id
//! of their own (`cudaEventSyncId`, CUDA 12.8), that one. Both may lie in another buffer
//! than the wait, so waits are held until all buffers at hand were read.

use std::collections::{HashMap, VecDeque};

use kymograph_protos::{ArgType, Extra, StrId};

use super::keys::Keys;
use super::names;
use crate::vendor::args::Args;
use crate::vendor::raw::Raw;

/// Records of one event that are remembered.
const MOST_RECORDS: usize = 64;
/// Events and streams that are remembered.
const MOST_KEYS: usize = 1 << 14;
/// Activities of one stream that are remembered.
const MOST_WORK: usize = 1 << 15;

/// `CUpti_ActivitySynchronizationType`.
const EVENT: u32 = 1;
const STREAM_WAIT_EVENT: u32 = 2;
const STREAM: u32 = 3;

/// An event was recorded into a stream.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    correlation: u32,
    stream: u32,
    id: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    events: HashMap<(u32, u32), VecDeque<Recorded>>,
    /// Correlation ids of work by context and stream, oldest first.
    work: HashMap<(u32, u32), VecDeque<u32>>,
    held: Vec<Wait>,
}

/// A thread or a stream waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    pub(crate) kind: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    correlation: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    event: u32,
    event_id: u64,
    /// The record of the event, if it was seen: its correlation id and stream.
    record: Option<(u32, u32)>,
    /// The last work before it.
    work: Option<u32>,
}

impl Waits {
    /// CUpti_ActivityCudaEvent and 2.
    pub(crate) fn event(&mut self, raw: Raw<'_>) {
        let recorded = Recorded {
            correlation: raw.u32(4),
            stream: raw.u32(12),
            id: if raw.has(48, 8) { raw.u64(48) } else { 0 },
        };
        if self.events.len() >= MOST_KEYS {
            self.events.clear();
        }
        let records = self.events.entry((raw.u32(8), raw.u32(16))).or_default();
        if records.len() == MOST_RECORDS {
            records.pop_front();
        }
        records.push_back(recorded);
    }

    /// CUpti_ActivitySynchronization and 2.
    pub(crate) fn wait(&mut self, raw: Raw<'_>) {
        self.held.push(Wait {
            kind: raw.u32(4),
            start: raw.u64(8),
            end: raw.u64(16),
            correlation: raw.u32(24),
            context: raw.u32(28),
            stream: raw.u32(32),
            event: raw.u32(36),
            event_id: if raw.has(40, 8) { raw.u64(40) } else { 0 },
            record: None,
            work: None,
        });
    }

    /// Work was done on a stream.
    #[inline]
    pub(crate) fn work(&mut self, context: u32, stream: u32, correlation: u32) {
        if self.work.len() >= MOST_KEYS {
            self.work.clear();
        }
        let done = self.work.entry((context, stream)).or_default();
        match done.back() {
            // Nodes of a graph share one.
            Some(last) if *last == correlation => return,
            Some(last) if *last > correlation => {
                let at = done.partition_point(|known| *known < correlation);
                done.insert(at, correlation);
            }
            _ => done.push_back(correlation),
        }
        if done.len() > MOST_WORK {
            done.pop_front();
        }
    }

    /// Gives the waits that were held to `each`, with what they waited for.
    pub(crate) fn settle(&mut self, mut each: impl FnMut(Wait)) {
        for mut wait in std::mem::take(&mut self.held) {
            if matches!(wait.kind, EVENT | STREAM_WAIT_EVENT) {
                wait.record = self.recorded(&wait).map(|r| (r.correlation, r.stream));
            }
            wait.work = match (wait.kind, wait.record) {
                (STREAM, _) => self.before(wait.context, wait.stream, wait.correlation),
                (_, Some((record, stream))) => self.before(wait.context, stream, record),
                _ => None,
            };
            each(wait);
        }
    }

    fn recorded(&self, wait: &Wait) -> Option<&Recorded> {
        let records = self.events.get(&(wait.context, wait.event))?;
        let exact = records.iter().rev().find(|r| wait.event_id != 0 && r.id == wait.event_id);
        exact.or_else(|| {
            let before = records.iter().filter(|r| r.correlation <= wait.correlation);
            before.max_by_key(|r| r.correlation)
        })
    }

    /// The last work of a stream that was asked for before `correlation`.
    fn before(&self, context: u32, stream: u32, correlation: u32) -> Option<u32> {
        let done = self.work.get(&(context, stream))?;
        let after = done.partition_point(|known| *known < correlation);
        done.get(after.checked_sub(1)?).copied()
    }
}

impl Wait {
    /// Whether a thread waited for all that was asked of a stream.
    pub(crate) fn is_of_stream(&self) -> bool {
        self.kind == STREAM
    }

    /// The arguments, as Kineto writes them, and the work that it was for.
    pub(crate) fn describe(&self, keys: &Keys, device: Option<u32>, args: &mut Args) {
        if let Some(work) = self.work {
            args.push(Extra::new(StrId::NONE, ArgType::Wait, work.into()));
        }
        args.text(keys.sync_kind, keys.intern(names::wait(self.kind)));
        if matches!(self.kind, EVENT | STREAM_WAIT_EVENT) {
            let (record, stream) =
                self.record.map_or((-1, -1), |(c, s)| (i64::from(c), i64::from(s)));
            args.signed(keys.wait_on_stream, stream);
            args.signed(keys.wait_on_record, record);
            args.unsigned(keys.wait_on_event, self.event);
        }
        // CUPTI_SYNCHRONIZATION_INVALID_VALUE is all ones.
        args.signed(keys.stream, i64::from(self.stream as i32));
        args.unsigned(keys.correlation, self.correlation);
        if let Some(device) = device {
            args.signed(keys.device, device.into());
        }
        args.unsigned(keys.context, self.context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(correlation: u32, stream: u32, event: u32, id: u64) -> Vec<u8> {
        let mut bytes = vec![0; 56];
        for (at, value) in [(0, 36), (4, correlation), (8, 1), (12, stream), (16, event)] {
            bytes[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        bytes[48..56].copy_from_slice(&id.to_ne_bytes());
        bytes
    }

    fn wait(kind: u32, correlation: u32, stream: u32, event: u32, id: u64) -> Vec<u8> {
        let mut bytes = vec![0; 56];
        let fields = [(0, 38), (4, kind), (24, correlation), (28, 1), (32, stream), (36, event)];
        for (at, value) in fields {
            bytes[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        bytes[40..48].copy_from_slice(&id.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_wait_finds_the_record_before_it_and_the_work_before_that() {
        let mut waits = Waits::default();
        waits.wait(Raw::new(&wait(STREAM_WAIT_EVENT, 30, 9, 5, 0)));
        waits.wait(Raw::new(&wait(STREAM, 31, 7, 0, 0)));
        waits.wait(Raw::new(&wait(EVENT, 32, 0, 5, 77)));
        // An older library: no ids.
        waits.wait(Raw::new(&wait(EVENT, 5, 0, 5, 0)[..40]));
        for (correlation, id) in [(10, 0), (20, 77), (40, 78)] {
            waits.event(Raw::new(&event(correlation, 7, 5, id)));
        }
        [8, 19, 9, 25, 45].iter().for_each(|work| waits.work(1, 7, *work));
        let mut found = Vec::new();
        waits.settle(|w| found.push((w.record, w.work)));
        let expected =
            [(Some((20, 7)), Some(19)), (None, Some(25)), (Some((20, 7)), Some(19)), (None, None)];
        assert_eq!(found, expected);
        waits.settle(|_| panic!("settled already"));
    }
}
