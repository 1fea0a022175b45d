//! Where a device's time goes: idle, computing, or busy with something else.
//!
//! All streams count as one device. `kernel_time` is from the beginning of the first device
//! event to the end of the last; `idle_time` what of it no event covers; `compute_time` what
//! computing kernels cover; the rest is communication and memory that nothing hides.

use arrow_array::RecordBatch;

use super::needs_device_work;
use crate::interval::length;
use crate::metric::one_by_one;
use crate::model::Class;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "temporal_breakdown",
    answers: "how long each device computed, did something else, and was idle",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::duration("idle_time", "no device event lasts").hta("idle_time(us)"),
    Column::duration("compute_time", "a computing kernel lasts").hta("compute_time(us)"),
    Column::duration("non_compute_time", "only communication, copies or fills last")
        .hta("non_compute_time(us)"),
    Column::duration("kernel_time", "from the first device event to the end of the last")
        .hta("kernel_time(us)"),
    Column::percent("idle_time_pctg", "idle_time of kernel_time").digits(2),
    Column::percent("compute_time_pctg", "compute_time of kernel_time").digits(2),
    Column::percent("non_compute_time_pctg", "non_compute_time of kernel_time").digits(2),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let busy = model.busy_at_all();
    let whole = match (busy.first(), busy.last()) {
        (Some(first), Some(last)) => last.1 - first.0,
        _ => 0,
    };
    let idle = whole - length(&busy);
    let compute = length(&model.busy(Class::Computation));
    let other = whole - compute - idle;
    let part = |time: i64| 100.0 * time as f64 / whole as f64;
    let mut rows = Rows::new(COLUMNS);
    rows.push([
        model.rank.into(),
        idle.into(),
        compute.into(),
        other.into(),
        whole.into(),
        part(idle).into(),
        part(compute).into(),
        part(other).into(),
    ]);
    rows.finish()
}
