//! Queue lengths and memory bandwidths as counters, on the clock of the trace: rows that can be
//! written into one. `--overlay OUT` does so: it writes the trace again, to OUT, with a counter
//! for the queue of each stream and for each kind of copy, beside those of its device.

use arrow_array::RecordBatch;

use super::{memory_bandwidth, needs_device_work};
use crate::metric::one_by_one;
use crate::table::{Cell, Rows};
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "counters",
    answers: "queue lengths and memory bandwidths over time, as counters for the trace",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank").hta(""),
    Column::int("pid", "the device"),
    Column::duration("ts", "when the value changes, on the trace's own clock"),
    Column::text("name", "the counter"),
    Column::int("id", "the stream; null for bandwidths"),
    Column::float("value", "the value from then on"),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let mut rows = Rows::new(COLUMNS);
    for (stream, changes) in model.queues() {
        for change in changes {
            rows.push([
                model.rank.into(),
                model.events.lane(change.work).pid.into(),
                change.time.into(),
                "Queue Length".into(),
                (*stream).into(),
                change.length.into(),
            ]);
        }
    }
    for (name, changes) in memory_bandwidth::series(model)?.iter() {
        for (time, device, bandwidth) in changes {
            rows.push([
                model.rank.into(),
                (*device).into(),
                (*time).into(),
                name.as_str().into(),
                Cell::Null,
                (*bandwidth).into(),
            ]);
        }
    }
    rows.finish()
}
