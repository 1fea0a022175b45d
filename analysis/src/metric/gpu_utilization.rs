//! How well kernels use each device, as the overview of the TensorBoard plugin has it.
//!
//! The time is that of the steps of `overview`. *Utilization* is the part of it in which any
//! kernel runs. The *SM efficiency* is estimated: at each moment as many multiprocessors are busy
//! as running kernels have blocks, up to all of them (`blocks per SM`); kernels of which the trace
//! does not say count as none. The *occupancy* is the mean over kernels' time of what the trace
//! estimates; null where it says of none. Tensor cores: the part of kernels' time in which those
//! run that use them, by `kernels`.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::{kernels, needs_device_work, overview};
use crate::compat::tensorboard;
use crate::interval::{covered, merge};
use crate::metric::one_by_one;
use crate::model::Model;
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "gpu_utilization",
    answers: "how well kernels use each device: utilization, SM efficiency, occupancy",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("device", "the device"),
    Column::text("name", "what it is; null if the trace does not say"),
    Column::percent("utilization", "of the time, in which a kernel runs"),
    Column::percent("sm_efficiency", "of multiprocessors and time, in which blocks run"),
    Column::percent("occupancy", "the estimated occupancy, in the mean over kernels' time"),
    Column::percent("tensor_cores", "of kernels' time, in which tensor cores are used"),
];

/// What the kernels of a device say.
#[derive(Default)]
struct Device {
    kernels: Vec<(i64, i64)>,
    /// When blocks begin and when they end, and how many by multiprocessor.
    blocks: [Vec<(i64, f64)>; 2],
    occupancy: (f64, f64),
    tensor: i64,
    time: i64,
    says: (bool, bool),
}

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let steps = overview::steps(model, options)?;
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        let what = "has no step whose work is in the trace";
        return Err(Error::Nothing(format!("rank {} {what}", model.rank)));
    };
    let (from, to) = (first.start, last.end);
    let mut rows = Rows::new(COLUMNS);
    for (number, device) in devices(model, options, (from, to)) {
        let whole = (to - from) as f64;
        let percent = |part: f64| part / whole * 100.0;
        let (mut running, mut at, mut busy) = (0.0f64, from, 0.0);
        for (time, more) in in_order(device.blocks) {
            busy += running.clamp(0.0, 1.0) * (time - at) as f64;
            (running, at) = (running + more, time);
        }
        let mut kernels = device.kernels;
        kernels.sort_unstable();
        let busy_time = covered(&merge(kernels), from, to);
        let (weighted, time) = device.occupancy;
        let found = model.trace.devices.iter().find(|(_, device)| device.number == number);
        let name = found.map(|(_, device)| model.text(device.name)).filter(|n| !n.is_empty());
        rows.push([
            model.rank.into(),
            number.into(),
            name.into(),
            percent(busy_time as f64).into(),
            device.says.0.then(|| percent(busy)).into(),
            (device.says.1 && time > 0.0).then(|| weighted / time).into(),
            (device.tensor as f64 / device.time as f64 * 100.0).into(),
        ]);
    }
    rows.finish()
}

/// Beginnings and ends by their times. What ends when another begins has ended.
fn in_order(blocks: [Vec<(i64, f64)>; 2]) -> Vec<(i64, f64)> {
    // Both are mostly in order already, unlike beginnings with ends between them.
    let [mut starts, mut ends] = blocks;
    starts.order_by_numbers(|(time, _)| [*time]);
    ends.order_by_numbers(|(time, _)| [*time]);
    let mut all = Vec::with_capacity(starts.len() * 2);
    let mut ends = ends.into_iter().peekable();
    for start in starts {
        all.extend(std::iter::from_fn(|| ends.next_if(|end| end.0 <= start.0)));
        all.push(start);
    }
    all.extend(ends);
    all
}

fn devices(model: &Model<'_>, options: &Options, (from, to): (i64, i64)) -> BTreeMap<i64, Device> {
    let events = &model.events;
    let tensor_cores = kernels::tensor_cores(model);
    let mut devices: BTreeMap<i64, Device> = BTreeMap::new();
    for run in kernels::runs(model).iter() {
        let row = run.row;
        let (start, end) = tensorboard::interval(options.tensorboard, events.interval(row));
        let device = devices.entry(events.lane(row).pid).or_default();
        device.kernels.push((start, end));
        device.time += end - start;
        if tensor_cores.used_by(model, row) {
            device.tensor += end - start;
        }
        let (start, end) = (start.max(from), end.min(to));
        let (blocks, occupancy) = (run.blocks(), run.occupancy());
        device.says.0 |= blocks.is_some();
        device.says.1 |= occupancy.is_some();
        if start >= end {
            continue;
        }
        if let Some(blocks) = blocks.filter(|blocks| *blocks > 0.0) {
            device.blocks[0].push((start, blocks));
            device.blocks[1].push((end, -blocks));
        }
        let length = (end - start) as f64;
        device.occupancy.0 += occupancy.unwrap_or(0.0) * length;
        device.occupancy.1 += length;
    }
    devices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn by_hand() {
        let lines = r#"
            user_annotation | ProfilerStep#1 | 1 | 0 | 100 |
            cuda_runtime | cudaLaunchKernel | 1 | 2 | 2 | "correlation": 1
            cuda_runtime | cudaLaunchKernel | 1 | 5 | 2 | "correlation": 2
            kernel | hmma | 7 | 10 | 40 | "correlation": 1, "blocks per SM": 0.5, "est. achieved occupancy %": 50
            kernel | add  | 8 | 30 | 40 | "correlation": 2, "blocks per SM": 0.75, "est. achieved occupancy %": 100
        "#;
        let batch = table(&METRIC, lines, &Options::default());
        let columns = ["name", "utilization", "sm_efficiency", "occupancy", "tensor_cores"];
        // 20 µs of a half, 20 of all, 20 of three quarters.
        assert_eq!(rows(&batch, &columns), ["NVIDIA H200 60 45 75 50"]);
    }
}
