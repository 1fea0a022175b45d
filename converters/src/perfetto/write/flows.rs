//! Which flows and launches belong to which event, under ids that mean the same to readers.
//!
//! Readers know one space of flow ids for the whole trace, and a flow ends only where it
//! says so. Flows that share an id but not a name, or that start anew, get ids of their
//! own.

use hashbrown::HashMap;
use std::hash::{Hash, Hasher};

use crate::trace::{EventRef, LaunchKind, Nanos, Phase, StrId, Trace};

/// Where a flow touches an event, as written.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub event: EventRef,
    pub time: Nanos,
    pub id: u64,
    pub ends: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Arrows {
    points: Vec<Point>,
    points_of: Index,
    /// Rows of [`crate::trace::Flows::links`], by event.
    links: Vec<u32>,
    links_of: Index,
    /// Ends of flows that had not begun.
    pub unbegun: u64,
    /// Points at activities, which know no flows but only who launched them.
    pub of_activities: u64,
}

impl Arrows {
    pub fn new(trace: &Trace) -> Arrows {
        let mut arrows = Arrows::default();
        let mut order: Vec<_> = trace.flows.points.iter().collect();
        order.sort_by_key(|point| point.time);
        // How often a flow was used up so far, and whether it is under way.
        let mut under_way: HashMap<(u64, StrId), (u64, bool)> = HashMap::new();
        let mut owners: HashMap<u64, (StrId, u64)> = HashMap::new();
        for point in order {
            if matches!(point.event, EventRef::Activity(_)) {
                arrows.of_activities += 1;
                continue;
            }
            let (used, active) = under_way.entry((point.id, point.name)).or_default();
            if point.phase == Phase::Start && *active {
                *used += 1;
            }
            if point.phase == Phase::End && !*active {
                arrows.unbegun += 1;
                continue;
            }
            // The first that comes with an id keeps it.
            let key = (point.name, *used);
            let id = match *owners.entry(point.id).or_insert(key) == key {
                true => point.id,
                false => other_id(point.id, point.name, *used),
            };
            let ends = point.phase == Phase::End;
            *active = !ends;
            arrows.points.push(Point { event: point.event, time: point.time, id, ends });
        }
        arrows.points.sort_by_key(|point| point.event);
        arrows.points_of = Index::new(arrows.points.iter().map(|point| point.event));
        arrows.links = (0..trace.flows.links.len() as u32).collect();
        let event = |row: &u32| trace.flows.links[*row as usize].event;
        arrows.links.sort_by_key(event);
        arrows.links_of = Index::new(arrows.links.iter().map(event));
        arrows
    }

    /// Where flows touch an event.
    #[inline]
    pub fn points(&self, event: EventRef) -> &[Point] {
        let Some(first) = self.points_of.first(event) else { return &[] };
        let from = &self.points[first..];
        let of_event = from.iter().take_while(|point| point.event == event).count();
        &from[..of_event]
    }

    /// Puts down the correlation numbers of activities that an event submitted, and of those
    /// that it waited for; says whether there are any.
    #[inline]
    pub fn launches(&self, trace: &Trace, event: EventRef, launches: &mut Launches) -> bool {
        let Some(first) = self.links_of.first(event) else { return false };
        launches.submitted.clear();
        launches.waited.clear();
        launches.api = 0;
        let links = self.links[first..].iter().map(|row| trace.flows.links[*row as usize]);
        for link in links.take_while(|link| link.event == event) {
            launches.api = launches.api.max(link.api as u8);
            match link.kind {
                LaunchKind::Submit => launches.submitted.push(link.correlation),
                LaunchKind::Wait => launches.waited.push(link.correlation),
            }
        }
        true
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

/// Where the rows of each event begin in a list that is in the order of events: a number
/// for each event, since nearly all are asked for and hashing all of them takes longer.
#[derive(Debug, Default)]
struct Index {
    /// Slices, moments, activities: the place plus 1, or 0.
    firsts: [Vec<u32>; 3],
}

impl Index {
    fn new(sorted: impl Iterator<Item = EventRef>) -> Index {
        let mut index = Index::default();
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
    fn first(&self, event: EventRef) -> Option<usize> {
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
