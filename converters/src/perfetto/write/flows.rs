//! Which flows and launches belong to which event, under ids that mean the same to readers.
//!
//! Readers know one space of flow ids for the whole trace, and a flow ends only where it
//! says so. Flows that share an id but not a name, or that start anew, get ids of their
//! own.
//!
//! A flow that has a name is drawn by events of its own, which keep name and category, where each
//! of them would bind to its slice: [`Drawn`]. All others are numbers at their events. What the
//! numbers do not say, their events carry beside them ([`Arrows::besides`]).

use hashbrown::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use crate::trace::{
    ActivityId, EventIndex, EventRef, FlowPoint, LaunchKind, LaunchLink, Nanos, Phase, StrId, Trace,
};

/// Where a flow touches an event, as written.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub event: EventRef,
    pub time: Nanos,
    pub id: u64,
    pub ends: bool,
    /// It was an event of a file, and is said besides.
    pub of_file: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Arrows {
    points: Vec<Point>,
    points_of: EventIndex,
    /// Rows of points that were part of a file, by event.
    besides: Vec<u32>,
    besides_of: EventIndex,
    links: Vec<LaunchLink>,
    links_of: EventIndex,
    /// Ends of flows that had not begun.
    pub unbegun: u64,
    /// Points at activities, which know no flows but only who launched them.
    pub of_activities: u64,
}

/// Points drawn by events of their own: their ids as written.
pub type Drawn = HashMap<u32, u64>;

impl Arrows {
    pub fn new(trace: &Trace, is_drawable: impl Fn(&FlowPoint) -> bool) -> (Arrows, Drawn) {
        let mut arrows = Arrows { links: trace.flows.links.clone(), ..Arrows::default() };
        let points = &trace.flows.points;
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        let at = |row: &u32| &points[*row as usize];
        order.sort_by_key(|row| (drawn_time(trace, at(row)), at(row).position));
        let flows = under_way(&order, points);
        let drawn = drawn(&order, points, &flows, is_drawable);
        let mut activities = Activities::new(trace);
        let mut last: HashMap<(u64, StrId, u64), EventRef> = HashMap::new();
        let mut owners: HashMap<u64, (StrId, u64)> = HashMap::new();
        for row in order {
            let point = *at(&row);
            if point.position != 0 {
                arrows.besides.push(row);
            }
            let Some(&(used, begun)) = flows.get(row as usize) else { continue };
            let flow = (point.id, point.name, used);
            if drawn.contains_key(&row) {
                continue;
            }
            let from = last.insert(flow, point.event);
            if activities.joins(from, point.event) {
                let from = from.filter(|_| begun && point.phase != Phase::Start);
                let link = from.and_then(|from| activities.link(from, point.event));
                match link {
                    Some(link) => arrows.links.extend(link),
                    None => arrows.of_activities += u64::from(from.is_some()),
                }
                continue;
            }
            if point.phase == Phase::End && !begun {
                arrows.unbegun += u64::from(point.position == 0);
                continue;
            }
            // The first that comes with an id keeps it.
            let key = (point.name, used);
            let id = match *owners.entry(point.id).or_insert(key) == key {
                true => point.id,
                false => other_id(point.id, point.name, used),
            };
            let ends = point.phase == Phase::End;
            let of_file = point.position != 0;
            arrows.points.push(Point { event: point.event, time: point.time, id, ends, of_file });
        }
        arrows.points.sort_by_key(|point| point.event);
        arrows.points_of = EventIndex::new(arrows.points.iter().map(|point| point.event));
        arrows.besides.retain(|row| !drawn.contains_key(row));
        arrows.besides.sort_by_key(|row| at(row).event);
        arrows.besides_of = EventIndex::new(arrows.besides.iter().map(|row| at(row).event));
        arrows.links.sort_by_key(|link| link.event);
        arrows.links_of = EventIndex::new(arrows.links.iter().map(|link| link.event));
        (arrows, drawn)
    }

    /// Where flows touch an event.
    #[inline]
    pub fn points(&self, event: EventRef) -> &[Point] {
        let Some(first) = self.points_of.first(event) else { return &[] };
        let from = &self.points[first..];
        let of_event = from.iter().take_while(|point| point.event == event).count();
        &from[..of_event]
    }

    /// Points of a file at an event that are to be said besides.
    #[inline]
    pub fn besides<'a>(
        &'a self,
        trace: &'a Trace,
        event: EventRef,
    ) -> impl Iterator<Item = &'a FlowPoint> {
        let from = self.besides_of.first(event).map_or(&[][..], |first| &self.besides[first..]);
        let points = from.iter().map(|row| &trace.flows.points[*row as usize]);
        points.take_while(move |point| point.event == event)
    }

    /// Puts down the correlation numbers of activities that an event submitted, and of those
    /// that it waited for; says whether there are any.
    #[inline]
    pub fn launches(&self, event: EventRef, launches: &mut Launches) -> bool {
        let Some(first) = self.links_of.first(event) else { return false };
        launches.submitted.clear();
        launches.waited.clear();
        launches.api = 0;
        for link in self.links[first..].iter().take_while(|link| link.event == event) {
            launches.api = launches.api.max(link.api as u8);
            match link.kind {
                LaunchKind::Submit => launches.submitted.push(link.correlation),
                LaunchKind::Wait => launches.waited.push(link.correlation),
            }
        }
        true
    }
}

/// When an end of an arrow is drawn: within its slice, where readers bind it to that.
pub fn drawn_time(trace: &Trace, point: &FlowPoint) -> Nanos {
    match point.event {
        EventRef::Slice(id) if point.position != 0 => {
            let time = point.time.max(trace.slices.start(id));
            trace.slices.end(id).map_or(time, |end| time.min(end))
        }
        _ => point.time,
    }
}

/// Of each point: how often its flow was used up before, and whether it has begun.
fn under_way(order: &[u32], points: &[FlowPoint]) -> Vec<(u64, bool)> {
    let mut flows = vec![(0, false); points.len()];
    let mut state: HashMap<(u64, StrId), (u64, bool)> = HashMap::new();
    for row in order {
        let point = &points[*row as usize];
        let again = state.contains_key(&(point.id, point.name));
        let (used, active) = state.entry((point.id, point.name)).or_default();
        // What is drawn as an event of its own is taken for the same flow, ended or not.
        if point.phase == Phase::Start && (*active || (again && point.position != 0)) {
            *used += 1;
        }
        flows[*row as usize] = (*used, *active);
        *active = point.phase != Phase::End;
    }
    flows
}

/// Points of named flows that have a beginning, and each of whose points is drawable.
fn drawn(
    order: &[u32],
    points: &[FlowPoint],
    flows: &[(u64, bool)],
    is_drawable: impl Fn(&FlowPoint) -> bool,
) -> Drawn {
    let flow = |row: &u32| {
        let point = &points[*row as usize];
        (point.id, point.name, flows[*row as usize].0)
    };
    let mut whole: HashMap<(u64, StrId, u64), bool> = HashMap::new();
    for row in order {
        let point = &points[*row as usize];
        let (_, begun) = flows[*row as usize];
        let fits =
            point.position != 0 && (begun || point.phase == Phase::Start) && is_drawable(point);
        *whole.entry(flow(row)).or_insert(true) &= fits;
    }
    let of = |row: &u32| whole.get(&flow(row)) == Some(&true);
    let id = |row: u32| {
        let (id, name, used) = flow(&row);
        (row, if used == 0 { id } else { other_id(id, name, used) })
    };
    order.iter().filter(|row| of(row)).map(|row| id(*row)).collect()
}

/// Arrows to, from and between activities, which only know correlation numbers.
struct Activities<'a> {
    trace: &'a Trace,
    counts: HashMap<u64, u32>,
    linked: HashSet<(EventRef, u64, LaunchKind)>,
}

impl Activities<'_> {
    fn new(trace: &Trace) -> Activities<'_> {
        let points = trace.flows.points.iter();
        let needed = points.clone().any(|p| matches!(p.event, EventRef::Activity(_)));
        let (mut counts, mut linked) = (HashMap::new(), HashSet::new());
        if needed {
            for activity in trace.activities.iter() {
                *counts.entry(activity.correlation).or_default() += 1;
            }
            linked.extend(trace.flows.links.iter().map(|l| (l.event, l.correlation, l.kind)));
        }
        Activities { trace, counts, linked }
    }

    fn joins(&self, from: Option<EventRef>, to: EventRef) -> bool {
        let is_activity = |event| matches!(event, EventRef::Activity(_));
        is_activity(to) || from.is_some_and(is_activity)
    }

    /// The link that draws an arrow, if there is none yet; `None` if there can be none.
    fn link(&mut self, from: EventRef, to: EventRef) -> Option<Option<LaunchLink>> {
        let (event, activity, kind) = match (from, to) {
            (EventRef::Activity(from), to) => (to, from, LaunchKind::Wait),
            (from, EventRef::Activity(to)) => (from, to, LaunchKind::Submit),
            _ => return None,
        };
        let correlation = self.trace.activities.get(activity).correlation;
        if self.linked.contains(&(event, correlation, kind)) {
            return Some(None);
        }
        let correlation = self.alone(activity)?;
        let new = self.linked.insert((event, correlation, kind));
        let api = crate::trace::Api::Unknown;
        Some(new.then_some(LaunchLink { event, correlation, kind, api }))
    }

    /// The number of an activity that no other has.
    fn alone(&self, activity: ActivityId) -> Option<u64> {
        let correlation = self.trace.activities.get(activity).correlation;
        (correlation != 0 && self.counts.get(&correlation) == Some(&1)).then_some(correlation)
    }
}

/// What an event has to do with activities.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    pub submitted: Vec<u64>,
    pub waited: Vec<u64>,
    pub api: u8,
}

fn other_id(id: u64, name: StrId, used: u64) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (id, name.0, used).hash(&mut hasher);
    hasher.finish()
}
