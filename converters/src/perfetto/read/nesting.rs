//! Slices from beginnings and ends, paired as trace_processor does.
//!
//! It sorts the events of a track by time, those of one time by their order in the file,
//! and keeps a stack. An end closes the innermost open slice whose name and category are
//! the end's, where the end has them. A slice closed below an open one ends that one, once
//! a later event comes.
//!
//! Almost every track is written in the order of time, so pairing goes along with reading.
//! When an event comes that is earlier than the one before it on its track, that track is
//! paired again at the end, from the slices, which know their beginnings, and from a log of
//! all ends: some eight bytes each.

use std::ops::Range;

use hashbrown::HashSet;

use crate::trace::{ArgsId, EventRef, Nanos, Position, SliceId, StrId, Trace, TrackId};

/// What points and links belong to until their slice is known.
pub fn awaited() -> EventRef {
    EventRef::Slice(SliceId::at(usize::MAX))
}

/// The end of a slice.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub track: TrackId,
    pub time: i64,
    pub name: StrId,
    pub category: StrId,
}

/// What an end brings to the slice that it closes.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    args: Option<ArgsId>,
    /// Which of [`Trace::flows`]'s points and links wait for their slice.
    points: Range<usize>,
    links: Range<usize>,
    /// Where the end stood in the file that the trace was made from.
    position: Option<Position>,
    slice: Option<SliceId>,
}

impl Extra {
    /// `points` and `links` are those of [`Trace::flows`] that wait for their slice.
    pub fn new(args: Option<ArgsId>, points: Range<usize>, links: Range<usize>) -> Extra {
        Extra { args, points, links, position: None, slice: None }
    }

    /// `position` is that of the end in the file that the trace was made from.
    pub fn at(self, position: Option<Position>) -> Extra {
        Extra { position, ..self }
    }

    fn is_empty(&self) -> bool {
        self.position.is_none()
            && self.args.is_none()
            && self.points.is_empty()
            && self.links.is_empty()
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    slice: SliceId,
    start: i64,
    /// When it ended, if it is on the stack only because what is above it has not.
    end: Option<i64>,
    name: StrId,
    category: StrId,
}

#[derive(Debug, Default)]
struct Stack {
    open: Vec<Open>,
    ended: usize,
    last: i64,
    disordered: bool,
    oddities: Oddities,
}

/// How far down the stack an end looks for its slice: trace_processor's stack is no deeper.
const DEEPEST: usize = 512;

/// See the module.
#[derive(Debug, Default)]
pub struct Nesting {
    stacks: Vec<Stack>,
    log: EndLog,
    extras: Vec<Extra>,
    /// Slices whose end came with their beginning.
    complete: HashSet<SliceId>,
}

/// What did not add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Oddities {
    /// Ends that closed nothing.
    pub unmatched: u64,
    /// Slices that ended with one around them.
    pub misplaced: u64,
}

impl Oddities {
    fn add(&mut self, other: Oddities) {
        self.unmatched += other.unmatched;
        self.misplaced += other.misplaced;
    }
}

impl Nesting {
    /// A slice was added to the trace.
    pub fn begin(&mut self, trace: &mut Trace, id: SliceId) {
        let slice = trace.slices.get(id);
        let open = Open {
            slice: id,
            start: slice.start.0,
            end: slice.end().map(|end| end.0),
            name: slice.name,
            category: slice.category,
        };
        if open.end.is_some() {
            self.complete.insert(id);
        }
        let stack = stack(&mut self.stacks, slice.track);
        if stack.in_order(open.start) {
            stack.close(open.start, trace);
            stack.push(open);
        }
    }

    /// A moment on a track: an event like others, which may show that slices have ended.
    pub fn moment(&mut self, trace: &mut Trace, track: TrackId, time: i64) {
        let stack = stack(&mut self.stacks, track);
        if stack.in_order(time) {
            stack.close(time, trace);
        }
    }

    /// A slice ends.
    pub fn end(&mut self, trace: &mut Trace, end: &End, extra: Extra) {
        let mut number = 0;
        if !extra.is_empty() {
            self.extras.push(extra);
            number = self.extras.len();
        }
        self.log.push(end, trace.slices.len(), number);
        let stack = stack(&mut self.stacks, end.track);
        if stack.in_order(end.time) {
            stack.close(end.time, trace);
            let slice = stack.end(end, trace);
            if let Some(extra) = number.checked_sub(1) {
                self.extras[extra].slice = slice;
            }
        }
    }

    /// Pairs again what was not in order, and gives the slices what their ends brought.
    pub fn finish(mut self, trace: &mut Trace) -> Oddities {
        let mut oddities = Oddities::default();
        self.stacks.iter().filter(|s| !s.disordered).for_each(|s| oddities.add(s.oddities));
        if self.stacks.iter().any(|stack| stack.disordered) {
            oddities.add(self.again(trace));
        }
        let mut lost = false;
        for extra in self.extras {
            let Some(id) = extra.slice else {
                lost = true;
                continue;
            };
            if extra.position.is_some() {
                trace.slices.set_end_position(id, extra.position);
            }
            let mut slice = trace.slices.get(id);
            if extra.args.is_some() {
                slice.args = trace.args.join(slice.args, extra.args);
                trace.slices.set(id, slice);
            }
            let event = EventRef::Slice(id);
            trace.flows.points[extra.points].iter_mut().for_each(|point| point.event = event);
            trace.flows.links[extra.links].iter_mut().for_each(|link| link.event = event);
        }
        if lost {
            // Those of ends that closed nothing, which are counted.
            trace.flows.points.retain(|point| point.event != awaited());
            trace.flows.links.retain(|link| link.event != awaited());
        }
        oddities
    }

    fn again(&mut self, trace: &mut Trace) -> Oddities {
        let disordered =
            |track: TrackId| self.stacks.get(track.index()).is_some_and(|stack| stack.disordered);
        let mut events: Vec<Event> = Vec::new();
        for id in trace.slices.ids() {
            let slice = trace.slices.get(id);
            if disordered(slice.track) {
                let order = (id.index() * 2 + 1, 0);
                let (track, time) = (slice.track, slice.start.0);
                events.push(Event { track, time, order, what: What::Begin(id) });
                if !self.complete.contains(&id) {
                    trace.slices.set_dur(id, Nanos::UNFINISHED);
                }
            }
        }
        for (at, (end, after, extra)) in self.log.iter().enumerate() {
            if disordered(end.track) {
                let order = (after * 2, at);
                let (track, time) = (end.track, end.time);
                events.push(Event { track, time, order, what: What::End(end, extra) });
            }
        }
        for moment in trace.instants.iter().filter(|moment| disordered(moment.track)) {
            // At one time with others it makes no difference.
            let (track, time, order) = (moment.track, moment.time.0, (0, 0));
            events.push(Event { track, time, order, what: What::Moment });
        }
        events.sort_by_key(|event| (event.track, event.time, event.order));
        let mut stack = Stack::default();
        let mut track = None;
        for event in events {
            if track.replace(event.track) != Some(event.track) {
                stack = Stack { oddities: stack.oddities, ..Stack::default() };
            }
            stack.close(event.time, trace);
            match event.what {
                What::Moment => {}
                What::Begin(id) => {
                    let slice = trace.slices.get(id);
                    stack.push(Open {
                        slice: id,
                        start: slice.start.0,
                        end: slice.end().map(|end| end.0),
                        name: slice.name,
                        category: slice.category,
                    });
                }
                What::End(end, extra) => {
                    let slice = stack.end(&end, trace);
                    if let Some(extra) = extra.checked_sub(1) {
                        self.extras[extra].slice = slice;
                    }
                }
            }
        }
        stack.oddities
    }
}

/// A beginning or end to be paired again.
struct Event {
    track: TrackId,
    time: i64,
    order: (usize, usize),
    what: What,
}

enum What {
    Moment,
    Begin(SliceId),
    End(End, usize),
}

fn stack(stacks: &mut Vec<Stack>, track: TrackId) -> &mut Stack {
    if stacks.len() <= track.index() {
        stacks.resize_with(track.index() + 1, || Stack { last: i64::MIN, ..Stack::default() });
    }
    &mut stacks[track.index()]
}

impl Stack {
    fn in_order(&mut self, time: i64) -> bool {
        self.disordered |= time < self.last;
        self.last = self.last.max(time);
        !self.disordered
    }

    fn push(&mut self, open: Open) {
        self.ended += usize::from(open.end.is_some());
        self.open.push(open);
    }

    fn pop(&mut self) {
        let popped = self.open.pop();
        self.ended -= usize::from(popped.is_some_and(|open| open.end.is_some()));
    }

    /// Takes off what has ended by `time`.
    fn close(&mut self, time: i64, trace: &mut Trace) {
        let mut open_above = false;
        let lowest = self.open.len().saturating_sub(DEEPEST);
        for at in (lowest..self.open.len()).rev() {
            if self.ended == 0 {
                break;
            }
            let Some(end) = self.open[at].end else {
                open_above = true;
                continue;
            };
            if !open_above {
                if end <= time {
                    self.pop();
                }
            } else if end < time {
                for above in &self.open[at + 1..] {
                    if above.end.is_none() {
                        self.oddities.misplaced += 1;
                        trace.slices.set_dur(above.slice, Nanos((end - above.start).max(0)));
                    }
                }
                while self.open.len() > at {
                    self.pop();
                }
                open_above = false;
            }
        }
    }

    fn end(&mut self, end: &End, trace: &mut Trace) -> Option<SliceId> {
        let fits = |open: &Open| {
            open.end.is_none()
                && (end.category.is_none() || open.category == end.category)
                && (end.name.is_none() || open.name.is_none() || open.name == end.name)
        };
        let Some(above) = self.open.iter().rev().take(DEEPEST).position(fits) else {
            self.oddities.unmatched += 1;
            return None;
        };
        let at = self.open.len() - 1 - above;
        let open = &mut self.open[at];
        let slice = open.slice;
        open.end = Some(end.time);
        self.ended += 1;
        trace.slices.set_dur(slice, Nanos(end.time.wrapping_sub(open.start)));
        if at == self.open.len() - 1 {
            self.pop();
        }
        Some(slice)
    }
}

/// All ends, packed: numbers as varints, times and positions as differences.
#[derive(Debug, Default)]
struct EndLog {
    bytes: Vec<u8>,
    time: i64,
    after: usize,
}

impl EndLog {
    fn push(&mut self, end: &End, after: usize, extra: usize) {
        let passed = end.time.wrapping_sub(self.time);
        let numbers = [
            end.track.index() as u64,
            (passed << 1 ^ passed >> 63) as u64,
            (after - self.after) as u64,
            end.name.0.into(),
            end.category.0.into(),
            extra as u64,
        ];
        (self.time, self.after) = (end.time, after);
        for mut number in numbers {
            while number >= 0x80 {
                self.bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.bytes.push(number as u8);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (End, usize, usize)> + '_ {
        let mut bytes = self.bytes.as_slice();
        let (mut time, mut after) = (0i64, 0);
        std::iter::from_fn(move || {
            let mut next = || crate::perfetto::wire::varint(&mut bytes);
            let track = TrackId::at(next()? as usize);
            let passed = next()?;
            time = time.wrapping_add((passed >> 1) as i64 ^ -((passed & 1) as i64));
            after += next()? as usize;
            let (name, category) = (StrId(next()? as u32), StrId(next()? as u32));
            Some((End { track, time, name, category }, after, next()? as usize))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Slice;

    /// `"a0 b2 /3 /9"`: slice a begins at 0, b at 2, ends at 3 and 9. `/3b` ends b.
    fn pair(events: &str) -> (String, Oddities) {
        let mut trace = Trace::default();
        let mut nesting = Nesting::default();
        let track = trace.track(None, "");
        for event in events.split(' ') {
            let (first, rest) = event.split_at(1);
            let digits = rest.trim_end_matches(char::is_alphabetic);
            let time = digits.parse().unwrap();
            if first == "/" {
                let name = match &rest[digits.len()..] {
                    "" => StrId::NONE,
                    name => trace.strings.intern(name),
                };
                let end = End { track, time, name, category: StrId::NONE };
                nesting.end(&mut trace, &end, Extra::default());
            } else {
                let name = trace.strings.intern(first);
                let slice = Slice::new(track, Nanos(time), Nanos::UNFINISHED);
                let id = trace.slices.push(Slice { name, ..slice });
                nesting.begin(&mut trace, id);
            }
        }
        let oddities = nesting.finish(&mut trace);
        let text = |s: Slice| format!("{}{}+{}", trace.strings.get(s.name), s.start.0, s.dur.0);
        (trace.slices.iter().map(text).collect::<Vec<_>>().join(" "), oddities)
    }

    #[test]
    fn an_end_closes_the_innermost() {
        assert_eq!(pair("a0 b2 /3 c3 /5 /9").0, "a0+9 b2+1 c3+2");
        assert_eq!(pair("a0 b0 /0 /0").0, "a0+0 b0+0");
        assert_eq!(pair("a0 b2 /3").0, "a0+-1 b2+1");
    }

    #[test]
    fn an_end_with_a_name_closes_that() {
        let (slices, oddities) = pair("a0 b2 /3a c7 /8c");
        assert_eq!(slices, "a0+3 b2+1 c7+1");
        assert_eq!(oddities, Oddities { unmatched: 0, misplaced: 1 });
        assert_eq!(pair("a0 /3x").1, Oddities { unmatched: 1, misplaced: 0 });
    }

    #[test]
    fn what_comes_late_is_paired_by_time() {
        assert_eq!(pair("a0 /9 b2 /3").0, "a0+9 b2+1");
        assert_eq!(pair("a10 b12 c5 /20 /14 /16").0, "a10+6 b12+2 c5+15");
        assert_eq!(pair("/5 a7 b3 /9").0, "a7+2 b3+2", "an end may come before its beginning");
        assert_eq!(pair("a5 /5 b5 /5 c1 /2").0, "a5+0 b5+0 c1+1", "the order of ties stays");
    }

    #[test]
    fn the_log_gives_back_what_it_was_given() {
        let mut log = EndLog::default();
        let end = |track, time, name| End {
            track: TrackId::at(track),
            time,
            name: StrId(name),
            category: StrId(2),
        };
        log.push(&end(300, i64::MIN, 70_000), 5, 0);
        log.push(&end(0, i64::MAX, 0), 500, 9);
        let back: Vec<_> = log
            .iter()
            .map(|(e, after, extra)| (e.track.index(), e.time, e.name.0, after, extra))
            .collect();
        assert_eq!(back, [(300, i64::MIN, 70_000, 5, 0), (0, i64::MAX, 0, 500, 9)]);
    }
}
