//! What is slower in one run than in another, piece by piece, as the run diff of the TensorBoard
//! plugin has it: `kymo analyze diff_tree BASE TEST`.
//!
//! What the steps of the first thread call is cut at modules, data loaders and optimizers that
//! both runs have in the same order; what lies between two of them is a piece of its own, named
//! `CompositeNodes`, or after the one operator that it is; `Blank` is nothing. Where both runs have
//! a piece that can be cut further, its pieces follow, a number longer in `path`. A piece has a row,
//! and under it a row for each operator in it, by name. Durations of operators contain those of
//! operators that they call. `total_duration` is the time on devices, or that on the host of what
//! has none. One trace is compared with one.
//!
//! The tree is the plugin's (`operators`), also without `--compat tensorboard`.

use arrow_array::RecordBatch;

use crate::compat::tensorboard::{Plugin, Role, Tree};
use crate::table::{Cell, Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "diff_tree",
    answers: "what takes longer in one run than in another, module by module and by operator",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("path", "the place of the piece: 0 for all, 0-1 for the second piece of it"),
    Column::text("operator", "an operator in the piece; null for the piece itself"),
    Column::text("base_name", "what the piece is called in BASE"),
    Column::text("test_name", "likewise in TEST"),
    Column::int("base_calls", "how often the operator came; null for pieces"),
    Column::int("test_calls", "likewise in TEST"),
    Column::duration("base_duration", "how long it took on the host"),
    Column::duration("test_duration", "likewise in TEST"),
    Column::duration("base_device_duration", "how long its work took on devices"),
    Column::duration("test_device_duration", "likewise in TEST"),
    Column::duration("base_total_duration", "of pieces: on devices, else on the host"),
    Column::duration("test_total_duration", "likewise in TEST"),
    Column::duration("base_self_duration", "of operators: without those that it calls"),
    Column::duration("test_self_duration", "likewise in TEST"),
    Column::duration("base_self_device_duration", "of operators: likewise on devices"),
    Column::duration("test_self_device_duration", "likewise in TEST"),
];

/// What each trace gives: the nodes of its tree, callers before what they call.
const PARTS: &[Column] = &[
    Column::int("depth", "how many nodes are around it"),
    Column::text("name", "the node"),
    Column::int("role", "what it is, if runs are cut there; -1 for others"),
    Column::int("operator", "1 for operators"),
    Column::duration("host", "how long it took"),
    Column::duration("self_host", "without children and calls"),
    Column::duration("device", "work of it and its children"),
    Column::duration("self_device", "its own work"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let tree = Tree::of(model, options.tensorboard.unwrap_or(Plugin::Last));
    let node = |number: u32| &tree.nodes[number as usize];
    let Some(thread) = tree.threads.first() else {
        return Err(Error::Nothing(format!("rank {} has no operators", model.rank)));
    };
    let is_step = |number: &u32| node(*number).role == Role::Step;
    let roots: Vec<u32> = match thread.roots.iter().any(is_step) {
        false => thread.roots.clone(),
        true => {
            let steps = thread.roots.iter().copied().filter(is_step);
            steps.flat_map(|step| node(step).children.clone()).collect()
        }
    };
    let mut rows = Rows::new(PARTS);
    let mut open: Vec<(u32, i64)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    while let Some((number, depth)) = open.pop() {
        let own = node(number);
        let role = if own.role.is_landmark() { own.role as i64 } else { -1 };
        rows.push([
            depth.into(),
            model.name(own.row).into(),
            role.into(),
            i64::from(own.is_operator(model)).into(),
            own.sum.host.into(),
            own.sum.self_host.into(),
            own.sum.device.into(),
            own.sum.self_device.into(),
        ]);
        open.extend(own.children.iter().rev().map(|child| (*child, depth + 1)));
    }
    rows.finish()
}

/// A node that a trace gave.
struct Node<'a> {
    name: &'a str,
    role: i64,
    operator: bool,
    host: i64,
    self_host: i64,
    device: i64,
    self_device: i64,
    children: Vec<Node<'a>>,
}

impl Node<'_> {
    fn total(&self) -> i64 {
        if self.device != 0 { self.device } else { self.host }
    }
}

/// The nodes from `row` on that lie at `depth`, with what lies below them.
fn nodes<'a>(batch: &'a RecordBatch, row: &mut usize, depth: i64) -> Vec<Node<'a>> {
    let cells = Cells::of(batch);
    let mut found = Vec::new();
    while *row < batch.num_rows() && cells.int("depth", *row) == Some(depth) {
        let int = |column| cells.int(column, *row).unwrap_or(0);
        let mut node = Node {
            name: cells.text("name", *row).unwrap_or_default(),
            role: int("role"),
            operator: int("operator") == 1,
            host: int("host"),
            self_host: int("self_host"),
            device: int("device"),
            self_device: int("self_device"),
            children: Vec::new(),
        };
        *row += 1;
        node.children = nodes(batch, row, depth + 1);
        found.push(node);
    }
    found
}

fn over_ranks(_: &Metric, parts: &[Part], _: &Options) -> Result<RecordBatch, Error> {
    let side = |side: i64| parts.iter().find(|part| part.rank == side);
    let (Some(base), Some(test)) = (side(0), side(1)) else {
        return Err(Error::Option("diff_tree compares two sides: BASE and TEST".to_owned()));
    };
    let (base, test) = (nodes(&base.batch, &mut 0, 0), nodes(&test.batch, &mut 0, 0));
    let mut rows = Rows::new(COLUMNS);
    compare("0", &refs(&base), &refs(&test), &mut rows);
    rows.finish()
}

fn refs<'a, 'b>(nodes: &'b [Node<'a>]) -> Vec<&'b Node<'a>> {
    nodes.iter().collect()
}

/// The rows of a piece, and those of what it is cut into.
fn compare(path: &str, base: &[&Node<'_>], test: &[&Node<'_>], rows: &mut Rows) {
    piece(path, base, test, rows);
    let cut = match (base, test) {
        ([base], [test]) => pieces(&refs(&base.children), &refs(&test.children)),
        ([_, _, ..], [_, _, ..]) => pieces(base, test),
        _ => return,
    };
    for (n, (base, test)) in cut.iter().enumerate() {
        compare(&format!("{path}-{n}"), base, test, rows);
    }
}

type Nodes<'a, 'b> = Vec<&'b Node<'a>>;

/// Two lists cut where both have the same in the same order.
fn pieces<'a, 'b>(
    base: &[&'b Node<'a>],
    test: &[&'b Node<'a>],
) -> Vec<(Nodes<'a, 'b>, Nodes<'a, 'b>)> {
    let mut pairs = Vec::new();
    let mut next = 0;
    for (at, node) in base.iter().enumerate().filter(|(_, node)| node.role != -1) {
        let same = |other: &&Node<'_>| (other.role, other.name) == (node.role, node.name);
        if let Some(found) = test[next..].iter().position(same) {
            pairs.push((at, next + found));
            next += found + 1;
        }
    }
    let mut cut = Vec::new();
    if pairs.is_empty() {
        return cut;
    }
    let (mut left, mut right) = (0, 0);
    for (a, b) in pairs {
        if a > left || b > right {
            cut.push((base[left..a].to_vec(), test[right..b].to_vec()));
        }
        cut.push((vec![base[a]], vec![test[b]]));
        (left, right) = (a + 1, b + 1);
    }
    if left < base.len() || right < test.len() {
        cut.push((base[left..].to_vec(), test[right..].to_vec()));
    }
    cut
}

/// Operators of one name in a piece.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: i64,
    host: i64,
    self_host: i64,
    device: i64,
    self_device: i64,
}

fn piece(path: &str, base: &[&Node<'_>], test: &[&Node<'_>], rows: &mut Rows) {
    let names = [base, test].map(|nodes| match nodes {
        [] => "Blank",
        [one] => one.name,
        _ => "CompositeNodes",
    });
    let sum = |nodes: &[&Node<'_>], of: fn(&Node<'_>) -> i64| -> i64 {
        nodes.iter().map(|node| of(node)).sum()
    };
    let both = |of: fn(&Node<'_>) -> i64| [sum(base, of), sum(test, of)];
    let (host, device) = (both(|node| node.host), both(|node| node.device));
    let (total, none) = (both(|node| node.total()), Cell::Null);
    rows.push([
        path.into(),
        none,
        names[0].into(),
        names[1].into(),
        none,
        none,
        host[0].into(),
        host[1].into(),
        device[0].into(),
        device[1].into(),
        total[0].into(),
        total[1].into(),
        none,
        none,
        none,
        none,
    ]);
    let mut sums: Vec<(&str, [Option<Sum>; 2])> = Vec::new();
    for (side, nodes) in [base, test].into_iter().enumerate() {
        nodes.iter().for_each(|node| add(node, side, &mut sums));
    }
    for (name, [base, test]) in sums {
        let of = |sum: Option<Sum>, value: fn(Sum) -> i64| Cell::from(sum.map(value));
        rows.push([
            path.into(),
            name.into(),
            names[0].into(),
            names[1].into(),
            of(base, |sum| sum.calls),
            of(test, |sum| sum.calls),
            of(base, |sum| sum.host),
            of(test, |sum| sum.host),
            of(base, |sum| sum.device),
            of(test, |sum| sum.device),
            none,
            none,
            of(base, |sum| sum.self_host),
            of(test, |sum| sum.self_host),
            of(base, |sum| sum.self_device),
            of(test, |sum| sum.self_device),
        ]);
    }
}

/// Adds the operators in a node, those that it calls before itself.
fn add<'a>(node: &Node<'a>, side: usize, sums: &mut Vec<(&'a str, [Option<Sum>; 2])>) {
    node.children.iter().for_each(|child| add(child, side, sums));
    if !node.operator {
        return;
    }
    let at = match sums.iter().position(|(name, _)| *name == node.name) {
        Some(at) => at,
        None => {
            sums.push((node.name, [None; 2]));
            sums.len() - 1
        }
    };
    let sum = sums[at].1[side].get_or_insert_default();
    sum.calls += 1;
    sum.host += node.host;
    sum.self_host += node.self_host;
    sum.device += node.device;
    sum.self_device += node.self_device;
}
