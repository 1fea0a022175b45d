//! Which arrows are written, and where: only those that have both ends.

use std::collections::{HashMap, HashSet};

use crate::trace::{EventRef, FlowPoint, LaunchKind, Nanos, Phase, StrId, Trace};

/// An end of an arrow, to be written behind its event.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) event: EventRef,
    pub(super) phase: Phase,
    pub(super) id: u64,
    /// None for the arrow of a launch.
    pub(super) name: Option<StrId>,
    /// None: where the event begins.
    pub(super) time: Option<Nanos>,
}

/// Ends of arrows in the order of events, and the launches that something came of.
#[derive(Debug)]
pub(super) struct Arrows {
    ends: std::iter::Peekable<std::vec::IntoIter<End>>,
    launched: HashMap<u64, u64>,
}

/// Beyond this a viewer written in JavaScript cannot tell ids apart.
const EXACT: u64 = 1 << 53;

impl Arrows {
    pub(super) fn new(trace: &Trace) -> Arrows {
        let done: HashSet<u64> = trace.activities.iter().map(|a| a.correlation).collect();
        let mut launched = HashMap::new();
        let mut ends = Vec::new();
        let mut small = 1 << 52;
        for link in trace.flows.links.iter().filter(|link| link.kind == LaunchKind::Submit) {
            if link.correlation == 0 || !done.contains(&link.correlation) {
                continue;
            }
            let id = *launched.entry(link.correlation).or_insert_with(|| {
                small += 1;
                if link.correlation < EXACT { link.correlation } else { small }
            });
            let (event, phase) = (link.event, Phase::Start);
            ends.push(End { event, phase, id, name: None, time: None });
        }
        let ac2g = trace.strings.find("ac2g");
        let started: HashSet<(EventRef, u64)> =
            ends.iter().map(|end| (end.event, end.id)).collect();
        for point in whole(&trace.flows.points) {
            let FlowPoint { id, phase, event, time, name } = point;
            // A launch that is waited for too begins one arrow, not two.
            if Some(name) == ac2g && phase == Phase::Start && started.contains(&(event, id)) {
                continue;
            }
            ends.push(End { event, phase, id, name: Some(name), time: Some(time) });
        }
        ends.sort_by_key(|end| end.event);
        Arrows { ends: ends.into_iter().peekable(), launched }
    }

    /// The next end at this event. Events must be asked for in order: slices, moments,
    /// activities, each by number.
    #[inline]
    pub(super) fn next_at(&mut self, event: EventRef) -> Option<End> {
        self.ends.next_if(|end| end.event == event)
    }

    /// Whether an arrow has an end at this event.
    #[inline]
    pub(super) fn is_next(&mut self, event: EventRef) -> bool {
        self.ends.peek().is_some_and(|end| end.event == event)
    }

    /// The id of the arrow to an activity of this correlation number.
    #[inline]
    pub(super) fn launch(&self, correlation: u64) -> Option<u64> {
        if correlation == 0 { None } else { self.launched.get(&correlation).copied() }
    }
}

/// The points of flows that have both ends. Where a flow does not say where it begins or ends,
/// the first and the last point do.
fn whole(points: &[FlowPoint]) -> Vec<FlowPoint> {
    let mut seen: HashMap<(u64, StrId), (u32, bool, bool)> = HashMap::new();
    for point in points {
        let entry = seen.entry((point.id, point.name)).or_default();
        entry.0 += 1;
        entry.1 |= point.phase == Phase::Start;
        entry.2 |= point.phase == Phase::End;
    }
    let mut out = Vec::with_capacity(points.len());
    let mut unclear: HashMap<(u64, StrId), Vec<FlowPoint>> = HashMap::new();
    for point in points {
        match seen.get(&(point.id, point.name)) {
            Some((_, true, true)) => out.push(*point),
            Some((2.., ..)) => {
                unclear.entry((point.id, point.name)).or_default().push(*point);
            }
            _ => {}
        }
    }
    for (_, mut points) in unclear {
        points.sort_by_key(|point| (point.time, point.event));
        let last = points.len() - 1;
        for (index, point) in points.into_iter().enumerate() {
            let phase = match index {
                0 => Phase::Start,
                _ if index == last => Phase::End,
                _ => Phase::Step,
            };
            out.push(FlowPoint { phase, ..point });
        }
    }
    out
}
