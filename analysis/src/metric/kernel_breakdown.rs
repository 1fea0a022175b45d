//! Which kernels take how long, by kind and name.
//!
//! Kinds with more than `num_kernels` names show the longest ones; the others are added up in
//! `others`: names beyond that number, and those whose running sum, from the longest down, lies
//! beyond the quantile `duration_ratio` of running sums. Where HTA folds, it takes statistics
//! of sums: mean, least and greatest of every name are then its sum. The exact reading has
//! those of the kernel's runs, and for `others` those of all runs in it.

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::order::Order as _;

use super::needs_device_work;
use crate::model::Class;
use crate::stats::{Moments, quantile};
use crate::table::{Cells, Rows, pick};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "kernel_breakdown",
    answers: "which kernels take the most time on each rank",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("name", "the kernel; `others` for those that are folded"),
    Column::int("count", "how often it ran").hta(""),
    Column::duration("sum", "how long all of its runs took").hta("sum (us)"),
    Column::duration("max", "the longest run").hta("max (us)"),
    Column::duration("min", "the shortest run").hta("min (us)"),
    Column::mean_duration("stddev", "the standard deviation of runs; 0 for one run"),
    Column::mean_duration("mean", "the mean of runs").hta("mean (us)"),
    Column::text("kernel_type", "its kind"),
    Column::int("rank", "the rank"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let mut classes = vec![Class::Computation, Class::Communication];
    if options.include_memory {
        classes.push(Class::Memory);
    }
    let mut rows = Rows::new(COLUMNS);
    for class in classes {
        let of_row = model.classes();
        let members = model.device().iter().copied();
        let members = members.filter(|row| of_row.of_row(model, *row) == class);
        for name in by_name(model, members, options, &[]) {
            let m = name.moments;
            rows.push([
                name.name.into(),
                m.count.into(),
                m.sum.into(),
                m.max.into(),
                m.min.into(),
                name.deviation().into(),
                m.mean().into(),
                class.name().into(),
                model.rank.into(),
            ]);
        }
    }
    rows.finish()
}

fn over_ranks(metric: &Metric, parts: &[Part], _: &Options) -> Result<RecordBatch, Error> {
    let batches: Vec<_> = parts.iter().map(|part| &part.batch).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (n, batch) in batches.iter().enumerate() {
        order.extend((0..batch.num_rows()).map(|row| (n, row)));
    }
    order.order_by_key(|(n, row)| {
        let cells = Cells::of(batches[*n]);
        (cells.text("kernel_type", *row), cells.text("name", *row), parts[*n].rank)
    });
    pick(metric.columns, &batches, order.into_iter())
}

/// How long the events of one name took.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) moments: Moments,
}

impl Named<'_> {
    /// The deviation; 0 of one.
    pub(super) fn deviation(&self) -> f64 {
        if self.moments.count < 2 { 0.0 } else { self.moments.deviation() }
    }
}

/// Names and how long their events took, folded as the module says. Names that contain one of
/// `allowed` are not.
pub(super) fn by_name<'a>(
    model: &Model<'a>,
    rows: impl Iterator<Item = u32>,
    options: &Options,
    allowed: &[String],
) -> Vec<Named<'a>> {
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut durations: Vec<(&'a str, Vec<i64>)> = Vec::new();
    for row in rows {
        let name = model.events.names[row as usize];
        let place = *places.entry(name.0).or_insert_with(|| {
            durations.push((model.text(name), Vec::new()));
            durations.len() - 1
        });
        durations[place].1.push(model.events.durs[row as usize]);
    }
    durations.order_by(|a, b| a.0.cmp(b.0));
    let sum = |durations: &[i64]| durations.iter().fold(0i64, |sum, d| sum.saturating_add(*d));
    durations.order_by_key(|(_, durations)| std::cmp::Reverse(sum(durations)));
    let is_folded = folded(&durations, sum, options, allowed);
    let Some(is_folded) = is_folded else {
        let named =
            |(name, d): (&'a str, Vec<i64>)| Named { name, moments: d.into_iter().collect() };
        return durations.into_iter().map(named).collect();
    };
    let sums_only = model.reading.hta().is_some();
    let mut others: Vec<i64> = Vec::new();
    let mut shown = Vec::new();
    for ((name, durations), folded) in durations.into_iter().zip(is_folded) {
        let counted = if sums_only { vec![sum(&durations)] } else { durations };
        if folded {
            others.extend(counted);
        } else {
            shown.push(Named { name, moments: counted.into_iter().collect() });
        }
    }
    if !others.is_empty() {
        shown.push(Named { name: "others", moments: others.into_iter().collect() });
    }
    shown
}

/// Which names are folded; `None` where there are few.
fn folded(
    durations: &[(&str, Vec<i64>)],
    sum: impl Fn(&[i64]) -> i64,
    options: &Options,
    allowed: &[String],
) -> Option<Vec<bool>> {
    if durations.len() <= options.num_kernels {
        return None;
    }
    let mut running = 0.0;
    let sums: Vec<f64> = durations
        .iter()
        .map(|(_, durations)| {
            running += sum(durations) as f64;
            running
        })
        .collect();
    let mut sorted = sums.clone();
    sorted.sort_by(f64::total_cmp);
    let most = quantile(&sorted, options.duration_ratio);
    let is_allowed = |name: &str| allowed.iter().any(|part| name.contains(part.as_str()));
    // HTA's test for names when it has no list of them: what is too short to be 0 when it is
    // rounded is never folded.
    let is_below_0 = |durations: &[i64]| allowed.is_empty() && sum(durations) < 0;
    let all = durations.iter().zip(sums).enumerate();
    let folded = all.map(|(place, ((name, durations), running))| {
        let keep = is_allowed(name) || is_below_0(durations);
        !keep && (running > most || place >= options.num_kernels)
    });
    Some(folded.collect())
}
