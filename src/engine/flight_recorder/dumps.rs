//! What a flight recorder holds is written: who asked for it, and how far it is.

use std::io;
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymograph_protos::packet::{self, Fact};

use super::super::Engine;
use super::super::nesting::Pass;
use super::super::watch::Watch;
use super::Flight;
use crate::clock;
use crate::error::Error;
use crate::flight::{Dump, Order, Target, alarm};
use crate::sink::{self, Numbered, Sink};

/// Bytes of packets written to a dump before the queues get their turn again.
const STEP: u64 = 4 << 20;
/// How long sources may take to push what they have.
const SOURCES: Duration = Duration::from_secs(2);

/// A file for a dump, and this process's part in it if others have one, too.
type Opened = (PathBuf, Box<dyn Sink>, Option<Numbered>);

/// A dump that is being written.
pub(super) struct UnderWay {
    sink: Box<dyn Sink>,
    order: Order,
    /// The next segment to be written, and the last.
    pub next: u64,
    last: u64,
    first: bool,
    begun: u64,
    done: Dump,
    /// Slices that have begun and are in none of the segments.
    undecided: Vec<u8>,
    /// This process's part in it: dropped when that is written.
    file: Option<Numbered>,
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnderWay").field("order", &self.order).finish_non_exhaustive()
    }
}

/// How far what is kept reaches back.
pub(super) struct Reach {
    /// The time, in nanoseconds of `CLOCK_BOOTTIME`.
    begun: u64,
    /// How much of the window is missing, that memory had no room for.
    pub missing: Duration,
}

impl Flight {
    /// How far what is kept reaches back, for a dump that was asked for at this time.
    pub(super) fn reach(&self, asked: u64) -> Reach {
        let Some(first) = self.ring.segments().next() else {
            return Reach { begun: asked, missing: Duration::ZERO };
        };
        let held = Duration::from_nanos(asked.saturating_sub(first.begun));
        // Before the very first one there was nothing.
        let wanted = if first.number == 0 { Duration::ZERO } else { self.window };
        Reach { begun: first.begun, missing: wanted.saturating_sub(held) }
    }
}

impl Engine {
    /// Whether a dump is being written, or could be: then there is no time for a nap.
    pub(in crate::engine) fn is_dumping(&self) -> bool {
        let ready = |f: &Flight| !f.orders.is_empty() && f.flushing.is_none();
        self.flight.as_ref().is_some_and(|f| f.under_way.is_some() || ready(f))
    }

    /// Begins and continues dumps.
    pub(in crate::engine) fn dump(&mut self) {
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
        // It stays in its place meanwhile: that keeps what it is to hold.
        let Some(order) = flight.orders.front() else { return };
        if !order.flushed && !flight.ends {
            let since = *flight.flushing.get_or_insert_with(Instant::now);
            if !self.shared.host.flush_sources() && since.elapsed() < SOURCES {
                return;
            }
            flight.flushing = None;
        }
        self.pass_all();
        self.leaves(Pass::Flush);
        self.seal(clock::system(libc::CLOCK_BOOTTIME));
        let order = self.flight.as_mut().and_then(|flight| flight.orders.pop_front());
        let Some(order) = order else { return };
        let undecided = self.undecided();
        match self.open_dump(&order) {
            Ok(opened) => self.begin_dump(order, opened, undecided),
            Err(error) => self.dump_failed(order, error),
        }
    }

    /// Collects what was asked for: by this program, by others, by slow slices.
    fn take_orders(&mut self) {
        let now = clock::system(libc::CLOCK_BOOTTIME);
        let asked = self.shared.take_orders();
        let (numbered, theirs) =
            self.member.as_ref().map_or((0, now), |m| (m.page().files(), m.page().asked()));
        let slow = self.watch.as_mut().and_then(Watch::take);
        let Some(flight) = &mut self.flight else { return };
        flight.orders.extend(asked);
        if let (Some(at), false) = (alarm::raised(), flight.alarmed) {
            flight.alarmed = true;
            flight.orders.push_back(Order::new(Target::Next, "SIGABRT", at));
        }
        if let Some(why) = slow {
            // Once per window: the next dump would hold the same again.
            let again = flight.watched.is_some_and(|at| at.elapsed() < flight.window);
            if !again {
                flight.watched = Some(Instant::now());
                flight.orders.push_back(Order::new(Target::Next, why, now));
            }
        }
        let ours = flight.orders.iter().filter(|order| order.target == Target::Next).count();
        if ours == 0 && flight.under_way.is_none() && numbered > flight.files {
            let why = "another process asked";
            flight.orders.push_back(Order::new(Target::Next, why, theirs.min(now)));
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
                let begun = page.files() > flight.files;
                let number = if begun { flight.files + 1 } else { page.next_file(order.asked) };
                flight.files = number;
                let (sink, file) = Numbered::join(page, config, number, self.origin.pid)?;
                Ok((config.numbered_path(number), sink, Some(file)))
            }
        }
    }

    fn begin_dump(&mut self, order: Order, (path, sink, file): Opened, undecided: Vec<u8>) {
        let lost = self.lost();
        let Some(flight) = &mut self.flight else { return };
        let reach = flight.reach(order.asked);
        let (first, last) = (flight.ring.segments().next(), flight.ring.segments().last());
        let (next, before) = first.map_or((0, lost), |s| (s.number, s.lost_before));
        let done = Dump {
            path,
            why: order.why.clone(),
            events: 0,
            lost: lost - before,
            covers: Duration::from_nanos(order.asked.saturating_sub(reach.begun)),
            missing: reach.missing,
            bytes: 0,
            held: 0,
        };
        let last = last.map_or(0, |segment| segment.number);
        let begun = reach.begun;
        let dump = UnderWay { sink, order, next, last, first: true, begun, done, undecided, file };
        flight.under_way = Some(dump);
        self.step(STEP);
    }

    /// Writes up to so many bytes of the dump under way, at least a segment; ends it when
    /// all is written.
    pub(super) fn step(&mut self, bytes: u64) {
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
        let mut words = mem::take(&mut dump.undecided);
        let sequence = self.process.sequence.id();
        if dump.file.is_none() {
            packet::clock_snapshot(&mut words, sequence, &clock::snapshot());
        }
        let prefix = format!("kymograph.{}", self.process.pid);
        let keys = ["events", "lost", "flight.began", "dump.why"].map(|k| format!("{prefix}.{k}"));
        let number = |n: u64| Fact::Number(n as i64);
        let metadata = [
            (&*keys[0], number(dump.done.events)),
            (&*keys[1], number(dump.done.lost)),
            (&*keys[2], number(dump.begun)),
            (&*keys[3], Fact::Text(&dump.done.why)),
        ];
        packet::trace_attributes(&mut words, sequence, &metadata);
        if !dump.done.missing.is_zero() {
            self.state_short(dump.done.missing, &mut words);
        }
        let (events, lost) = (dump.done.events, dump.done.lost);
        let lost = dump.file.as_ref().map_or(lost, |file| file.add(events, lost, dump.done.bytes));
        if lost > 0 {
            packet::trace_stats(&mut words, sequence, self.buffer, lost, &[]);
        }
        dump.done.bytes += words.len() as u64;
        match dump.sink.write(&words).and_then(|()| dump.sink.finish()) {
            Ok(()) => {
                if let Some(answer) = dump.order.answer.take() {
                    // The caller may have given up.
                    let _ = answer.send(Ok(dump.done));
                }
            }
            Err(source) => {
                let path = dump.done.path.clone();
                self.dump_failed(dump.order, Error::Output { path, source });
            }
        }
    }

    /// Memory did not suffice for the window: said in the trace, and to `kymo record`.
    pub(super) fn state_short(&self, missing: Duration, words: &mut Vec<u8>) {
        let Some(window) = self.shared.config.flight else { return };
        let held = window.saturating_sub(missing);
        let text = format!("{held:.3?} of {window:?}: FLIGHT_MEMORY was full");
        let key = format!("kymograph.{}.flight.short", self.process.pid);
        let fact = [(&*key, Fact::Text(&text))];
        packet::trace_attributes(words, self.process.sequence.id(), &fact);
        if let Some(member) = &self.member {
            member.page().note(&format!(
                "the flight recorder held less than the {window:?} asked for when it was \
                 written: its memory was full; give it more with --memory"
            ));
        }
    }

    /// The recording goes on; the failure is counted, and reported to the requester.
    fn dump_failed(&mut self, order: Order, error: Error) {
        self.output.errors += 1;
        let what = format!("a dump lacks process {}: {error}", self.process.pid);
        self.process.note(what.as_bytes());
        self.output.failure = Some(io::Error::other(error.to_string()));
        if let Some(member) = &self.member {
            member.page().count_write_error();
        }
        if let Some(answer) = order.answer {
            let _ = answer.send(Err(error));
        }
    }

    /// The recording ends: dumps that were asked for are written to their end, and then
    /// what is left goes into the output, if it is `wanted`.
    pub(in crate::engine) fn finish_flight(&mut self, wanted: bool) {
        self.take_orders();
        if let Some(flight) = &mut self.flight {
            (flight.ends, flight.flushing) = (true, None);
        }
        while self.is_dumping() {
            self.dump();
        }
        let now = clock::system(libc::CLOCK_BOOTTIME);
        self.seal(now);
        let lost = self.lost();
        let Some(flight) = &mut self.flight else { return };
        let missing = flight.reach(now).missing;
        let kept: u64 = flight.ring.segments().map(|segment| segment.events).sum();
        let mut segments = flight.ring.segments().peekable();
        let before = segments.peek().map_or(lost, |first| first.lost_before);
        let (mut plain, mut first, mut result) = (Vec::new(), true, Ok(()));
        for segment in segments.take_while(|_| wanted) {
            plain.clear();
            result =
                segment.unpack(first, &mut plain).and_then(|()| self.output.sink.write(&plain));
            first = false;
            if result.is_err() {
                break;
            }
        }
        flight.last = if wanted { (kept, lost - before) } else { (0, 0) };
        let mut words = Vec::new();
        if wanted && !missing.is_zero() {
            self.state_short(missing, &mut words);
        }
        // Of several processes `kymo` says how much they lost together.
        if wanted && lost > before && self.member.is_none() {
            let sequence = self.process.sequence.id();
            packet::trace_stats(&mut words, sequence, self.buffer, lost - before, &[]);
        }
        if !words.is_empty() && result.is_ok() {
            result = self.output.sink.write(&words);
        }
        let Some(flight) = &mut self.flight else { return };
        match result {
            Ok(()) if wanted => self.output.events = kept,
            Ok(()) => flight.ring.gone_events += kept,
            Err(error) => self.failed(error),
        }
        mem::take(&mut self.output.packets);
    }
}
