//! Graphs that a script defined.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::script::{Statement, Verb};
use crate::seam::{Nanos, Task};

/// What a graph does, and how long that takes.
type Node = (Task, Nanos);

static GRAPHS: Mutex<Option<HashMap<u32, Vec<Node>>>> = Mutex::new(None);

pub(crate) fn define(id: u32, body: &[Statement]) {
    let node = |statement: &Statement| match statement.verb {
        Verb::Work(task) => (task, statement.dur),
        _ => panic!("script: graphs consist of kernels, copies and sets"),
    };
    let mut graphs = GRAPHS.lock().unwrap();
    graphs.get_or_insert_default().insert(id, body.iter().map(node).collect());
}

/// The nodes of a graph, and how long they take in all.
pub(crate) fn nodes(id: u32) -> (Vec<Node>, Nanos) {
    let graphs = GRAPHS.lock().unwrap();
    let nodes = graphs.as_ref().and_then(|graphs| graphs.get(&id)).cloned();
    drop(graphs);
    let nodes = nodes.unwrap_or_else(|| panic!("script: there is no graph {id}"));
    let dur = nodes.iter().map(|(_, dur)| dur).sum();
    (nodes, dur)
}
