//! Windows that ranges of the program open and close.
//!
//! Which records lie in a window is known when the beginning of its range has been read, and
//! that may lie in the queue of another thread. So a pass has two halves: first all queues are
//! emptied and searched, then the records up to the moment of the search are written, window by
//! window. What a thread publishes late, because it stood still in between, may miss the
//! beginning of a window by that time.
//!
//! | asked for | a window is |
//! |---|---|
//! | `cudaProfilerApi` | from a call of `cudaProfilerStart` to the next one of `cudaProfilerStop` |
//! | `nvtx:NAME` | a range of that name, in no other one of that name on its thread |
//! | iterations | so many of these, one after the other on one thread |

use std::collections::{HashMap, VecDeque};

use kymograph_protos::packet::Strings;
use kymograph_protos::record::{Kind, NANOS, Record, Slot, StrId};

use super::Engine;
use super::lanes::BATCH;
use super::nesting::Pass;
use super::record::{Decoded, category, record_len, stack_of};
use super::window::NEVER;
use crate::capture::Rule;
use crate::clock;
use crate::queue::{Drained, Pool, Reader};

/// Slots of a lane that wait at most; more stay in its queue.
const MAX_WAITING: usize = 8 * BATCH;
/// Names that are remembered at most; the others are compared each time.
const MAX_NAMES: usize = 1 << 16;
/// Ends of ranges that are remembered at most until their beginning is found.
const MAX_ENDS: usize = 1 << 14;

/// What ranges belong together: they are counted, and closed by each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    /// Calls of CUDA's profiler API.
    Profiler,
    /// What nests on a thread, by its lane.
    Lane(u32),
    /// Ranges that may end on another thread.
    Process,
}

/// A window begins or ends here, if it is one.
#[derive(Clone, Copy, Debug)]
struct Edge {
    time: u64,
    line: Line,
    begins: bool,
}

/// What a lane has published and nobody has written.
#[derive(Debug, Default)]
struct Waiting {
    slots: VecDeque<Slot>,
    ended: bool,
    /// The outermost range that was asked for and is open: its nesting stack, and how many
    /// slices of that stack are open from it on.
    open: Option<(StrId, u32)>,
    /// When the leaf began that was seen before it was published.
    peeked: Option<u64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Capture {
    rule: Rule,
    started: u64,
    lanes: Vec<Waiting>,
    names: HashMap<StrId, bool>,
    /// The range that may end on another thread and is open, by its id.
    range: Option<u64>,
    /// Ends of such ranges whose beginning has not been read.
    ends: HashMap<u64, u64>,
    /// Not in order of time before they are sorted.
    edges: Vec<Edge>,
    /// Whose window is open, and how many of its ranges are over.
    open: Option<(Line, u64)>,
    /// Known, and not the current one: when they open and close.
    windows: VecDeque<(u64, u64)>,
    current: (u64, u64),
    /// How many windows there have been, and how many of them the page knows of.
    count: u64,
    told: u64,
    /// Up to here all queues have been searched.
    searched: u64,
    decoded: Decoded,
}

impl Capture {
    /// What was recorded before `started` was left over by an earlier recording.
    pub fn new(rule: Rule, started: u64) -> Capture {
        Capture {
            rule,
            started,
            lanes: Vec::new(),
            names: HashMap::new(),
            range: None,
            ends: HashMap::new(),
            edges: Vec::new(),
            open: None,
            windows: VecDeque::new(),
            current: (NEVER, NEVER),
            count: 0,
            told: 0,
            searched: 0,
            decoded: Decoded::default(),
        }
    }

    /// Empties one queue, and looks for edges in what was in it.
    fn gather(&mut self, lane: u32, reader: &mut Reader, pool: &Pool, strings: &impl Strings) {
        let at = lane as usize;
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Waiting::default);
        }
        let mut fresh = Vec::new();
        while !self.lanes[at].ended && self.lanes[at].slots.len() + fresh.len() < MAX_WAITING {
            let before = fresh.len();
            let drained = reader.drain(pool, &mut fresh, before + BATCH);
            self.lanes[at].ended = drained == Drained::Ended;
            if fresh.len() < before + BATCH {
                break;
            }
        }
        self.search(lane, &fresh, strings);
        self.lanes[at].slots.extend(&fresh);
        fresh.clear();
        if !self.lanes[at].ended && reader.peek_leaf(pool, &mut fresh) {
            self.peek(lane, &fresh, strings);
        }
    }

    fn search(&mut self, lane: u32, slots: &[Slot], strings: &impl Strings) {
        let mut decoded = std::mem::take(&mut self.decoded);
        let mut at = 0;
        while let Some(len) = record_len(&slots[at..]) {
            let (head, kind) = decoded.read(&slots[at..], strings);
            if head.tag & NANOS == 0 && head.time >= self.started {
                match (&self.rule, kind) {
                    (Rule::Profiler { .. }, Some(Kind::Scope | Kind::Begin)) => {
                        self.profiler(&head, &decoded, strings);
                    }
                    (Rule::Profiler { .. }, _) => {}
                    (_, Some(kind)) => self.host(lane, &head, kind, &decoded, strings),
                    _ => {}
                }
            }
            at += len;
        }
        self.decoded = decoded;
    }

    fn profiler(&mut self, head: &Record, decoded: &Decoded, strings: &impl Strings) {
        if self.is_wanted(head, decoded, strings) {
            let name = decoded.text(head.site, strings);
            let begins = name.ends_with(b"Start");
            self.edges.push(Edge { time: head.time, line: Line::Profiler, begins });
        }
    }

    fn host(
        &mut self,
        lane: u32,
        head: &Record,
        kind: Kind,
        decoded: &Decoded,
        strings: &impl Strings,
    ) {
        let line = Line::Lane(lane);
        let peeked = self.lanes[lane as usize].peeked.take() == Some(head.time);
        match (kind, self.lanes[lane as usize].open) {
            // Its beginning was seen before it was published; now its end is there, too.
            (Kind::Scope, Some(_)) if peeked => {
                self.lanes[lane as usize].open = None;
                self.edges.push(Edge { time: head.other, line, begins: false });
            }
            (Kind::Begin | Kind::Push, _) if peeked => {}
            (Kind::Scope, None) if self.is_wanted(head, decoded, strings) => {
                self.edges.push(Edge { time: head.time, line, begins: true });
                self.edges.push(Edge { time: head.other, line, begins: false });
            }
            (Kind::Begin | Kind::Push, None) if self.is_wanted(head, decoded, strings) => {
                self.lanes[lane as usize].open = Some((stack_of(head, strings), 1));
                self.edges.push(Edge { time: head.time, line, begins: true });
            }
            (Kind::Begin | Kind::Push, Some((stack, depth)))
                if stack == stack_of(head, strings) =>
            {
                self.lanes[lane as usize].open = Some((stack, depth + 1));
            }
            (Kind::End | Kind::Pop, Some((stack, depth))) => {
                let theirs = if kind == Kind::End { StrId::NONE } else { head.site };
                if stack == theirs {
                    self.lanes[lane as usize].open = (depth > 1).then_some((stack, depth - 1));
                    if depth == 1 {
                        self.edges.push(Edge { time: head.time, line, begins: false });
                    }
                }
            }
            (Kind::RangeBegin, _)
                if self.range.is_none() && self.is_wanted(head, decoded, strings) =>
            {
                self.edges.push(Edge { time: head.time, line: Line::Process, begins: true });
                match self.ends.remove(&head.other) {
                    Some(time) => {
                        self.edges.push(Edge { time, line: Line::Process, begins: false })
                    }
                    None => self.range = Some(head.other),
                }
            }
            (Kind::RangeEnd, _) if self.range == Some(head.other) => {
                self.range = None;
                self.edges.push(Edge { time: head.time, line: Line::Process, begins: false });
            }
            (Kind::RangeEnd, _) if self.ends.len() < MAX_ENDS => {
                self.ends.insert(head.other, head.time);
            }
            _ => {}
        }
    }

    /// A slice is open that is not published before something happens in it.
    fn peek(&mut self, lane: u32, leaf: &[Slot], strings: &impl Strings) {
        if matches!(self.rule, Rule::Profiler { .. }) {
            return;
        }
        let mut decoded = std::mem::take(&mut self.decoded);
        let (head, _) = decoded.read(leaf, strings);
        let waiting = &self.lanes[lane as usize];
        if waiting.open.is_none()
            && head.time >= self.started
            && waiting.peeked != Some(head.time)
            && self.is_wanted(&head, &decoded, strings)
        {
            let waiting = &mut self.lanes[lane as usize];
            waiting.open = Some((stack_of(&head, strings), 1));
            waiting.peeked = Some(head.time);
            self.edges.push(Edge { time: head.time, line: Line::Lane(lane), begins: true });
        }
        self.decoded = decoded;
    }

    fn is_wanted(&mut self, head: &Record, decoded: &Decoded, strings: &impl Strings) -> bool {
        let names = || {
            let category = strings.text(category(head, strings)).bytes;
            self.rule.matches(category, decoded.text(head.site, strings))
        };
        if decoded.name(head.site) != kymograph_protos::packet::Name::Id(head.site) {
            return names();
        }
        match self.names.get(&head.site) {
            Some(wanted) => *wanted,
            None => {
                let wanted = names();
                if self.names.len() < MAX_NAMES {
                    self.names.insert(head.site, wanted);
                }
                wanted
            }
        }
    }

    /// All queues were searched up to this moment: what of it are windows.
    fn decide(&mut self, searched: u64) {
        self.searched = searched;
        // Sorted by time alone, and stable: what begins and ends at once keeps its order.
        self.edges.sort_by_key(|edge| edge.time);
        let known = self.edges.partition_point(|edge| edge.time < searched);
        for edge in self.edges.drain(..known).collect::<Vec<_>>() {
            match (self.open, edge.begins) {
                (None, true) if self.count < self.rule.windows() => {
                    self.count += 1;
                    self.open = Some((edge.line, 0));
                    self.windows.push_back((edge.time, NEVER));
                }
                (Some((line, over)), false) if line == edge.line => {
                    let over = over + 1;
                    self.open = (over < self.rule.iterations()).then_some((line, over));
                    if self.open.is_none() {
                        // The end itself is in the window.
                        self.close(edge.time + u64::from(line != Line::Profiler));
                    }
                }
                _ => {}
            }
        }
    }

    fn close(&mut self, at: u64) {
        match self.windows.back_mut() {
            Some(window) => window.1 = at,
            None => self.current.1 = at,
        }
    }

    /// Makes the next window the current one, if it is known. The last one stays.
    fn advance(&mut self) {
        match self.windows.pop_front() {
            Some(next) => self.current = next,
            None if self.count < self.rule.windows() => self.current = (NEVER, NEVER),
            None => {}
        }
    }

    /// Up to where records may be written now.
    fn limit(&self) -> u64 {
        let is_last = self.count >= self.rule.windows() && self.windows.is_empty();
        if is_last { self.searched } else { self.current.1.min(self.searched) }
    }

    /// Appends what the lane published before the limit, as [`Reader::drain`] does.
    pub fn take(&mut self, lane: usize, out: &mut Vec<Slot>) -> Drained {
        let limit = self.limit();
        let Some(waiting) = self.lanes.get_mut(lane) else { return Drained::Alive };
        let slots = waiting.slots.make_contiguous();
        let mut at = 0;
        while let Some(len) = record_len(&slots[at..]) {
            let head: Record = bytemuck::cast(slots[at]);
            if head.tag & NANOS == 0 && head.time >= limit {
                break;
            }
            at += len;
        }
        out.extend(waiting.slots.drain(..at));
        if waiting.ended && waiting.slots.is_empty() {
            *waiting = Waiting::default();
            return Drained::Ended;
        }
        Drained::Alive
    }
}

impl Engine {
    /// First half of a pass: empties and searches all queues.
    pub(super) fn gather(&mut self, pool: &Pool, pass: Pass) {
        let Some(mut capture) = self.capture.take() else { return };
        let now = clock::ticks_of(self.origin.counter);
        for index in 0..pool.lanes_used() {
            if let Some(thread) = self.lanes.threads.get_mut(index as usize)
                && let Some(thread) = thread.as_mut()
            {
                self.origin.learn_names();
                capture.gather(index, &mut thread.reader, pool, &*self.origin.strings);
                let waiting = &capture.lanes[index as usize].slots;
                self.lanes.behind |= waiting.len() >= MAX_WAITING;
            }
        }
        capture.decide(if pass == Pass::Last { NEVER } else { now });
        if capture.current.0 == NEVER {
            capture.advance();
        }
        self.captured(&mut capture);
        self.capture = Some(capture);
    }

    /// Second half: whether there is another window in what was searched.
    pub(super) fn next_window(&mut self) -> bool {
        let Some(mut capture) = self.capture.take() else { return false };
        let before = capture.current;
        if before.1 < capture.searched {
            capture.advance();
        }
        let goes_on = capture.current != before;
        self.captured(&mut capture);
        self.capture = Some(capture);
        goes_on
    }

    /// Tells of the windows whatever has to know of them.
    fn captured(&mut self, capture: &mut Capture) {
        let known = std::iter::once(&capture.current).chain(&capture.windows);
        for (opens, closes) in known.filter(|(opens, _)| *opens != NEVER) {
            let nanos = |ticks| if ticks == NEVER { NEVER } else { self.converter.nanos(ticks) };
            self.shared.window.captured(*opens, (nanos(*opens), nanos(*closes)));
        }
        self.shared.window.capture(capture.current);
        let over = match capture.open {
            Some((_, over)) => over,
            None if capture.count > 0 => capture.rule.iterations(),
            None => 0,
        };
        let done = capture.open.is_none() && capture.count >= capture.rule.windows();
        self.shared.captures.say(capture.count, over, done);
        if let Some(member) = &self.member {
            let new = capture.count - std::mem::replace(&mut capture.told, capture.count);
            member.page().add_windows(new);
        }
    }
}
