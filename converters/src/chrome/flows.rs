//! Arrows: which events `s`, `t` and `f` bind to, and which calls launched what.

use hashbrown::{HashMap, HashSet};

use super::rows::{Id, Place, RowKind, Rows};
use super::{JOINTS, LAUNCH_ARROWS, WAITS};
use crate::trace::{
    Api, EventRef, FlowPoint, Joint, LaunchKind, LaunchLink, Nanos, Phase, Position, QueueId,
    SliceId, Span, Spans, StrId, Trace, TrackId, Value, join,
};

/// The event that was read last. Kineto writes the ends of arrows right behind their events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) start: i64,
    pub(super) event: EventRef,
    pub(super) correlation: u64,
    /// Where it stands in the file.
    pub(super) position: u32,
}

impl Last {
    /// Whether an arrow's end is said by the correlation number of the event before it, as
    /// Kineto's are. If so the event is marked, and the end needs no place of its own.
    fn implies(&self, trace: &mut Trace, end: &Pending) -> bool {
        let mark = match end.phase {
            Phase::Start => Position::ARROW_BEGINS,
            Phase::End => Position::ARROW_ENDS,
            Phase::Step => return false,
        };
        if self.correlation != end.id || end.odd || self.position + 1 != end.position {
            return false;
        }
        let marked = Some(Position { number: self.position, marks: mark });
        match self.event {
            EventRef::Slice(id) => trace.slices.set_position(id, marked),
            EventRef::Activity(id) => trace.activities.set_position(id, marked),
            EventRef::Instant(_) => return false,
        }
        true
    }
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
    /// Where it stands in the file.
    pub(super) position: u32,
    /// It says more than the hub can hold, and was kept as it is besides.
    pub(super) odd: bool,
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
    /// Events with a `bind_id`.
    pub(super) joints: Vec<Joint>,
}

impl FlowRows {
    /// Takes an end of an arrow.
    pub(super) fn end(&mut self, trace: &mut Trace, end: Pending, launch: bool) {
        let last = self
            .last
            .filter(|last| (last.pid, last.tid, last.start) == (end.pid, end.tid, end.time));
        match last {
            Some(last) if launch && last.implies(trace, &end) => {}
            Some(last) => {
                push(trace, &end, last.event);
            }
            None => self.pending.push(end),
        }
    }

    /// Finds the events of all arrows, and makes those that correlation numbers imply.
    pub(super) fn finish(&mut self, trace: &mut Trace, rows: &Rows) {
        let lost = FlowRows::bind(&self.pending, trace, rows);
        self.pending = Vec::new();
        to_devices(trace);
        self.launches(trace);
        let name = trace.strings.intern(JOINTS);
        join(trace, std::mem::take(&mut self.joints), name);
        if lost > 0 {
            trace.facts.warn("end of an arrow at no event", None);
            if let Some(warning) = trace.facts.warnings.last_mut() {
                warning.count = lost;
            }
        }
    }

    /// Makes arrows from calls to what has their correlation number.
    fn launches(&mut self, trace: &mut Trace) {
        // Sorted lists: numbers mostly ascend already, and tables of them would be the largest
        // thing in memory.
        let sorted = |mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers
        };
        let correlations = trace.activities.correlations().iter().copied();
        let launched = sorted(correlations.filter(|number| *number != 0).collect());
        let waits = sorted(self.waits.iter().map(|wait| wait.1).collect());
        let (mut launched, mut waits) = (Ascending::new(&launched), Ascending::new(&waits));
        // Of several calls with a number the first, and none of the driver if there are others.
        let mut calls: Vec<u32> = (0..self.calls.len() as u32).collect();
        let call = |row: u32| &self.calls[row as usize];
        calls.sort_unstable_by_key(|row| (call(*row).correlation, call(*row).driver, *row));
        calls.dedup_by_key(|row| call(*row).correlation);
        let mut launches = Vec::new();
        calls.retain(|row| {
            let launched = launched.contains(call(*row).correlation);
            if launched {
                launches.push(*row);
            }
            waits.contains(call(*row).correlation)
        });
        // In the order of the file, so that equal files give equal traces.
        launches.sort_unstable();
        trace.flows.links.extend(launches.iter().map(|row| LaunchLink {
            event: EventRef::Slice(call(*row).slice),
            correlation: call(*row).correlation,
            kind: LaunchKind::Submit,
            api: call(*row).api,
        }));
        let name = trace.strings.intern(WAITS);
        for &(wait, id, time) in &self.waits {
            let found = calls.binary_search_by_key(&id, |row| call(*row).correlation);
            let Ok(found) = found else { continue };
            let slice = call(calls[found]).slice;
            let start = trace.slices.get(slice).start;
            let ends_of = [
                (Phase::Start, EventRef::Slice(slice), start),
                (Phase::End, EventRef::Slice(wait), Nanos(time)),
            ];
            for (phase, event, time) in ends_of {
                trace.flows.points.push(FlowPoint { id, phase, event, time, name, position: 0 });
            }
        }
    }

    /// Finds the events of arrows that did not follow theirs; says how many have none.
    fn bind<'a>(pending: &'a [Pending], trace: &mut Trace, rows: &Rows) -> u64 {
        let mut tracks: HashMap<TrackId, Vec<&Pending>> = HashMap::new();
        let mut queues: HashMap<QueueId, Vec<&Pending>> = HashMap::new();
        for end in pending {
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
        let mut bind = |spans: Option<Vec<Span>>, ends: Vec<&'a Pending>| {
            let spans = Spans::new(spans.unwrap_or_default());
            let found = |end: &'a Pending| Some((end, spans.bound(end.time, end.enclosing)?));
            bound.extend(ends.into_iter().filter_map(found));
        };
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
            bind(spans.remove(&track), ends);
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
            bind(spans.remove(&queue), ends);
        }
        // In the order of the file, so that equal files give equal traces.
        bound.sort_by_key(|(end, _)| end.position);
        let lost = pending.len() - bound.len();
        for (end, event) in bound {
            push(trace, end, event);
        }
        lost as u64
    }
}

fn has_events(trace: &Trace, place: Place) -> bool {
    match place {
        Place::Track(track) => trace.tracks.get(track).is_some(),
        Place::Queue(queue) => trace.queues.get(queue).is_some(),
    }
}

/// Sorted numbers, asked about in ascending order.
struct Ascending<'a>(std::iter::Peekable<std::slice::Iter<'a, u64>>);

impl<'a> Ascending<'a> {
    fn new(numbers: &'a [u64]) -> Ascending<'a> {
        Ascending(numbers.iter().peekable())
    }

    fn contains(&mut self, number: u64) -> bool {
        while self.0.next_if(|next| **next < number).is_some() {}
        self.0.peek() == Some(&&number)
    }
}

fn push(trace: &mut Trace, end: &Pending, event: EventRef) {
    let (id, phase, name) = (end.id, end.phase, end.name);
    let (time, position) = (Nanos(end.time), end.position);
    trace.flows.points.push(FlowPoint { id, phase, event, time, name, position });
}

/// Makes launches of the flows that go from a slice to what devices did: the hub knows that
/// kind of arrow by numbers, which activities without one get here. Gaudi's are such.
fn to_devices(trace: &mut Trace) {
    if trace.activities.correlations().iter().any(|number| *number != 0) {
        return;
    }
    // Others are kept as what they are: the hub knows one kind of launch.
    let is_work = |point: &&FlowPoint| matches!(point.event, EventRef::Activity(_));
    let first = trace.flows.points.iter().find(is_work).map(|point| point.name);
    let is_work = |point: &&FlowPoint| is_work(point) && first == Some(point.name);
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
            (Phase::End | Phase::Step, EventRef::Activity(_)) => is_work(&point),
            _ => false,
        };
        if !fits {
            whole.remove(&(point.id, point.name));
        }
    }
    let taken: HashSet<u64> = trace.activities.correlations().iter().copied().collect();
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
        trace.flows.points.push(point);
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
