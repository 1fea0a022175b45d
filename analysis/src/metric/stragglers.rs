//! Which rank the others wait for.
//!
//! By HTA's rule (`--compat`): of the communication kernels that take at least a hundredth of a
//! step, the last of each stream, step and name; of these the stream and name whose durations
//! differ most between ranks; the ranks whose kernel begins last. This leaves out the very rank
//! that is late when its kernels, which wait for no other rank, are short; it knows only kernels
//! named `ncclKernel…`.
//!
//! The exact reading compares each collective over the ranks that take part in it
//! ([`super::collectives`]): the rank that begins it last made all others wait.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use crate::table::{Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "stragglers",
    answers: "which ranks begin collectives last, so that the others wait for them",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank; the likeliest straggler first"),
    Column::int("times_last", "collectives that it began last; HTA: steps in which it was late"),
    Column::duration("waited_for", "how long others waited in those").hta(""),
    Column::duration("waited", "how long it waited for others itself").hta(""),
];

/// What ranks give: long kernels, and for each step the time it takes.
const PARTS: &[Column] = &[
    Column::int("stream", "the stream"),
    Column::int("step", "the step"),
    Column::text("name", "the kernel; null for the whole step"),
    Column::moment("ts", "when it begins"),
    Column::duration("duration", "how long it takes"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if model.reading.hta().is_none() {
        return super::collectives::of_trace(model, options);
    }
    let (events, steps) = (&model.events, model.steps());
    let numbers = steps.numbers();
    let wanted = |step: &i64| {
        numbers.contains(step) && (options.steps.is_empty() || options.steps.contains(step))
    };
    let mut whole: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut rows = Rows::new(PARTS);
    for row in 0..events.len() as u32 {
        let step = steps.of[row as usize];
        if !wanted(&step) {
            continue;
        }
        let (start, end) = events.interval(row);
        let all = whole.entry(step).or_insert((start, end));
        *all = (all.0.min(start), all.1.max(end));
        let stream = i64::from(events.streams[row as usize]);
        if stream > 0 && step > 0 && model.name(row).starts_with("ncclKernel") {
            let (name, dur) = (model.name(row), events.durs[row as usize]);
            rows.push([stream.into(), step.into(), name.into(), start.into(), dur.into()]);
        }
    }
    for (step, (start, end)) in whole {
        let nothing = crate::table::Cell::Null;
        rows.push([(-1i64).into(), step.into(), nothing, start.into(), (end - start).into()]);
    }
    rows.finish()
}

fn over_ranks(metric: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    match options.reading.hta() {
        Some(_) => by_start(parts, options),
        None => super::collectives::waits(metric, parts),
    }
}

/// A long kernel of a rank.
struct Long {
    rank: i64,
    step: i64,
    start: f64,
    duration: f64,
}

fn by_start(parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    let nothing = |what: &str| Error::Nothing(what.to_owned());
    let mut steps: Vec<i64> = Vec::new();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let each =
        || parts.iter().flat_map(|part| (0..part.batch.num_rows()).map(move |row| (part, row)));
    for (part, row) in each() {
        let cells = Cells::of(&part.batch);
        let (Some(start), Some(dur)) = (cells.int("ts", row), cells.int("duration", row)) else {
            continue;
        };
        if cells.text("name", row).is_none() {
            steps.extend(cells.int("step", row));
            (first, last) = (first.min(start), last.max(start + dur));
        }
    }
    steps.sort_unstable();
    steps.dedup();
    if steps.is_empty() {
        return Err(nothing("none of the steps is in the trace"));
    }
    let mean = (last - first) as f64 / steps.len() as f64;
    // The last kernel of each rank, stream, step and name.
    let mut long: BTreeMap<(i64, &str, i64, i64), Long> = BTreeMap::new();
    for (part, row) in each() {
        let cells = Cells::of(&part.batch);
        let int = |column| cells.int(column, row).unwrap_or_default();
        let (Some(name), duration) = (cells.text("name", row), int("duration") as f64) else {
            continue;
        };
        if duration >= mean * 0.01 {
            let (stream, step, start) = (int("stream"), int("step"), (int("ts") - first) as f64);
            let kernel =
                Long { rank: part.rank, step, start: start / mean, duration: duration / mean };
            long.insert((stream, name, step, part.rank), kernel);
        }
    }
    let Some(chosen) = most_different(&long) else {
        return Err(nothing(
            "HTA finds no kernel named ncclKernel… that several ranks have and that takes at \
             least a hundredth of a step (without --compat, collectives are compared)",
        ));
    };
    let candidates: Vec<&Long> =
        long.iter().filter(|((s, n, ..), _)| (*s, *n) == chosen).map(|(_, long)| long).collect();
    late(&candidates, options)
}

/// The stream and name whose durations differ most over ranks, in the mean over steps.
fn most_different<'a>(long: &BTreeMap<(i64, &'a str, i64, i64), Long>) -> Option<(i64, &'a str)> {
    let mut of_step: BTreeMap<(i64, &str, i64), Vec<f64>> = BTreeMap::new();
    for ((stream, name, step, _), kernel) in long {
        of_step.entry((*stream, *name, *step)).or_default().push(kernel.duration);
    }
    let mut deviations: BTreeMap<(i64, &str), Vec<f64>> = BTreeMap::new();
    for ((stream, name, _), durations) in of_step {
        let deviation = crate::stats::describe(durations).std;
        if !deviation.is_nan() {
            deviations.entry((stream, name)).or_default().push(deviation);
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let means = deviations.into_iter().map(|(key, all)| (key, mean(&all)));
    means.reduce(|a, b| if b.1 > a.1 { b } else { a }).map(|(key, _)| key)
}

fn late(candidates: &[&Long], options: &Options) -> Result<RecordBatch, Error> {
    let wanted = options.num_candidates.max(1);
    let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
    let mut steps: BTreeMap<i64, Vec<&Long>> = BTreeMap::new();
    for long in candidates {
        steps.entry(long.step).or_default().push(long);
        counts.entry(long.rank).or_default();
    }
    for of_step in steps.values() {
        let mut starts: Vec<f64> = of_step.iter().map(|long| long.start).collect();
        starts.order_by(|a, b| b.total_cmp(a));
        let Some(threshold) = starts.get(wanted - 1).or(starts.last()) else { continue };
        for long in of_step.iter().filter(|long| long.start >= *threshold) {
            *counts.entry(long.rank).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut rows = Rows::new(COLUMNS);
    for (rank, count) in counts.into_iter().take(wanted) {
        let nothing = crate::table::Cell::Null;
        rows.push([rank.into(), count.into(), nothing, nothing]);
    }
    rows.finish()
}
