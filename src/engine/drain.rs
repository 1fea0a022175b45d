//! Queues become packets: all lanes are emptied, again and again.

use std::time::Instant;

use kymograph_protos::packet;
use kymograph_protos::record::Slot;

use super::Engine;
use super::flight_recorder::Flight;
use super::lanes::BATCH;
use super::nesting::Pass;
use super::output::FULL;
use super::spans::Known;
use super::thread::Thread;
use crate::clock::{self, Anchor};
use crate::queue::{self, Drained, Moment, Pool, Reader};

/// Batches of one lane that are turned into packets in one pass, unless all must be.
const TURN: usize = 8;

impl Engine {
    /// Empties all queues of what was in them when it was called.
    pub(super) fn pass_all(&mut self) {
        // A thread that records as fast as that must not keep it from ending.
        let most = self.buffer as usize / size_of::<Slot>() / (TURN << 10) + 1;
        for _ in 0..most {
            self.pass(Pass::Flush);
            if !self.lanes.behind {
                break;
            }
        }
    }

    /// Empties all queues, as far as no lane keeps the others waiting.
    pub(super) fn pass(&mut self, pass: Pass) {
        if self.past.is_none() && self.anchored.elapsed() >= clock::ANCHOR_INTERVAL {
            self.anchored = Instant::now();
            self.converter.correct(self.compare_clocks());
        }
        self.lanes.behind = false;
        self.clocks = self.now();
        self.describe();
        let mut scratch = std::mem::take(&mut self.lanes.scratch);
        let pool = self.origin.pool.clone();
        self.attach_all(&pool, 0);
        // What devices did comes first: the calls that asked for it were recorded sooner, so
        // whatever was written when the process is killed has them.
        self.gather(&pool, pass);
        loop {
            for devices in [true, false] {
                for index in 0..pool.lanes_used() {
                    if self.tells_of_devices(index) == devices {
                        self.lane(&pool, index, pass, &mut scratch);
                    }
                }
            }
            if !self.next_window() {
                break;
            }
        }
        self.lanes.scratch = scratch;
        for (tid, name) in std::mem::take(&mut self.process.renamed) {
            if let Some(t) = self.lanes.threads.iter_mut().flatten().find(|t| t.tid == tid) {
                t.rename(&name);
            }
        }
        // The sequence may have restarted meanwhile.
        self.describe();
        let known = if self.lanes.behind { Known::Part } else { Known::UntilNow };
        let mut context = self.context();
        context.write_gpu_counters();
        if matches!(pass, Pass::Due | Pass::Flush) {
            context.settle_spans(known);
        }
        self.converter.use_up(clock::ticks_of(self.origin.counter));
    }

    /// Also for a recovery of what this process records.
    pub(super) fn compare_clocks(&self) -> Anchor {
        let anchor = Anchor::of(self.origin.counter);
        if let (true, Some(arena)) = (self.origin.is_this_process(), queue::arena()) {
            let clocks = packet::Snapshot { boottime: anchor.nanos, ..clock::snapshot() };
            arena.note_moment(Moment { ticks: anchor.ticks, clocks });
        }
        anchor
    }

    fn tells_of_devices(&self, index: u32) -> bool {
        let thread = self.lanes.threads.get(index as usize).and_then(Option::as_ref);
        thread.is_some_and(|thread| thread.devices)
    }

    /// Empties one queue.
    fn lane(&mut self, pool: &Pool, index: u32, pass: Pass, scratch: &mut Vec<Slot>) {
        let index = index as usize;
        let Some(mut thread) = self.lanes.threads.get_mut(index).and_then(Option::take) else {
            return;
        };
        let batch = self.flight.as_ref().map_or(BATCH, Flight::batch);
        // A thread that records as fast as it is drained must not keep the others waiting.
        let mut turn = match pass {
            Pass::Last => usize::MAX,
            _ => TURN * batch,
        };
        loop {
            scratch.clear();
            let drained = match &mut self.capture {
                Some(capture) => capture.take(index, scratch),
                None => thread.reader.drain(pool, scratch, batch),
            };
            if !scratch.is_empty() {
                self.shared.moves();
                self.origin.learn_names();
                self.attach_all(pool, self.lanes.threads.len());
            }
            let pass = if drained == Drained::Ended { Pass::Last } else { pass };
            thread.process(scratch, pass, &mut self.context());
            if self.is_full() {
                // It may have to say again what is open.
                self.lanes.threads[index] = Some(thread);
                self.write();
                self.rotate();
                match self.lanes.threads[index].take() {
                    Some(same) => thread = same,
                    None => return,
                }
            }
            self.process.steps.host_worked(thread.last_time);
            if drained == Drained::Ended {
                return self.detach(thread);
            }
            if scratch.len() < batch {
                break;
            }
            turn = turn.saturating_sub(scratch.len());
            if turn == 0 {
                self.lanes.behind = true;
                break;
            }
        }
        self.lanes.threads[index] = Some(thread);
    }

    fn is_full(&self) -> bool {
        self.output.packets.len() >= self.flight.as_ref().map_or(FULL, Flight::full)
    }

    /// Attaches threads that recorded their first events, from this lane on. What one of them did
    /// before what others recorded may belong to those ([`super::spans`]): it is known of before
    /// their records are looked at.
    fn attach_all(&mut self, pool: &Pool, from: usize) {
        for index in from..pool.lanes_used() as usize {
            if self.lanes.threads.len() <= index {
                self.lanes.threads.resize_with(index + 1, || None);
            }
            if self.lanes.threads[index].is_none()
                && let Some(reader) = Reader::open(pool, index as u32)
            {
                let thread = self.attach(reader);
                self.lanes.threads[index] = Some(thread);
            }
        }
    }

    /// A thread recorded its first event.
    fn attach(&mut self, reader: Reader) -> Thread {
        self.lanes.count += 1;
        let (tid, name) = (reader.tid(), reader.name());
        let uuid = self.process.thread_uuid(tid);
        let correlation = self.process.correlation;
        let mut thread = Thread::new(reader, self.sequences.take(), uuid, name, correlation);
        thread.given = self.name_given_to(tid);
        if let Some(name) = thread.given.clone() {
            thread.rename(&name);
        }
        self.process.spans.named(0, thread.name());
        thread
    }

    /// What the program calls a thread apart from what that one records itself.
    fn name_given_to(&self, tid: u32) -> Option<Vec<u8>> {
        self.origin.learn_names();
        self.shared.host.thread_name(tid).or_else(|| self.origin.name_given_to(tid))
    }

    /// A thread ended.
    fn detach(&mut self, mut thread: Thread) {
        thread.decide_all(&mut self.context());
        self.process.spans.thread_ended(thread.line);
        // Another thread may have renamed it in the meantime, in a queue that is read later.
        let given = self.name_given_to(thread.tid);
        if given != thread.given
            && let Some(name) = given
        {
            thread.rename(&name);
            thread.describe_if_due(&mut self.context());
        }
        let losses = thread.reader.losses();
        let untold = thread.untold(losses.events());
        if untold > 0 {
            thread.lost(untold, &mut self.context());
            self.output.loss_marked = true;
        }
        self.lanes.gone.dropped += losses.dropped;
        self.lanes.gone.reentrant += losses.reentrant;
        self.lanes.gone.truncated += losses.truncated;
        if losses.events() > 0 {
            self.lanes.lossy.insert(thread.sequence.id());
        }
        self.sequences.give(thread.sequence.id());
    }

    /// Writes the slices that are open and may stay so.
    pub(super) fn leaves(&mut self, pass: Pass) {
        self.clocks = self.now();
        let mut scratch = std::mem::take(&mut self.lanes.scratch);
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                let mut cx = self.context();
                thread.process_leaf(&mut scratch, pass, &mut cx);
                if pass == Pass::Last {
                    thread.open_early(&mut cx);
                    thread.decide_all(&mut cx);
                }
                self.lanes.threads[index] = Some(thread);
            }
        }
        if pass == Pass::Last {
            self.context().open_early_ranges();
        }
        self.lanes.scratch = scratch;
        self.converter.use_up(clock::ticks_of(self.origin.counter));
    }
}
