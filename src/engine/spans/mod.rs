//! Ranges of the program, where devices worked for them.
//!
//! A range on a thread (of `record_function`, NVTX or ITT, or a scope) is shown on every
//! queue that worked for it too: from the beginning of the first to the end of the last
//! activity that was launched inside of it on that thread. Ranges in ranges stay so.
//!
//! ```text
//! thread      [ step  [ forward  ↓ ↓ ]  [ backward  ↓ ] ]
//! queue                          ▒▒▒ ▒▒▒▒              ▒▒▒▒▒
//! its ranges                    [ step                      ]
//!                               [ forward ]            [back]
//! ```
//! What a thread did waits in a **line** and is gone over again, in order, once the work of
//! the launch at its head is known. A track belongs to one queue and one thread, whose
//! launches a queue works off in their order: so beginnings and ends can be written as they
//! come up, however long the range around them lasts, and they nest. Only ranges with a
//! launch in them ever wait; operators of frameworks ([`OPERATOR`]) are not shown.
//!
//! A thread that computes gradients works for another one, which waits for it: what it
//! launches belongs to the ranges that are open there at that time as well as to its own. The
//! threads' queues are read one after the other: a launch may be read long before or after the
//! ranges around it, so it takes its place in the line of the one that waits by its time
//! ([`gradients`]), and lines of such threads are gone over a moment later than others, once all
//! queues are read up to it ([`Known`]).
//!
//! Memory is bounded: when too many launches wait, the oldest are gone over with what is
//! known of them. What is not shown as it was is counted, by reason: launches of which nothing
//! was ever seen, launches that were not waited for, ranges that are too deep, and beginnings
//! that were moved to the end of the range before (kernels of one queue may overlap).
//!
//! [`OPERATOR`]: kymograph_protos::record::OPERATOR

use std::collections::HashMap;

use kymograph_protos::StrId;
use kymograph_protos::packet::Name;

mod early;
mod gradients;
mod line;
mod whole;

use early::Early;
use gradients::Gradients;
pub use gradients::computes_gradients;
use line::{Line, Range, Step, Track, Work, track};
pub use whole::Whole;
use whole::Wholes;

/// Launches that may wait, in all lines.
const MAX_WAITING: usize = 1 << 17;
/// Ranges in each other that are shown.
const DEEPEST: usize = 200;
/// How long nothing new is heard of a launch before it counts as done: it may be of a graph,
/// whose activities come one after the other.
const QUIET_NANOS: u64 = 1_000_000_000;
/// How long a launch may be silent when later ones of its thread are not. Longer than
/// collectives usually wait for each other.
const SILENT_NANOS: u64 = 10_000_000_000;
/// How long lines wait for what other threads launched for them.
const ADOPTED_NANOS: u64 = 1_000_000_000;
/// Ranges and launches that wait so: of a line, and of all.
const MAX_EXPECTING: usize = 1 << 16;
const MAX_EXPECTING_IN_ALL: usize = 1 << 18;
/// Bit of the number of a launch of another thread's.
const ADOPTED: u64 = 1 << 63;

/// See the module. Times are nanoseconds on the trace's clock.
#[derive(Debug, Default)]
pub struct Spans {
    /// `gpu_user_annotation`; none: nothing is shown.
    category: StrId,
    /// Whether any range is open or any line waits: otherwise work is only put down.
    active: bool,
    /// By their number less one; and the numbers of those that are free.
    lines: Vec<Line>,
    free: Vec<u32>,
    last_line: u32,
    gradients: Gradients,
    waiting: HashMap<u64, Launch>,
    launches: u64,
    /// Work without a known launch.
    early: Early,
    ended: Wholes,
    /// Launches in ranges of which nothing was seen.
    pub without_work: u64,
    /// Launches that were not waited for, since too many wait or since ranges that may lie
    /// around them were gone over before the launch was read.
    pub unfollowed: u64,
    /// Launches of threads that compute gradients, of which it is not known for whom.
    pub ambiguous: u64,
    /// Ranges in so many others that they are not shown.
    pub too_deep: u64,
    /// Beginnings that were moved.
    pub moved: u64,
}

#[derive(Debug)]
struct Launch {
    line: u32,
    number: u64,
    since: u64,
    work: Work,
}

/// How much of what the threads did is known when lines are gone over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Some queue holds records of any age still.
    Part,
    /// All until now.
    UntilNow,
    /// All that there will ever be.
    All,
}

/// What is to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// On a track of the queue and the thread.
    Edge(Edge<'a>),
    /// In the row beside the queue.
    Whole(&'a Whole),
}

/// A range begins or ends on a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge<'a> {
    pub begins: bool,
    pub time: u64,
    pub queue: u32,
    /// Together with the queue: which track.
    pub line: u32,
    pub side: StrId,
    /// Whether that must be described.
    pub is_new_track: bool,
    pub name: Name<'a>,
}

impl Spans {
    /// `category`: of the slices; none: nothing is shown.
    pub fn new(category: StrId) -> Spans {
        Spans { category, ..Spans::default() }
    }

    pub fn category(&self) -> StrId {
        self.category
    }

    /// A range begins on the thread of `line`, which gets one if it is 0. Returns whether
    /// the range is to be ended, too.
    pub fn begin(
        &mut self,
        line: &mut u32,
        site: StrId,
        bytes: Option<Box<[u8]>>,
        side: StrId,
        (time, main): (u64, bool),
    ) -> bool {
        if self.category.is_none() {
            return false;
        }
        if *line == 0 {
            *line = self.new_line();
        }
        let line = &mut self.lines[*line as usize - 1];
        if line.depth >= DEEPEST {
            self.too_deep += 1;
            return false;
        }
        if line.serial == 0 {
            self.last_line += 1;
            line.serial = self.last_line;
        }
        line.main |= main;
        line.depth += 1;
        let range = Range { begun: line.own(time), site, bytes, side, queues: Vec::new() };
        line.put(range.begun, Step::Begin(range));
        self.activate();
        true
    }

    fn activate(&mut self) {
        if !std::mem::replace(&mut self.active, true) {
            self.early.look_up();
        }
    }

    fn new_line(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.lines.push(Line::default());
            self.lines.len() as u32
        })
    }

    /// How many steps of a line may wait for what others launched for it; none if no thread does.
    fn most_expecting(&self) -> Option<usize> {
        let each = MAX_EXPECTING_IN_ALL / self.lines.len().max(1);
        self.gradients.seen.then(|| each.min(MAX_EXPECTING))
    }

    /// The innermost range of this side ends.
    pub fn end(&mut self, line: u32, side: StrId, time: u64) {
        let most = self.most_expecting();
        let line = &mut self.lines[line as usize - 1];
        line.depth = line.depth.saturating_sub(1);
        // Most ranges launch nothing.
        match line.steps.back() {
            Some((_, Step::Begin(range))) if range.side == side && !line.expects(most) => {
                drop(line.steps.pop_back());
            }
            _ => {
                let time = line.own(time);
                line.put(time, Step::End(side));
            }
        }
    }

    /// The thread of `line` asked for work at `time`; it may have no ranges. `adopt`: it did so
    /// for a thread that waits for gradients.
    pub fn launch(&mut self, line: u32, correlation: u64, (time, adopt): (u64, bool), now: u64) {
        if self.category.is_none() {
            return;
        }
        if adopt {
            self.gradients_of(line);
        }
        self.gradients.others_launch |= line == 0 && !adopt;
        let own = line > 0 && self.lines[line as usize - 1].depth > 0;
        if !own && !adopt {
            return;
        }
        if self.waiting.len() >= MAX_WAITING * 2 {
            self.unfollowed += 1;
            return;
        }
        if adopt {
            self.activate();
        }
        let work = self.early.take(correlation);
        if own {
            let time = self.lines[line as usize - 1].own(time);
            self.wait_for(line, correlation, (time, work.clone()), now);
        }
        if adopt {
            let number = correlation | ADOPTED;
            self.waiting.insert(number, Launch { line: 0, number: 0, since: now, work });
            self.gradients.put(time, number);
        }
    }

    fn wait_for(&mut self, line: u32, number: u64, (time, work): (u64, Work), now: u64) {
        self.launches += 1;
        let of = &mut self.lines[line as usize - 1];
        if work.first.is_some() {
            of.heard = self.launches;
        }
        of.put(time, Step::Launch(number));
        let launch = Launch { line, number: self.launches, since: now, work };
        self.waiting.insert(number, launch);
    }

    /// A queue worked for a launch.
    #[inline]
    pub fn work(&mut self, correlation: u64, queue: u32, times: (u64, u64), now: u64) {
        let part = (queue, times.0, times.1);
        if self.active {
            let own = self.heard(correlation, part, now);
            let adopted = self.gradients.seen && self.heard(correlation | ADOPTED, part, now);
            if !own && !adopted {
                self.early.add(correlation, part);
            }
        } else if !self.category.is_none() {
            self.early.put_down(correlation, part);
        }
    }

    /// Returns whether the launch waits.
    fn heard(&mut self, number: u64, part: (u32, u64, u64), now: u64) -> bool {
        let Some(launch) = self.waiting.get_mut(&number) else { return false };
        launch.work.add(part);
        launch.since = now;
        if let Some(line) = (launch.line as usize).checked_sub(1) {
            self.lines[line].heard = self.lines[line].heard.max(launch.number);
        }
        true
    }

    /// The thread of `line` has ended. If nothing of it waits, others get its number.
    pub fn thread_ended(&mut self, line: u32) {
        let Some(index) = line.checked_sub(1) else { return };
        let of = &mut self.lines[index as usize];
        of.ended = true;
        if of.steps.is_empty() && of.open.is_empty() {
            *of = Line::default();
            self.free.push(line);
        }
    }

    /// A reader that begins here does not see what was written before.
    pub fn expire(&mut self) {
        let tracks = self.lines.iter_mut().flat_map(|line| &mut line.tracks);
        tracks.for_each(|track| track.described = false);
    }

    /// Says anew which ranges are open on devices, and since when.
    pub fn restate(&mut self, mut write: impl FnMut(Edge<'_>)) {
        for line in &mut self.lines {
            for range in &line.open {
                for (queue, since, _) in &range.queues {
                    let (found, is_new_track) = track(&mut line.tracks, *queue, range.side);
                    let begun = Track { time: *since, ..*found };
                    write(range.edge(true, line.serial, &begun, is_new_track));
                }
            }
        }
    }

    /// Goes over what needs to wait no longer.
    pub fn settle(&mut self, now: u64, known: Known, mut write: impl FnMut(Told<'_>)) {
        // A launch that lies in a queue still is no reason to forget what it led to.
        if known != Known::Part {
            self.early.age(now);
        }
        if !self.active {
            return;
        }
        let all = known == Known::All;
        let most = self.most_expecting();
        let mut lines = std::mem::take(&mut self.lines);
        let until = match known {
            Known::All => Some(u64::MAX),
            Known::UntilNow => now.checked_sub(ADOPTED_NANOS),
            Known::Part => None,
        };
        let until = self.place_gradients(&mut lines, until, (known, now));
        for (line, number) in lines.iter_mut().zip(1..) {
            while let Some((time, step)) = line.steps.pop_front() {
                let expects = line.expects(most) && until.is_none_or(|until| time > until);
                let waits = match step {
                    Step::Launch(number) => !self.is_settled(number, line.heard, now),
                    Step::Begin(_) | Step::End(_) => false,
                };
                if !all && (expects || waits) {
                    line.steps.push_front((time, step));
                    break;
                }
                self.step(line, (time, step), known, &mut write);
            }
            if all || line.ended {
                let left = if line.steps.is_empty() { line.open.len() } else { 0 };
                let ended = &mut self.ended;
                (0..left).for_each(|_| line.close(None, (now, ended), &mut write));
            }
            if line.ended && line.steps.is_empty() {
                *line = Line::default();
                self.free.push(number);
            }
        }
        self.ended.settle(&lines, all, |whole| write(Told::Whole(whole)));
        self.active = lines.iter().any(|line| line.depth > 0 || !line.steps.is_empty());
        self.active |= !self.ended.is_empty() || !self.gradients.is_empty();
        self.lines = lines;
    }

    fn is_settled(&self, correlation: u64, heard: u64, now: u64) -> bool {
        if self.waiting.len() > MAX_WAITING {
            return true;
        }
        self.waiting.get(&correlation).is_none_or(|launch| {
            let age = now.saturating_sub(launch.since);
            match launch.work.first {
                Some(_) => age >= QUIET_NANOS,
                None => age >= SILENT_NANOS && heard > launch.number,
            }
        })
    }

    fn step(
        &mut self,
        line: &mut Line,
        (time, step): (u64, Step),
        known: Known,
        write: &mut impl FnMut(Told<'_>),
    ) {
        match step {
            Step::Begin(range) => line.open.push(range),
            Step::End(side) => {
                line.closed = line.closed.max(time);
                line.close(Some(side), (time, &mut self.ended), write);
            }
            Step::Launch(correlation) => {
                // Then it was not waited for.
                let too_many = self.waiting.len() > MAX_WAITING && known != Known::All;
                let work = self.waiting.remove(&correlation).map(|l| l.work).unwrap_or_default();
                match work.first {
                    None if line.open.iter().all(|range| range.begun > time) => {}
                    None if too_many => self.unfollowed += 1,
                    None => self.without_work += 1,
                    Some(_) => self.unfollowed += u64::from(time < line.closed),
                }
                if let (Some((queue, ..)), 0) = (work.first, correlation & ADOPTED) {
                    gradients::note(&mut line.used, queue, time);
                }
                work.all().for_each(|part| self.moved += line.worked(time, part, write));
            }
        }
    }
}

#[cfg(test)]
mod tests;
