//! The engine: one background thread that empties the queues, turns records into packets
//! and writes them.
//!
//! ```text
//!  Reader ─slots─► Thread ──────► packets ─► out ─flush─► Sink
//!  (per lane)      (nesting,        ▲
//!                   names)          │
//!                  Process ─────────┘
//!                  (counters, ranges, tracks)
//! ```
//! It wakes up every few milliseconds, so that producers find room, and writes to the
//! sink every flush interval. What it has handed to the sink is a valid trace.
//!
//! When the sink fails, the packets are kept and offered again, up to a bound; then the
//! recording is given up: nothing more is written, everything is counted.

mod chapter;
mod context;
mod counters;
mod device;
mod drain;
mod edges;
mod facts;
mod groups;
pub(crate) mod identity;
pub(crate) mod job;
mod keep;
mod nesting;
mod parts;
mod process;
mod ranges;
mod record;
mod sequences;
mod spans;
mod steps;
mod thread;
mod undecided;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kymograph_protos::packet;
use kymograph_protos::record::{Slot, StrId};

use crate::clock::{self, Anchor, Converter};
use crate::config::Config;
use crate::control::{self, Page, State};
use crate::intern::INTERNER;
use crate::queue::{Losses, POOL};
use crate::recording::{Request, Shared, Summary, ThreadStats};
use crate::sink::Sink;
use crate::sources;
use context::{Context, Totals};
use keep::Flight;
use nesting::Pass;
use parts::Parts;
use process::Process;
use sequences::Sequences;
use spans::Spans;
use thread::Thread;
use watch::Watch;

/// Slots turned into packets before the next lane gets its turn.
const BATCH: usize = 1 << 15;
/// Bytes of packets at which they are written without waiting for the flush interval.
const FULL: usize = 1 << 20;
/// How long sources may take when others close the recording.
const CLOSING_PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of packets kept for a sink that fails.
const MAX_KEPT: usize = 16 << 20;

/// See the module.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    sink: Box<dyn Sink>,
    flush: Duration,
    buffer: u64,
    member: Option<control::Process>,
    sequences: Sequences,
    process: Process,
    threads: Vec<Option<Thread>>,
    converter: Converter,
    /// The time of this pass.
    clocks: packet::Snapshot,
    /// What all processes that write to the file state instead: readers want such statements
    /// in order, all through the file, and nobody knows who writes first.
    common: Option<packet::Snapshot>,
    started: u64,
    anchored: Instant,
    flushed: Instant,
    totals: Totals,
    /// Losses of threads that ended.
    gone: Losses,
    /// Sequences of threads that lost something and ended.
    lossy: BTreeSet<u32>,
    /// A sequence says that something is missing since losses were last stated:
    /// trace_processor counts only what it has read before the statement.
    loss_marked: bool,
    thread_count: u64,
    out: Vec<u8>,
    scratch: Vec<Slot>,
    bytes: u64,
    /// `totals.events` when the sink last took everything.
    events_written: u64,
    write_errors: u64,
    failure: Option<io::Error>,
    /// A lane was not emptied in the last pass.
    behind: bool,
    /// Nothing is written any more.
    given_up: bool,
    /// Keeps the packets in memory, in the place of the sink.
    flight: Option<Flight>,
    watch: Option<Watch>,
    parts: Option<Parts>,
    /// Losses that the trace states, and that the control page knows.
    lost_stated: u64,
    told_page: (u64, u64, u64, u64),
}

impl Engine {
    /// Calibrates the clock (some milliseconds) and gets ready. `first` was taken when the
    /// recording started.
    pub(crate) fn new(
        shared: Arc<Shared>,
        config: &Config,
        sink: Box<dyn Sink>,
        page: Option<Arc<Page>>,
        first: Anchor,
    ) -> Engine {
        let member = page.as_ref().map(Page::register);
        let common = page.as_ref().map(|page| page.clocks());
        // Dumps that were asked for before there was anything to keep are none of ours.
        let dumps = page
            .as_ref()
            .map_or(0, |page| page.files().saturating_sub(u32::from(page.asked() >= first.nanos)));
        let mut sequences = Sequences::new(page);
        let salt = member.as_ref().map_or(std::process::id(), control::Process::serial);
        let mut process = Process::this(sequences.take(), salt, config.process_name.as_deref());
        process.devices.serial = member.as_ref().map_or(0, control::Process::serial);
        process.correlation = INTERNER.intern_patiently(StrId::NONE, b"correlation");
        // A flight recorder forgets where they began.
        if config.records("gpu_user_annotation") {
            process.spans =
                Spans::new(INTERNER.intern_patiently(StrId::NONE, b"gpu_user_annotation"));
        }
        if let (Some(desk), None) = (control::desk(), &config.process_name) {
            process.name = desk.names.process().unwrap_or(process.name);
        }
        std::thread::sleep(Duration::from_millis(2));
        let now = Instant::now();
        Engine {
            shared,
            sink,
            flush: config.flush,
            buffer: config.buffer,
            member,
            sequences,
            process,
            threads: Vec::new(),
            converter: Converter::new(first, Anchor::now()),
            clocks: clock::snapshot(),
            common,
            started: first.ticks,
            anchored: now,
            flushed: now,
            totals: Totals::default(),
            gone: Losses::default(),
            lossy: BTreeSet::new(),
            loss_marked: false,
            thread_count: 0,
            out: Vec::with_capacity(FULL * 2),
            scratch: Vec::with_capacity(BATCH * 2),
            bytes: 0,
            events_written: 0,
            write_errors: 0,
            failure: None,
            behind: false,
            given_up: false,
            flight: Flight::new(config, dumps),
            watch: config.flight.and_then(|_| Watch::new(&config.dump_on)),
            parts: Parts::new(config),
            lost_stated: 0,
            told_page: (0, 0, 0, 0),
        }
    }

    /// Runs until it is told to stop.
    ///
    /// `attend` is called every few milliseconds: what else its thread has to look after.
    pub(crate) fn run(mut self, attend: &mut dyn FnMut()) {
        self.begin();
        // A small buffer fills sooner.
        let nap = Duration::from_millis((self.buffer >> 23).clamp(1, 10));
        let mut closing_since = None;
        loop {
            let busy = self.behind || self.is_dumping();
            let nap = if busy { Duration::ZERO } else { nap.min(self.flush) };
            let request = self.shared.wait(nap);
            attend();
            let page = self.member.as_ref().map(control::Process::page);
            let closing = matches!(request, Request::Close)
                || page.is_some_and(|page| page.state() != State::Recording);
            // What sources still have comes through the queues that are emptied here.
            let since: Instant = *closing_since.get_or_insert_with(Instant::now);
            let closed =
                closing && (sources::stop(Duration::ZERO) || since.elapsed() > CLOSING_PATIENCE);
            if matches!(request, Request::Stop) || closed {
                break;
            }
            if !closing {
                closing_since = None;
            }
            let due = self.flushed.elapsed() >= self.flush;
            if due && identity::is_alone() {
                self.end();
                // As the system does when the last thread ends.
                // SAFETY: no locks are held.
                unsafe { libc::exit(0) };
            }
            let asked = matches!(request, Request::Flush(_));
            if due || asked {
                if asked {
                    self.pass_all();
                    self.leaves(Pass::Flush);
                } else {
                    self.pass(Pass::Due);
                    self.leaves(Pass::Due);
                }
                self.write();
                self.rotate();
            } else {
                self.pass(Pass::Normal);
            }
            self.dump();
            if let Request::Flush(ticket) = request {
                self.shared.flushed(ticket);
            }
        }
        self.end();
    }

    fn begin(&mut self) {
        self.shared.moves();
        if self.parts.as_ref().is_some_and(Parts::is_before_the_first) {
            self.rotate();
        }
        self.describe();
        self.introduce();
        self.write();
    }

    fn end(mut self) {
        self.shared.recording_ends();
        self.pass(Pass::Last);
        self.shared.moves();
        self.leaves(Pass::Last);
        self.context().settle_spans(true);
        self.context().end_steps();
        self.state_the_rest();
        self.shared.moves();
        if self.common.is_none() {
            let sequence = self.process.sequence.id();
            packet::clock_snapshot(&mut self.out, sequence, &clock::snapshot());
        }
        self.totals.unmatched_ends += self.process.unmatched_ranges();
        self.state_facts();
        self.write();
        if self.flight.is_some() {
            self.keep_last();
        }
        if let Err(error) = self.sink.finish() {
            self.failed(error);
        }
        // What the sink has not taken by now it never will.
        self.given_up = true;
        self.tell_page(self.lost());
        let summary = self.summary();
        let edges = self.shared.window.bounds(&self.converter).nanos(&self.converter);
        let shared = self.shared.clone();
        // Before anybody hears that it is over: files closed, page left.
        drop(self);
        shared.ended(summary, edges);
    }

    /// At the end: losses and names after which their thread recorded nothing more.
    fn state_the_rest(&mut self) {
        self.clocks = clock::snapshot();
        self.describe();
        for index in 0..self.threads.len() {
            if let Some(mut thread) = self.threads[index].take() {
                thread.refresh_name(&mut self.context());
                let losses = thread.reader.losses();
                let untold = thread.untold(losses.events());
                if untold > 0 {
                    thread.lost(untold, &mut self.context());
                    self.loss_marked = true;
                }
                thread.describe_if_due(&mut self.context());
                self.threads[index] = Some(thread);
            }
        }
    }

    fn describe(&mut self) {
        let stated = self.common.unwrap_or(self.clocks);
        self.process.describe(&mut self.out, self.clocks.boottime, &stated);
    }

    fn context(&mut self) -> Context<'_> {
        let window = &self.shared.window;
        let moment = nesting::MOMENT.as_nanos() as u64;
        Context {
            recent: self.converter.ticks(self.clocks.boottime.saturating_sub(moment)),
            window,
            bounds: window.bounds(&self.converter),
            out: &mut self.out,
            strings: &INTERNER,
            converter: &self.converter,
            clocks: self.clocks,
            stated: self.common.unwrap_or(self.clocks),
            started: self.started,
            process: &mut self.process,
            totals: &mut self.totals,
            chapters: self.flight.is_some() || self.parts.is_some(),
            watch: self.watch.as_mut(),
        }
    }

    /// Losses in all: events without room, events from inside a push, events of threads
    /// without a lane, events that could not be written.
    fn lost(&self) -> u64 {
        let now: u64 = self.threads.iter().flatten().map(|t| t.reader.losses().events()).sum();
        let unwritten = if self.given_up { self.pending() } else { 0 };
        let unkept = self.flight.as_ref().map_or(0, |flight| flight.unkept);
        now + self.gone.events() + POOL.homeless() + unwritten + unkept
    }

    /// Events that are neither written nor let go on purpose.
    fn pending(&self) -> u64 {
        let aside = self.flight.as_ref().map_or(0, |f| f.discarded() + f.unkept);
        self.totals.events - self.events_written - aside
    }

    /// Hands everything to the sink.
    fn write(&mut self) {
        self.flushed = Instant::now();
        let lost = self.lost();
        if self.flight.is_some() {
            self.keep();
        } else if (lost > self.lost_stated || self.loss_marked) && !self.given_up {
            self.loss_marked = false;
            let new = lost - std::mem::replace(&mut self.lost_stated, lost);
            self.tell_page(lost);
            let all = || self.member.as_ref().map_or(lost, |m| m.page().totals().lost);
            let total = self.parts.as_mut().map_or_else(all, |parts| parts.lost(new));
            let losers = self.threads.iter().flatten().filter(|t| t.reader.losses().events() > 0);
            self.lossy.extend(losers.map(|t| t.sequence.id()));
            let losers: Vec<u32> = self.lossy.iter().copied().collect();
            packet::trace_stats(
                &mut self.out,
                self.process.sequence.id(),
                self.buffer,
                total,
                &losers,
            );
        }
        if self.given_up {
            self.out.clear();
        } else if !self.out.is_empty() && self.flight.is_none() {
            match self.sink.write(&self.out) {
                Ok(()) => {
                    self.shared.moves();
                    self.bytes += self.out.len() as u64;
                    if let Some(parts) = &mut self.parts {
                        parts.wrote(self.totals.events - self.events_written, self.out.len());
                    }
                    self.events_written = self.totals.events;
                    self.out.clear();
                    if let Some(trouble) = self.sink.trouble() {
                        self.write_errors += 1;
                        self.failure = Some(trouble);
                    }
                }
                Err(error) => self.failed(error),
            }
        }
        self.tell_page(self.lost());
        self.publish();
    }

    fn failed(&mut self, error: io::Error) {
        self.write_errors += 1;
        let hopeless = matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::NotConnected
        );
        if hopeless || self.out.len() > MAX_KEPT {
            self.given_up = true;
            self.out = Vec::new();
            self.shared.recording_ends();
        }
        self.failure = Some(error);
    }

    /// Adds what is new to the totals that `kymo record` shows.
    fn tell_page(&mut self, lost: u64) {
        if let Some(member) = &self.member {
            let (events_before, lost_before, bytes, threads) = self.told_page;
            // A flight recorder counts what is in the output when all is over.
            let now = (self.events_written, lost);
            let (events, lost) = self.flight.as_ref().map_or(now, Flight::last);
            let page = member.page();
            page.add(events - events_before, lost - lost_before, self.bytes - bytes);
            page.add_threads((self.thread_count - threads) as u32);
            self.told_page = (events, lost, self.bytes, self.thread_count);
            self.process.new_notes().iter().for_each(|note| page.note(note));
        }
    }

    /// Lets others see how it is going.
    fn publish(&self) {
        self.shared.publish(self.summary(), || {
            self.threads
                .iter()
                .flatten()
                .map(|t| ThreadStats {
                    tid: t.tid,
                    name: String::from_utf8_lossy(t.name()).into_owned(),
                    events: t.events,
                    lost: t.reader.losses().events(),
                })
                .collect()
        });
    }

    fn summary(&self) -> Summary {
        let pending = self.pending();
        let discarded = self.flight.as_ref().map_or(0, Flight::discarded);
        Summary {
            events: self.events_written,
            discarded,
            lost: self.lost(),
            reentrant: self.gone.reentrant
                + self.threads.iter().flatten().map(|t| t.reader.losses().reentrant).sum::<u64>(),
            truncated: self.gone.truncated
                + self.threads.iter().flatten().map(|t| t.reader.losses().truncated).sum::<u64>(),
            unmatched_ends: self.totals.unmatched_ends,
            misnested: self.totals.misnested,
            clamped: self.totals.clamped,
            unknown: self.totals.unknown,
            unwritten: pending,
            threads: self.thread_count,
            bytes: self.bytes,
            write_errors: self.write_errors,
            failure: self.failure.as_ref().map(ToString::to_string),
        }
    }
}
