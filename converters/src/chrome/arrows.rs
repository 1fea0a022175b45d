//! Which arrows are written, and where: only those that have both ends.

use hashbrown::{HashMap, HashSet};

use super::own::Correlations;
use super::{FOREIGN, LAUNCH_ARROWS};
use crate::trace::{
    Class, EventIndex, EventRef, FlowPoint, LaunchKind, Nanos, Phase, StrId, Trace, Value, class,
};

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
    /// Where it stood in the file; 0 if that is behind its event.
    pub(super) position: u32,
}

/// Ends of arrows in the order of events, and the launches that something came of.
#[derive(Debug)]
pub(super) struct Arrows {
    ends: Vec<End>,
    of: EventIndex,
    launched: HashMap<u64, u64>,
    numbers: Correlations,
}

/// Beyond this a viewer written in JavaScript cannot tell ids apart.
const EXACT: u64 = 1 << 53;

impl Arrows {
    pub(super) fn new(trace: &Trace) -> Arrows {
        let done: HashSet<u64> = trace.activities.iter().map(|a| a.correlation).collect();
        let mut launched = HashMap::new();
        let mut ends = Vec::new();
        let mut numbers = Correlations::new(trace);
        for link in trace.flows.links.iter().filter(|link| link.kind == LaunchKind::Submit) {
            let untold = link.correlation != 0 && !is_of_file(trace, link.event);
            if !untold || !done.contains(&link.correlation) {
                continue;
            }
            let number = || numbers.number(link.correlation);
            let id = *launched.entry(link.correlation).or_insert_with(number);
            let (event, phase) = (link.event, Phase::Start);
            ends.push(End { event, phase, id, name: None, time: None, position: 0 });
        }
        let started: HashSet<(EventRef, u64)> =
            ends.iter().map(|end| (end.event, end.id)).collect();
        let (own, others): (Vec<&FlowPoint>, Vec<&FlowPoint>) =
            trace.flows.points.iter().partition(|point| is_of_file(trace, point.event));
        let mut points = whole(&others);
        points.extend(own.into_iter().copied().filter(|point| {
            let name = trace.strings.get(point.name);
            !name.is_empty() && !name.starts_with(FOREIGN)
        }));
        let names = Names::new(trace, &points);
        for point in points {
            let FlowPoint { phase, event, time, position, .. } = point;
            let (id, name) = names.of(&point);
            // A launch that is waited for too begins one arrow, not two.
            if name.is_none() && phase == Phase::Start && started.contains(&(event, id)) {
                continue;
            }
            ends.push(End { event, phase, id, name, time: Some(time), position });
        }
        ends.sort_by_key(|end| end.event);
        let of = EventIndex::new(ends.iter().map(|end| end.event));
        Arrows { ends, of, launched, numbers }
    }

    /// The ends at an event.
    #[inline]
    pub(super) fn at(&self, event: EventRef) -> &[End] {
        let Some(first) = self.of.first(event) else { return &[] };
        let from = &self.ends[first..];
        &from[..from.iter().take_while(|end| end.event == event).count()]
    }

    /// The ends that stood apart from their events, and where.
    pub(super) fn apart(&self) -> impl Iterator<Item = (u32, usize)> {
        let ends = self.ends.iter().enumerate();
        ends.filter(|(_, end)| end.position != 0).map(|(row, end)| (end.position, row))
    }

    pub(super) fn end(&self, row: usize) -> End {
        self.ends[row]
    }

    /// The number of a correlation in the file.
    pub(super) fn number(&mut self, correlation: u64) -> u64 {
        self.numbers.number(correlation)
    }

    /// The id of the arrow of a launch that begins at this event.
    pub(super) fn launched_at(&self, event: EventRef) -> Option<u64> {
        let end = self.at(event).first()?;
        (end.phase == Phase::Start && end.name.is_none()).then_some(end.id)
    }

    /// The id of the arrow to an activity of this correlation number.
    #[inline]
    pub(super) fn launch(&self, correlation: u64) -> Option<u64> {
        if correlation == 0 { None } else { self.launched.get(&correlation).copied() }
    }
}

/// Whether an event comes from a file of JSON, which has its own arrows: those that the hub makes
/// of other things are not for that.
fn is_of_file(trace: &Trace, event: EventRef) -> bool {
    match event {
        EventRef::Slice(id) => trace.slices.position(id).is_some(),
        EventRef::Instant(id) => trace.instants.position(id).is_some(),
        EventRef::Activity(id) => trace.activities.position(id).is_some(),
    }
}

/// Names and ids of flows that come from a format without names, and with ids of 64 bits.
struct Names {
    ac2g: Option<StrId>,
    /// By the id in the trace; no name is that of launches.
    given: HashMap<u64, (u64, Option<StrId>)>,
}

impl Names {
    fn new(trace: &Trace, points: &[FlowPoint]) -> Names {
        let ac2g = trace.strings.find(LAUNCH_ARROWS).and_then(|key| trace.facts.get(key));
        let ac2g = match ac2g {
            Some(Value::Str(name)) => Some(name),
            _ => trace.strings.find("ac2g"),
        };
        let mut given = HashMap::new();
        let unnamed = || points.iter().filter(|point| point.name == StrId::NONE);
        let correlation = trace.strings.find("correlation");
        // What ends at a wait for a device is what Kineto calls the same as a launch.
        for point in unnamed().filter(|point| point.phase == Phase::End) {
            let EventRef::Slice(slice) = point.event else { continue };
            let slice = trace.slices.get(slice);
            let category = trace.strings.get(slice.category);
            let number = correlation.and_then(|key| trace.args.find(slice.args, key));
            let number = match number {
                Some(Value::I64(n)) => u64::try_from(n).ok(),
                Some(Value::U64(n)) => Some(n),
                _ => None,
            };
            if let (Some(number), Class::Sync) = (number, class(category)) {
                given.insert(point.id, (number, None));
            }
        }
        let mut next = unnamed().map(|point| point.id).filter(|id| *id < EXACT).max().unwrap_or(0);
        for point in unnamed().filter(|point| point.id >= EXACT) {
            given.entry(point.id).or_insert_with(|| {
                next += 1;
                (next, Some(StrId::NONE))
            });
        }
        Names { ac2g, given }
    }

    fn of(&self, point: &FlowPoint) -> (u64, Option<StrId>) {
        let given = self.given.get(&point.id).filter(|_| point.name == StrId::NONE);
        given
            .copied()
            .unwrap_or((point.id, Some(point.name).filter(|name| Some(*name) != self.ac2g)))
    }
}

/// The points of flows that have both ends. Where a flow does not say where it begins or ends,
/// the first and the last point do.
fn whole(points: &[&FlowPoint]) -> Vec<FlowPoint> {
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
            Some((_, true, true)) => out.push(**point),
            Some((2.., ..)) => {
                unclear.entry((point.id, point.name)).or_default().push(**point);
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
