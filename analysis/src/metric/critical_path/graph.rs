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
    ends: HashMap<u32, (u32, u32)>,
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
        let rows = graph.rows.iter().copied().filter(|row| is_node(*row));
        let mut nodes: Vec<Node> = Vec::new();
        for row in rows {
            let (start, end) = events.interval(row);
            nodes.push(Node { row, time: start, is_start: true });
            nodes.push(Node { row, time: end, is_start: false });
        }
        nodes.sort_by_key(|node| (node.time, events.positions[node.row as usize], !node.is_start));
        graph.ends.reserve(nodes.len() / 2);
        for (number, node) in nodes.iter().enumerate() {
            let ends = graph.ends.entry(node.row).or_insert((NO_NODE, NO_NODE));
            *if node.is_start { &mut ends.0 } else { &mut ends.1 } = number as u32;
        }
        graph.nodes = nodes;
        Ok(graph)
    }

    /// The nodes of an event, if it has any.
    pub(super) fn ends(&self, row: u32) -> Option<(u32, u32)> {
        self.ends.get(&row).copied()
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
    let counts = |row: &u32| {
        let on_device = events.kinds[*row as usize] == Kind::DeviceAnnotation;
        model.name(*row).contains(&options.annotation)
            && (model.reading.hta().is_some() || !on_device)
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
            events.on_device(row) && (of_call || model.name(row) == "Stream Wait Event");
    }
    rows.extend((0..events.len() as u32).filter(|row| wanted[*row as usize]));
    rows.sort_by_key(|row| events.positions[*row as usize]);
    rows
}
