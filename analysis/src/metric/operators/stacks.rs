//! The Python functions around each operator, as PyTorch's profiler has them.

use hashbrown::HashMap;

use super::tree::Tree;
use crate::model::{Kind, Model};

/// The Python functions around each event of a tree, the innermost first: rows of the model.
///
/// They are those that last when the event begins, on its thread. What the backward pass does has
/// the functions of the operator of the forward pass whose sequence number it has, and no others.
/// Two functions of `torch.autograd` that lie in every backward pass are left out.
pub(in crate::metric) fn stacks(model: &Model<'_>, tree: &Tree) -> Vec<Vec<u32>> {
    let own = around(model, tree);
    let number = model.trace.strings.find("Sequence number");
    let number = |at: usize| model.int(tree.events[at].row, number).unwrap_or(-1);
    let backward: Vec<Option<usize>> = of_backward(model, tree);
    let mut forward: HashMap<i64, usize> = HashMap::new();
    for at in tree.all().filter(|at| backward[*at].is_none() && !tree.events[*at].on_device) {
        forward.entry(number(at)).or_insert(at);
    }
    let of = |at: usize| match backward[at] {
        None => own[at].clone(),
        Some(node) if is_accumulation(model.name(tree.events[node].row)) => Vec::new(),
        Some(node) => {
            forward.get(&number(node)).map(|first| own[*first].clone()).unwrap_or_default()
        }
    };
    (0..tree.events.len()).map(of).collect()
}

/// The functions that last when each event begins.
fn around(model: &Model<'_>, tree: &Tree) -> Vec<Vec<u32>> {
    let is_python = |row: u32| model.events.kinds[row as usize] == Kind::Python;
    let mut open: HashMap<(i64, i64), Vec<u32>> = HashMap::new();
    let mut stacks = Vec::with_capacity(tree.events.len());
    for event in &tree.events {
        if event.on_device {
            stacks.push(Vec::new());
            continue;
        }
        let lane = model.events.lane(event.row);
        let lasting = open.entry((lane.pid, lane.tid)).or_default();
        let start = model.events.starts[event.row as usize];
        while lasting.last().is_some_and(|row| model.events.end(*row) <= start) {
            lasting.pop();
        }
        let shown = |row: &u32| !is_left_out(model.name(*row));
        stacks.push(lasting.iter().rev().copied().filter(shown).collect());
        if is_python(event.row) {
            lasting.push(event.row);
        }
    }
    stacks
}

/// The node of the backward pass that each event lies in, or is.
fn of_backward(model: &Model<'_>, tree: &Tree) -> Vec<Option<usize>> {
    let thread = model.trace.strings.find("Fwd thread id");
    let mut nodes: Vec<Option<usize>> = vec![None; tree.events.len()];
    // Callers come before what they call.
    for at in 0..tree.events.len() {
        let event = &tree.events[at];
        let name = model.name(event.row);
        let is_node = model.events.kinds[event.row as usize] == Kind::Operator
            && !name.starts_with("autograd::engine")
            && (is_accumulation(name) || model.int(event.row, thread).is_some_and(|id| id > 0));
        nodes[at] = match event.parent {
            _ if is_node => Some(at),
            Some(parent) => nodes[parent as usize],
            None => None,
        };
    }
    nodes
}

/// Gradients are accumulated for no operator of the forward pass.
fn is_accumulation(name: &str) -> bool {
    name == "torch::autograd::AccumulateGrad"
}

fn is_left_out(function: &str) -> bool {
    let of_autograd = function.contains("autograd/__init__")
        && (function.contains("_make_grads") || function.contains("backward"));
    of_autograd || function.contains("torch/tensor") && function.contains("backward")
}
