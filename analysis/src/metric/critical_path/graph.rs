//! The graph: beginnings and ends of events, and what had to come before what.

use hashbrown::HashMap;

use crate::model::{Kind, Model};
use crate::{Error, Options};

/// No node.
pub(super) const NO_NODE: u32 = u32::MAX;

/// The beginning or the end of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) row: u32,
    pub(super) time: i64,
    pub(super) is_start: bool,
}

/// Why one node comes before another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum EdgeKind {
    /// An event, or a part of one, lasts.
    Operator,
    /// One thing comes after the other.
    Dependency,
    /// A kernel begins after it was launched.
    LaunchDelay,
    /// A kernel begins after the one before it on the stream.
    KernelDelay,
    /// Something waits.
    Sync,
}

impl EdgeKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            EdgeKind::Operator => "critical_path_operator",
            EdgeKind::Dependency => "critical_path_dependency",
            EdgeKind::LaunchDelay => "critical_path_kernel_launch_delay",
            EdgeKind::KernelDelay => "critical_path_kernel_kernel_delay",
            EdgeKind::Sync => "critical_path_sync_dependency",
        }
    }
}

/// An edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) kind: EdgeKind,
    /// The time that it takes, in nanoseconds.
    pub(super) weight: i64,
    /// The event whose time that is.
    pub(super) event: Option<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// Events in the window, in the order of the trace.
    pub(super) rows: Vec<u32>,
    /// The nodes of each event of the trace: beginning and end.
    ends: Vec<(u32, u32)>,
    /// Edges by their nodes: of two between the same nodes, the later one counts.
    places: HashMap<(u32, u32), u32>,
}

impl Graph {
    /// The nodes of the events in the window that the options choose.
    pub(super) fn of(model: &Model<'_>, options: &Options) -> Result<Graph, Error> {
        let mut graph = Graph { rows: clipped(model, window(model, options)?), ..Graph::default() };
        let events = &model.events;
        let operators = events.kinds.contains(&Kind::Operator);
        let is_node = |row: u32| {
            let kind = events.kinds[row as usize];
            let counts = match kind {
                Kind::Operator | Kind::Runtime | Kind::Driver => true,
                // A recording without operators has ranges in their place.
                Kind::Annotation => model.reading.hta().is_none() && !operators,
                _ => false,
            };
            counts || (events.on_device(row) && events.correlations[row as usize] >= 0)
        };
        // By time, then by the place of the event among the rows, then beginnings before ends. All
        // of it is in one number, which is fast to sort.
        let key = |time: i64, at: usize, is_end: bool| {
            let time = time as u64 ^ 1 << 63;
            u128::from(time) << 64 | (at as u128) << 1 | u128::from(is_end)
        };
        let mut order: Vec<u128> = Vec::with_capacity(graph.rows.len() * 2);
        for (at, row) in graph.rows.iter().enumerate().filter(|(_, row)| is_node(**row)) {
            let (start, end) = events.interval(*row);
            order.extend([key(start, at, false), key(end, at, true)]);
        }
        order.sort_unstable();
        graph.ends = vec![(NO_NODE, NO_NODE); events.len()];
        graph.places.reserve(order.len());
        for (number, key) in order.iter().enumerate() {
            let (row, is_start) = (graph.rows[(*key as u64 >> 1) as usize], key & 1 == 0);
            let (start, end) = &mut graph.ends[row as usize];
            *if is_start { start } else { end } = number as u32;
            let time = ((key >> 64) as u64 ^ 1 << 63) as i64;
            graph.nodes.push(Node { row, time, is_start });
        }
        Ok(graph)
    }

    /// The nodes of an event, if it has any.
    pub(super) fn ends(&self, row: u32) -> Option<(u32, u32)> {
        self.ends.get(row as usize).copied().filter(|(start, _)| *start != NO_NODE)
    }

    pub(super) fn node(&self, number: u32) -> Node {
        self.nodes[number as usize]
    }

    /// Adds an edge, or replaces the one between these nodes. Its weight is the time between
    /// them; dependencies take none.
    pub(super) fn connect(&mut self, from: u32, to: u32, kind: EdgeKind, event: Option<u32>) {
        let time = self.node(to).time.saturating_sub(self.node(from).time);
        let weight = match kind {
            EdgeKind::Dependency | EdgeKind::Sync => 0,
            _ => time,
        };
        self.put(Edge { from, to, kind, weight, event });
    }

    pub(super) fn put(&mut self, edge: Edge) {
        let next = self.edges.len() as u32;
        match *self.places.entry((edge.from, edge.to)).or_insert(next) {
            place if place == next => self.edges.push(edge),
            place => {
                let old = &mut self.edges[place as usize];
                // What an edge's time belongs to outlives a replacement that does not say.
                let event = edge.event.or(old.event);
                *old = Edge { event, ..edge };
            }
        }
    }
}

/// The time that is looked at.
fn window(model: &Model<'_>, options: &Options) -> Result<(i64, i64), Error> {
    if options.annotation.is_empty() {
        return Ok((i64::MIN, i64::MAX));
    }
    let events = &model.events;
    let mut named = model.names_that(|name| name.contains(&options.annotation));
    let counts = |row: &u32| {
        let on_device = events.kinds[*row as usize] == Kind::DeviceAnnotation;
        named(*row) && (model.reading.hta().is_some() || !on_device)
    };
    let mut all: Vec<u32> = (0..events.len() as u32).filter(counts).collect();
    if all.iter().any(|row| events.kinds[*row as usize] == Kind::Step) {
        all.retain(|row| events.kinds[*row as usize] == Kind::Step);
    }
    let (first, last) = options.instance;
    let chosen = all.get(first..=last.min(all.len().wrapping_sub(1))).unwrap_or_default();
    let start = chosen.iter().map(|row| events.starts[*row as usize]).min();
    let end = chosen.iter().map(|row| events.end(*row)).max();
    start.zip(end).ok_or_else(|| {
        let (name, count) = (&options.annotation, all.len());
        let what = match count {
            0 => format!("there is nothing named *{name}* (say --annotation, empty for all)"),
            _ => format!("there are only {count} annotations named *{name}*: see --instance"),
        };
        Error::Nothing(format!("rank {}: {what}", model.rank))
    })
}

/// The events of the host that begin in the window, and what they launched.
fn clipped(model: &Model<'_>, (start, end): (i64, i64)) -> Vec<u32> {
    let events = &model.events;
    let inside = |row: &u32| {
        let at = *row as usize;
        !events.on_device(*row) && (start..=end).contains(&events.starts[at]) && events.durs[at] > 0
    };
    let mut rows: Vec<u32> = (0..events.len() as u32).filter(inside).collect();
    let peers = model.peers();
    let stream_wait = model.trace.strings.find("Stream Wait Event");
    let mut wanted = vec![false; events.len()];
    for row in &rows {
        if let Some(work) = peers.get(*row) {
            wanted[work as usize] |= events.on_device(work);
        }
    }
    for row in 0..events.len() as u32 {
        // The exact reading takes everything that a call launched, HTA the last of it.
        let of_call =
            model.reading.hta().is_none() && peers.get(row).is_some_and(|call| inside(&call));
        wanted[row as usize] |=
            events.on_device(row) && (of_call || Some(events.names[row as usize]) == stream_wait);
    }
    rows.extend((0..events.len() as u32).filter(|row| wanted[*row as usize]));
    events.sort_by_position(&mut rows);
    rows
}
