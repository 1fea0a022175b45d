//! The page: what this is, where the time goes, what to do about it.

use super::Failure;
use super::inputs::{Inputs, Wanted};
use kymograph_analysis::findings::{METRICS, findings};
use kymograph_analysis::table::{self, Cells, RecordBatch};
use kymograph_analysis::{Metric, Options, render, run};

/// What stands on the page, one under the other: title, metric, what it is sorted by, rows.
const SECTIONS: [(&str, &str, Option<&str>, usize); 9] = [
    ("How steps divide", "step_variance", None, 10),
    ("Where device time goes", "temporal_breakdown", None, 16),
    ("Which work it is", "kernel_types", None, 8),
    ("What the host did while devices were idle", "idle_causes", Some("idle_time"), 8),
    ("Why streams were idle", "idle_time", Some("idle_time"), 8),
    ("How much communication is hidden", "comm_comp_overlap", None, 16),
    ("Who waits for whom", "stragglers", None, 8),
    ("Collectives that waited longest", "collectives", Some("wait_sum"), 5),
    ("Longest kernels", "kernel_breakdown", Some("sum"), 10),
];

pub(super) fn page(inputs: &Inputs, options: &Options, wanted: &Wanted) -> Result<String, Failure> {
    let mut names: Vec<&str> = vec!["profiler_steps"];
    names.extend(SECTIONS.iter().map(|(_, name, ..)| name));
    names.extend(METRICS.iter().filter(|name| !SECTIONS.iter().any(|(_, own, ..)| own == *name)));
    let metrics: Vec<&Metric> = names.iter().filter_map(|name| Metric::find(name)).collect();
    let mut tables: Vec<(&str, RecordBatch)> = Vec::new();
    // What one of them lacks is no news.
    inputs.each_metric(&metrics, options, wanted, &mut |metric, parts, _| {
        if let Ok(batch) = run::over_ranks(metric, parts, options)
            && batch.num_rows() > 0
        {
            tables.push((metric.name, batch));
        }
        Ok(())
    })?;
    let mut text = about(inputs, &tables);
    let found = findings(&tables);
    if !found.is_empty() {
        text += "\nWhat to do\n\n";
    }
    for (number, finding) in (1..).zip(&found) {
        let cost = match finding.cost {
            0 => String::new(),
            cost => format!(": about {:.1} ms of each rank", cost as f64 / 1e6),
        };
        text += &format!("{number}. {}{cost}\n", finding.what);
        text += &format!("   {}\n   → {}\n", finding.evidence, finding.advice);
    }
    for (title, name, sort, rows) in SECTIONS {
        let Some((_, batch)) = tables.iter().find(|(own, _)| *own == name) else { continue };
        let batch = match sort {
            Some(column) => table::sort(batch, column)?,
            None => batch.clone(),
        };
        text += &format!("\n{title} ({name})\n\n{}", render::text(&batch, Some(rows)));
    }
    Ok(text)
}

/// How many traces, ranks and steps.
fn about(inputs: &Inputs, tables: &[(&str, RecordBatch)]) -> String {
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let distinct = |name: &str, column: &str| {
        let batch = tables.iter().find(|(own, _)| *own == name).map(|(_, batch)| batch);
        let mut all: Vec<i64> = batch.map_or_else(Vec::new, |batch| {
            let cells = Cells::of(batch);
            (0..batch.num_rows()).filter_map(|row| cells.int(column, row)).collect()
        });
        all.sort_unstable();
        all.dedup();
        all
    };
    let ranks = distinct("temporal_breakdown", "rank").len();
    let steps = distinct("profiler_steps", "step");
    let steps = match (steps.first(), steps.last()) {
        (Some(first), Some(last)) if first != last => {
            format!(", {} ({first} to {last})", count(steps.len(), "step"))
        }
        (Some(only), _) => format!(", step {only}"),
        _ => ", no steps".to_owned(),
    };
    let files = count(inputs.0.len(), "trace");
    let ranks = match ranks {
        0 => "no device work".to_owned(),
        ranks => format!("{} with device work", count(ranks, "rank")),
    };
    format!("{files}, {ranks}{steps}\n")
}
