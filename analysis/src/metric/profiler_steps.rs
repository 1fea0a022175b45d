//! The steps of the program's main loop, as the profiler marked them.

use arrow_array::RecordBatch;
use hashbrown::HashSet;
use kymograph_converters::order::Order as _;

use crate::metric::one_by_one;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "profiler_steps",
    answers: "which steps the trace has, when each began, and how long it took",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("step", "the number"),
    Column::moment("ts", "when it began"),
    Column::duration("duration", "how long it took on the host"),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut steps = model.steps().all.clone();
    if steps.is_empty() {
        let rank = model.rank;
        return Err(Error::Nothing(format!("rank {rank} has no events named ProfilerStep#N")));
    }
    steps.order_by_key(|step| step.number);
    let mut seen = HashSet::new();
    let mut rows = Rows::new(COLUMNS);
    for step in steps {
        if model.reading.hta().is_some() && !seen.insert(step.number) {
            continue;
        }
        let (start, dur) = (step.row as usize, step.row as usize);
        rows.push([
            model.rank.into(),
            step.number.into(),
            model.events.starts[start].into(),
            model.events.durs[dur].into(),
        ]);
    }
    rows.finish()
}
