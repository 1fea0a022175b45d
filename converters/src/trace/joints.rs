//! From what formats say about arrows to points of flows: which events they touch.

use crate::order::Order as _;
use hashbrown::HashMap;

use super::{EventRef, FlowPoint, Nanos, Phase, StrId, Trace, mix};

/// Beginning, end, event.
pub(crate) type Span = (i64, i64, EventRef);

/// Slices that are looked at for the one around an arrow's end: nesting is never that deep.
const LOOK_BACK: usize = 4096;

/// The slices of a track, to be asked which of them an arrow's end binds to.
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    pub(crate) fn new(mut spans: Vec<Span>) -> Spans {
        // The longest first where several begin together, so that the last is the innermost.
        spans.sort_by_key(|&(start, end, event)| (start, std::cmp::Reverse(end), event));
        Spans(spans)
    }

    /// The innermost slice around `time`, or the one that began last; or, if `enclosing` is false,
    /// the next one that begins, which may be at that very time.
    pub(crate) fn bound(&self, time: i64, enclosing: bool) -> Option<EventRef> {
        let next = self.0.partition_point(|span| span.0 <= time);
        let mut near = self.0[..next].iter().rev().take(LOOK_BACK);
        let around = near.find(|span| span.1 >= time).or(self.0[..next].last());
        let following = || self.0.get(self.0.partition_point(|span| span.0 < time));
        let span = if enclosing { around } else { following().or(around) };
        span.map(|span| span.2)
    }
}

/// An event with a `bind_id`: arrows go from each that lets one out to those that let it in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joint {
    pub(crate) id: u64,
    pub(crate) time: i64,
    pub(crate) event: EventRef,
    pub(crate) into: bool,
    pub(crate) out: bool,
}

/// Makes flows of what `bind_id`s say. Several arrows may come from one event: each is a flow.
pub(crate) fn join(trace: &mut Trace, mut joints: Vec<Joint>, name: StrId) {
    joints.order_by_numbers(|joint| [joint.time]);
    let mut from: HashMap<u64, Joint> = HashMap::new();
    let mut arrows = 0u64;
    for joint in joints {
        if let Some(from) = from.get(&joint.id).filter(|_| joint.into) {
            // One id for each arrow, far from those that files have.
            let id = mix(&[joint.id, arrows]);
            arrows += 1;
            for (phase, joint) in [(Phase::Start, from), (Phase::End, &joint)] {
                let (event, time) = (joint.event, Nanos(joint.time));
                trace.flows.points.push(FlowPoint { id, phase, event, time, name, position: 0 });
            }
        }
        if joint.out {
            from.insert(joint.id, joint);
        }
    }
}

/// Where the rows of each event begin in a list that is in the order of events: a number
/// for each event, since nearly all are asked for and hashing all of them takes longer.
#[derive(Debug, Default)]
pub(crate) struct EventIndex {
    /// Slices, moments, activities: the place plus 1, or 0.
    firsts: [Vec<u32>; 3],
}

impl EventIndex {
    pub(crate) fn new(sorted: impl Iterator<Item = EventRef>) -> EventIndex {
        let mut index = EventIndex::default();
        for (place, event) in sorted.enumerate() {
            let (kind, row) = numbers(event);
            let firsts = &mut index.firsts[kind];
            if firsts.len() <= row {
                firsts.resize(row + 1, 0);
            }
            if firsts[row] == 0 {
                firsts[row] = u32::try_from(place + 1).unwrap_or(0);
            }
        }
        index
    }

    #[inline]
    pub(crate) fn first(&self, event: EventRef) -> Option<usize> {
        let (kind, row) = numbers(event);
        let place = self.firsts[kind].get(row).copied().unwrap_or(0);
        (place as usize).checked_sub(1)
    }
}

fn numbers(event: EventRef) -> (usize, usize) {
    match event {
        EventRef::Slice(id) => (0, id.index()),
        EventRef::Instant(id) => (1, id.index()),
        EventRef::Activity(id) => (2, id.index()),
    }
}
