//! The operators around each allocation and release.

use hashbrown::HashMap;

use super::records::Record;
use crate::compat::tensorboard::{Plugin, Tree};
use crate::model::{Kind, Model, chains};

/// See the module.
#[derive(Default)]
pub(super) struct Places<'a> {
    /// For each record the operators around it, the innermost first: rows of events.
    pub(super) around: Vec<Vec<u32>>,
    /// What called the innermost, if the plugin's rules are followed; it need be no operator.
    pub(super) callers: Vec<Option<&'a str>>,
    /// How often operators of a name came.
    pub(super) calls: HashMap<&'a str, u64>,
}

impl<'a> Places<'a> {
    pub(super) fn of(model: &Model<'a>, plugin: Option<Plugin>, records: &[Record]) -> Places<'a> {
        match plugin {
            None => exact(model, records),
            Some(plugin) => of_plugin(model, plugin, records),
        }
    }
}

fn exact<'a>(model: &Model<'a>, records: &[Record]) -> Places<'a> {
    let events = &model.events;
    let is_operator = |row: &u32| events.kinds[*row as usize] == Kind::Operator;
    let mut places = Places::default();
    let mut threads = HashMap::new();
    for thread in &model.calls().threads {
        let rows = model.calls().order[thread.rows.clone()].iter().copied();
        let rows: Vec<u32> = rows.filter(is_operator).collect();
        for row in &rows {
            *places.calls.entry(model.name(*row)).or_default() += 1;
        }
        let outer = chains(events, &rows);
        threads.insert((thread.pid, thread.tid), (rows, outer));
    }
    for record in records {
        let mut around = Vec::new();
        if let Some((rows, outer)) = threads.get(&record.thread) {
            let before = rows.partition_point(|row| events.starts[*row as usize] <= record.time);
            let mut place = before.checked_sub(1);
            while let Some(at) = place {
                if events.end(rows[at]) > record.time {
                    around.push(rows[at]);
                }
                place = Some(outer[at]).filter(|place| *place != usize::MAX);
            }
        }
        places.around.push(around);
        places.callers.push(None);
    }
    places
}

fn of_plugin<'a>(model: &Model<'a>, plugin: Plugin, records: &[Record]) -> Places<'a> {
    let tree = Tree::of(model, plugin);
    let nodes = &tree.nodes;
    let mut reached = vec![false; nodes.len()];
    let mut places = Places::default();
    for record in records {
        let mut path: Vec<u32> = Vec::new();
        let thread = tree.threads.iter().find(|thread| thread.tid == record.thread.1);
        let mut below = thread.map_or(&[][..], |thread| &thread.roots);
        // Children do not overlap: the last one that has begun is the only one that may last.
        let holds = |node: &u32| nodes[*node as usize].time.1 > record.time;
        while let Some(node) = below
            .partition_point(|node| nodes[*node as usize].time.0 <= record.time)
            .checked_sub(1)
            .map(|at| below[at])
            .filter(holds)
        {
            reached[node as usize] = true;
            path.push(node);
            below = &nodes[node as usize].children;
        }
        let is_operator = |node: &u32| nodes[*node as usize].is_operator(model);
        let counts = path.last().is_some_and(is_operator);
        let around = path.iter().rev().filter(|node| counts && is_operator(node));
        places.around.push(around.map(|node| nodes[*node as usize].row).collect());
        let caller = path.iter().rev().nth(1).map(|node| model.name(nodes[*node as usize].row));
        places.callers.push(counts.then(|| caller.unwrap_or("CallTreeRoot")));
    }
    // Operators count if their callers were reached.
    let mut open: Vec<u32> = tree.threads.iter().flat_map(|thread| thread.roots.clone()).collect();
    while let Some(node) = open.pop() {
        let own = &nodes[node as usize];
        if own.is_operator(model) {
            *places.calls.entry(model.name(own.row)).or_default() += 1;
        }
        if reached[node as usize] {
            open.extend(&own.children);
        }
    }
    places
}
