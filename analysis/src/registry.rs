//! The one list of metrics.

use arrow_array::RecordBatch;

use crate::table::Column;
use crate::{Error, Model, Options, metric, table};

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
    /// The metric of this name.
    pub fn find(name: &str) -> Option<&'static Metric> {
        ALL.iter().find(|metric| metric.name == name)
    }

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

/// All metrics.
pub static ALL: &[Metric] = &[
    metric::temporal_breakdown::METRIC,
    metric::kernel_breakdown::METRIC,
    metric::kernel_types::METRIC,
    metric::user_annotations::METRIC,
    metric::kernel_annotations::METRIC,
    metric::comm_comp_overlap::METRIC,
    metric::idle_time::METRIC,
    metric::idle_time::INTERVALS,
    metric::launch_stats::METRIC,
    metric::aten_delay::METRIC,
    metric::queue_length::METRIC,
    metric::queue_length::SUMMARY,
    metric::queue_length::BLOCKED,
    metric::memory_bandwidth::METRIC,
    metric::memory_bandwidth::SUMMARY,
    metric::frequent_sequences::METRIC,
    metric::critical_path::METRIC,
    metric::critical_path::SUMMARY,
    metric::critical_path::EDGES,
    metric::counters::METRIC,
    metric::diff::METRIC,
    metric::diff_tree::METRIC,
    metric::profiler_steps::METRIC,
    metric::stragglers::METRIC,
    metric::cupti_counters::METRIC,
    metric::call_graph::METRIC,
    metric::call_graph::STACKS,
    metric::collectives::METRIC,
    metric::distributed::METRIC,
    metric::distributed::OPERATIONS,
    metric::kernels::METRIC,
    metric::kernels_by_operator::METRIC,
    metric::overview::METRIC,
    metric::gpu_utilization::METRIC,
    metric::recommendations::METRIC,
    metric::operators::METRIC,
    metric::operators::BY_SHAPE,
    metric::operators::BY_STACK,
    metric::operators::TOTAL,
    metric::memory::STATISTICS,
    metric::memory::CURVE,
    metric::memory::EVENTS,
    metric::modules::METRIC,
    metric::stacks::METRIC,
    metric::roofline::METRIC,
    metric::kernel_durations::METRIC,
    metric::idle_causes::METRIC,
    metric::step_variance::METRIC,
    metric::step_variance::SLOWEST,
    metric::regressions::METRIC,
    metric::antipatterns::METRIC,
    metric::data_quality::METRIC,
    metric::validate::METRIC,
    metric::validate::VIOLATIONS,
];
