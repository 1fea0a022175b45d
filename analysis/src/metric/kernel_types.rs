//! How long which kinds of device work last, and which last at the same time, over all ranks.
//!
//! Communication that overlaps computing is a row of its own:
//! `COMPUTATION overlapping COMMUNICATION`. HTA cuts each stretch of time to whole
//! microseconds before it adds them; the exact reading does not.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::needs_device_work;
use crate::interval::sweep;
use crate::model::Class;
use crate::table::{Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernel_types",
    answers: "how long computing, communication and memory work last, alone and together",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("kernel_type", "the kinds that last at the same time"),
    Column::duration("sum", "how long, over all ranks"),
    Column::percent("percentage", "of the time in which any lasts").digits(1),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let mut classes = vec![Class::Computation, Class::Communication];
    if options.include_memory {
        classes.push(Class::Memory);
    }
    let lists: Vec<_> = classes.iter().map(|class| model.busy(*class)).collect();
    let lists: Vec<_> = lists.iter().map(|list| list.as_slice()).collect();
    let unit = if model.reading.hta().is_some() { 1000 } else { 1 };
    let mut sums: BTreeMap<i64, i64> = BTreeMap::new();
    sweep(&lists, |running, from, to| {
        if running > 0 {
            *sums.entry(running).or_default() += (to - from) / unit * unit;
        }
    });
    let mut rows = Rows::new(COLUMNS);
    for (running, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
        let lasting = classes.iter().enumerate().filter(|(bit, _)| running >> bit & 1 == 1);
        let names: Vec<&str> = lasting.map(|(_, class)| class.name()).collect();
        rows.push([names.join(" overlapping ").as_str().into(), sum.into(), f64::NAN.into()]);
    }
    rows.finish()
}

fn over_ranks(_: &Metric, parts: &[Part], _: &Options) -> Result<RecordBatch, Error> {
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for part in parts {
        let cells = Cells::of(&part.batch);
        for row in 0..part.batch.num_rows() {
            if let (Some(name), Some(sum)) = (cells.text("kernel_type", row), cells.int("sum", row))
            {
                *sums.entry(name).or_default() += sum;
            }
        }
    }
    let total: i64 = sums.values().sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.order_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let mut rows = Rows::new(COLUMNS);
    for (name, sum) in sums {
        let part = 100.0 * (sum as f64 / total as f64);
        rows.push([name.into(), sum.into(), part.into()]);
    }
    rows.finish()
}
