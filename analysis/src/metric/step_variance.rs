//! How much steps differ, and what makes the slowest one slow.
//!
//! A step lasts as long as the range says that marks it. Its time divides into what a device
//! does meanwhile: `computing` while a computing kernel lasts, `communication` and `memory`
//! while only such work lasts, and `idle` while none does; together they are its `duration`.
//!
//! `slowest_step` compares the longest step with the others, name by name. The time of host
//! events is their own, without that of what they call, so that the rows of the host add up to
//! what its threads did; that of device events is how long they took. What another step does is
//! the median over all steps but the slowest.

use std::sync::Arc;

use arrow_array::RecordBatch;
use hashbrown::{HashMap, HashSet};
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::StrId;

use crate::interval::{covered, subtraction, union};
use crate::metric::one_by_one;
use crate::model::{Class, steps};
use crate::stats::{describe, quantile};
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// Statistics of steps.
pub const METRIC: Metric = Metric {
    name: "step_variance",
    answers: "how much steps differ in duration, computing, communication and idle time",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

/// What is different in the slowest.
pub const SLOWEST: Metric = Metric {
    name: "slowest_step",
    answers: "what takes longer in each rank's slowest step than in its other steps",
    columns: SLOWEST_COLUMNS,
    of_trace: slowest,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("quantity", "what is measured: see the metric"),
    Column::int("steps", "how many steps there are"),
    Column::mean_duration("mean", "the mean over steps"),
    Column::mean_duration("std", "the standard deviation; null for one step"),
    Column::percent("variation", "the standard deviation, of the mean"),
    Column::mean_duration("min", "the least"),
    Column::mean_duration("25%", "a quarter of steps has less"),
    Column::mean_duration("50%", "half of them has less"),
    Column::mean_duration("75%", "three quarters have less"),
    Column::mean_duration("max", "the most"),
    Column::int("slowest_step", "the step that has the most"),
];

const SLOWEST_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("step", "the slowest step"),
    Column::text("side", "host or device"),
    Column::text("name", "the event"),
    Column::int("count", "how often it comes in the slowest step"),
    Column::float("median_count", "how often in another step"),
    Column::duration("time", "how long it takes there, without what it calls"),
    Column::mean_duration("median_time", "how long in another step"),
    Column::mean_duration("difference", "how much longer; the largest first"),
];

/// What a step's time divides into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) number: i64,
    pub(super) start: i64,
    /// Duration, computing, communication, memory, idle.
    pub(super) times: [i64; 5],
}

/// The names of [`Parts::times`].
pub(super) const QUANTITIES: [&str; 5] =
    ["duration", "computing", "communication", "memory", "idle"];

/// The steps of a trace in the order of their beginnings, and what their time divides into.
pub(super) fn parts(model: &Model<'_>, options: &Options) -> Arc<Vec<Parts>> {
    model.shared(options.steps.clone(), || find_parts(model, options))
}

fn find_parts(model: &Model<'_>, options: &Options) -> Vec<Parts> {
    let computing = model.busy(Class::Computation);
    let communication = subtraction(&model.busy(Class::Communication), &computing);
    let both = union(&computing, &communication);
    let memory = subtraction(&model.busy(Class::Memory), &both);
    let wanted = |number: &i64| options.steps.is_empty() || options.steps.contains(number);
    let steps = model.steps().all.iter().filter(|step| wanted(&step.number));
    let mut parts: Vec<Parts> = steps
        .map(|step| {
            let (start, end) = model.events.interval(step.row);
            let busy = [&computing, &communication, &memory].map(|list| covered(list, start, end));
            let idle = end - start - busy.iter().sum::<i64>();
            let times = [end - start, busy[0], busy[1], busy[2], idle];
            Parts { number: step.number, start, times }
        })
        .filter(|parts| parts.times[0] > 0)
        .collect();
    parts.order_by_key(|parts| parts.start);
    parts
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let parts = parts(model, options);
    needs(model, &parts, 1)?;
    let mut rows = Rows::new(COLUMNS);
    for (at, quantity) in QUANTITIES.iter().enumerate() {
        if at > 0 && model.device().is_empty() {
            break;
        }
        let d = describe(parts.iter().map(|parts| parts.times[at] as f64).collect());
        let slowest = parts.iter().max_by_key(|parts| (parts.times[at], -parts.start));
        let [min, q25, q50, q75, max] = d.quartiles;
        rows.push([
            model.rank.into(),
            (*quantity).into(),
            d.count.into(),
            d.mean.into(),
            d.std.into(),
            (if d.mean > 0.0 { d.std / d.mean * 100.0 } else { f64::NAN }).into(),
            min.into(),
            q25.into(),
            q50.into(),
            q75.into(),
            max.into(),
            slowest.map(|parts| parts.number).into(),
        ]);
    }
    rows.finish()
}

fn needs(model: &Model<'_>, parts: &[Parts], count: usize) -> Result<(), Error> {
    if parts.len() >= count {
        return Ok(());
    }
    let (rank, has) = (model.rank, parts.len());
    Err(Error::Nothing(match has {
        0 => format!("rank {rank} has no steps (ranges named ProfilerStep#N mark them)"),
        _ => format!("rank {rank} has {has} step, and {count} are needed to compare"),
    }))
}

/// How often something comes in a step, and how long it takes.
type Sum = (i64, i64);

/// By side and name, for each step.
pub(super) fn by_name(
    model: &Model<'_>,
    numbers: &[i64],
) -> HashMap<(bool, StrId), HashMap<i64, Sum>> {
    let (events, of) = (&model.events, &model.steps().of);
    let wanted: HashSet<i64> = numbers.iter().copied().collect();
    // What has one name comes step after step, so that a sum is mostly that of the one before.
    let mut sums: [Vec<Vec<(i64, Sum)>>; 2] = Default::default();
    let mut last = (0, wanted.contains(&0));
    let mut add = |on_device: bool, row: u32, time: i64| {
        let step = of[row as usize];
        if last.0 != step {
            last = (step, wanted.contains(&step));
        }
        if last.1 {
            let (name, sums) =
                (events.names[row as usize].0 as usize, &mut sums[usize::from(on_device)]);
            if sums.len() <= name {
                sums.resize(name + 1, Vec::new());
            }
            match sums[name].last_mut() {
                Some((own, sum)) if *own == step => *sum = (sum.0 + 1, sum.1.saturating_add(time)),
                _ => sums[name].push((step, (1, time))),
            }
        }
    };
    for (row, time) in own_times(model) {
        add(false, row, time);
    }
    for row in model.device() {
        add(true, *row, events.durs[*row as usize]);
    }
    let mut all: HashMap<(bool, StrId), HashMap<i64, Sum>> = HashMap::new();
    for (on_device, sums) in [false, true].into_iter().zip(sums) {
        for (name, parts) in (0..).map(StrId).zip(sums).filter(|(_, parts)| !parts.is_empty()) {
            let by_step = all.entry((on_device, name)).or_default();
            for (step, (count, time)) in parts {
                let sum = by_step.entry(step).or_default();
                *sum = (sum.0 + count, sum.1.saturating_add(time));
            }
        }
    }
    all
}

/// How long each event of a thread took without what it calls.
fn own_times(model: &Model<'_>) -> impl Iterator<Item = (u32, i64)> {
    let calls = model.calls();
    let mut own = model.events.durs.clone();
    for row in &calls.order {
        if let Some(parent) = calls.parent(*row) {
            own[parent as usize] -= model.events.durs[*row as usize];
        }
    }
    calls.order.iter().map(move |row| (*row, own[*row as usize].max(0)))
}

fn slowest(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let parts = parts(model, options);
    needs(model, &parts, 2)?;
    let Some(slow) = parts.iter().max_by_key(|parts| (parts.times[0], -parts.start)) else {
        return Rows::new(SLOWEST_COLUMNS).finish();
    };
    let numbers: Vec<i64> = parts.iter().map(|parts| parts.number).collect();
    let others: Vec<i64> = numbers.iter().copied().filter(|n| *n != slow.number).collect();
    let median = |of: &dyn Fn(i64) -> i64| {
        let mut values: Vec<f64> = others.iter().map(|step| of(*step) as f64).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    };
    let mut found = Vec::new();
    for ((on_device, name), by_step) in by_name(model, &numbers) {
        let of = |step: i64| by_step.get(&step).copied().unwrap_or_default();
        let (count, time) = of(slow.number);
        let usual = (median(&|step| of(step).0), median(&|step| of(step).1));
        // Each step has a name of its own.
        let name = model.text(name);
        if steps::number(name).is_none() && (time as f64 != usual.1 || count as f64 != usual.0) {
            found.push((on_device, name, (count, time), usual));
        }
    }
    found.order_by(|a, b| {
        let more = |row: &(bool, &str, Sum, (f64, f64))| row.2.1 as f64 - row.3.1;
        more(b).total_cmp(&more(a)).then_with(|| (a.0, a.1).cmp(&(b.0, b.1)))
    });
    let mut rows = Rows::new(SLOWEST_COLUMNS);
    for (on_device, name, (count, time), usual) in found {
        rows.push([
            model.rank.into(),
            slow.number.into(),
            if on_device { "device" } else { "host" }.into(),
            name.into(),
            count.into(),
            usual.0.into(),
            time.into(),
            usual.1.into(),
            (time as f64 - usual.1).into(),
        ]);
    }
    rows.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    const THREE_STEPS: &str = r#"
        user_annotation | ProfilerStep#1 | 1 | 0   | 100 |
        user_annotation | ProfilerStep#2 | 1 | 100 | 100 |
        user_annotation | ProfilerStep#3 | 1 | 200 | 160 |
        cpu_op | aten::mm | 1 | 10  | 20 |
        cpu_op | aten::mm | 1 | 110 | 20 |
        cpu_op | aten::mm | 1 | 210 | 20 |
        cpu_op | load     | 1 | 240 | 50 |
        cuda_runtime | cudaLaunchKernel | 1 | 15  | 5 | "correlation": 1
        cuda_runtime | cudaLaunchKernel | 1 | 115 | 5 | "correlation": 2
        cuda_runtime | cudaLaunchKernel | 1 | 215 | 5 | "correlation": 3
        kernel | gemm | 7 | 20  | 60 | "correlation": 1
        kernel | gemm | 7 | 120 | 60 | "correlation": 2
        kernel | gemm | 7 | 220 | 60 | "correlation": 3
        kernel | ncclDevKernel_AllReduce_Sum_f32_RING_LL | 9 | 70  | 20 | "correlation": 1
    "#;

    #[test]
    fn a_steps_time_divides() {
        let batch = table(&METRIC, THREE_STEPS, &Options::default());
        let found = rows(&batch, &["quantity", "steps", "mean", "50%", "max", "slowest_step"]);
        assert_eq!(
            found,
            [
                "duration 3 120000 100000 160000 3",
                "computing 3 60000 60000 60000 1",
                "communication 3 3333.333 0 10000 1",
                "memory 3 0 0 0 1",
                "idle 3 56666.667 40000 100000 3",
            ]
        );
    }

    #[test]
    fn what_the_slowest_step_does_more_comes_first() {
        let batch = table(&SLOWEST, THREE_STEPS, &Options::default());
        let columns = ["step", "side", "name", "count", "median_count", "time", "difference"];
        assert_eq!(rows(&batch, &columns)[0], "3 host load 1 0 50000 50000");
    }
}
