//! The last of a recording: the recording is stopped, or its process is gone.

use std::borrow::Cow;

use kymograph_protos::packet::{self, Event, EventType, Fact, Name, Sequence};

use super::Engine;
use super::nesting::Pass;
use super::record::Decoded;
use super::spans::Known;
use super::stats::Summary;
use crate::process::signals;

/// How a recording comes to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The recording was stopped; the process runs on.
    Stopped,
    /// The process has ended by itself.
    Exited,
    /// The process has become another program.
    Exec,
    /// A signal has killed the process.
    Killed {
        /// Which, if that is known.
        signal: Option<i32>,
    },
    /// The process is gone, and nothing is known of how.
    Unknown,
}

impl Ending {
    /// In words, if the process could not end what it had begun.
    pub(crate) fn cut_short(self) -> Option<Cow<'static, str>> {
        match self {
            Ending::Stopped | Ending::Exited | Ending::Exec => None,
            Ending::Killed { signal: Some(signal) } => Some(match signals::name(signal) {
                Some(name) => format!("killed by SIG{name}").into(),
                None => format!("killed by signal {signal}").into(),
            }),
            Ending::Killed { signal: None } => Some("killed".into()),
            Ending::Unknown => Some("ended without notice".into()),
        }
    }

    /// In words, if that is a crash: any signal, if the process is the program itself (`main`).
    /// Helpers are ended by signals all the time; of them, only signals count that are
    /// not sent for that, and those that were not seen.
    pub(crate) fn crash(self, main: bool) -> Option<Cow<'static, str>> {
        const ASKED: [i32; 5] =
            [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE, libc::SIGALRM];
        match self {
            Ending::Killed { signal: Some(signal) } if !main && ASKED.contains(&signal) => None,
            Ending::Killed { .. } => self.cut_short(),
            _ => None,
        }
    }
}

impl Engine {
    /// Writes all that is left and ends the trace. `at`: when the process was seen to be
    /// gone, in nanoseconds of `CLOCK_BOOTTIME`; otherwise that is now. What a killed process
    /// has left open ends then.
    pub(crate) fn end(mut self, ending: Ending, at: Option<u64>) -> Summary {
        self.shared.recording_ends();
        self.pass(Pass::Last);
        self.shared.moves();
        if ending != Ending::Stopped {
            self.leaves_of_the_dead();
        }
        self.leaves(Pass::Last);
        if let Some(what) = ending.cut_short() {
            self.cut_short(&what, at.unwrap_or(self.clocks.boottime));
        }
        self.context().settle_spans(Known::All);
        self.context().end_steps();
        self.state_the_rest();
        self.shared.moves();
        if self.common.is_none() {
            let sequence = self.process.sequence.id();
            let now = self.now();
            packet::clock_snapshot(&mut self.output.packets, sequence, &now);
        }
        self.totals.unmatched_ends += self.process.unmatched_ranges();
        self.state_metadata();
        self.write();
        if self.flight.is_some() {
            // What a dump of its own is about to hold need not be in the output as well.
            self.finish_flight(self.shared.config.dump_on.exit && !self.dumped);
        }
        if let Err(error) = self.output.sink.finish() {
            self.failed(error);
        }
        // What the sink has not taken by now it never will.
        self.output.given_up = true;
        self.tell_page(self.lost());
        let summary = self.summary();
        let edges = self.shared.window.bounds(&self.converter).nanos(&self.converter);
        let shared = self.shared.clone();
        // Before the end is announced: files closed, page left.
        drop(self);
        shared.ended(summary.clone(), edges);
        summary
    }

    /// Whether what is held at the end is in a dump that was ordered for it.
    pub(crate) fn last_is_dumped(&mut self, dumped: bool) {
        self.dumped = dumped;
    }

    /// No thread will complete what it had begun last: it is read as it lies there.
    fn leaves_of_the_dead(&mut self) {
        let mut scratch = std::mem::take(&mut self.lanes.scratch);
        let pool = self.origin.pool.clone();
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                scratch.clear();
                thread.reader.drain_leaf_of_the_dead(&pool, &mut scratch);
                self.origin.learn_names();
                thread.process(&scratch, Pass::Last, &mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
        self.lanes.scratch = scratch;
    }

    /// The process was killed: says so, and ends what it has left open.
    #[cold]
    fn cut_short(&mut self, what: &str, at: u64) {
        let last = self.lanes.threads.iter().flatten().map(|thread| thread.last_time()).max();
        let at = at.max(last.unwrap_or(0));
        let mut decoded = Decoded::default();
        decoded.say(self.origin.texts.ended, what.as_bytes());
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                thread.close(at, &decoded, &mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
        let mut cx = self.context();
        // Apart from the rest, so that it can be borrowed along with it.
        let mut sequence = std::mem::replace(&mut cx.process.sequence, Sequence::new(0));
        cx.close_ranges(at, &decoded, &mut sequence);
        let (track, name) = (cx.process.uuid, Name::Bytes(what.as_bytes()));
        let gone = Event { track, name, ..Event::new(EventType::Instant, at) };
        sequence.event(cx.out, cx.strings, &gone);
        let key = format!("kymograph.{}.ended", cx.process.pid);
        packet::trace_attributes(cx.out, sequence.id(), &[(key.as_str(), Fact::Text(what))]);
        cx.process.sequence = sequence;
    }

    /// Losses and names after which their thread recorded nothing more.
    fn state_the_rest(&mut self) {
        self.clocks = self.now();
        self.describe();
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                thread.refresh_name(&mut self.context());
                let losses = thread.reader.losses();
                let untold = thread.untold(losses.events());
                if untold > 0 {
                    thread.lost(untold, &mut self.context());
                    self.output.loss_marked = true;
                }
                thread.describe_if_due(&mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
    }
}
