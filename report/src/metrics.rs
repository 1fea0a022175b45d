//! Which tables a page has, and what is left out of very long ones.

use arrow_array::RecordBatch;
use kymograph_analysis::findings;
use kymograph_analysis::table::{self, Cells};
use kymograph_analysis::{Error, Metric, bundle};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The metrics of a run. Those that have a row for each event are on the timeline instead.
pub const OF_RUN: [&str; 43] = [
    "temporal_breakdown",
    "kernel_breakdown",
    "kernel_types",
    "user_annotations",
    "comm_comp_overlap",
    "idle_time",
    "idle_intervals",
    "aten_delay",
    "queue_length",
    "queue_length_summary",
    "blocked_on_queue",
    "memory_bandwidth",
    "memory_bandwidth_summary",
    "frequent_sequences",
    "critical_path",
    "critical_path_summary",
    "profiler_steps",
    "stragglers",
    "cupti_counters",
    "collectives",
    "distributed",
    "distributed_operations",
    "kernels",
    "kernels_by_operator",
    "overview",
    "gpu_utilization",
    "operators",
    "operators_by_shape",
    "operators_by_stack",
    "memory_statistics",
    "memory_curve",
    "memory_events",
    "modules",
    "stacks",
    "roofline",
    "kernel_durations",
    "idle_causes",
    "step_variance",
    "slowest_step",
    "antipatterns",
    "data_quality",
    "validate",
    "violations",
];

/// What is made of tables of the others.
pub const RECOMMENDATIONS: &str = "recommendations";

/// The metrics that compare two runs.
pub const OF_TWO: [&str; 3] = ["diff", "diff_tree", "regressions"];

/// Rows that a table of the page has at most.
const ROWS: usize = 5_000;
/// Points of a curve that are kept, for each of its series.
const POINTS: usize = 500;

/// The metrics of this list.
pub fn find(names: &[&str]) -> Vec<&'static Metric> {
    names.iter().filter_map(|name| Metric::find(name)).collect()
}

/// The part of [`RECOMMENDATIONS`] that a rank gives, from its tables of the metrics that those are
/// made of: what the metric itself would compute once more.
///
/// # Errors
///
/// When it is too large for Arrow.
pub fn recommendations<'a>(
    table: impl Fn(&str) -> Option<&'a RecordBatch>,
) -> Result<RecordBatch, Error> {
    let names = findings::METRICS.iter();
    let tables: Vec<_> = names.filter_map(|name| Some((*name, table(name)?.clone()))).collect();
    bundle::bundle(&tables)
}

/// A table that is short enough for the page, and which of its rows that are.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The rows.
    pub batch: RecordBatch,
    /// Which are left out, if some are.
    pub which: Option<String>,
}

/// Leaves out rows of a table that is too long.
///
/// # Errors
///
/// When it is too large for Arrow.
pub fn cut(metric: &str, batch: RecordBatch) -> Result<Cut, Error> {
    let series: Option<(&[&str], &str)> = match metric {
        "memory_curve" => Some((&["rank", "device"], "allocated")),
        "queue_length" => Some((&["rank", "pid", "stream"], "queue_length")),
        "memory_bandwidth" => Some((&["rank", "pid", "name"], "memory_bw_gbps")),
        _ => None,
    };
    if let Some((keys, value)) = series {
        return thinned(batch, keys, value);
    }
    if batch.num_rows() <= ROWS {
        return Ok(Cut { batch, which: None });
    }
    let by = match metric {
        "memory_events" => Some("size"),
        "collectives" => Some("wait_sum"),
        "stacks" => Some("host_time"),
        "operators_by_shape" | "operators_by_stack" => Some("self_cpu_time"),
        "kernels_by_operator" => Some("total_duration"),
        "critical_path" => Some("duration"),
        _ => None,
    };
    let cells = Cells::of(&batch);
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    if let Some(by) = by {
        rows.sort_by_key(|row| Reverse(cells.int(by, *row)));
    }
    rows.truncate(ROWS);
    rows.sort_unstable();
    let which = match by {
        Some(by) => format!("those with the largest {by}"),
        None => "the first ones".to_owned(),
    };
    Ok(Cut { batch: table::take(&batch, &rows)?, which: Some(which) })
}

/// The first, least, greatest and last row of each stretch of time, for each series.
fn thinned(batch: RecordBatch, keys: &[&str], value: &str) -> Result<Cut, Error> {
    let cells = Cells::of(&batch);
    let mut series: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let key = |name: &&str| match cells.text(name, row) {
            Some(text) => text.to_owned(),
            None => cells.int(name, row).map_or(String::new(), |number| number.to_string()),
        };
        series.entry(keys.iter().map(key).collect()).or_default().push(row);
    }
    if series.values().all(|rows| rows.len() <= POINTS * 4) {
        return Ok(Cut { batch, which: None });
    }
    let mut kept = Vec::new();
    for rows in series.values() {
        if rows.len() <= POINTS * 4 {
            kept.extend(rows);
            continue;
        }
        for stretch in rows.chunks(rows.len().div_ceil(POINTS)) {
            let by = |a: &&usize, b: &&usize| {
                let number = |row: usize| cells.float(value, row).unwrap_or(0.0);
                number(**a).total_cmp(&number(**b))
            };
            let ends = [stretch.first(), stretch.last()];
            let extremes = [stretch.iter().min_by(by), stretch.iter().max_by(by)];
            kept.extend(ends.into_iter().chain(extremes).flatten());
        }
    }
    kept.sort_unstable();
    kept.dedup();
    let which = format!("of each series, the extremes of {POINTS} stretches");
    Ok(Cut { batch: table::take(&batch, &kept)?, which: Some(which) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymograph_analysis::Column;
    use kymograph_analysis::table::Rows;

    #[test]
    fn all_metrics_exist() {
        for name in OF_RUN.iter().chain(&OF_TWO).chain([&RECOMMENDATIONS]) {
            assert!(Metric::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_long_table_keeps_what_matters_and_a_curve_its_extremes() {
        const EVENTS: &[Column] = &[Column::int("size", "how much")];
        let mut rows = Rows::new(EVENTS);
        (0..ROWS as i64 * 2).for_each(|n| rows.push([n.into()]));
        let kept = cut("memory_events", rows.finish().unwrap()).unwrap();
        assert_eq!(kept.batch.num_rows(), ROWS);
        assert_eq!(Cells::of(&kept.batch).int("size", 0), Some(ROWS as i64));
        assert!(kept.which.is_some());

        const CURVE: &[Column] = &[
            Column::int("rank", "the rank"),
            Column::text("device", "whose"),
            Column::int("allocated", "how much"),
        ];
        let mut rows = Rows::new(CURVE);
        let peak = 123_456;
        (0..100_000i64).for_each(|n| {
            let value = if n == 77_777 { peak } else { n % 7 };
            rows.push([0i64.into(), "GPU0".into(), value.into()]);
        });
        let kept = cut("memory_curve", rows.finish().unwrap()).unwrap();
        let cells = Cells::of(&kept.batch);
        let values = (0..kept.batch.num_rows()).map(|row| cells.int("allocated", row));
        assert_eq!(values.max().flatten(), Some(peak));
        assert!(kept.batch.num_rows() <= POINTS * 4);
    }
}
