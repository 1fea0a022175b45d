//! The annotation in which each kernel ran, as the device saw annotations.
//!
//! Annotations and kernels of one stream are compared. Where several overlap a kernel, the
//! shortest one counts.

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::{Kind, Lane};
use crate::names::shorten;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernel_annotations",
    answers: "which annotation each kernel belongs to",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("index", "the place of the kernel in the trace"),
    Column::text("name", "the kernel").hta("s_name"),
    Column::moment("ts", "when it began"),
    Column::duration("dur", "how long it took"),
    Column::int("stream", "the stream"),
    Column::int("correlation", "the number of its launch; -1 if there is none"),
    Column::text("user_annotation", "the annotation; null if there is none")
        .hta("s_user_annotation"),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let events = &model.events;
    let kinds = events.kinds.iter().enumerate();
    let mut annotations: Vec<u32> = kinds
        .filter(|(_, kind)| **kind == Kind::DeviceAnnotation)
        .map(|(row, _)| row as u32)
        .collect();
    if annotations.is_empty() {
        let rank = model.rank;
        return Err(Error::Nothing(format!("rank {rank} has no annotations on devices")));
    }
    annotations.order_by_key(|row| std::cmp::Reverse(events.durs[*row as usize]));
    // The kernels of each stream in the order of time, and how long the longest takes.
    let mut streams: HashMap<Lane, (Vec<u32>, i64)> = HashMap::new();
    let place = |row: u32| Lane { thread: false, ..events.lane(row) };
    for row in model.device() {
        let (rows, longest) = streams.entry(place(*row)).or_default();
        rows.push(*row);
        *longest = (*longest).max(events.durs[*row as usize]);
    }
    let mut of: HashMap<u32, u32> = HashMap::new();
    for annotation in annotations {
        let Some((rows, longest)) = streams.get(&place(annotation)) else { continue };
        let (start, end) = events.interval(annotation);
        let from =
            rows.partition_point(|r| events.starts[*r as usize] < start.saturating_sub(*longest));
        for row in &rows[from..] {
            let (kernel_start, kernel_end) = events.interval(*row);
            if kernel_start >= end {
                break;
            }
            if start < kernel_end {
                of.insert(*row, annotation);
            }
        }
    }
    let mut rows = Rows::new(COLUMNS);
    let short = model.reading.hta().is_some();
    let text = |row: u32| match short {
        true => shorten(model.name(row)),
        false => model.name(row).to_owned(),
    };
    for row in (0..events.len() as u32).filter(|row| events.on_device(*row)) {
        let annotation = of.get(&row).map(|annotation| text(*annotation));
        rows.push([
            model.rank.into(),
            i64::from(events.positions[row as usize]).into(),
            text(row).as_str().into(),
            events.starts[row as usize].into(),
            events.durs[row as usize].into(),
            i64::from(events.streams[row as usize]).into(),
            events.correlations[row as usize].into(),
            annotation.as_deref().into(),
        ]);
    }
    rows.finish()
}
