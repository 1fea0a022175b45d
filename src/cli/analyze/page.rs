//! The page: what this is, where the time goes, what to do about it.

use super::Refusal;
use super::inputs::Inputs;
use kymograph_analysis::{Metric, Options, render, run};

/// What stands on the page, one under the other.
const SECTIONS: &[(&str, &str)] = &[
    ("Where device time goes", "temporal_breakdown"),
    ("Which work", "kernel_types"),
    ("Why streams were idle", "idle_time"),
    ("How much communication is hidden", "comm_comp_overlap"),
    ("Who waits for whom", "stragglers"),
    ("Longest kernels", "kernel_breakdown"),
];

pub(super) fn page(inputs: &Inputs, options: &Options, ranks: &[i64]) -> Result<String, Refusal> {
    let found: Vec<(&str, &Metric)> =
        SECTIONS.iter().filter_map(|(title, name)| Some((*title, Metric::find(name)?))).collect();
    let metrics: Vec<&Metric> = found.iter().map(|(_, metric)| *metric).collect();
    let parts = inputs.parts(&metrics, options, ranks)?;
    let mut text = String::new();
    for ((title, metric), parts) in found.into_iter().zip(parts) {
        let Ok(batch) = run::over_ranks(metric, parts, options) else { continue };
        if batch.num_rows() > 0 {
            text += &format!("{title} ({})\n\n{}\n", metric.name, render::text(&batch, Some(10)));
        }
    }
    Ok(text)
}
