//! How long annotations last, by name: those of the host, or as devices saw them. Folded like
//! [`super::kernel_breakdown`]; names that contain an entry of `allowlist` never are.

use arrow_array::RecordBatch;
use kymograph_converters::order::Order as _;

use super::kernel_breakdown::by_name;
use crate::model::Kind;
use crate::table::{Cells, Rows, pick};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "user_annotations",
    answers: "how long the ranges take that the program named, on devices or on the host",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("name", "the annotation; `others` for those that are folded"),
    Column::int("count", "how often it came").hta(""),
    Column::duration("sum", "how long it took altogether").hta("sum (us)"),
    Column::duration("max", "the longest time").hta("max (us)"),
    Column::duration("min", "the shortest time").hta("min (us)"),
    Column::mean_duration("stddev", "the standard deviation; 0 of one"),
    Column::mean_duration("mean", "the mean").hta("mean (us)"),
    Column::int("rank", "the rank"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let wanted = if options.gpu_annotations { Kind::DeviceAnnotation } else { Kind::Annotation };
    let kinds = model.events.kinds.iter().enumerate();
    let members: Vec<u32> =
        kinds.filter(|(_, kind)| **kind == wanted).map(|(row, _)| row as u32).collect();
    let mut rows = Rows::new(COLUMNS);
    for name in by_name(model, members.into_iter(), options, &options.allowlist) {
        let m = name.moments;
        rows.push([
            name.name.into(),
            m.count.into(),
            m.sum.into(),
            m.max.into(),
            m.min.into(),
            name.deviation().into(),
            m.mean().into(),
            model.rank.into(),
        ]);
    }
    rows.finish()
}

fn over_ranks(metric: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    let batches: Vec<_> = parts.iter().map(|part| &part.batch).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (n, batch) in batches.iter().enumerate() {
        let cells = Cells::of(batch);
        let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
        rows.order_by_key(|row| cells.text("name", *row));
        order.extend(rows.into_iter().map(|row| (n, row)));
    }
    if order.is_empty() {
        let which = if options.gpu_annotations { "on devices" } else { "on the host" };
        return Err(Error::Nothing(format!("there are no annotations {which}")));
    }
    pick(metric.columns, &batches, order.into_iter())
}
