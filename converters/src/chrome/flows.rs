//! Arrows: which events `s`, `t` and `f` bind to, and which calls launched what.

use hashbrown::{HashMap, HashSet};

use super::LAUNCH_ARROWS;
use super::rows::{Id, Place, RowKind, Rows};
use crate::trace::{
    Api, EventRef, FlowPoint, LaunchKind, LaunchLink, Nanos, Phase, QueueId, SliceId, StrId, Trace,
    TrackId, Value,
};

/// The event that was read last. Kineto writes the ends of arrows right behind their events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) start: i64,
    pub(super) event: EventRef,
    pub(super) correlation: u64,
}

/// An end of an arrow whose event is to be found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: u64,
    pub(super) name: StrId,
    pub(super) phase: Phase,
    /// Binds to the slice around it, and not to the next one.
    pub(super) enclosing: bool,
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) time: i64,
}

/// A call that may have launched something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) slice: SliceId,
    pub(super) correlation: u64,
    pub(super) api: Api,
    /// A call of the driver; where the runtime has the same number, it called the driver.
    pub(super) driver: bool,
}

#[derive(Debug, Default)]
pub(super) struct FlowRows {
    pub(super) last: Option<Last>,
    pub(super) calls: Vec<Call>,
    /// Waits and events of devices that have a correlation number.
    pub(super) waits: Vec<(SliceId, u64, i64)>,
    pending: Vec<Pending>,
    /// Ends of arrows that correlation numbers say as well.
    implied: u64,
}

impl FlowRows {
    /// Takes an end of an arrow.
    pub(super) fn end(&mut self, trace: &mut Trace, end: Pending, launch: bool) {
        let last = self
            .last
            .filter(|last| (last.pid, last.tid, last.start) == (end.pid, end.tid, end.time));
        match last {
            Some(last) if launch && last.correlation == end.id => self.implied += 1,
            Some(last) => push(trace, &end, last.event),
            None => self.pending.push(end),
        }
    }

    /// Finds the events of all arrows, and makes those that correlation numbers imply.
    pub(super) fn finish(&mut self, trace: &mut Trace, rows: &Rows) {
        self.bind(trace, rows);
        let lost = prune(trace);
        to_devices(trace);
        let drawn = self.launches(trace);
        let lost = lost + self.implied.saturating_sub(drawn);
        if lost > 0 {
            trace.facts.warn("arrow with one end", None);
            if let Some(warning) = trace.facts.warnings.last_mut() {
                warning.count = lost;
            }
        }
    }

    /// Makes arrows from calls to what has their correlation number; says how many ends.
    fn launches(&mut self, trace: &mut Trace) -> u64 {
        let mut ends = 0;
        let correlations = || trace.activities.iter().map(|activity| activity.correlation);
        let launched: HashSet<u64> = correlations().filter(|number| *number != 0).collect();
        let waits: HashSet<u64> = self.waits.iter().map(|wait| wait.1).collect();
        let mut calls: HashMap<u64, Call> = HashMap::new();
        for call in &self.calls {
            if launched.contains(&call.correlation) || waits.contains(&call.correlation) {
                let known = calls.entry(call.correlation).or_insert(*call);
                if known.driver && !call.driver {
                    *known = *call;
                }
            }
        }
        ends += correlations().filter(|number| calls.contains_key(number)).count() as u64;
        // In the order of the file, so that equal files give equal traces.
        for call in &self.calls {
            let first = calls.get(&call.correlation).is_some_and(|known| known.slice == call.slice);
            if first && launched.contains(&call.correlation) {
                ends += 1;
                trace.flows.links.push(LaunchLink {
                    event: EventRef::Slice(call.slice),
                    correlation: call.correlation,
                    kind: LaunchKind::Submit,
                    api: call.api,
                });
            }
        }
        let name = trace.strings.intern("ac2g");
        for &(wait, id, time) in &self.waits {
            let Some(call) = calls.get(&id) else { continue };
            let start = trace.slices.get(call.slice).start;
            let ends_of = [
                (Phase::Start, EventRef::Slice(call.slice), start),
                (Phase::End, EventRef::Slice(wait), Nanos(time)),
            ];
            for (phase, event, time) in ends_of {
                ends += 1;
                trace.flows.points.push(FlowPoint { id, phase, event, time, name });
            }
        }
        ends
    }

    /// Finds the events of arrows that did not follow theirs.
    fn bind(&mut self, trace: &mut Trace, rows: &Rows) {
        let mut tracks: HashMap<TrackId, Vec<&Pending>> = HashMap::new();
        let mut queues: HashMap<QueueId, Vec<&Pending>> = HashMap::new();
        for end in &self.pending {
            let found = [RowKind::Host, RowKind::Queue]
                .map(|kind| rows.find(kind, end.pid, end.tid))
                .map(|place| place.filter(|place| has_events(trace, *place)));
            match found {
                [Some(Place::Track(track)), _] => tracks.entry(track).or_default().push(end),
                [_, Some(Place::Queue(queue))] => queues.entry(queue).or_default().push(end),
                _ => {}
            }
        }
        let mut bound: Vec<(&Pending, EventRef)> = Vec::new();
        let mut spans: HashMap<TrackId, Vec<Span>> = HashMap::new();
        for id in trace.slices.ids() {
            let slice = trace.slices.get(id);
            if tracks.contains_key(&slice.track) {
                let end = slice.end().map_or(i64::MAX, |end| end.0);
                let span = (slice.start.0, end, EventRef::Slice(id));
                spans.entry(slice.track).or_default().push(span);
            }
        }
        for (track, ends) in tracks {
            bind_on(spans.remove(&track).unwrap_or_default(), &ends, &mut bound);
        }
        let mut spans: HashMap<QueueId, Vec<Span>> = HashMap::new();
        for id in trace.activities.ids() {
            let activity = trace.activities.get(id);
            if queues.contains_key(&activity.queue) {
                let span = (activity.start.0, activity.end().0, EventRef::Activity(id));
                spans.entry(activity.queue).or_default().push(span);
            }
        }
        for (queue, ends) in queues {
            bind_on(spans.remove(&queue).unwrap_or_default(), &ends, &mut bound);
        }
        bound.sort_by_key(|(end, event)| (end.time, end.id, *event));
        for (end, event) in bound {
            push(trace, end, event);
        }
        let lost = self.pending.len() - trace.flows.points.len().min(self.pending.len());
        self.implied += lost as u64;
        self.pending = Vec::new();
    }
}

/// Beginning, end, event.
type Span = (i64, i64, EventRef);

/// Slices that are looked at for the one around an arrow's end: nesting is never that deep.
const LOOK_BACK: usize = 4096;

fn bind_on<'a>(
    mut spans: Vec<Span>,
    ends: &[&'a Pending],
    bound: &mut Vec<(&'a Pending, EventRef)>,
) {
    // The longest first where several begin together, so that the last is the innermost.
    spans.sort_by_key(|&(start, end, event)| (start, std::cmp::Reverse(end), event));
    for end in ends {
        let next = spans.partition_point(|span| span.0 <= end.time);
        let around = spans[..next].iter().rev().take(LOOK_BACK).find(|span| span.1 >= end.time);
        // An end that binds to what comes next may stand at its very beginning.
        let following = || {
            let at = spans.partition_point(|span| span.0 < end.time);
            spans.get(at)
        };
        let span = if end.enclosing { around } else { following().or(around) };
        if let Some(span) = span {
            bound.push((end, span.2));
        }
    }
}

fn has_events(trace: &Trace, place: Place) -> bool {
    match place {
        Place::Track(track) => trace.tracks.get(track).is_some(),
        Place::Queue(queue) => trace.queues.get(queue).is_some(),
    }
}

fn push(trace: &mut Trace, end: &Pending, event: EventRef) {
    let (id, phase, name) = (end.id, end.phase, end.name);
    trace.flows.points.push(FlowPoint { id, phase, event, time: Nanos(end.time), name });
}

/// Makes launches of the flows that go from a slice to what devices did: the hub knows that
/// kind of arrow by numbers, which activities without one get here. Gaudi's are such.
fn to_devices(trace: &mut Trace) {
    let is_work = |point: &&FlowPoint| matches!(point.event, EventRef::Activity(_));
    let mut flows: HashMap<(u64, StrId), Option<FlowPoint>> =
        trace.flows.points.iter().filter(is_work).map(|p| ((p.id, p.name), None)).collect();
    if flows.is_empty() {
        return;
    }
    let mut whole: HashSet<(u64, StrId)> = flows.keys().copied().collect();
    for point in &trace.flows.points {
        let Some(start) = flows.get_mut(&(point.id, point.name)) else { continue };
        let fits = match (point.phase, point.event) {
            (Phase::Start, EventRef::Slice(_)) => start.replace(*point).is_none(),
            (Phase::End | Phase::Step, EventRef::Activity(_)) => true,
            _ => false,
        };
        if !fits {
            whole.remove(&(point.id, point.name));
        }
    }
    let taken: HashSet<u64> = trace.activities.iter().map(|a| a.correlation).collect();
    let mut fresh = taken.iter().copied().filter(|n| *n < 1 << 48).max().unwrap_or(0);
    let mut numbers: HashMap<(u64, StrId), u64> = HashMap::new();
    let mut linked: HashSet<LaunchLink> = HashSet::new();
    for point in std::mem::take(&mut trace.flows.points) {
        let key = (point.id, point.name);
        let start = flows.get(&key).copied().flatten().filter(|_| whole.contains(&key));
        let Some(start) = start else {
            trace.flows.points.push(point);
            continue;
        };
        let EventRef::Activity(id) = point.event else { continue };
        let mut activity = trace.activities.get(id);
        if activity.correlation == 0 {
            activity.correlation = *numbers.entry(key).or_insert_with(|| {
                fresh += 1;
                if taken.contains(&point.id) { fresh } else { point.id }
            });
            trace.activities.set(id, activity);
        }
        let (event, correlation) = (start.event, activity.correlation);
        let link = LaunchLink { event, correlation, kind: LaunchKind::Submit, api: Api::Unknown };
        if linked.insert(link) {
            trace.flows.links.push(link);
        }
        let key = trace.strings.intern(LAUNCH_ARROWS);
        if trace.facts.get(key).is_none() {
            trace.facts.metadata.push((key, Value::Str(point.name)));
        }
    }
}

/// Removes flows that only begin or only end; says how many points that were.
fn prune(trace: &mut Trace) -> u64 {
    let mut seen: HashMap<(u64, StrId), u8> = HashMap::new();
    for point in &trace.flows.points {
        let bit = if point.phase == Phase::Start { 1 } else { 2 };
        *seen.entry((point.id, point.name)).or_default() |= bit;
    }
    let before = trace.flows.points.len();
    trace.flows.points.retain(|point| seen.get(&(point.id, point.name)) == Some(&3));
    (before - trace.flows.points.len()) as u64
}
