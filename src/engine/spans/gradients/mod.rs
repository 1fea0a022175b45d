//! For whom threads that compute gradients launch.
//!
//! A thread calls for gradients and waits; threads of the framework's own compute them, for all
//! threads of the process. Nothing says for which one: it is the one that has a range open then.
//! Where several threads have, it is decided by what they did:
//!
//! 1. Gradients run on the queue that the forward pass ran on: only threads count that launched
//!    something there, or if none did (collectives have queues of their own), anywhere.
//! 2. The thread that calls launched something just before: of these threads it is the last one,
//!    unless others have waited ever since they launched something there.
//! 3. A thread that launches or begins ranges both before and after the launch in question, with
//!    no other such launch in between, does not wait.
//!
//! If that leaves several threads, the launch is shown for none of them, and counted. So it is
//! where the only thread with an open range launches nothing, and threads without ranges do.

use std::collections::{HashMap, VecDeque};

use super::{ADOPTED, Known, Launch, Line, MAX_WAITING, SILENT_NANOS, Spans, Step};

/// What threads are called that compute gradients.
const AUTOGRAD: &[u8] = b"pt_autograd_";
/// Launches that may wait for a decision.
pub(super) const MAX: usize = 1 << 16;
/// Queues of a thread that are remembered.
const MAX_QUEUES: usize = 64;

/// Launches of threads that compute gradients, until it is known for whom.
#[derive(Debug, Default)]
pub(super) struct Gradients {
    /// Whether there are such threads.
    pub seen: bool,
    /// Whether threads launch work that never had a range.
    pub others_launch: bool,
    /// When, and the number of each; in the order of time.
    undecided: VecDeque<(u64, u64)>,
    /// When the last one was that was decided.
    last: u64,
}

/// A line at the time of a launch.
#[derive(Debug)]
struct Moment {
    /// How many of its steps were before.
    steps: usize,
    /// How many ranges are open.
    depth: usize,
    /// The queues that its launches ran on, and when it launched last.
    used: Vec<(u32, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Caller {
    /// The index of its line.
    Line(usize),
    /// No thread has a range open.
    None,
    /// It may be several, or one that is not known.
    Ambiguous,
    /// More may be known later.
    Later,
}

impl Gradients {
    pub fn is_empty(&self) -> bool {
        self.undecided.is_empty()
    }

    pub fn put(&mut self, time: u64, number: u64) {
        let at = self.undecided.partition_point(|(other, _)| *other <= time);
        self.undecided.insert(at, (time, number));
    }

    pub fn is_full(&self) -> bool {
        self.undecided.len() >= MAX
    }
}

/// Whether a thread of this name computes gradients for others.
pub fn computes_gradients(thread: &[u8]) -> bool {
    thread.starts_with(AUTOGRAD)
}

impl Spans {
    /// The thread of `line`, which may be none yet, has this name.
    pub fn named(&mut self, line: u32, thread: &[u8]) {
        if computes_gradients(thread) {
            self.gradients_of(line);
        }
    }

    /// The thread of `line` computes gradients.
    pub(super) fn gradients_of(&mut self, line: u32) {
        self.gradients.seen = true;
        if let Some(line) = (line as usize).checked_sub(1) {
            self.lines[line].gradients = true;
        }
    }

    /// Gives launches their place in the lines of those who called for them: up to `until`, or as
    /// far as is known. Returns until when all were placed.
    pub(super) fn place_gradients(
        &mut self,
        lines: &mut [Line],
        until: Option<u64>,
        (known, now): (Known, u64),
    ) -> Option<u64> {
        if self.gradients.is_empty() {
            return until;
        }
        let mut moments: Vec<Moment> = lines.iter().map(Moment::before).collect();
        while let Some((time, number)) = self.gradients.undecided.front().copied() {
            let full = self.gradients.is_full() || self.waiting.len() > MAX_WAITING;
            if !full && until.is_none_or(|until| time > until) {
                break;
            }
            for (moment, line) in moments.iter_mut().zip(&*lines) {
                moment.go_on(line, time, &self.waiting);
            }
            match self.caller(lines, &moments, (time, number), now) {
                Caller::Later if known != Known::All && !full => {
                    return until.min(time.checked_sub(1));
                }
                Caller::Line(at) => {
                    lines[at].adopted = time;
                    lines[at].put(time, Step::Launch(number));
                    moments[at].steps += 1;
                    if let Some(launch) = self.waiting.get_mut(&number) {
                        launch.line = at as u32 + 1;
                        self.launches += 1;
                        launch.number = self.launches;
                        if launch.work.first.is_some() {
                            lines[at].heard = launch.number;
                        }
                    }
                }
                caller => {
                    self.waiting.remove(&number);
                    let late = lines.iter().any(|line| line.main && time < line.closed);
                    self.unfollowed += u64::from(late && caller == Caller::None);
                    self.ambiguous += u64::from(caller != Caller::None);
                }
            }
            self.gradients.undecided.pop_front();
            self.gradients.last = time;
        }
        until
    }

    /// The thread that waits for what was launched at `time`.
    fn caller(
        &self,
        lines: &mut [Line],
        moments: &[Moment],
        (time, number): (u64, u64),
        now: u64,
    ) -> Caller {
        let is_open = |at: &usize| !lines[*at].gradients && moments[*at].is_open(&lines[*at], time);
        let mut callers: Vec<usize> = (0..lines.len()).filter(is_open).collect();
        match callers[..] {
            [] => return Caller::None,
            [only]
                if !self.gradients.others_launch || moments[only].launched_on(None).is_some() =>
            {
                return Caller::Line(only);
            }
            _ => {}
        }
        let launch = self.waiting.get(&number);
        let Some((queue, ..)) = launch.and_then(|launch| launch.work.first) else {
            let silent = launch.is_none_or(|l| now.saturating_sub(l.since) >= SILENT_NANOS);
            return if silent { Caller::Ambiguous } else { Caller::Later };
        };
        let known = callers.iter().any(|at| moments[*at].launched_on(Some(queue)).is_some());
        let queue = known.then_some(queue);
        let last = callers.iter().filter_map(|at| moments[*at].launched_on(queue)).max();
        callers.retain(|at| {
            let launched = moments[*at].launched_on(queue);
            launched.is_some_and(|time| Some(time) == last || lines[*at].adopted > time)
        });
        if callers.len() > 1 {
            let before = self.gradients.last;
            let after = self.gradients.undecided.get(1).map_or(u64::MAX, |(time, _)| *time);
            let waits = |at: &usize| !moments[*at].is_busy(&lines[*at], (before, after));
            callers.retain(waits);
        }
        match callers[..] {
            [only] => Caller::Line(only),
            _ => {
                // Any of them may wait from here on.
                callers.iter().for_each(|at| lines[*at].adopted = time);
                Caller::Ambiguous
            }
        }
    }
}

impl Moment {
    /// Before all steps that wait.
    fn before(line: &Line) -> Moment {
        Moment { steps: 0, depth: line.open.len(), used: line.used.clone() }
    }

    /// Goes over the steps until `time`.
    fn go_on(&mut self, line: &Line, time: u64, waiting: &HashMap<u64, Launch>) {
        while let Some((at, step)) = line.steps.get(self.steps).filter(|(at, _)| *at <= time) {
            match step {
                Step::Begin(_) => self.depth += 1,
                Step::End(_) => self.depth = self.depth.saturating_sub(1),
                Step::Launch(number) if number & ADOPTED == 0 => {
                    if let Some((queue, ..)) = waiting.get(number).and_then(|l| l.work.first) {
                        note(&mut self.used, queue, *at);
                    }
                }
                Step::Launch(_) => {}
            }
            self.steps += 1;
        }
    }

    fn is_open(&self, line: &Line, time: u64) -> bool {
        match self.steps {
            0 => line.open.first().is_some_and(|range| range.begun <= time),
            _ => self.depth > 0,
        }
    }

    /// When the thread launched last what ran on this queue, or on any.
    fn launched_on(&self, queue: Option<u32>) -> Option<u64> {
        let is_meant = |other: u32| queue.is_none_or(|queue| queue == other);
        self.used.iter().filter(|(other, _)| is_meant(*other)).map(|(_, time)| *time).max()
    }

    /// Whether the thread did something after `before` and before `after`, on both sides of this
    /// moment.
    fn is_busy(&self, line: &Line, (before, after): (u64, u64)) -> bool {
        let own = |step: &&(u64, Step)| !matches!(step.1, Step::Launch(n) if n & ADOPTED != 0);
        let (past, future) = (line.steps.range(..self.steps), line.steps.range(self.steps..));
        let past = past.rev().take_while(|(time, _)| *time > before).any(|step| own(&step));
        past && future.take_while(|(time, _)| *time < after).any(|step| own(&step))
    }
}

/// Notes that a queue was used at `time`.
pub(super) fn note(used: &mut Vec<(u32, u64)>, queue: u32, time: u64) {
    if let Some((_, last)) = used.iter_mut().find(|(other, _)| *other == queue) {
        *last = time.max(*last);
    } else if used.len() < MAX_QUEUES {
        used.push((queue, time));
    }
}

#[cfg(test)]
mod tests;
