//! Which sequences of kernels operators launch again and again.
//!
//! Operators are those whose name contains `operator`, at the least depth at which any does,
//! so that nothing counts twice; and that launched at least `min_pattern_len` kernels. A sequence
//! is the operator and the names of its kernels in the order of time.
//!
//! **In a viewer**: `--overlay OUT` writes the trace again, to OUT, where the operators of the
//! most frequent sequences (`--limit`, 5), and all that they call and launch, have the argument
//! `Patterns`: the sequence, and how often it came. HTA has it there, too; but HTA takes names and
//! arguments from all other events unless it is told not to.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use super::call_graph::Graph;
use crate::metric::one_by_one;
use crate::model::NONE;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "frequent_sequences",
    answers: "which sequences of kernels an operator launches most often",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::text("pattern", "the operator and its kernels, with `|` between them"),
    Column::int("count", "how often it came"),
    Column::duration("gpu_kernel_duration", "how long the kernels took")
        .hta("GPU kernel duration (us)"),
    Column::duration("cpu_op_duration", "how long the operators took").hta("CPU op duration (us)"),
];

/// A sequence, and where it came.
pub(crate) struct Sequence {
    /// The operator and its kernels, with `|` between them.
    pub(crate) pattern: String,
    /// The operators.
    pub(crate) operators: Vec<u32>,
    kernel_duration: i64,
    operator_duration: i64,
}

/// All sequences, the most frequent ones first, and each event's operator ([`NONE`] for events
/// of no sequence): that of the device work and of the calls below it.
pub(crate) fn sequences(
    model: &Model<'_>,
    options: &Options,
) -> Result<(Vec<Sequence>, Vec<u32>), Error> {
    if options.operator.is_empty() {
        return Err(Error::Option("say which operator: --operator NAME".to_owned()));
    }
    let graph = Graph::of(model)?;
    let events = &model.events;
    let mut is_named = model.names_that(|name| name.contains(&options.operator));
    let named: Vec<u32> = (0..events.len() as u32).filter(|row| is_named(*row)).collect();
    let least = named.iter().map(|row| graph.depths[*row as usize]).min();
    let is_root = |row: &&u32| {
        Some(graph.depths[**row as usize]) == least
            && graph.kernels[**row as usize].0 >= options.min_pattern_len
    };
    let roots: Vec<u32> = named.iter().filter(is_root).copied().collect();
    let root_of = roots_of(model, &graph, &roots);
    let below = kernels_below(model, &root_of);
    let mut sequences: BTreeMap<String, Sequence> = BTreeMap::new();
    for root in roots {
        let kernels = below.get(&root).map_or(&[][..], Vec::as_slice);
        let mut names = vec![model.name(root)];
        names.extend(kernels.iter().map(|row| model.name(*row)));
        let pattern = names.join("|");
        let sequence = sequences.entry(pattern.clone()).or_insert(Sequence {
            pattern,
            operators: Vec::new(),
            kernel_duration: 0,
            operator_duration: 0,
        });
        sequence.operators.push(root);
        sequence.kernel_duration += graph.kernels[root as usize].1;
        sequence.operator_duration += events.durs[root as usize];
    }
    if sequences.is_empty() {
        let (operator, least) = (&options.operator, options.min_pattern_len);
        let what = format!("no operator named *{operator}* launched {least} kernels or more");
        return Err(Error::Nothing(format!("rank {}: {what}", model.rank)));
    }
    let mut sequences: Vec<_> = sequences.into_values().collect();
    sequences.order_by_key(|sequence| std::cmp::Reverse(sequence.operators.len()));
    Ok((sequences, root_of))
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    for sequence in sequences(model, options)?.0 {
        rows.push([
            model.rank.into(),
            sequence.pattern.as_str().into(),
            sequence.operators.len().into(),
            sequence.kernel_duration.into(),
            sequence.operator_duration.into(),
        ]);
    }
    rows.finish()
}

/// Which of `roots` is above each event, or is the event.
fn roots_of(model: &Model<'_>, graph: &Graph, roots: &[u32]) -> Vec<u32> {
    let mut root_of = vec![NONE; model.events.len()];
    roots.iter().for_each(|root| root_of[*root as usize] = *root);
    for row in &graph.order {
        let parent = graph.parents[*row as usize];
        if root_of[*row as usize] == NONE && parent != NONE {
            root_of[*row as usize] = root_of[parent as usize];
        }
    }
    root_of
}

/// The device work below each root, in the order of time.
fn kernels_below(model: &Model<'_>, root_of: &[u32]) -> HashMap<u32, Vec<u32>> {
    let mut below: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in model.device() {
        let root = root_of[*row as usize];
        if root != NONE && root != *row {
            below.entry(root).or_default().push(*row);
        }
    }
    below
}
