//! Which tables a page has, and what is left out of very long ones.

use arrow_array::{Array, Int64Array, RecordBatch};
use hashbrown::HashMap;
use kymograph_analysis::findings;
use kymograph_analysis::table::{self, Cells, ColumnCells};
use kymograph_analysis::{Error, Metric, Part, bundle};
use std::hash::Hash;

/// The metrics of a run. Those that have a row for each event are on the timeline instead.
pub const OF_RUN: [&str; 44] = [
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
    "memory_timeline",
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
pub(crate) const ROWS: usize = 5_000;
/// Points of a curve that are kept, for each of its series.
const POINTS: usize = 500;

/// The metrics of this list.
pub fn find(names: &[&str]) -> Vec<&'static Metric> {
    names.iter().filter_map(|name| Metric::find(name)).collect()
}

/// Metrics that are computed one after the other, since they have much in common; most are alone.
pub(crate) fn groups<'m>(metrics: &'m [&'static Metric]) -> Vec<&'m [&'static Metric]> {
    let together = |one: &&Metric, next: &&Metric| {
        (one.name, next.name) == ("operators", "operators_by_shape")
    };
    metrics.chunk_by(together).collect()
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

/// How many rows a rank has of a metric, with those that were not computed.
pub fn count(part: &Part) -> usize {
    let schema = part.batch.schema();
    let of = schema.metadata().get(table::OF).and_then(|of| of.parse().ok());
    of.unwrap_or(part.batch.num_rows())
}

/// Leaves out rows of a table that is too long: of `of` rows, if some already are.
///
/// # Errors
///
/// When it is too large for Arrow.
pub fn cut(metric: &str, batch: RecordBatch, of: usize) -> Result<Cut, Error> {
    let series: Option<(&[&str], &str)> = match metric {
        "memory_curve" => Some((&["rank", "device"], "allocated")),
        "memory_timeline" => Some((&["rank", "device", "category"], "allocated")),
        "queue_length" => Some((&["rank", "pid", "stream"], "queue_length")),
        "memory_bandwidth" => Some((&["rank", "pid", "name"], "memory_bw_gbps")),
        _ => None,
    };
    if let Some((keys, value)) = series {
        return thinned(batch, keys, value);
    }
    if of.max(batch.num_rows()) <= ROWS {
        return Ok(Cut { batch, which: None });
    }
    let by: &[&str] = match metric {
        "memory_events" => &["size"],
        "collectives" => &["wait_sum"],
        "stacks" => &["host_time", "device_time"],
        "operators_by_shape" | "operators_by_stack" => &["self_cpu_time"],
        "kernels_by_operator" => &["total_duration"],
        "critical_path" => &["duration"],
        _ => &[],
    };
    let columns: Vec<_> = by.iter().map(|by| Cells::of(&batch).column(by)).collect();
    let most = |row| columns.iter().filter_map(|column| column.float(row)).max_by(f64::total_cmp);
    let most: Vec<f64> = (0..batch.num_rows()).map(|row| most(row).unwrap_or(0.0)).collect();
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    if rows.len() > ROWS {
        // Of equal ones the first.
        rows.select_nth_unstable_by(ROWS, |one, other| {
            most[*other].total_cmp(&most[*one]).then(one.cmp(other))
        });
        rows.truncate(ROWS);
        rows.sort_unstable();
    }
    Ok(Cut { batch: table::take(&batch, &rows)?, which: Some(which(by)) })
}

/// Which rows are kept.
fn which(by: &[&str]) -> String {
    match by {
        [] => "the first ones".to_owned(),
        by => format!("those with the largest {}", by.join(" or ")),
    }
}

/// The first, least, greatest and last row of each stretch of time, for each series.
fn thinned(batch: RecordBatch, keys: &[&str], value: &str) -> Result<Cut, Error> {
    if batch.num_rows() <= POINTS * 4 {
        return Ok(Cut { batch, which: None });
    }
    let mut of = vec![0; batch.num_rows()];
    for key in keys {
        of = match Cells::of(&batch).column(key) {
            // Most keys are the same in all rows.
            ColumnCells::Int(ints) if is_one(ints) => of,
            ColumnCells::Int(ints) => numbered(of.into_iter().zip(ints)),
            ColumnCells::Text(texts) => numbered(of.into_iter().zip(texts)),
            _ => of,
        };
    }
    let count = of.iter().max().map_or(0, |most| *most as usize + 1);
    let mut series: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (row, of) in of.into_iter().enumerate() {
        series[of as usize].push(row);
    }
    if series.iter().all(|rows| rows.len() <= POINTS * 4) {
        return Ok(Cut { batch, which: None });
    }
    let value = Cells::of(&batch).column(value);
    let values: Vec<f64> =
        (0..batch.num_rows()).map(|row| value.float(row).unwrap_or(0.0)).collect();
    let mut kept = Vec::new();
    for rows in &series {
        if rows.len() <= POINTS * 4 {
            kept.extend(rows);
            continue;
        }
        for stretch in rows.chunks(rows.len().div_ceil(POINTS)) {
            let by = |a: &&usize, b: &&usize| values[**a].total_cmp(&values[**b]);
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

/// Whether all rows have one number.
fn is_one(ints: &Int64Array) -> bool {
    let values = ints.values();
    ints.null_count() == 0 && values.iter().all(|value| *value == values[0])
}

/// Numbers for values, from 0 on: equal ones have the same.
fn numbered<K: Copy + Eq + Hash>(values: impl Iterator<Item = K>) -> Vec<u32> {
    let mut known = HashMap::new();
    // Mostly a row is of the same series as the one before.
    let mut last: Option<(K, u32)> = None;
    let number = |value| {
        if let Some((_, number)) = last.filter(|(own, _)| *own == value) {
            return number;
        }
        let next = known.len() as u32;
        let number = *known.entry(value).or_insert(next);
        last = Some((value, number));
        number
    };
    values.map(number).collect()
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
        let kept = cut("memory_events", rows.finish().unwrap(), 0).unwrap();
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
        let kept = cut("memory_curve", rows.finish().unwrap(), 0).unwrap();
        let cells = Cells::of(&kept.batch);
        let values = (0..kept.batch.num_rows()).map(|row| cells.int("allocated", row));
        assert_eq!(values.max().flatten(), Some(peak));
        assert!(kept.batch.num_rows() <= POINTS * 4);
    }
}
