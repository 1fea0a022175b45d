//! How much of communication is hidden behind computing: the part of the time with
//! communication kernels in which a computing kernel lasts, too.

use arrow_array::RecordBatch;

use super::needs_device_work;
use crate::interval::{length, sweep};
use crate::metric::one_by_one;
use crate::model::Class;
use crate::table::Rows;
use crate::{Column, Error, Metric, Model, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "comm_comp_overlap",
    answers: "how much of each rank's communication is hidden behind computing",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::duration("overlap", "both last").hta(""),
    Column::duration("communication", "communication lasts").hta(""),
    Column::percent("comp_comm_overlap_pctg", "overlap of communication; null if there is none")
        .digits(2),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    needs_device_work(model)?;
    let communication = model.busy(Class::Communication);
    let mut overlap = 0;
    sweep(&[&communication, &model.busy(Class::Computation)], |running, from, to| {
        if running == 3 {
            overlap += to - from;
        }
    });
    let whole = length(&communication);
    let part = if whole == 0 { f64::NAN } else { 100.0 * (overlap as f64 / whole as f64) };
    let mut rows = Rows::new(COLUMNS);
    rows.push([model.rank.into(), overlap.into(), whole.into(), part.into()]);
    rows.finish()
}
