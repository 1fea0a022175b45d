//! Which sequences of kernels operators launch again and again.
//!
//! Operators are those whose name contains `operator`, at the least depth at which any does,
//! so that nothing counts twice; and that launched at least `min_pattern_len` kernels. A sequence
//! is the operator and the names of its kernels in the order of time.

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

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
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
    let below = kernels_below(model, &graph, &roots);
    let mut patterns: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
    for root in roots {
        let kernels = below.get(&root).map_or(&[][..], Vec::as_slice);
        let mut names = vec![model.name(root)];
        names.extend(kernels.iter().map(|row| model.name(*row)));
        let sum = patterns.entry(names.join("|")).or_default();
        sum.0 += 1;
        sum.1 += graph.kernels[root as usize].1;
        sum.2 += events.durs[root as usize];
    }
    if patterns.is_empty() {
        let (operator, least) = (&options.operator, options.min_pattern_len);
        let what = format!("no operator named *{operator}* launched {least} kernels or more");
        return Err(Error::Nothing(format!("rank {}: {what}", model.rank)));
    }
    let mut patterns: Vec<_> = patterns.into_iter().collect();
    patterns.sort_by_key(|(_, (count, ..))| std::cmp::Reverse(*count));
    let mut rows = Rows::new(COLUMNS);
    for (pattern, (count, kernels, operators)) in patterns {
        rows.push([
            model.rank.into(),
            pattern.as_str().into(),
            count.into(),
            kernels.into(),
            operators.into(),
        ]);
    }
    rows.finish()
}

/// The device work below each of `roots`, in the order of time.
fn kernels_below(model: &Model<'_>, graph: &Graph, roots: &[u32]) -> HashMap<u32, Vec<u32>> {
    let mut root_of = vec![NONE; model.events.len()];
    roots.iter().for_each(|root| root_of[*root as usize] = *root);
    for row in &graph.order {
        let parent = graph.parents[*row as usize];
        if root_of[*row as usize] == NONE && parent != NONE {
            root_of[*row as usize] = root_of[parent as usize];
        }
    }
    let mut below: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in model.device() {
        let root = root_of[*row as usize];
        if root != NONE && root != *row {
            below.entry(root).or_default().push(*row);
        }
    }
    below
}
