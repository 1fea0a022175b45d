//! The engine as a flight recorder: keeps what it encodes, and writes it when asked to.
//! See [`crate::flight`].

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymograph_protos::packet::{self, Fact};

use super::nesting::Pass;
use super::{BATCH, Engine, FULL};
use crate::clock;
use crate::config::Config;
use crate::error::Error;
use crate::flight::{Dump, Order, Ring, Segment, Share, Target, alarm};
use crate::sink::{self, Numbered, Sink};

/// The window is kept in about this many segments: a dump holds as much more than asked
/// for as the oldest of them.
const PARTS: u32 = 16;
/// Bytes of packets written to a dump before the queues get their turn again.
const STEP: u64 = 4 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Flight {
    ring: Ring,
    window: Duration,
    memory: u64,
    /// Processes among which the memory is divided.
    processes: u32,
    /// Of the segment in progress.
    preamble: Vec<u8>,
    begun: u64,
    events_before: u64,
    lost_before: u64,
    /// Events of segments for which there was no memory.
    pub unkept: u64,
    orders: VecDeque<Order>,
    under_way: Option<UnderWay>,
    /// Numbered files that this process has written to, or begun to.
    files: u32,
    /// When a slow slice last caused a dump.
    watched: Option<Instant>,
    /// Whether a thread waits in the handler of SIGABRT for a dump.
    alarmed: bool,
    /// Events of this process that are in the output, and those that the output lacks.
    last: (u64, u64),
}

/// A file for a dump, and this process's part in it if others have one, too.
type Opened = (PathBuf, Box<dyn Sink>, Option<Numbered>);

/// A dump that is being written.
struct UnderWay {
    sink: Box<dyn Sink>,
    order: Order,
    /// The next segment to be written, and the last.
    next: u64,
    last: u64,
    first: bool,
    begun: u64,
    done: Dump,
    /// This process's part in it: dropped when that is written.
    file: Option<Numbered>,
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnderWay").field("order", &self.order).finish_non_exhaustive()
    }
}

impl Flight {
    pub(super) fn new(config: &Config) -> Option<Flight> {
        config.flight.map(|window| Flight {
            ring: Ring::default(),
            window,
            memory: config.flight_memory,
            processes: 1,
            preamble: Vec::new(),
            begun: clock::system(libc::CLOCK_BOOTTIME),
            events_before: 0,
            lost_before: 0,
            unkept: 0,
            orders: VecDeque::new(),
            under_way: None,
            files: 0,
            watched: None,
            alarmed: false,
            last: (0, 0),
        })
    }

    /// Events that had to go.
    pub(super) fn discarded(&self) -> u64 {
        self.ring.gone_events
    }

    /// What the output says of this process when all is over: events in it, events lost.
    pub(super) fn last(&self) -> (u64, u64) {
        self.last
    }

    fn memory(&self) -> u64 {
        self.memory / u64::from(self.processes.max(1))
    }

    /// Bytes of packets at which a segment is full. Its preamble is to be a small part of
    /// what it takes.
    pub(super) fn full(&self) -> usize {
        let share = self.memory() as usize;
        (share / 64).max(8 * self.preamble.len()).clamp(64 << 10, FULL.min(share / 8).max(64 << 10))
    }

    /// Slots that may be encoded before [`Flight::full`] is looked at again.
    pub(super) fn batch(&self) -> usize {
        (self.full() / 64).clamp(1 << 10, BATCH)
    }

    fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.begun) as u128 > (self.window / PARTS).as_nanos()
    }
}

impl Engine {
    /// Takes the place of writing to the sink.
    pub(super) fn keep(&mut self) {
        let now = clock::system(libc::CLOCK_BOOTTIME);
        let processes = self.member.as_ref().map_or(1, |m| m.page().recording().len() as u32);
        let Some(flight) = &mut self.flight else { return };
        flight.processes = processes;
        if self.watch.is_some() {
            self.watch_open(now);
        }
        let Some(flight) = &self.flight else { return };
        if self.out.len() >= flight.full() || flight.is_old(now) {
            self.seal(now);
        }
        self.trim(now);
    }

    /// Slices that take too long need not have ended for that.
    fn watch_open(&mut self, now: u64) {
        for index in 0..self.threads.len() {
            if let Some(mut thread) = self.threads[index].take() {
                thread.watch(now, &mut self.context());
                self.threads[index] = Some(thread);
            }
        }
    }

    /// Ends the segment in progress.
    fn seal(&mut self, now: u64) {
        let (events, lost) = (self.totals.events, self.lost());
        let Some(flight) = &mut self.flight else { return };
        let full = flight.full();
        match Segment::pack(&flight.preamble, &self.out) {
            Ok(mut segment) => {
                (segment.begun, segment.ended) = (flight.begun, now);
                segment.events = events - flight.events_before;
                segment.lost_before = flight.lost_before;
                flight.ring.push(segment);
            }
            Err(error) => {
                flight.unkept += events - flight.events_before;
                self.write_errors += 1;
                self.failure = Some(error);
            }
        }
        self.bytes += self.out.len() as u64;
        self.out.clear();
        // A burst may have made it large.
        self.out.shrink_to(2 * full);
        flight.preamble = Vec::new();
        (flight.begun, flight.events_before, flight.lost_before) = (now, events, lost);
        let mut preamble = self.turn();
        preamble.shrink_to_fit();
        if let Some(flight) = &mut self.flight {
            flight.preamble = preamble;
        }
    }

    /// Lets go what is too old or too much. What a dump still wants is written before.
    fn trim(&mut self, now: u64) {
        let in_progress = self.out.capacity();
        while let Some(flight) = &mut self.flight {
            let wanted = flight.under_way.as_ref().map_or(u64::MAX, |dump| dump.next);
            let age = flight.window.as_nanos() as u64;
            let share = Share {
                memory: flight.memory() as usize,
                in_progress: in_progress + flight.preamble.capacity(),
                since: now.saturating_sub(age),
            };
            match flight.ring.excess(share).map(|segment| (segment.number, segment.ended)) {
                None => break,
                // Only old: there is time to write it.
                Some((number, _)) if number >= wanted && !flight.ring.is_over(share) => break,
                Some((number, _)) if number >= wanted => self.step(1),
                Some(_) => flight.ring.pop(),
            }
        }
    }

    /// Whether a dump is being written: then there is no time for a nap.
    pub(super) fn is_dumping(&self) -> bool {
        self.flight.as_ref().is_some_and(|f| f.under_way.is_some() || !f.orders.is_empty())
    }

    /// Begins and continues dumps.
    pub(super) fn dump(&mut self) {
        if self.flight.is_none() {
            return;
        }
        self.take_orders();
        let Some(flight) = &mut self.flight else { return };
        if flight.under_way.is_some() {
            return self.step(STEP);
        }
        if flight.alarmed && flight.orders.is_empty() {
            flight.alarmed = false;
            alarm::lower();
        }
        if let Some(order) = flight.orders.pop_front() {
            self.pass_all();
            self.leaves(Pass::Flush);
            self.seal(clock::system(libc::CLOCK_BOOTTIME));
            match self.open_dump(&order) {
                Ok(opened) => self.begin_dump(order, opened),
                Err(error) => self.dump_failed(order, error),
            }
        }
    }

    /// Collects what was asked for: by this program, by others, by slow slices.
    fn take_orders(&mut self) {
        let asked = self.shared.take_orders();
        let numbered = self.member.as_ref().map_or(0, |m| m.page().files());
        let slow = self.watch.as_mut().and_then(super::watch::Watch::take);
        let Some(flight) = &mut self.flight else { return };
        flight.orders.extend(asked);
        let next = |why: String| Order { target: Target::Next, why, answer: None };
        if alarm::is_raised() && !mem::replace(&mut flight.alarmed, true) {
            flight.orders.push_back(next("SIGABRT".to_owned()));
        }
        if let Some(why) = slow {
            // Once per window: the next dump would hold the same again.
            let again = flight.watched.is_some_and(|at| at.elapsed() < flight.window);
            if !again {
                flight.watched = Some(Instant::now());
                flight.orders.push_back(next(why));
            }
        }
        let ours = flight.orders.iter().filter(|order| order.target == Target::Next).count();
        if ours == 0 && flight.under_way.is_none() && numbered > flight.files {
            flight.orders.push_back(next("another process asked".to_owned()));
        }
    }

    fn open_dump(&mut self, order: &Order) -> Result<Opened, Error> {
        let config = &self.shared.config;
        let Some(flight) = &mut self.flight else { return Err(Error::NoFlight) };
        match (&order.target, &self.member) {
            (Target::Path(path), _) => Ok((path.clone(), sink::open_file(config, path)?, None)),
            (Target::Next, None) => {
                flight.files += 1;
                let path = config.numbered_path(flight.files);
                let sink = sink::open_file(config, &path)?;
                Ok((path, sink, None))
            }
            (Target::Next, Some(member)) => {
                let page = member.page();
                // One that others began, or the next one.
                let number =
                    if page.files() > flight.files { flight.files + 1 } else { page.next_file() };
                flight.files = number;
                let (sink, file) = Numbered::join(page, config, number)?;
                Ok((config.numbered_path(number), sink, Some(file)))
            }
        }
    }

    fn begin_dump(&mut self, order: Order, (path, sink, file): Opened) {
        let lost = self.lost();
        let Some(flight) = &mut self.flight else { return };
        let (first, last) = (flight.ring.segments().next(), flight.ring.segments().last());
        let (next, begun, before) =
            first.map_or((0, 0, lost), |s| (s.number, s.begun, s.lost_before));
        let ended = last.map_or(begun, |segment| segment.ended);
        let done = Dump {
            path,
            why: order.why.clone(),
            events: 0,
            lost: lost - before,
            covers: Duration::from_nanos(ended - begun),
            bytes: 0,
            held: 0,
        };
        let last = last.map_or(0, |segment| segment.number);
        let dump = UnderWay { sink, order, next, last, first: true, begun, done, file };
        flight.under_way = Some(dump);
        self.step(STEP);
    }

    /// Writes up to so many bytes of the dump under way, at least a segment; ends it when
    /// all is written.
    fn step(&mut self, bytes: u64) {
        let Some(flight) = &mut self.flight else { return };
        let Some(mut dump) = flight.under_way.take() else { return };
        let until = dump.done.bytes + bytes;
        let mut result = Ok(());
        let mut plain = Vec::new();
        while result.is_ok() && dump.done.bytes < until {
            let Some(segment) = flight.ring.from(dump.next).filter(|s| s.number <= dump.last)
            else {
                return self.end_dump(dump);
            };
            plain.clear();
            result = segment.unpack(dump.first, &mut plain).and_then(|()| dump.sink.write(&plain));
            (dump.first, dump.next) = (false, segment.number + 1);
            dump.done.events += segment.events;
            dump.done.bytes += plain.len() as u64;
            dump.done.held += segment.held() as u64;
        }
        match result {
            Ok(()) => flight.under_way = Some(dump),
            Err(source) => {
                let path = dump.done.path.clone();
                self.dump_failed(dump.order, Error::Output { path, source });
            }
        }
    }

    /// The closing words of a dump: what it is, and what is missing in it.
    fn end_dump(&mut self, mut dump: UnderWay) {
        let mut words = Vec::new();
        let sequence = self.process.sequence.id();
        if dump.file.is_none() {
            packet::clock_snapshot(&mut words, sequence, &clock::snapshot());
        }
        let prefix = format!("kymograph.{}", self.process.pid);
        let keys = ["events", "lost", "flight.began", "dump.why"].map(|k| format!("{prefix}.{k}"));
        let number = |n: u64| Fact::Number(n as i64);
        let facts = [
            (&*keys[0], number(dump.done.events)),
            (&*keys[1], number(dump.done.lost)),
            (&*keys[2], number(dump.begun)),
            (&*keys[3], Fact::Text(&dump.done.why)),
        ];
        packet::trace_attributes(&mut words, sequence, &facts);
        let (events, lost) = (dump.done.events, dump.done.lost);
        let lost = dump.file.as_ref().map_or(lost, |file| file.add(events, lost, dump.done.bytes));
        if lost > 0 {
            packet::trace_stats(&mut words, sequence, self.buffer, lost, &[]);
        }
        dump.done.bytes += words.len() as u64;
        match dump.sink.write(&words).and_then(|()| dump.sink.finish()) {
            Ok(()) => {
                if let Some(answer) = dump.order.answer.take() {
                    // Who asked may have lost patience.
                    let _ = answer.send(Ok(dump.done));
                }
            }
            Err(source) => {
                let path = dump.done.path.clone();
                self.dump_failed(dump.order, Error::Output { path, source });
            }
        }
    }

    /// The recording goes on; the failure is counted, and told to whoever asked.
    fn dump_failed(&mut self, order: Order, error: Error) {
        self.write_errors += 1;
        let what = format!("a dump lacks process {}: {error}", self.process.pid);
        self.process.note(what.as_bytes());
        self.failure = Some(io::Error::other(error.to_string()));
        if let Some(member) = &self.member {
            member.page().count_write_error();
        }
        if let Some(answer) = order.answer {
            let _ = answer.send(Err(error));
        }
    }

    /// The recording ends: dumps that were asked for are written to their end, and then
    /// what is left goes into the output, if it is to.
    pub(super) fn keep_last(&mut self) {
        while self.is_dumping() {
            self.dump();
        }
        self.seal(clock::system(libc::CLOCK_BOOTTIME));
        let lost = self.lost();
        let exit = self.shared.config.dump_on.exit;
        let Some(flight) = &mut self.flight else { return };
        let kept: u64 = flight.ring.segments().map(|segment| segment.events).sum();
        let mut segments = flight.ring.segments().peekable();
        let before = segments.peek().map_or(lost, |first| first.lost_before);
        let (mut plain, mut first, mut result) = (Vec::new(), true, Ok(()));
        for segment in segments.take_while(|_| exit) {
            plain.clear();
            result = segment.unpack(first, &mut plain).and_then(|()| self.sink.write(&plain));
            first = false;
            if result.is_err() {
                break;
            }
        }
        flight.last = if exit { (kept, lost - before) } else { (0, 0) };
        // Of several processes `kymo` says how much they lost together.
        if exit && lost > before && result.is_ok() && self.member.is_none() {
            let mut words = Vec::new();
            let sequence = self.process.sequence.id();
            packet::trace_stats(&mut words, sequence, self.buffer, lost - before, &[]);
            result = self.sink.write(&words);
        }
        match result {
            Ok(()) if exit => self.events_written = kept,
            Ok(()) => flight.ring.gone_events += kept,
            Err(error) => self.failed(error),
        }
        mem::take(&mut self.out);
    }
}
