//! How fast devices copied and filled memory over time, by the direction of the copy.
//!
//! What several copies of one direction do at the same time is added up. Their bandwidth is
//! what the profiler says (`memory bandwidth (GB/s)`); the exact reading computes it from bytes
//! and time where it does not. A copy that takes no time counts for a microsecond.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::{Argument, Class};
use crate::stats::describe;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options, Unit};

/// The series.
pub const METRIC: Metric = Metric {
    name: "memory_bandwidth",
    answers: "how fast each kind of copy moved memory, over time",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// Statistics of the series.
pub const SUMMARY: Metric = Metric {
    name: "memory_bandwidth_summary",
    answers: "how fast each kind of copy moved memory: mean, deviation, quartiles",
    columns: SUMMARY_COLUMNS,
    of_trace: summary,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::moment("ts", "when the bandwidth changes"),
    Column::int("pid", "the device"),
    Column::text("name", "the kind of copy"),
    Column::float("memory_bw_gbps", "the bandwidth from then on").unit(Unit::GigabytesPerSecond),
];

const SUMMARY_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("name", "the kind of copy"),
    Column::int("count", "how often the bandwidth changed to something above 0"),
    Column::float("mean", "the mean after changes").unit(Unit::GigabytesPerSecond),
    Column::float("std", "their standard deviation").unit(Unit::GigabytesPerSecond),
    Column::float("min", "the least").unit(Unit::GigabytesPerSecond),
    Column::float("25%", "a quarter is less").unit(Unit::GigabytesPerSecond),
    Column::float("50%", "half is less").unit(Unit::GigabytesPerSecond),
    Column::float("75%", "three quarters are less").unit(Unit::GigabytesPerSecond),
    Column::float("max", "the most").unit(Unit::GigabytesPerSecond),
];

/// When, the device, the bandwidth from then on.
pub(crate) type Change = (i64, i64, f64);

/// The changes of each kind of copy.
pub(crate) type Series = BTreeMap<String, Vec<Change>>;

pub(crate) fn series(model: &Model<'_>) -> Result<Arc<Series>, Error> {
    needs_device_work(model)?;
    Ok(model.shared("copies", || find_series(model)))
}

fn find_series(model: &Model<'_>) -> Series {
    let events = &model.events;
    let classes = model.classes();
    let bandwidth = Bandwidth::of(model);
    let mut series: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
    let work = (0..events.len() as u32).filter(|row| events.on_device(*row));
    let copies: Vec<u32> =
        work.filter(|row| classes.of_row(model, *row) == Class::Memory).collect();
    // Beginnings count before ends of one moment.
    for row in &copies {
        let change =
            (events.starts[*row as usize], events.lane(*row).pid, bandwidth.find(model, *row));
        series.entry(direction(model.name(*row))).or_default().push(change);
    }
    for row in &copies {
        let dur = if events.durs[*row as usize] == 0 { 1000 } else { events.durs[*row as usize] };
        let end = events.starts[*row as usize].saturating_add(dur);
        let change = (end, events.lane(*row).pid, -bandwidth.find(model, *row));
        series.entry(direction(model.name(*row))).or_default().push(change);
    }
    for changes in series.values_mut() {
        changes.order_by_numbers(|(time, ..)| [*time]);
        let mut sum = 0.0;
        for (.., bandwidth) in changes {
            sum += *bandwidth;
            *bandwidth = sum;
        }
    }
    series.into_iter().map(|(name, changes)| (name.to_owned(), changes)).collect()
}

/// `Memcpy DtoH`, `Memset`.
fn direction(name: &str) -> &str {
    if name.starts_with("Memset") {
        return "Memset";
    }
    if !name.starts_with("Memcpy") {
        return "Memcpy Unknown";
    }
    name.char_indices().nth(11).map_or(name, |(end, _)| &name[..end])
}

/// What says how fast a copy was.
struct Bandwidth<'m, 'a> {
    said: Argument<'m, 'a>,
    bytes: Argument<'m, 'a>,
}

impl<'m, 'a> Bandwidth<'m, 'a> {
    fn of(model: &'m Model<'a>) -> Bandwidth<'m, 'a> {
        let (said, bytes) = (model.argument("memory bandwidth (GB/s)"), model.argument("bytes"));
        Bandwidth { said, bytes }
    }

    fn find(&self, model: &Model<'_>, row: u32) -> f64 {
        let computed = || {
            let bytes = self.bytes.float(row).filter(|_| model.reading.hta().is_none())?;
            Some(bytes / model.events.durs[row as usize].max(1) as f64)
        };
        self.said.float(row).or_else(computed).unwrap_or(0.0)
    }
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    for (name, changes) in series(model)?.iter() {
        for (time, device, bandwidth) in changes {
            rows.push([
                model.rank.into(),
                (*time).into(),
                (*device).into(),
                name.as_str().into(),
                (*bandwidth).into(),
            ]);
        }
    }
    rows.finish()
}

fn summary(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(SUMMARY_COLUMNS);
    for (name, changes) in series(model)?.iter() {
        let some = changes.iter().map(|(.., bandwidth)| *bandwidth).filter(|b| *b > 0.0);
        let d = describe(some.collect());
        if d.count == 0 {
            continue;
        }
        let [min, q25, q50, q75, max] = d.quartiles;
        rows.push([
            model.rank.into(),
            name.as_str().into(),
            d.count.into(),
            d.mean.into(),
            d.std.into(),
            min.into(),
            q25.into(),
            q50.into(),
            q75.into(),
            max.into(),
        ]);
    }
    rows.finish()
}
