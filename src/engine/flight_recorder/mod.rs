//! The engine as a flight recorder: keeps what it encodes. See [`crate::flight`].

mod dumps;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Engine;
use super::lanes::BATCH;
use super::output::FULL;
use crate::clock;
use crate::config::Config;
use crate::flight::{Order, Ring, Segment, Share};
use crate::page::Page;
use dumps::UnderWay;

/// The window is kept in about this many segments: a dump holds as much more than asked
/// for as the oldest of them.
const PARTS: u32 = 16;
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
    /// Since when sources are waited for, before the next dump begins.
    flushing: Option<Instant>,
    /// Nothing is waited for any more.
    ends: bool,
    /// Numbered files that this process has written to, or begun to.
    files: u32,
    /// When a slow slice last caused a dump.
    watched: Option<Instant>,
    /// Whether a thread waits in the handler of SIGABRT for a dump.
    alarmed: bool,
    /// Events of this process that are in the output, and those that the output lacks.
    last: (u64, u64),
}

impl Flight {
    /// `files`: the numbered files that were there before there was anything to keep.
    pub(super) fn new(config: &Config, files: u32) -> Option<Flight> {
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
            flushing: None,
            ends: false,
            files,
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

    /// What ended before this time is no longer needed: the window before `now`, or
    /// before the oldest dump that has not begun, when that was asked for sooner.
    fn since(&self, now: u64, oldest_order: Option<u64>, page: Option<&Page>) -> u64 {
        let ours = self.orders.iter().map(|order| order.asked).chain(oldest_order);
        let theirs = page.filter(|page| page.files() > self.files).map(Page::asked);
        let asked = ours.chain(theirs).fold(now, u64::min);
        // Other processes hear of a dump only when the engine of who was asked has come to it.
        let later = page.map_or(Duration::ZERO, |_| self.window / PARTS);
        asked.saturating_sub((self.window + later).as_nanos() as u64)
    }

    fn is_old(&self, now: u64) -> bool {
        now.saturating_sub(self.begun) as u128 > (self.window / PARTS).as_nanos()
    }
}

impl Engine {
    /// Takes the place of writing to the sink.
    pub(super) fn retain(&mut self) {
        let now = clock::system(libc::CLOCK_BOOTTIME);
        let processes = self.member.as_ref().map_or(1, |m| m.page().recording());
        let Some(flight) = &mut self.flight else { return };
        flight.processes = processes;
        if self.watch.is_some() {
            self.watch_open(now);
        }
        let Some(flight) = &self.flight else { return };
        if self.output.packets.len() >= flight.full() || flight.is_old(now) {
            self.seal(now);
        }
        self.trim(now);
    }

    /// Slices that take too long need not have ended for that.
    fn watch_open(&mut self, now: u64) {
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                thread.watch(now, &mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
    }

    /// Ends the segment in progress.
    fn seal(&mut self, now: u64) {
        let (events, lost) = (self.totals.events, self.lost());
        let Some(flight) = &mut self.flight else { return };
        let full = flight.full();
        match Segment::pack(&flight.preamble, &self.output.packets) {
            Ok(mut segment) => {
                (segment.begun, segment.ended) = (flight.begun, now);
                segment.events = events - flight.events_before;
                segment.lost_before = flight.lost_before;
                flight.ring.push(segment);
            }
            Err(error) => {
                flight.unkept += events - flight.events_before;
                self.output.errors += 1;
                self.output.failure = Some(error);
            }
        }
        self.output.bytes += self.output.packets.len() as u64;
        self.output.packets.clear();
        // A burst may have made it large.
        self.output.packets.shrink_to(2 * full);
        flight.preamble = Vec::new();
        (flight.begun, flight.events_before, flight.lost_before) = (now, events, lost);
        let mut preamble = self.restart();
        preamble.shrink_to_fit();
        if let Some(flight) = &mut self.flight {
            flight.preamble = preamble;
        }
    }

    /// Lets go what is too old or too much. What a dump still wants is written before.
    fn trim(&mut self, now: u64) {
        let in_progress = self.output.packets.capacity();
        let oldest_order = self.shared.oldest_order();
        let page = self.member.as_ref().map(|member| member.page().clone());
        while let Some(flight) = &mut self.flight {
            let wanted = flight.under_way.as_ref().map_or(u64::MAX, |dump| dump.next);
            let share = Share {
                memory: flight.memory() as usize,
                in_progress: in_progress + flight.preamble.capacity(),
                since: flight.since(now, oldest_order, page.as_deref()),
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
}
