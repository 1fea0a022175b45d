//! A file per metric.
//!
//! Each has a `METRIC`, or several that share their arithmetic, and a function that takes a
//! [`Model`] and [`Options`](crate::Options) and gives a table. It does no I/O,
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

use crate::{Error, Model};

/// Refuses a trace without device work.
fn needs_device_work(model: &Model<'_>) -> Result<(), Error> {
    if model.device().is_empty() {
        let rank = model.rank;
        return Err(Error::Nothing(format!("rank {rank} has no device work")));
    }
    Ok(())
}
