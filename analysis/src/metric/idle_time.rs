//! Why streams were idle: gaps between the activities of each.
//!
//! | category | the gap before an activity |
//! |---|---|
//! | `host_wait` | the call that launched it began after the previous one's end: the host was late |
//! | `kernel_wait` | else, it is shorter than `consecutive_kernel_delay`: the cost of launching |
//! | `other` | any other, such as a wait for another stream |
//!
//! Gaps are counted per stream, so that time in which another stream works counts, too. The
//! first activity of a stream has no gap; HTA counts it as `other`. HTA's delay is documented as
//! nanoseconds and compared with microseconds: 30 µs by default, here too.

use std::sync::Arc;

use arrow_array::RecordBatch;
use kymograph_converters::order::Order as _;

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::{Kind, Model};
use crate::stats::describe;
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// How much idle time of each category each stream had.
pub const METRIC: Metric = Metric {
    name: "idle_time",
    answers: "why each stream was idle: the host was late, launching took long, or it waited",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// How long single gaps were.
pub const INTERVALS: Metric = Metric {
    name: "idle_intervals",
    answers: "how long the gaps between the activities of each stream were",
    columns: INTERVAL_COLUMNS,
    of_trace: intervals,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("stream", "the stream"),
    Column::text("idle_category", "why: see the metric"),
    Column::duration("idle_time", "the sum of gaps; activities that overlap count against it")
        .digits(2),
    Column::float("idle_time_ratio", "of the stream's idle time").digits(2),
];

const INTERVAL_COLUMNS: &[Column] = &[
    Column::text("idle_category", "why: see `idle_time`"),
    Column::int("rank", "the rank"),
    Column::int("stream", "the stream"),
    Column::int("count", "how many gaps"),
    Column::mean_duration("mean", "their mean").digits(2),
    Column::mean_duration("std", "their standard deviation").digits(2),
    Column::mean_duration("min", "the shortest; below 0 where activities overlap").digits(2),
    Column::mean_duration("25%", "a quarter is shorter").digits(2),
    Column::mean_duration("50%", "half is shorter").digits(2),
    Column::mean_duration("75%", "three quarters are shorter").digits(2),
    Column::mean_duration("max", "the longest").digits(2),
];

const CATEGORIES: [&str; 3] = ["host_wait", "kernel_wait", "other"];

/// The gaps of a stream by category; `None` stands for the first activity.
struct Stream {
    number: i64,
    gaps: [Vec<Option<i64>>; 3],
}

fn streams(model: &Model<'_>, options: &Options) -> Result<Arc<Vec<Stream>>, Error> {
    needs_device_work(model)?;
    let key = (options.streams.clone(), options.consecutive_kernel_delay);
    Ok(model.shared(key, || find_streams(model, options)))
}

fn find_streams(model: &Model<'_>, options: &Options) -> Vec<Stream> {
    let events = &model.events;
    let is_work = |row: u32| match model.reading.hta() {
        Some(_) => matches!(events.kinds[row as usize], Kind::Kernel | Kind::Copy | Kind::Set),
        None => events.kinds[row as usize].is_work(),
    };
    // The work of each stream, with what comes first of it in the trace.
    let mut all: Vec<(i32, u32, Vec<u32>)> = Vec::new();
    let mut of: hashbrown::HashMap<i32, usize> = hashbrown::HashMap::new();
    for row in model.device().iter().copied().filter(|row| is_work(*row)) {
        let stream = events.streams[row as usize];
        let place = *of.entry(stream).or_insert_with(|| {
            all.push((stream, row, Vec::new()));
            all.len() - 1
        });
        let (_, first, rows) = &mut all[place];
        *first = row.min(*first);
        rows.push(row);
    }
    all.order_by_key(|(_, first, _)| *first);
    all.retain(|(s, ..)| options.streams.is_empty() || options.streams.contains(&i64::from(*s)));
    let stream = |(stream, _, rows): &(i32, u32, Vec<u32>)| Stream {
        number: (*stream).into(),
        gaps: gaps(model, rows, options),
    };
    all.iter().map(stream).collect()
}

fn gaps(model: &Model<'_>, rows: &[u32], options: &Options) -> [Vec<Option<i64>>; 3] {
    let events = &model.events;
    let mut gaps: [Vec<Option<i64>>; 3] = Default::default();
    if !rows.is_empty() && model.reading.hta().is_some() {
        gaps[2].push(None);
    }
    for pair in rows.windows(2) {
        let before = events.end(pair[0]);
        let gap = events.starts[pair[1] as usize].saturating_sub(before);
        let call = model.peers().get(pair[1]);
        let late = call.is_some_and(|call| events.starts[call as usize] > before);
        let category = match late {
            true => 0,
            false if gap < options.consecutive_kernel_delay => 1,
            false => 2,
        };
        gaps[category].push(Some(gap));
    }
    gaps
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    for stream in streams(model, options)?.iter() {
        let sums = stream.gaps.each_ref().map(|gaps| gaps.iter().flatten().sum::<i64>());
        let total: i64 = sums.iter().sum();
        for ((category, gaps), sum) in CATEGORIES.iter().zip(&stream.gaps).zip(sums) {
            if !gaps.is_empty() {
                let ratio = sum as f64 / total as f64;
                rows.push([
                    model.rank.into(),
                    stream.number.into(),
                    (*category).into(),
                    sum.into(),
                    ratio.into(),
                ]);
            }
        }
    }
    rows.finish()
}

fn intervals(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(INTERVAL_COLUMNS);
    for stream in streams(model, options)?.iter() {
        for (category, gaps) in CATEGORIES.iter().zip(&stream.gaps) {
            if gaps.is_empty() {
                continue;
            }
            let d = describe(gaps.iter().flatten().map(|gap| *gap as f64).collect());
            let [min, q25, q50, q75, max] = d.quartiles;
            rows.push([
                (*category).into(),
                model.rank.into(),
                stream.number.into(),
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
    }
    rows.finish()
}
