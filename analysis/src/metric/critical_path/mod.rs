//! What the duration of a step is made of: the longest chain of things that had to wait for
//! each other.
//!
//! The beginnings and ends of operators, calls and device work are nodes. Edges lead from one to
//! the next within a thread, from launches to work, from work to the next of its stream, and from
//! work to what waits for it. What takes time has it as its weight; the critical path is the
//! heaviest way through the graph. Making something shorter that is not on it gains nothing.
//!
//! | edge | from, to | weight |
//! |---|---|---|
//! | operator | a beginning or end on a thread to the next; the beginning of work to its end | the time between; 0 at the end of a call that waits |
//! | dependency | the end of an outermost event to the next one's beginning; calls that wait for the runtime's lock to the one that had it | 0 |
//! | launch delay | a launch to its work, if the stream had nothing left when it was launched | the time between |
//! | kernel delay | else, the end of the work before it on its stream, if that is less than 1.5 ms ago | the time between |
//! | sync | work that is waited for, to the end of the call or the beginning of the work that waits | 0 |
//!
//! The window is that of an annotation, `ProfilerStep` by default: what the host begins in it, and
//! what that launched. The backward pass, if exactly one thread has `autograd` in the names of
//! operators and exactly one `forward`, counts as the forward pass's thread. HTA 0.5.0 does not do
//! so, nor does it know the lock or the 1.5 ms.
//!
//! **What if** something took another time? `--scale NAME=FACTOR` multiplies the weights of all
//! edges of events with NAME in their names, `--edge FROM-TO=TIME` sets that of one, by the numbers
//! of `critical_path_edges`; the path is then looked for anew.
//!
//! **In a viewer**: `--overlay OUT` writes the trace again, to OUT, with the argument `critical` at
//! the events of the path, and arrows named `critical_path` where it leads from one thread or
//! stream to another.

mod device;
mod graph;
mod host;
mod path;
mod waits;

use kymograph_converters::order::Order as _;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use crate::compat::hta;
use crate::metric::one_by_one;
use crate::model::{Class, Events};
use crate::names::shorten;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options, Unit};
use graph::{Edge, EdgeKind, Graph, Node};

/// The path.
pub const METRIC: Metric = Metric {
    name: "critical_path",
    answers: "the chain of events that a step's duration is made of, edge by edge",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// Its parts.
pub const SUMMARY: Metric = Metric {
    name: "critical_path_summary",
    answers: "what the critical path is bound by: host, computing, communication, launching",
    columns: SUMMARY_COLUMNS,
    of_trace: summary,
    over_ranks: one_by_one,
};

/// The graph.
pub const EDGES: Metric = Metric {
    name: "critical_path_edges",
    answers: "the graph in which the critical path is the longest: all edges",
    columns: EDGE_COLUMNS,
    of_trace: all_edges,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::moment("ts", "when the edge begins").hta(""),
    Column::int("event_idx", "the place in the trace of the event whose time it is"),
    Column::duration("duration", "its weight"),
    Column::text("type", "the kind of edge"),
    Column::text("name", "the event").hta("s_name"),
    Column::int("pid", "the process or the device of the event"),
    Column::int("tid", "the thread or the stream of the event"),
    Column::int("stream", "the stream; -1 on the host"),
    Column::text("bound_by", "what the time goes to; empty for edges without"),
];

const SUMMARY_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::text("bound_by", "what the time goes to"),
    Column::int("edges", "edges of the path").hta(""),
    Column::duration("duration", "their weight").hta(""),
    Column::percent("percentage", "of the weight of the path"),
];

const EDGE_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("src_node", "the node that it comes from"),
    Column::int("dst_node", "the node that it leads to"),
    Column::int("src_ev", "the place in the trace of the event that it comes from"),
    Column::int("dst_ev", "likewise, that it leads to"),
    Column::moment("src_ts", "when it begins"),
    Column::moment("dst_ts", "when it ends"),
    Column::text("src_is_start", "True if it comes from a beginning, False from an end"),
    Column::text("dst_is_start", "True if it leads to a beginning, False to an end"),
    Column::text("type", "the kind"),
    Column::duration("weight", "the time that it takes").unit(Unit::Duration),
    Column::int("attributed_ev", "the place in the trace of the event whose time it is"),
    Column::int("critical", "the place on the critical path, from 0; null if it is not on it"),
];

/// The graph of a trace.
fn build(model: &Model<'_>, options: &Options) -> Result<Graph, Error> {
    let mut graph = Graph::of(model, options)?;
    host::connect(model, &mut graph);
    // Without device work the graph is that of the host.
    if !model.device().is_empty() {
        device::connect(model, &mut graph)?;
    }
    suppose(model, &mut graph, options)?;
    Ok(graph)
}

/// Changes weights as the options say.
fn suppose(model: &Model<'_>, graph: &mut Graph, options: &Options) -> Result<(), Error> {
    for (name, factor) in &options.scales {
        let mut found = false;
        for edge in &mut graph.edges {
            if edge.event.is_some_and(|event| model.name(event).contains(name.as_str())) {
                edge.weight = (edge.weight as f64 * factor).round() as i64;
                found = true;
            }
        }
        if !found {
            return Err(Error::Option(format!("no event of the window has `{name}` in its name")));
        }
    }
    for (from, to, weight) in &options.edges {
        let mut of = graph.edges.iter_mut();
        match of.find(|edge| (edge.from, edge.to) == (*from, *to)) {
            Some(edge) => edge.weight = *weight,
            None => {
                let what = "the graph has no edge from node";
                return Err(Error::Option(format!(
                    "{what} {from} to {to}; critical_path_edges has all"
                )));
            }
        }
    }
    Ok(())
}

/// An edge of the path, for those who draw it.
pub(crate) struct Step {
    /// The event whose time it is.
    pub(crate) event: Option<u32>,
    /// Whether it leads from one thread or stream to another.
    pub(crate) is_arrow: bool,
    /// The event and the moment of each end.
    pub(crate) ends: [(u32, i64); 2],
}

/// The edges of the path.
pub(crate) fn steps(model: &Model<'_>, options: &Options) -> Result<Vec<Step>, Error> {
    let step = |(edge, ends): &(Edge, [Node; 2])| Step {
        event: edge.event,
        is_arrow: !matches!(edge.kind, EdgeKind::Operator | EdgeKind::KernelDelay),
        ends: ends.map(|node| (node.row, node.time)),
    };
    Ok(path(model, options).as_ref().as_ref().map_err(Clone::clone)?.iter().map(step).collect())
}

/// The edges of the path with the nodes that they join, or why there is none.
type Path = Result<Vec<(Edge, [Node; 2])>, Error>;

fn path(model: &Model<'_>, options: &Options) -> Arc<Path> {
    let Options { annotation, instance, scales, edges, .. } = options;
    let key = (annotation.clone(), *instance, scales.clone(), edges.clone());
    model.shared(key, || {
        let graph = build(model, options)?;
        let ends = |edge: &Edge| [edge.from, edge.to].map(|node| graph.node(node));
        let path = path::longest(model, &graph)?;
        Ok(path.into_iter().map(|edge| (edge, ends(&edge))).collect())
    })
}

/// What the time of an edge goes to.
fn bound_by(model: &Model<'_>, edge: &Edge) -> &'static str {
    match edge.kind {
        EdgeKind::KernelDelay => return "gpu_kernel_kernel_overhead",
        EdgeKind::LaunchDelay => return "gpu_kernel_launch_overhead",
        EdgeKind::Dependency | EdgeKind::Sync => return "",
        EdgeKind::Operator => {}
    }
    let Some(event) = edge.event else { return "cpu_bound" };
    if model.events.streams[event as usize] == Events::HOST {
        return "cpu_bound";
    }
    let class = match model.reading.hta() {
        Some(rules) => hta::class(rules.version, &shorten(model.name(event))),
        None => model.classes().of_row(model, event),
    };
    match class {
        Class::Communication => "gpu_communication_bound",
        _ => "gpu_compute_bound",
    }
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let path = path(model, options);
    let events = &model.events;
    let mut rows = Rows::new(COLUMNS);
    for (edge, [from, _]) in path.as_ref().as_ref().map_err(Clone::clone)? {
        let lane = edge.event.map(|event| events.lane(event));
        let name = edge.event.map(|event| match model.reading.hta() {
            Some(_) => Cow::Owned(shorten(model.name(event))),
            None => Cow::Borrowed(model.name(event)),
        });
        rows.push([
            model.rank.into(),
            from.time.into(),
            edge.event.map(|event| i64::from(events.positions[event as usize])).into(),
            edge.weight.into(),
            edge.kind.name().into(),
            name.as_deref().into(),
            lane.map(|lane| lane.pid).into(),
            lane.map(|lane| lane.tid).into(),
            edge.event.map(|event| i64::from(events.streams[event as usize])).into(),
            bound_by(model, edge).into(),
        ]);
    }
    rows.finish()
}

fn summary(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let path = path(model, options);
    let mut parts: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for (edge, _) in path.as_ref().as_ref().map_err(Clone::clone)? {
        let part = parts.entry(bound_by(model, edge)).or_default();
        *part = (part.0 + 1, part.1.saturating_add(edge.weight));
    }
    let total: i64 = parts.values().map(|(_, time)| time).sum();
    let mut rows = Rows::new(SUMMARY_COLUMNS);
    for (bound_by, (edges, time)) in parts {
        let part = time as f64 / total as f64 * 100.0;
        rows.push([model.rank.into(), bound_by.into(), edges.into(), time.into(), part.into()]);
    }
    rows.finish()
}

fn all_edges(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let graph = build(model, options)?;
    // The graph can be seen where it has no longest path, too.
    let path = path::longest(model, &graph).unwrap_or_default();
    let ends = |edge: &Edge| (edge.from, edge.to);
    let truth = |is| if is { "True" } else { "False" };
    let position = |row: u32| i64::from(model.events.positions[row as usize]);
    let mut rows = Rows::new(EDGE_COLUMNS);
    let mut edges = graph.edges.clone();
    edges.order_by_numbers(|edge| [edge.from.into(), edge.to.into()]);
    let places: HashMap<(u32, u32), usize> =
        path.iter().enumerate().map(|(place, edge)| (ends(edge), place)).collect();
    for edge in edges {
        let (from, to) = (graph.node(edge.from), graph.node(edge.to));
        rows.push([
            model.rank.into(),
            i64::from(edge.from).into(),
            i64::from(edge.to).into(),
            position(from.row).into(),
            position(to.row).into(),
            from.time.into(),
            to.time.into(),
            truth(from.is_start).into(),
            truth(to.is_start).into(),
            edge.kind.name().into(),
            edge.weight.into(),
            edge.event.map(position).into(),
            places.get(&ends(&edge)).copied().into(),
        ]);
    }
    rows.finish()
}
