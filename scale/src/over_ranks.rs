//! Metrics of the analysis over all ranks of a data set: the tables that each rank has left,
//! combined as they are for traces.

use crate::Failure;
use crate::dataset::Dataset;
use crate::layout;
use arrow_array::RecordBatch;
use kymograph_analysis::{Metric, Options, Part, run};

/// The table of all ranks, and why some ranks are not in it.
///
/// # Errors
///
/// When no rank has a table of the metric, or the metric has nothing to say.
pub fn table(dataset: &Dataset, metric: &Metric) -> Result<(RecordBatch, Vec<String>), Failure> {
    let parts = dataset.each(
        |rank| layout::metric(metric.name, rank),
        |manifest, batch| Ok(Part { rank: manifest.rank, origin: manifest.origin, batch }),
    )?;
    let mut left_out = Vec::new();
    let mut without = Vec::new();
    for manifest in &dataset.ranks {
        match manifest.nothing.iter().find(|(name, _)| name == metric.name) {
            Some((_, why)) => left_out.push(why.clone()),
            None if manifest.has(&layout::metric(metric.name, manifest.rank)) => {}
            None => without.push(manifest.rank),
        }
    }
    if let Some(rank) = without.first() {
        let name = metric.name;
        return Err(Failure(format!(
            "rank {rank} has no table of {name}: `kymo dataset add --metrics {name}` with the \
             traces adds it; {} has it of {} ranks",
            dataset.root,
            parts.len()
        )));
    }
    if parts.is_empty() {
        return Err(Failure(left_out.into_iter().next().unwrap_or_default()));
    }
    Ok((run::over_ranks(metric, parts, &Options::default())?, left_out))
}
