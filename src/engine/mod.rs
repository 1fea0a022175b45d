//! The engine: it empties the queues of a process, turns records into packets and writes
//! them.
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

mod capture;
mod context;
pub(crate) mod control_block;
mod counters;
mod device;
mod drain;
mod edges;
pub(crate) mod ending;
mod flight_recorder;
mod groups;
pub(crate) mod host;
mod inventory;
mod lanes;
mod metadata;
pub(crate) mod names;
mod nesting;
pub(crate) mod origin;
mod output;
mod parts;
mod process;
mod ranges;
mod record;
mod restart;
mod run;
mod sequences;
mod spans;
pub(crate) mod stats;
mod steps;
#[cfg(test)]
mod tests;
mod thread;
mod tracks;
mod undecided;
mod watch;
pub(crate) mod window;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use kymograph_protos::packet;

use crate::clock::{self, Anchor, Converter};
use crate::page::{self, Patterns};
use crate::sink::Sink;
use capture::Capture;
use context::{Context, Totals};
use control_block::Shared;
use flight_recorder::Flight;
use lanes::Lanes;
use origin::Origin;
use output::{MAX_KEPT, Output};
use parts::Parts;
use process::Process;
use sequences::Sequences;
use stats::{Summary, ThreadStats};
use watch::Watch;

/// See the module.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    origin: Origin,
    /// Memory for records of the process, in bytes.
    buffer: u64,
    member: Option<page::Process>,
    sequences: Sequences,
    process: Process,
    lanes: Lanes,
    output: Output,
    converter: Converter,
    /// The time of this pass.
    clocks: packet::Snapshot,
    /// What all processes that write to the file state instead: readers want such statements
    /// in order, all through the file, and it is not known which process writes first.
    common: Option<packet::Snapshot>,
    /// The clocks as they were: set while a past is encoded.
    past: Option<packet::Snapshot>,
    started: u64,
    anchored: Instant,
    totals: Totals,
    /// Keeps the packets in memory, in the place of the sink.
    flight: Option<Flight>,
    watch: Option<Watch>,
    /// Ranges of the program open and close the window.
    capture: Option<Capture>,
    /// What is held at the end is in a dump.
    dumped: bool,
    parts: Option<Parts>,
}

impl Engine {
    /// Gets ready to encode what `origin` records. `first` was taken when the recording
    /// started; `converter` knows the ticks of the process.
    pub(crate) fn new(
        shared: Arc<Shared>,
        origin: Origin,
        sink: Box<dyn Sink>,
        member: Option<page::Process>,
        first: Anchor,
        converter: Converter,
    ) -> Engine {
        let config = &shared.config;
        let page = member.as_ref().map(|member| member.page().clone());
        let common = page.as_ref().map(|page| page.clocks());
        // Dumps that were asked for before there was anything to keep are none of ours.
        let dumps = page
            .as_ref()
            .map_or(0, |page| page.files().saturating_sub(u32::from(page.asked() >= first.nanos)));
        let mut sequences = Sequences::new(page.clone());
        let salt = member.as_ref().map_or(origin.pid, page::Process::serial);
        let mut process = Process::of(&origin, sequences.take(), salt);
        process.devices.inventory.share(page);
        process.devices.serial = member.as_ref().map_or(0, page::Process::serial);
        let now = Instant::now();
        Engine {
            buffer: config.buffer,
            member,
            sequences,
            process,
            lanes: Lanes::new(now),
            output: Output::new(sink, config.flush, now),
            converter,
            clocks: clock::snapshot(),
            common,
            past: None,
            started: first.ticks,
            anchored: now,
            totals: Totals::default(),
            flight: Flight::new(config, dumps),
            watch: config.flight.and_then(|_| Watch::new(&config.dump_on)),
            capture: shared.captures.rule().map(|rule| Capture::new(rule, first.ticks)),
            dumped: false,
            parts: Parts::new(config),
            origin,
            shared,
        }
    }

    /// What is encoded is past: from here on it is this time. Not before [`Engine::begin`] is
    /// it any other.
    pub(crate) fn it_was(&mut self, clocks: packet::Snapshot) {
        self.past = Some(clocks);
        self.clocks = clocks;
    }

    /// The clocks of now, or of then.
    fn now(&self) -> packet::Snapshot {
        self.past.unwrap_or_else(clock::snapshot)
    }

    fn describe(&mut self) {
        let stated = self.common.unwrap_or(self.clocks);
        self.process.describe(&mut self.output.packets, self.clocks.boottime, &stated);
    }

    fn context(&mut self) -> Context<'_> {
        let window = &self.shared.window;
        let moment = nesting::MOMENT.as_nanos() as u64;
        Context {
            recent: self.converter.ticks(self.clocks.boottime.saturating_sub(moment)),
            window,
            bounds: window.bounds(&self.converter),
            out: &mut self.output.packets,
            origin: &self.origin,
            strings: &self.origin.strings,
            converter: &self.converter,
            clocks: self.clocks,
            stated: self.common.unwrap_or(self.clocks),
            started: self.started,
            process: &mut self.process,
            totals: &mut self.totals,
            restarts: self.flight.is_some() || self.parts.is_some(),
            watch: self.watch.as_mut(),
        }
    }

    /// Losses in all: events without room, events from inside a push, events of threads
    /// without a lane, events that could not be written.
    fn lost(&self) -> u64 {
        let now: u64 =
            self.lanes.threads.iter().flatten().map(|t| t.reader.losses().events()).sum();
        let unwritten = if self.output.given_up { self.pending() } else { 0 };
        let unkept = self.flight.as_ref().map_or(0, |flight| flight.unkept);
        now + self.lanes.gone.events() + self.origin.pool.homeless() + unwritten + unkept
    }

    /// Events that are neither written nor let go on purpose.
    fn pending(&self) -> u64 {
        let aside = self.flight.as_ref().map_or(0, |f| f.discarded() + f.unkept);
        self.totals.events - self.output.events - aside
    }

    /// Hands everything to the sink.
    fn write(&mut self) {
        self.output.flushed = Instant::now();
        let lost = self.lost();
        if self.flight.is_some() {
            self.retain();
        } else if (lost > self.output.lost_stated || self.output.loss_marked)
            && !self.output.given_up
        {
            self.output.loss_marked = false;
            let new = lost - std::mem::replace(&mut self.output.lost_stated, lost);
            self.tell_page(lost);
            let all = || self.member.as_ref().map_or(lost, |m| m.page().totals().lost);
            let total = self.parts.as_mut().map_or_else(all, |parts| parts.lost(new));
            let losers =
                self.lanes.threads.iter().flatten().filter(|t| t.reader.losses().events() > 0);
            self.lanes.lossy.extend(losers.map(|t| t.sequence.id()));
            let losers: Vec<u32> = self.lanes.lossy.iter().copied().collect();
            packet::trace_stats(
                &mut self.output.packets,
                self.process.sequence.id(),
                self.buffer,
                total,
                &losers,
            );
        }
        if self.output.given_up {
            self.output.packets.clear();
        } else if !self.output.packets.is_empty() && self.flight.is_none() {
            match self.output.sink.write(&self.output.packets) {
                Ok(()) => {
                    self.shared.moves();
                    self.output.bytes += self.output.packets.len() as u64;
                    if let Some(parts) = &mut self.parts {
                        parts.wrote(
                            self.totals.events - self.output.events,
                            self.output.packets.len(),
                        );
                    }
                    self.output.events = self.totals.events;
                    self.output.packets.clear();
                    if let Some(trouble) = self.output.sink.trouble() {
                        self.output.errors += 1;
                        self.output.failure = Some(trouble);
                    }
                }
                Err(error) => self.failed(error),
            }
        }
        self.tell_page(self.lost());
        self.publish();
    }

    fn failed(&mut self, error: io::Error) {
        self.output.errors += 1;
        let hopeless = matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::NotConnected
        );
        if hopeless || self.output.packets.len() > MAX_KEPT {
            self.output.given_up = true;
            self.output.packets = Vec::new();
            self.shared.recording_ends();
        }
        self.output.failure = Some(error);
    }

    /// Adds what is new to the totals that `kymo record` shows.
    fn tell_page(&mut self, lost: u64) {
        if let Some(member) = &self.member {
            let (events_before, lost_before, bytes, threads) = self.output.told_page;
            // A flight recorder counts what is in the output when all is over.
            let now = (self.output.events, lost);
            let (events, lost) = self.flight.as_ref().map_or(now, Flight::last);
            let page = member.page();
            page.add(events - events_before, lost - lost_before, self.output.bytes - bytes);
            page.add_threads((self.lanes.count - threads) as u32);
            self.output.told_page = (events, lost, self.output.bytes, self.lanes.count);
            self.process.new_notes().iter().for_each(|note| page.note(note));
            if let Some(watch) = &self.watch {
                page.match_patterns(Patterns::Slow, watch.matched());
            }
        }
    }

    /// Lets others see how it is going.
    fn publish(&self) {
        self.shared.publish(self.summary(), || {
            self.lanes
                .threads
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
            events: self.output.events,
            discarded,
            lost: self.lost(),
            reentrant: self.lanes.gone.reentrant
                + self
                    .lanes
                    .threads
                    .iter()
                    .flatten()
                    .map(|t| t.reader.losses().reentrant)
                    .sum::<u64>(),
            truncated: self.lanes.gone.truncated
                + self
                    .lanes
                    .threads
                    .iter()
                    .flatten()
                    .map(|t| t.reader.losses().truncated)
                    .sum::<u64>(),
            unmatched_ends: self.totals.unmatched_ends,
            misnested: self.totals.misnested,
            clamped: self.totals.clamped,
            unknown: self.totals.unknown,
            unwritten: pending,
            threads: self.lanes.count,
            bytes: self.output.bytes,
            write_errors: self.output.errors,
            failure: self.output.failure.as_ref().map(ToString::to_string),
        }
    }
}
