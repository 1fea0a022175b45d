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
    of_event: HashMap<EventRef, (u32, u32)>,
    /// Rows of [`crate::trace::Flows::links`], by event.
    links: Vec<u32>,
    links_of: HashMap<EventRef, (u32, u32)>,
    /// Ends of flows that had not begun.
    pub unbegun: u64,
}

impl Arrows {
    pub fn new(trace: &Trace) -> Arrows {
        let mut arrows = Arrows::default();
        let mut order: Vec<_> = trace.flows.points.iter().collect();
        order.sort_by_key(|point| point.time);
        // How often a flow was used up so far, and whether it is under way.
        let mut under_way: HashMap<(u64, StrId), (u64, bool)> = HashMap::new();
        for point in order {
            let (used, active) = under_way.entry((point.id, point.name)).or_default();
            if point.phase == Phase::Start && *active {
                *used += 1;
            }
            if point.phase == Phase::End && !*active {
                arrows.unbegun += 1;
                continue;
            }
            let id = written_id(point.id, point.name, *used);
            let ends = point.phase == Phase::End;
            *active = !ends;
            arrows.points.push(Point { event: point.event, time: point.time, id, ends });
        }
        arrows.points.sort_by_key(|point| point.event);
        ranges(&mut arrows.of_event, arrows.points.iter().map(|point| point.event));
        arrows.links = (0..trace.flows.links.len() as u32).collect();
        let event = |row: &u32| trace.flows.links[*row as usize].event;
        arrows.links.sort_by_key(event);
        ranges(&mut arrows.links_of, arrows.links.iter().map(event));
        arrows
    }

    /// Where flows touch an event.
    pub fn points(&self, event: EventRef) -> &[Point] {
        match self.of_event.get(&event) {
            Some((start, end)) => &self.points[*start as usize..*end as usize],
            None => &[],
        }
    }

    /// The correlation numbers of activities that an event submitted, and of those that it
    /// waited for.
    pub fn launches(&self, trace: &Trace, event: EventRef) -> Option<Launches> {
        let (start, end) = self.links_of.get(&event)?;
        let mut launches = Launches::default();
        for row in &self.links[*start as usize..*end as usize] {
            let link = trace.flows.links[*row as usize];
            launches.api = launches.api.max(link.api as u8);
            match link.kind {
                LaunchKind::Submit => launches.submitted.push(link.correlation),
                LaunchKind::Wait => launches.waited.push(link.correlation),
            }
        }
        Some(launches)
    }
}

/// What an event has to do with activities.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    pub submitted: Vec<u64>,
    pub waited: Vec<u64>,
    pub api: u8,
}

fn written_id(id: u64, name: StrId, used: u64) -> u64 {
    if name.is_none() && used == 0 {
        return id;
    }
    let mut hasher = std::hash::DefaultHasher::new();
    (id, name.0, used).hash(&mut hasher);
    hasher.finish()
}

fn ranges(of: &mut HashMap<EventRef, (u32, u32)>, sorted: impl Iterator<Item = EventRef>) {
    for (row, event) in sorted.enumerate() {
        let row = row as u32;
        of.entry(event).or_insert((row, row)).1 = row + 1;
    }
}
