//! How many activities each stream had waiting: one more when a call launches one, one fewer
//! when a device begins it.
//!
//! The exact reading counts every launch that has its work in the trace; HTA those of a list of
//! names. Where several things happen at one moment, launches count first.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::QueueChange;
use crate::stats::describe;
use crate::table::{Rows, columns};
use crate::{Column, Error, Metric, Model, Options, Part};

/// The series.
pub const METRIC: Metric = Metric {
    name: "queue_length",
    answers: "how many activities waited on each stream, over time",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// Statistics of the series.
pub const SUMMARY: Metric = Metric {
    name: "queue_length_summary",
    answers: "how many activities waited on each stream: mean, deviation, quartiles",
    columns: SUMMARY_COLUMNS,
    of_trace: summary,
    over_ranks: one_by_one,
};

/// Full queues.
pub const BLOCKED: Metric = Metric {
    name: "blocked_on_queue",
    answers: "how long the queue of each stream was full, so that launches had to wait",
    columns: BLOCKED_COLUMNS,
    of_trace: blocked,
    over_ranks: blocked_over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("index", "the place of the event in the trace"),
    Column::moment("ts", "when the length changes"),
    Column::int("pid", "the device"),
    Column::int("tid", "the stream, as the trace numbers it"),
    Column::int("stream", "the stream"),
    Column::int("queue_length", "the length from then on"),
];

const SUMMARY_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("stream", "the stream"),
    Column::int("count", "how often the length changed"),
    Column::float("mean", "the mean after changes, however long they held"),
    Column::float("std", "their standard deviation"),
    Column::float("min", "the least"),
    Column::float("25%", "a quarter is less"),
    Column::float("50%", "half is less"),
    Column::float("75%", "three quarters are less"),
    Column::float("max", "the most"),
];

const BLOCKED_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("stream", "the stream"),
    Column::duration("duration_at_max_queue_length", "how long it was full"),
    Column::float("relative_duration_at_max_queue_length", "of the time of the trace")
        .unit(crate::Unit::Ratio),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let events = &model.events;
    let queues: Vec<(i64, &[QueueChange])> = wanted(model, options)?.collect();
    // Column by column: there may be as many rows as events.
    let column = |cell: &dyn Fn(i64, &QueueChange) -> i64| -> ArrayRef {
        let of = |(stream, changes): &(i64, &[QueueChange])| -> Vec<i64> {
            changes.iter().map(|change| cell(*stream, change)).collect()
        };
        Arc::new(Int64Array::from(queues.iter().map(of).collect::<Vec<_>>().concat()))
    };
    columns(
        COLUMNS,
        vec![
            column(&|_, _| model.rank),
            column(&|_, change| i64::from(events.positions[change.row as usize])),
            column(&|_, change| change.time),
            column(&|_, change| events.lane(change.work).pid),
            column(&|_, change| events.lane(change.work).tid),
            column(&|stream, _| stream),
            column(&|_, change| change.length),
        ],
    )
}

fn summary(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(SUMMARY_COLUMNS);
    for (stream, changes) in wanted(model, options)? {
        let d = describe(changes.iter().map(|change| change.length as f64).collect());
        let [min, q25, q50, q75, max] = d.quartiles;
        rows.push([
            model.rank.into(),
            stream.into(),
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

/// HTA keeps one stream of each rank: the last one that was full at all.
fn blocked(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let starts = &model.events.starts;
    let whole = starts.iter().max().zip(starts.iter().min()).map_or(0, |(max, min)| max - min);
    let mut full = Vec::new();
    for (stream, changes) in wanted(model, options)? {
        let mut time = 0;
        let mut any = false;
        for (at, change) in changes.iter().enumerate() {
            if change.length >= options.max_queue_length {
                any = true;
                time += changes.get(at + 1).map_or(0, |next| next.time - change.time);
            }
        }
        if any {
            full.push((stream, time));
        }
    }
    if model.reading.hta().is_some() {
        full = full.split_off(full.len().saturating_sub(1));
    }
    let mut rows = Rows::new(BLOCKED_COLUMNS);
    for (stream, time) in full {
        let part = time as f64 / whole as f64;
        rows.push([model.rank.into(), stream.into(), time.into(), part.into()]);
    }
    rows.finish()
}

/// That no queue was full is an answer.
fn blocked_over_ranks(
    metric: &Metric,
    parts: &[Part],
    options: &Options,
) -> Result<RecordBatch, Error> {
    one_by_one(metric, parts, options)
}

/// The queues of the streams that are wanted.
fn wanted<'m>(
    model: &'m Model<'_>,
    options: &Options,
) -> Result<impl Iterator<Item = (i64, &'m [QueueChange])>, Error> {
    needs_device_work(model)?;
    let wants = |stream: &i64| options.streams.is_empty() || options.streams.contains(stream);
    let all = model.queues().iter().map(|(stream, changes)| (*stream, changes.as_slice()));
    Ok(all.filter(move |(stream, _)| wants(stream)))
}
