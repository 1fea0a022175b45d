//! What becomes of the time of each step on one rank.
//!
//! The device is idle while no work of it lasts. Such a gap belongs to the step of the work that
//! ends it, and is the host's, which was late, but for the part in which a data loader ran. None
//! of this depends on other ranks: while a rank waits for others, its device is in a collective.

use kymograph_analysis::interval::{self, Interval};
use kymograph_analysis::model::{Class, Kind};
use kymograph_analysis::table::{RecordBatch, Rows};
use kymograph_analysis::{Column, Error, Model};
use std::collections::BTreeMap;

/// The columns.
pub const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("step", "the number of the step"),
    Column::int("ts", "when it begins").unit(kymograph_analysis::Unit::Duration),
    Column::duration("dur", "how long it takes"),
    Column::duration("compute", "how long computing kernels of it last"),
    Column::duration("communication", "how long collectives of it last, and wait"),
    Column::duration("memory", "how long copies and fills of it last"),
    Column::duration("idle_host", "how long its device has nothing to do, since the host is late"),
    Column::duration("idle_data_loader", "likewise, since a data loader is late"),
];

#[derive(Default)]
struct Step {
    start: i64,
    dur: i64,
    of_class: [Vec<Interval>; 3],
    idle_host: i64,
    idle_loader: i64,
}

/// The table of a rank, by time.
///
/// # Errors
///
/// When it is too large for Arrow.
pub fn of_trace(model: &Model<'_>) -> Result<RecordBatch, Error> {
    let events = &model.events;
    let mut steps: BTreeMap<i64, Step> = BTreeMap::new();
    for step in &model.steps().all {
        let (start, end) = events.interval(step.row);
        let of =
            steps.entry(step.number).or_insert(Step { start, dur: end - start, ..Step::default() });
        // Two ranges of one number: a step, and a mark of it.
        if end - start > of.dur {
            (of.start, of.dur) = (start, end - start);
        }
    }
    let loaders = loaders(model);
    let classes = model.classes();
    let mut busy = steps.values().map(|step| step.start).min().unwrap_or(i64::MAX);
    for row in model.device().iter().copied().filter(|row| events.kinds[*row as usize].is_work()) {
        let (start, end) = events.interval(row);
        if let Some(step) = steps.get_mut(&model.steps().of[row as usize]) {
            if start > busy {
                let loading = overlap(&loaders, (busy, start));
                step.idle_loader += loading;
                step.idle_host += start - busy - loading;
            }
            let class = match classes.of_row(model, row) {
                Class::Computation => 0,
                Class::Communication => 1,
                Class::Memory | Class::Other => 2,
            };
            step.of_class[class].push((start, end));
        }
        busy = if busy == i64::MAX { end } else { busy.max(end) };
    }
    let mut by_time: Vec<(i64, Step)> = steps.into_iter().collect();
    by_time.sort_by_key(|(_, step)| step.start);
    let mut rows = Rows::new(COLUMNS);
    for (number, step) in by_time {
        let [compute, communication, memory] =
            step.of_class.map(|all| interval::length(&interval::merge(all)));
        rows.push([
            model.rank.into(),
            number.into(),
            step.start.into(),
            step.dur.into(),
            compute.into(),
            communication.into(),
            memory.into(),
            step.idle_host.into(),
            step.idle_loader.into(),
        ]);
    }
    rows.finish()
}

/// When data loaders ran.
fn loaders(model: &Model<'_>) -> Vec<Interval> {
    let mut loads = model.names_that(|name| {
        name.starts_with("enumerate(DataLoader)")
            || name.starts_with("enumerate(DataPipe)")
            || name.contains("torch/utils/data/dataloader.py")
    });
    let events = &model.events;
    let host = (0..events.len() as u32).filter(|row| {
        !events.on_device(*row)
            && matches!(
                events.kinds[*row as usize],
                Kind::Operator | Kind::Annotation | Kind::Python | Kind::Other
            )
    });
    let mut all: Vec<Interval> =
        host.filter(|row| loads(*row)).map(|row| events.interval(row)).collect();
    all.sort_unstable();
    interval::merge(all)
}

/// How much of some intervals, which are in order and apart, lies in another one.
fn overlap(all: &[Interval], (from, to): Interval) -> i64 {
    let first = all.partition_point(|(_, end)| *end <= from);
    let within = all[first..].iter().take_while(|(start, _)| *start < to);
    within.map(|(start, end)| end.min(&to) - start.max(&from)).sum()
}
