//! How ranks share their time between computing and communication, step by step and collective
//! by collective, as the distributed view of the TensorBoard plugin has it.
//!
//! A step is that of `overview`. In it computing kernels last, or communication, or both
//! (`overlapping`), or none of them. The time of collectives is `data_transfer`, which is that of
//! the rank that came last, and `synchronizing`: waiting for that rank (`collectives`); null where
//! no other rank's trace has the step's collectives. `all` is the mean over steps.
//!
//! `--compat tensorboard` follows the plugin: communication are ranges of the host with the names
//! of five collectives of NCCL and Gloo, and kernels that have their `External id`; the n-th of
//! them on each rank belong together; bytes are those of the operator's inputs.

mod plugin;

use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::{collectives, overview};
use crate::bundle::{bundle, unbundle};
use crate::interval::{covered, intersection};
use crate::model::Class;
use crate::table::{Cell, Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part, Unit};

/// By step.
pub const METRIC: Metric = Metric {
    name: "distributed",
    answers: "how each rank's steps divide into computing, overlap, communication and waiting",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

/// By collective.
pub const OPERATIONS: Metric = Metric {
    name: "distributed_operations",
    answers: "how often each rank communicates, how much, and how long it takes and waits",
    columns: OPERATION_COLUMNS,
    of_trace,
    over_ranks: operations,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("step", "the step; all for the mean over steps; null outside of steps"),
    Column::mean_duration("computation", "only computing kernels last"),
    Column::mean_duration("overlapping", "computing kernels and communication last"),
    Column::mean_duration("communication", "only communication lasts"),
    Column::mean_duration("other", "neither lasts"),
    Column::mean_duration("data_transfer", "of collectives: data moved"),
    Column::mean_duration("synchronizing", "of collectives: waiting for the last rank"),
];

const OPERATION_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("operation", "the collective"),
    Column::int("calls", "how often it came"),
    Column::int("total_size", "how much it moved, as far as known").unit(Unit::Bytes),
    Column::float("avg_size", "that in the mean").unit(Unit::Bytes),
    Column::duration("total_latency", "how long it took"),
    Column::mean_duration("avg_latency", "that in the mean"),
    Column::duration("data_transfer", "how long data moved"),
    Column::mean_duration("avg_data_transfer", "that in the mean"),
];

/// What each rank gives of its steps.
const STEPS: &[Column] = &[
    Column::text("step", "the step"),
    Column::int("number", "its number"),
    Column::duration("computation", "computing kernels last"),
    Column::duration("overlapping", "both last"),
    Column::duration("communication", "communication lasts"),
    Column::duration("duration", "the step lasts"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    if let Some(state) = options.tensorboard {
        return plugin::of_trace(model, options, state);
    }
    let shares = collectives::of_trace(model, options)?;
    let steps = overview::steps(model, options)?;
    let (computing, moving) = (model.busy(Class::Computation), model.busy(Class::Communication));
    bundle(&[("steps", times(&steps, [&computing, &moving])?), ("collectives", shares)])
}

/// How long computing and communication last in each step.
fn times(
    steps: &[overview::Step],
    [computing, moving]: [&[crate::interval::Interval]; 2],
) -> Result<RecordBatch, Error> {
    let both = intersection(computing, moving);
    let mut rows = Rows::new(STEPS);
    for step in steps {
        let within = |intervals| covered(intervals, step.start, step.end);
        rows.push([
            step.name.as_str().into(),
            step.name.parse::<i64>().ok().into(),
            within(computing).into(),
            within(&both).into(),
            within(moving).into(),
            (step.end - step.start).into(),
        ]);
    }
    rows.finish()
}

/// Transfer and waiting of a rank, by step; none of the step for what lies outside of steps.
type Waits<'a> = BTreeMap<(i64, Option<&'a str>), (i64, i64)>;

fn over_ranks(_: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    let tables = |name| -> Vec<(i64, RecordBatch)> {
        let of = |part: &Part| Some((part.rank, unbundle(&part.batch, name)?));
        parts.iter().filter_map(of).collect()
    };
    let steps = tables("steps");
    let plugin = match options.tensorboard {
        Some(_) => Some(plugin::Collectives::of(parts)?),
        None => None,
    };
    let waits = match &plugin {
        Some(plugin) => plugin.waits(),
        None => exact(parts, &steps)?,
    };
    let mut rows = Rows::new(COLUMNS);
    for (rank, batch) in &steps {
        let cells = Cells::of(batch);
        let mut sum = [0.0; 4];
        for row in 0..batch.num_rows() {
            let value = |column| cells.int(column, row).unwrap_or(0);
            let (computing, both, moving) =
                (value("computation"), value("overlapping"), value("communication"));
            let other = value("duration") + both - computing - moving;
            let own = [computing - both, both, moving - both, other];
            sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own as f64);
            let name = cells.text("step", row);
            let wait = waits.get(&(*rank, name)).copied();
            push(&mut rows, *rank, name, Some(own.map(|own| own as f64)), wait.map(as_floats));
        }
        // What lies outside of steps counts in the plugin's mean.
        let of_rank = || waits.iter().filter(|((of, _), _)| of == rank);
        let known =
            |step: Option<&str>| (0..batch.num_rows()).any(|row| cells.text("step", row) == step);
        for ((_, step), wait) in of_rank().filter(|((_, step), _)| !known(*step)) {
            push(&mut rows, *rank, *step, None, Some(as_floats(*wait)));
        }
        let count = of_rank().count() as f64;
        let all = of_rank()
            .fold((0.0, 0.0), |sum, (_, wait)| (sum.0 + wait.0 as f64, sum.1 + wait.1 as f64));
        let mean = (count > 0.0).then(|| (all.0 / count, all.1 / count));
        let steps = batch.num_rows().max(1) as f64;
        push(&mut rows, *rank, Some("all"), Some(sum.map(|sum| sum / steps)), mean);
    }
    rows.finish()
}

fn as_floats((transfer, wait): (i64, i64)) -> (f64, f64) {
    (transfer as f64, wait as f64)
}

fn push(
    rows: &mut Rows,
    rank: i64,
    step: Option<&str>,
    times: Option<[f64; 4]>,
    wait: Option<(f64, f64)>,
) {
    let time = |at: usize| Cell::from(times.map(|times| times[at]));
    rows.push([
        rank.into(),
        step.into(),
        time(0),
        time(1),
        time(2),
        time(3),
        wait.map(|wait| wait.0).into(),
        wait.map(|wait| wait.1).into(),
    ]);
}

/// By the comparison of collectives over ranks.
fn exact<'a>(parts: &[Part], steps: &'a [(i64, RecordBatch)]) -> Result<Waits<'a>, Error> {
    let mut names: BTreeMap<(i64, i64), &str> = BTreeMap::new();
    for (rank, batch) in steps {
        let cells = Cells::of(batch);
        for row in 0..batch.num_rows() {
            if let (Some(number), Some(name)) = (cells.int("number", row), cells.text("step", row))
            {
                // A trace without steps is step 0 here, and -1 there.
                let number = if batch.num_rows() == 1 && name == "0" { -1 } else { number };
                names.insert((*rank, number), name);
            }
        }
    }
    let mut waits: Waits<'a> = BTreeMap::new();
    for share in collectives::compared(&of_collectives(parts)) {
        let name = names.get(&(share.rank, share.step)).copied();
        let wait = waits.entry((share.rank, name)).or_default();
        *wait = (wait.0 + share.transfer, wait.1 + share.wait);
    }
    Ok(waits)
}

fn of_collectives(parts: &[Part]) -> Vec<Part> {
    let of = |part: &Part| {
        let batch = unbundle(&part.batch, "collectives")?;
        Some(Part { rank: part.rank, origin: part.origin, batch })
    };
    parts.iter().filter_map(of).collect()
}

/// Calls, bytes, how long it took, how long data moved.
type Sum = (i64, i64, i64, i64);

fn operations(_: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    let sums: Vec<((i64, String), Sum)> = match options.tensorboard {
        Some(_) => plugin::Collectives::of(parts)?.operations(),
        None => {
            let mut sums: BTreeMap<(i64, String), Sum> = BTreeMap::new();
            for share in collectives::compared(&of_collectives(parts)) {
                let sum = sums.entry((share.rank, share.collective)).or_default();
                let (latency, size) = (share.transfer + share.wait, share.message.unwrap_or(0));
                *sum = (sum.0 + 1, sum.1 + size, sum.2 + latency, sum.3 + share.transfer);
            }
            sums.into_iter().collect()
        }
    };
    if sums.is_empty() {
        return Err(Error::Nothing("there are no collectives".to_owned()));
    }
    let mut rows = Rows::new(OPERATION_COLUMNS);
    for ((rank, name), (calls, size, latency, transfer)) in sums {
        let mean = |sum: i64| sum as f64 / calls as f64;
        rows.push([
            rank.into(),
            name.as_str().into(),
            calls.into(),
            size.into(),
            mean(size).into(),
            latency.into(),
            mean(latency).into(),
            transfer.into(),
            mean(transfer).into(),
        ]);
    }
    rows.finish()
}
