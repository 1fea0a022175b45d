//! Edges on the host: within operators and between them, and between threads that take the
//! lock of the CUDA runtime.

use hashbrown::HashMap;
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::StrId;

use super::graph::{Edge, EdgeKind, Graph, NO_NODE};
use crate::model::{Events, Kind, Model, NONE, nest_by_count};
use crate::reading::Version;

/// Calls that wait, so that their own time is no work.
const BLOCKING: [&str; 6] = [
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventQuery",
    "cudaEventSynchronize",
    "cudaMemcpy",
    "cudaMemcpyAsync",
];

/// Calls that take the runtime's lock.
const LOCKING: [&str; 3] = ["cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"];

/// The calls of a list, as far as the trace has them.
#[derive(Clone, Copy)]
struct Named<const N: usize>([Option<StrId>; N]);

impl<const N: usize> Named<N> {
    fn of(model: &Model<'_>, names: [&str; N]) -> Named<N> {
        Named(names.map(|name| model.trace.strings.find(name)))
    }

    fn has(&self, model: &Model<'_>, row: u32) -> bool {
        self.0.contains(&Some(model.events.names[row as usize]))
    }
}

pub(super) fn connect(model: &Model<'_>, graph: &mut Graph) {
    let old = model.reading.hta().is_some_and(|rules| rules.version == Version::Hta);
    let (locking, blocking) = (Named::of(model, LOCKING), Named::of(model, BLOCKING));
    if !old {
        locks(model, graph, locking);
    }
    for rows in threads(model, graph, !old) {
        let mut walk = Walk {
            model,
            graph,
            locking,
            blocking,
            old,
            last: NO_NODE,
            parent: NONE,
            depth: 0,
            above: NO_NODE,
        };
        walk.thread(rows);
    }
}

/// Edges to who got the lock first: the call that ends first.
fn locks(model: &Model<'_>, graph: &mut Graph, locking: Named<3>) {
    let mut waiting: Vec<u32> = Vec::new();
    let mut last: Option<u32> = None;
    for number in 0..graph.nodes.len() as u32 {
        let node = graph.node(number);
        if !locking.has(model, node.row) {
            continue;
        }
        if node.is_start {
            waiting.push(number);
        } else {
            while let Some(from) = waiting.pop() {
                if graph.node(from).row == node.row {
                    graph.connect(from, number, EdgeKind::Operator, Some(node.row));
                } else {
                    graph.connect(from, number, EdgeKind::Dependency, None);
                }
            }
            if let Some(last) = last.filter(|last| !graph.node(*last).is_start) {
                graph.connect(last, number, EdgeKind::Dependency, None);
            }
        }
        last = Some(number);
    }
}

/// The events of each thread of the host. What the backward pass does counts as the forward
/// pass's thread, where there is one of each: they seldom run at the same time.
fn threads(model: &Model<'_>, graph: &Graph, merge: bool) -> Vec<Vec<u32>> {
    let events = &model.events;
    let merged = |part: &str| {
        let mut named = model.names_that(|name| name.contains(part));
        let is = |row: &&u32| {
            matches!(events.kinds[**row as usize], Kind::Operator | Kind::Annotation)
                && named(**row)
        };
        let mut tids: Vec<i64> =
            graph.rows.iter().filter(is).map(|row| events.lane(*row).tid).collect();
        tids.dedup();
        tids.sort_unstable();
        tids.dedup();
        if let [one] = tids[..] { Some(one) } else { None }
    };
    let both = merged("forward").zip(merged("autograd")).filter(|_| merge);
    let mut threads: HashMap<(i64, i64), Vec<u32>> = HashMap::new();
    for row in &graph.rows {
        let lane = events.lane(*row);
        let tid = match both {
            Some((forward, backward)) if lane.tid == backward => forward,
            _ => lane.tid,
        };
        threads.entry((lane.pid, tid)).or_default().push(*row);
    }
    let mut threads: Vec<_> = threads.into_iter().collect();
    // A thread has nothing that ran on a stream.
    threads
        .retain(|(_, rows)| rows.iter().all(|row| events.streams[*row as usize] == Events::HOST));
    threads.sort_unstable_by_key(|(id, _)| *id);
    threads.into_iter().map(|(_, rows)| rows).collect()
}

/// A walk through the call tree of a thread, from beginning to beginning to end.
struct Walk<'a, 'b> {
    model: &'a Model<'b>,
    graph: &'a mut Graph,
    locking: Named<3>,
    blocking: Named<6>,
    /// By the rules of HTA 0.5.0.
    old: bool,
    /// The node that was passed last.
    last: u32,
    /// The caller of its event.
    parent: u32,
    /// How many events with nodes are open.
    depth: usize,
    /// HTA 0.5.0: the end of the outermost event before.
    above: u32,
}

impl Walk<'_, '_> {
    fn thread(&mut self, mut rows: Vec<u32>) {
        let events = &self.model.events;
        rows.order_by_numbers(|row| {
            let at = *row as usize;
            [events.starts[at], !events.durs[at], events.positions[at].into()]
        });
        let mut parents = vec![NONE; events.len()];
        nest_by_count(events, &rows, &mut parents);
        let mut open: Vec<u32> = Vec::new();
        for row in rows {
            let parent = parents[row as usize];
            while open.last().is_some_and(|top| *top != parent) {
                self.leave(&mut open, &parents);
            }
            self.enter(row, parent);
            open.push(row);
        }
        while !open.is_empty() {
            self.leave(&mut open, &parents);
        }
    }

    fn enter(&mut self, row: u32, parent: u32) {
        let Some((start, _)) = self.graph.ends(row) else { return };
        if self.old && self.depth == 0 && self.above != NO_NODE {
            self.graph.connect(self.above, start, EdgeKind::Dependency, None);
        }
        if self.last != NO_NODE && !self.share_lock(start) {
            let outermost = self.depth == 0 && !self.old;
            let kind = if outermost { EdgeKind::Dependency } else { EdgeKind::Operator };
            self.edge(start, kind, false);
        }
        (self.last, self.parent) = (start, parent);
        self.depth += 1;
    }

    fn leave(&mut self, open: &mut Vec<u32>, parents: &[u32]) {
        let Some(row) = open.pop() else { return };
        let Some((_, end)) = self.graph.ends(row) else { return };
        if self.last != NO_NODE && !self.share_lock(end) {
            let blocking = self.blocking.has(self.model, row);
            self.edge(end, EdgeKind::Operator, blocking);
        }
        self.depth -= 1;
        (self.last, self.parent) = (end, parents[row as usize]);
        if self.old && self.depth == 0 {
            (self.last, self.above) = (NO_NODE, end);
        }
    }

    /// An edge from the last node. Its time belongs to the event that it lies in.
    fn edge(&mut self, to: u32, kind: EdgeKind, free: bool) {
        let (from, end) = (self.graph.node(self.last), self.graph.node(to));
        let event = match (from.is_start, end.is_start) {
            (true, _) => Some(from.row),
            (false, false) => Some(end.row),
            (false, true) => Some(self.parent).filter(|parent| *parent != NONE),
        };
        let event = event.filter(|_| kind == EdgeKind::Operator);
        if free {
            self.graph.put(Edge { from: self.last, to, kind, weight: 0, event });
        } else {
            self.graph.connect(self.last, to, kind, event);
        }
    }

    /// Whether the edge from the last node to this one is that of the lock.
    fn share_lock(&self, to: u32) -> bool {
        let (from, to) = (self.graph.node(self.last), self.graph.node(to));
        let locks = |row| self.locking.has(self.model, row);
        !self.old && (from.is_start || !to.is_start) && locks(from.row) && locks(to.row)
    }
}
