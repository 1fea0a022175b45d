//! A file per metric.
//!
//! Each has a `METRIC`, or several that share their arithmetic, and a function that takes a
//! [`Model`] and [`Options`] and gives a table. It does no I/O,
//! prints nothing, and sorts by what the documentation says.

pub mod antipatterns;
pub mod aten_delay;
pub mod call_graph;
pub mod collectives;
pub mod comm_comp_overlap;
pub mod counters;
pub mod critical_path;
pub mod cupti_counters;
pub mod data_quality;
pub mod diff;
pub mod diff_tree;
pub mod distributed;
pub mod frequent_sequences;
pub mod gpu_utilization;
pub mod idle_causes;
pub mod idle_time;
pub mod kernel_annotations;
pub mod kernel_breakdown;
pub mod kernel_durations;
pub mod kernel_types;
pub mod kernels;
pub mod kernels_by_operator;
pub mod launch_stats;
pub mod memory;
pub mod memory_bandwidth;
pub mod modules;
pub mod operators;
pub mod overview;
pub mod profiler_steps;
pub mod queue_length;
pub mod recommendations;
pub mod regressions;
pub mod roofline;
pub mod stacks;
pub mod step_variance;
pub mod stragglers;
pub mod temporal_breakdown;
pub mod user_annotations;
pub mod validate;

#[cfg(test)]
mod testing;

use arrow_array::RecordBatch;

use crate::table::{self, Column};
use crate::{Error, Model, Options};

/// What a metric gave for one rank.
#[derive(Clone, Debug)]
pub struct Part {
    /// The rank.
    pub rank: i64,
    /// When its first event begins, in nanoseconds of the trace's clock.
    pub origin: i64,
    /// The table.
    pub batch: RecordBatch,
}

/// A metric: two pure functions and what describes them.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, as in `kymo analyze NAME`.
    pub name: &'static str,
    /// What it answers, in a line.
    pub answers: &'static str,
    /// The columns of its table.
    pub columns: &'static [Column],
    /// The table of one rank. It may have other columns than the result, where ranks have to
    /// be combined.
    pub of_trace: fn(&Model<'_>, &Options) -> Result<RecordBatch, Error>,
    /// The table of all ranks: what [`Metric::of_trace`] gave, in the order of ranks.
    pub over_ranks: fn(&Metric, &[Part], &Options) -> Result<RecordBatch, Error>,
}

impl Metric {
    /// Whether it compares two sides, and not the ranks of a job.
    pub fn compares(&self) -> bool {
        matches!(self.name, "diff" | "diff_tree" | "regressions")
    }
}

/// For most metrics: the rows of one rank behind those of the other.
pub(crate) fn one_by_one(
    metric: &Metric,
    parts: &[Part],
    _: &Options,
) -> Result<RecordBatch, Error> {
    let batches: Vec<&RecordBatch> = parts.iter().map(|part| &part.batch).collect();
    table::concat(metric.columns, &batches)
}

/// Refuses a trace without device work.
fn needs_device_work(model: &Model<'_>) -> Result<(), Error> {
    if model.device().is_empty() {
        let rank = model.rank;
        return Err(Error::Nothing(format!("rank {rank} has no device work")));
    }
    Ok(())
}
