//! The longest path through the graph.

use super::graph::{Edge, EdgeKind, Graph};
use crate::Error;
use crate::model::{Events, Model};

/// The edges of the longest path, from its beginning to its end.
///
/// Of equally long ways the one whose edge was added first is taken, and nodes are gone through
/// generation by generation, as networkx does it.
pub(super) fn longest(model: &Model<'_>, graph: &Graph) -> Result<Vec<Edge>, Error> {
    check(model, graph)?;
    // A negative weight is the profiler's: a child that ends after its parent.
    let least = if model.reading.hta().is_some() { -1000 } else { -1 };
    let weight = |edge: &Edge| if edge.weight <= least { 0 } else { edge.weight };
    let order = generations(graph)?;
    let into = lists(graph, |edge| edge.to);
    // The longest way to each node, and the edge that it ends with.
    let mut best: Vec<(i64, Option<u32>)> = vec![(0, None); graph.nodes.len()];
    let (mut end, mut most) = (None, i64::MIN);
    for node in order {
        let mut way: Option<(i64, u32)> = None;
        for edge in into.of(node) {
            let there = &graph.edges[*edge as usize];
            let length = best[there.from as usize].0 + weight(there);
            if way.is_none_or(|(longest, _)| length > longest) {
                way = Some((length, *edge));
            }
        }
        best[node as usize] = match way {
            Some((length, edge)) if length >= 0 => (length, Some(edge)),
            _ => (0, None),
        };
        if best[node as usize].0 > most {
            (end, most) = (Some(node), best[node as usize].0);
        }
    }
    let mut path = Vec::new();
    let mut node = end;
    while let Some(edge) = node.and_then(|node| best[node as usize].1) {
        let edge = graph.edges[edge as usize];
        path.push(edge);
        node = Some(edge.from);
    }
    path.reverse();
    if path.is_empty() {
        let what = "has no events to make a path of";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    }
    Ok(path)
}

/// A wait between two events of one stream says that the trace is not to be trusted.
fn check(model: &Model<'_>, graph: &Graph) -> Result<(), Error> {
    let stream = |node: u32| model.events.streams[graph.node(node).row as usize];
    let wrong = graph.edges.iter().filter(|edge| {
        let from = stream(edge.from);
        edge.kind == EdgeKind::Sync && from != Events::HOST && from == stream(edge.to)
    });
    match wrong.count() {
        0 => Ok(()),
        count => Err(Error::Nothing(format!(
            "rank {}: {count} waits between activities of one stream: which launch a wait belongs \
             to cannot be told from this trace",
            model.rank
        ))),
    }
}

/// Nodes after all that come before them: first those that nothing comes before, then those that
/// only these come before, and so on.
fn generations(graph: &Graph) -> Result<Vec<u32>, Error> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut nodes: Vec<u32> = Vec::new();
    let mut missing = vec![0u32; graph.nodes.len()];
    for edge in &graph.edges {
        for node in [edge.from, edge.to] {
            if !std::mem::replace(&mut seen[node as usize], true) {
                nodes.push(node);
            }
        }
        missing[edge.to as usize] += 1;
    }
    let out = lists(graph, |edge| edge.from);
    let all = nodes.len();
    let mut order: Vec<u32> =
        nodes.into_iter().filter(|node| missing[*node as usize] == 0).collect();
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        at += 1;
        for edge in out.of(node) {
            let to = graph.edges[*edge as usize].to;
            missing[to as usize] -= 1;
            if missing[to as usize] == 0 {
                order.push(to);
            }
        }
    }
    if order.len() < all {
        let count = all - order.len();
        return Err(Error::Nothing(format!(
            "{count} events wait for each other in a circle: the times of this trace cannot be right"
        )));
    }
    Ok(order)
}

/// The edges of each node, in the order in which they were added.
struct Lists {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

fn lists(graph: &Graph, of: impl Fn(&Edge) -> u32) -> Lists {
    let mut starts = vec![0u32; graph.nodes.len() + 1];
    for edge in &graph.edges {
        starts[of(edge) as usize + 1] += 1;
    }
    for node in 0..graph.nodes.len() {
        starts[node + 1] += starts[node];
    }
    let mut next = starts.clone();
    let mut edges = vec![0; graph.edges.len()];
    for (number, edge) in graph.edges.iter().enumerate() {
        let place = &mut next[of(edge) as usize];
        edges[*place as usize] = number as u32;
        *place += 1;
    }
    Lists { starts, edges }
}

impl Lists {
    fn of(&self, node: u32) -> &[u32] {
        &self.edges[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}
