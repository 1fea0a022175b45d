//! The one list of metrics.

use crate::metric::{self, Metric};

impl Metric {
    /// The metric of this name.
    pub fn find(name: &str) -> Option<&'static Metric> {
        ALL.iter().find(|metric| metric.name == name)
    }
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
    metric::memory::TIMELINE,
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
