//! Waiting for devices: which record of an event a wait was for, and which work that was.
//!
//! A wait for an event is for the last record of it before the wait. What a wait was for is
//! told by the work that was done before: CUPTI hands its records over some time after the
//! call, so waits are held until it was asked for all it has. A stream that is told to wait
//! does so later, and what it waits for may take long: that is held until work is seen that
//! comes after it, for some rounds at most.

use std::collections::{HashMap, VecDeque};

use kymograph_protos::{ArgType, Extra, StrId};

use super::keys::Keys;
use super::names;
use super::sync::{Action, Called};
use crate::device::args::Args;

/// Records of one event that are remembered.
const MAX_RECORDS: usize = 64;
/// Events and streams that are remembered.
const MAX_KEYS: usize = 1 << 14;
/// Activities of one stream that are remembered.
const MAX_WORK: usize = 1 << 15;

/// Waits that are held.
const MAX_HELD: usize = 1 << 14;
/// Rounds for which the wait of a stream is held.
const MAX_ROUNDS: u8 = 4;

/// An event was recorded into a stream.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    correlation: u32,
    context: u32,
    stream: u32,
}

/// What is known of an event.
#[derive(Debug, Default)]
struct Event {
    /// They are numbered in the order in which they are first seen.
    number: u32,
    records: VecDeque<Recorded>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// By the program's handle.
    events: HashMap<u64, Event>,
    seen: u32,
    /// Correlation ids of work by context and stream, oldest first.
    work: HashMap<(u32, u32), VecDeque<u32>>,
    held: Vec<Called>,
    /// Those of streams, and for how many rounds they were held.
    streams: Vec<(Wait, u8)>,
}

/// A thread or a stream waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) called: Called,
    /// The number of the event that it was for.
    event: u32,
    /// The record of the event, if it was seen.
    record: Option<Recorded>,
    /// The last work before it.
    work: Option<u32>,
}

impl Waits {
    /// A call that waits or records an event is over.
    pub(crate) fn called(&mut self, called: Called) {
        if called.action != Action::Record {
            self.held.push(called);
            return;
        }
        let Called { correlation, context, stream, .. } = called;
        let records = &mut self.event(called.event).records;
        if records.len() == MAX_RECORDS {
            records.pop_front();
        }
        records.push_back(Recorded { correlation, context, stream });
    }

    fn event(&mut self, handle: u64) -> &mut Event {
        if self.events.len() >= MAX_KEYS && !self.events.contains_key(&handle) {
            self.events.clear();
        }
        self.events.entry(handle).or_insert_with(|| {
            self.seen += 1;
            Event { number: self.seen, records: VecDeque::new() }
        })
    }

    /// Whether there are so many waits that they should not be held any longer.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() + self.streams.len() >= MAX_HELD
    }

    /// Work was done on a stream.
    #[inline]
    pub(crate) fn work(&mut self, context: u32, stream: u32, correlation: u32) {
        if self.work.len() >= MAX_KEYS {
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
        if done.len() > MAX_WORK {
            done.pop_front();
        }
    }

    /// Gives the waits that were held to `each`, with what they waited for; `last`: all of
    /// them.
    pub(crate) fn settle(&mut self, last: bool, mut each: impl FnMut(Wait)) {
        let mut waits = std::mem::take(&mut self.streams);
        for called in std::mem::take(&mut self.held) {
            let mut wait = Wait { called, event: 0, record: None, work: None };
            if matches!(called.action, Action::Event | Action::StreamWaitsEvent) {
                let event = self.event(called.event);
                let before = |record: &&Recorded| record.correlation <= called.correlation;
                wait.record = event.records.iter().rev().find(before).copied();
                wait.event = event.number;
            }
            waits.push((wait, 0));
        }
        for (mut wait, rounds) in waits {
            if !last && rounds < MAX_ROUNDS && self.may_come(&wait) {
                self.streams.push((wait, rounds + 1));
                continue;
            }
            let Called { action, context, stream, correlation, .. } = wait.called;
            wait.work = match (wait.record, action) {
                (Some(r), _) => self.before(r.context, r.stream, r.correlation),
                (None, Action::Stream) => self.before(context, stream, correlation),
                (None, _) => None,
            };
            each(wait);
        }
    }

    /// Whether the work that a stream waits for may not have been done yet.
    fn may_come(&self, wait: &Wait) -> bool {
        let Some(record) = wait.record else { return false };
        let done = self.work.get(&(record.context, record.stream)).and_then(VecDeque::back);
        let later = done.is_some_and(|done| *done > record.correlation);
        wait.called.action == Action::StreamWaitsEvent && !later
    }

    /// The last work of a stream that was asked for before `correlation`.
    fn before(&self, context: u32, stream: u32, correlation: u32) -> Option<u32> {
        let done = self.work.get(&(context, stream))?;
        let after = done.partition_point(|known| *known < correlation);
        done.get(after.checked_sub(1)?).copied()
    }
}

impl Wait {
    /// The arguments, as Kineto writes them, and the work that it was for.
    pub(crate) fn describe(&self, keys: &Keys, device: Option<u32>, args: &mut Args) {
        let Called { action, stream, correlation, context, .. } = self.called;
        if let Some(work) = self.work {
            args.push(Extra::new(StrId::NONE, ArgType::Wait, work.into()));
        }
        args.text(keys.sync_kind, keys.intern(names::wait(action)));
        if matches!(action, Action::Event | Action::StreamWaitsEvent) {
            let (record, stream) = self.record.map_or((-1, -1), |record| {
                (i64::from(record.correlation), i64::from(record.stream as i32))
            });
            args.signed(keys.wait_on_stream, stream);
            args.signed(keys.wait_on_record, record);
            args.unsigned(keys.wait_on_event, self.event);
        }
        // No stream is all ones.
        args.signed(keys.stream, i64::from(stream as i32));
        args.unsigned(keys.correlation, correlation);
        if let Some(device) = device {
            args.signed(keys.device, device.into());
        }
        args.unsigned(keys.context, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvidia::sync::NO_STREAM;

    fn called(action: Action, correlation: u32, stream: u32, event: u64) -> Called {
        Called { action, start: 1, end: 2, correlation, context: 1, stream, event }
    }

    #[test]
    fn a_wait_finds_the_record_before_it_and_the_work_before_that() {
        let mut waits = Waits::default();
        for call in [
            called(Action::Record, 10, 7, 0xe5),
            called(Action::Record, 20, 7, 0xe5),
            called(Action::StreamWaitsEvent, 30, 9, 0xe5),
            called(Action::Stream, 31, 7, 0),
            called(Action::Record, 40, 7, 0xe5),
            called(Action::Event, 12, NO_STREAM, 0xe5),
            called(Action::Event, 41, NO_STREAM, 0xe6),
            called(Action::Context, 42, NO_STREAM, 0),
        ] {
            waits.called(call);
        }
        [8, 19, 9, 25, 45].iter().for_each(|work| waits.work(1, 7, *work));
        let mut found = Vec::new();
        let record = |wait: &Wait| wait.record.map(|r| (r.correlation, r.stream));
        waits.settle(false, |wait| found.push((wait.event, record(&wait), wait.work)));
        let expected = [
            (1, Some((20, 7)), Some(19)),
            (0, None, Some(25)),
            (1, Some((10, 7)), Some(9)),
            (2, None, None),
            (0, None, None),
        ];
        assert_eq!(found, expected);
        waits.settle(true, |_| panic!("settled already"));
    }

    #[test]
    fn a_stream_may_wait_for_what_is_not_done_yet() {
        let mut waits = Waits::default();
        let settle = |waits: &mut Waits, last| {
            let mut found = Vec::new();
            waits.settle(last, |wait| found.push(wait.work));
            found
        };
        waits.work(1, 7, 5);
        waits.called(called(Action::Record, 20, 7, 0xe5));
        waits.called(called(Action::StreamWaitsEvent, 21, 9, 0xe5));
        assert_eq!(settle(&mut waits, false), []);
        // A thread that waits has found all done.
        waits.called(called(Action::Event, 22, NO_STREAM, 0xe5));
        assert_eq!(settle(&mut waits, false), [Some(5)]);
        waits.work(1, 7, 19);
        assert_eq!(settle(&mut waits, false), []);
        waits.work(1, 7, 23);
        assert_eq!(settle(&mut waits, false), [Some(19)]);

        // Nothing comes after it: not for ever, and not when it is all over.
        for last in [false, true] {
            waits.called(called(Action::Record, 30, 7, 0xe5));
            waits.called(called(Action::StreamWaitsEvent, 31, 9, 0xe5));
            let rounds = if last { 0 } else { MAX_ROUNDS };
            (0..rounds).for_each(|_| assert_eq!(settle(&mut waits, false), []));
            assert_eq!(settle(&mut waits, last), [Some(23)]);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut waits = Waits::default();
        for number in 0..2 * MAX_KEYS as u32 {
            waits.called(called(Action::Record, number, 7, number.into()));
            waits.called(called(Action::Record, number, 7, 1));
            assert!(waits.events.len() <= MAX_KEYS);
            // Nobody forgets what is known already.
            assert!(waits.events.contains_key(&u64::from(number)));
        }
        assert!(waits.events.values().all(|event| event.records.len() <= MAX_RECORDS));
        assert!(!waits.is_full());
        (0..MAX_HELD as u32).for_each(|n| waits.called(called(Action::Context, n, NO_STREAM, 0)));
        assert!(waits.is_full());
    }
}
