//! The Python functions around each operator, as PyTorch's profiler has them.

use hashbrown::HashMap;

use super::tree::{Tree, threads};
use crate::model::{Kind, Model, NONE};

/// The Python functions around each event of a tree. Equal stacks are one.
#[derive(Debug, Default)]
pub(in crate::metric) struct Stacks {
    /// The stack of each event; [`NONE`] for an empty one.
    pub(in crate::metric) of: Vec<u32>,
    /// For each stack the one without its innermost function, and that function: a row of the model.
    stacks: Vec<(u32, u32)>,
}

impl Stacks {
    /// They are those that last when the event begins, on its thread. What the backward pass does
    /// has the functions of the operator of the forward pass whose sequence number it has, and no
    /// others. Two functions of `torch.autograd` that lie in every backward pass are left out.
    pub(in crate::metric) fn of(model: &Model<'_>, tree: &Tree) -> Stacks {
        let mut stacks = Stacks::around(model, tree);
        let number = model.argument("Sequence number");
        let number = |at: usize| {
            let row = tree.events[at].row;
            // Python functions have none, and there are many of them.
            let is_function = model.events.kinds[row as usize] == Kind::Python;
            (if is_function { None } else { number.int(row) }).unwrap_or(-1)
        };
        let backward = of_backward(model, tree);
        let mut forward: HashMap<i64, u32> = HashMap::new();
        // Most events have no number: the first of those is known without a look-up.
        let mut unnumbered = None;
        for at in tree.all().filter(|at| backward[*at] == NONE && !tree.events[*at].on_device) {
            match number(at) {
                -1 => _ = unnumbered.get_or_insert(stacks.of[at]),
                number => _ = forward.entry(number).or_insert(stacks.of[at]),
            }
        }
        forward.extend(unnumbered.map(|stack| (-1, stack)));
        let mut last = (NONE, NONE);
        for (at, node) in backward.into_iter().enumerate().filter(|(_, node)| *node != NONE) {
            if last.0 != node {
                let alone = is_accumulation(model.name(tree.events[node as usize].row));
                let first = if alone { None } else { forward.get(&number(node as usize)) };
                last = (node, first.copied().unwrap_or(NONE));
            }
            stacks.of[at] = last.1;
        }
        stacks
    }

    /// The functions that last when each event begins.
    fn around(model: &Model<'_>, tree: &Tree) -> Stacks {
        let mut stacks = Stacks::default();
        let mut numbers: HashMap<(u32, u32), u32> = HashMap::new();
        let mut left_out = model.names_that(is_left_out);
        // The functions that last on each thread, with the stack that each is the innermost of.
        let threads = threads(&model.events);
        let mut open: Vec<Vec<(u32, u32)>> = vec![Vec::new(); threads.len()];
        stacks.of.reserve(tree.events.len());
        for event in &tree.events {
            if event.on_device {
                stacks.of.push(NONE);
                continue;
            }
            let lane = model.events.lane_of[event.row as usize];
            let lasting = &mut open[threads[lane as usize] as usize];
            let start = model.events.starts[event.row as usize];
            while lasting.last().is_some_and(|(row, _)| model.events.end(*row) <= start) {
                lasting.pop();
            }
            let around = lasting.last().map_or(NONE, |(_, stack)| *stack);
            stacks.of.push(around);
            if model.events.kinds[event.row as usize] == Kind::Python {
                let own = if left_out(event.row) {
                    around
                } else {
                    let name = model.events.names[event.row as usize].0;
                    *numbers.entry((around, name)).or_insert_with(|| {
                        stacks.stacks.push((around, event.row));
                        stacks.stacks.len() as u32 - 1
                    })
                };
                lasting.push((event.row, own));
            }
        }
        stacks
    }

    /// How many different ones there are.
    pub(in crate::metric) fn len(&self) -> usize {
        self.stacks.len()
    }

    /// The functions of a stack, the innermost first: rows of the model.
    pub(in crate::metric) fn functions(&self, stack: u32) -> impl Iterator<Item = u32> + '_ {
        let at = |stack: u32| self.stacks.get(stack as usize);
        std::iter::successors(at(stack), move |(around, _)| at(*around)).map(|(_, row)| *row)
    }
}

/// The node of the backward pass that each event lies in, or is; [`NONE`] for none.
fn of_backward(model: &Model<'_>, tree: &Tree) -> Vec<u32> {
    let thread = model.argument("Fwd thread id");
    let mut accumulates = model.names_that(is_accumulation);
    let mut of_engine = model.names_that(|name| name.starts_with("autograd::engine"));
    let mut nodes: Vec<u32> = vec![NONE; tree.events.len()];
    // Callers come before what they call.
    for at in 0..tree.events.len() {
        let event = &tree.events[at];
        let is_node = model.events.kinds[event.row as usize] == Kind::Operator
            && !of_engine(event.row)
            && (accumulates(event.row) || thread.int(event.row).is_some_and(|id| id > 0));
        nodes[at] = match tree.parent(at) {
            _ if is_node => at as u32,
            Some(parent) => nodes[parent],
            None => NONE,
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
