//! How long launches take: the call, the delay until the work begins, the work.
//!
//! A row for each pair of a call that launches work and the work. The exact reading takes every
//! call that launched something, whatever the library; HTA those of a few names.

use arrow_array::RecordBatch;
use hashbrown::{HashMap, HashSet};

use super::needs_device_work;
use crate::metric::one_by_one;
use crate::model::{Events, Kind};
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "launch_stats",
    answers: "how long each launch took on the host, to reach the device, and on the device",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("correlation", "the number of the launch"),
    Column::text("call", "the call").hta(""),
    Column::text("name", "the work").hta(""),
    Column::duration("cpu_duration", "how long the call took"),
    Column::duration("gpu_duration", "how long the work took"),
    Column::duration("launch_delay", "from the call's end to the work's beginning; at least 0"),
];

const LAUNCHES: [&str; 3] =
    ["cudaLaunchKernel", "cudaLaunchKernelExC", "runFunction - job_prep_and_submit_for_execution"];
const MEMORY: [&str; 2] = ["cudaMemcpyAsync", "cudaMemsetAsync"];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let mut rows = Rows::new(COLUMNS);
    let events = &model.events;
    let pairs = match model.reading.hta() {
        Some(_) => hta_pairs(model, options),
        None => pairs(model, options),
    };
    for (call, work) in pairs {
        let delay = events.starts[work as usize].saturating_sub(events.end(call));
        rows.push([
            model.rank.into(),
            events.correlations[call as usize].into(),
            model.name(call).into(),
            model.name(work).into(),
            events.durs[call as usize].into(),
            events.durs[work as usize].into(),
            delay.max(0).into(),
        ]);
    }
    rows.finish()
}

fn pairs(model: &Model<'_>, options: &Options) -> Vec<(u32, u32)> {
    let events = &model.events;
    let memory = |row: u32| matches!(events.kinds[row as usize], Kind::Copy | Kind::Set);
    let work = model.device().iter().filter(|row| options.include_memory || !memory(**row));
    work.filter_map(|row| Some((model.peers().get(*row)?, *row))).collect()
}

/// Calls in the order of the trace, joined with all device events of their number.
fn hta_pairs(model: &Model<'_>, options: &Options) -> Vec<(u32, u32)> {
    let events = &model.events;
    let is_launch = |row: u32| {
        let name = model.name(row);
        LAUNCHES.contains(&name) || options.include_memory && MEMORY.contains(&name)
    };
    let all = || 0..events.len() as u32;
    let number = |row: u32| events.correlations[row as usize];
    let numbers: HashSet<i64> = all().filter(|row| is_launch(*row)).map(number).collect();
    let mut work: HashMap<i64, Vec<u32>> = HashMap::new();
    for row in all().filter(|row| events.on_device(*row) && numbers.contains(&number(*row))) {
        work.entry(number(row)).or_default().push(row);
    }
    let calls = all().filter(|row| events.streams[*row as usize] == Events::HOST);
    let mut pairs = Vec::new();
    for call in calls {
        pairs.extend(work.get(&number(call)).into_iter().flatten().map(|work| (call, *work)));
    }
    pairs
}
