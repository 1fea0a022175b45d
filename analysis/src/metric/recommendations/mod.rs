//! What to do about it: findings with the numbers that say so, and an estimate of what they cost.
//!
//! They come from rules over the tables of other metrics: a rank that the others wait for, if half
//! of all waiting is for it and it costs them 2 % of their time; devices that are idle for 10 % of
//! theirs; communication of 10 % that nothing hides; things that the program need not do
//! (`antipatterns`) and cost 1 %; and whatever makes numbers wrong (`data_quality`). Costs overlap
//! and do not add up.
//!
//! `--compat tensorboard` has the rules of the TensorBoard plugin, of each rank: data loading of more
//! than 5 % of steps (`overview`); `DataParallel` on several devices; `DistributedDataParallel`
//! without NCCL; communication of more than 10 %; devices that are used for less than half of the
//! time (`gpu_utilization`); tensor cores that no kernel uses, though operators could; and more than
//! 90 % of a device's memory in use.

mod plugin;

use arrow_array::RecordBatch;

use crate::bundle::{bundle, unbundle};
use crate::findings::{METRICS, findings};
use crate::table::{Cell, Rows};
use crate::{Column, Error, Metric, Model, Options, Part, run, table};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "recommendations",
    answers: "what to do, with the numbers that say so and what it costs not to",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank; null if it is about all of them"),
    Column::text("finding", "what is the matter"),
    Column::text("evidence", "the numbers that say so"),
    Column::text("advice", "what may help"),
    Column::duration("cost", "the time that it costs each rank; null if that cannot be said"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if let Some(state) = options.tensorboard {
        return plugin::of_trace(model, options, state);
    }
    let metrics = METRICS.iter().filter_map(|name| Metric::find(name));
    // What one of them lacks is no news.
    let table = |metric: &Metric| Some((metric.name, (metric.of_trace)(model, options).ok()?));
    let tables: Vec<(&str, RecordBatch)> = metrics.filter_map(table).collect();
    bundle(&tables)
}

fn over_ranks(_: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    if options.tensorboard.is_some() {
        let batches: Vec<&RecordBatch> = parts.iter().map(|part| &part.batch).collect();
        return table::concat(COLUMNS, &batches);
    }
    let mut tables = Vec::new();
    for metric in METRICS.iter().filter_map(|name| Metric::find(name)) {
        let of = |part: &Part| {
            let batch = unbundle(&part.batch, metric.name)?;
            Some(Part { batch, ..part.clone() })
        };
        let of_metric: Vec<Part> = parts.iter().filter_map(of).collect();
        if let Ok(batch) = run::over_ranks(metric, of_metric, options) {
            tables.push((metric.name, batch));
        }
    }
    let mut rows = Rows::new(COLUMNS);
    for finding in findings(&tables) {
        rows.push([
            Cell::Null,
            finding.what.as_str().into(),
            finding.evidence.as_str().into(),
            finding.advice.as_str().into(),
            Some(finding.cost).filter(|cost| *cost > 0).into(),
        ]);
    }
    rows.finish()
}

/// The columns, for the plugin's rules.
fn rows() -> Rows {
    Rows::new(COLUMNS)
}
