//! Views of the TensorBoard plugin.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use kymograph_analysis::compat::tensorboard::{Plugin, uses_tensor_cores};
use kymograph_analysis::table::{Cells, RecordBatch};
use kymograph_analysis::{Metric, Model, Options, Reading, run};
use kymograph_converters::format;
use kymograph_converters::trace::Trace;
use serde_json::Value;

use super::{Tally, Tolerance, hta, views};

/// The traces of a set, by worker and span.
fn traces(set: &str, data: &Path) -> Option<Vec<(String, PathBuf)>> {
    if set == "cpu_with_memory" {
        return Some(vec![("worker0".to_owned(), data.join("../cpu_with_memory.json.gz"))]);
    }
    let folder = data.join(set);
    if folder.is_dir() && set != "synth_8rank" {
        let mut files: Vec<_> = folder.read_dir().ok()?.map(|e| e.unwrap().path()).collect();
        files.retain(|file| file.to_string_lossy().contains(".json"));
        files.sort();
        // One worker's runs, or workers.
        let name = |n: usize| match set {
            "resnet50_workers0" => format!("worker0.span{}", n + 1),
            _ => format!("worker{n}"),
        };
        return Some(files.into_iter().enumerate().map(|(n, file)| (name(n), file)).collect());
    }
    let worker = |(rank, file): (i64, PathBuf)| (format!("worker{rank}"), file);
    Some(hta::traces(set, data)?.into_iter().map(worker).collect())
}

/// Views of a worker that are compared.
const VIEWS: [(&str, Compare); 10] = [
    ("kernel_by_name", kernels),
    ("kernel_by_properties_and_op", kernels_by_operator),
    ("overview", overview),
    ("gpu_metrics", devices),
    ("operator_by_name", operators),
    ("operator_by_name_input", operators_by_shape),
    ("memory_stats", views::memory_statistics),
    ("memory_curve", views::memory_curve),
    ("memory_events", views::memory_events),
    ("modules", views::modules),
];

/// Compares the views of a set.
pub fn set(folder: &Path, data: &Path, tally: &mut Tally) {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let Some(files) = traces(&name, data) else {
        return tally.except(&format!("TensorBoard {name}: no traces"), 1);
    };
    let read = |(worker, file): &(String, PathBuf)| {
        (worker.clone(), format::read(File::open(file).unwrap(), None).unwrap())
    };
    let read: Vec<(String, Trace)> = files.iter().map(read).collect();
    let models: Vec<(&str, Model<'_>)> = (0..)
        .zip(&read)
        .map(|(n, (worker, trace))| (worker.as_str(), Model::new(trace, None, n, Reading::Exact)))
        .collect();
    for (label, plugin) in [("as_is", Plugin::Wheel), ("final", Plugin::Last)] {
        let view = |name: &str| folder.join(label).join(format!("{name}.json"));
        let options = Options { tensorboard: Some(plugin), ..Options::default() };
        for (worker, model) in &models {
            let context = format!("{name}/{label}/{worker}");
            for (name, compare) in VIEWS {
                let view = view(&format!("{worker}.{name}"));
                if view.exists() {
                    compare(model, &options, &json(&view), &context, tally);
                }
            }
        }
        let context = format!("{name}/{label}");
        let distributed = view("ALL.distributed.spandefault");
        if distributed.exists() {
            views::distributed(&models, &options, &json(&distributed), &context, tally);
        }
        let diff = view("diff.first_vs_second");
        if diff.exists() {
            views::diff(&models, &options, &json(&diff), &context, tally);
        }
    }
    let views = ["as_is", "final"].iter().map(|label| folder.join(label));
    for view in views.filter(|label| label.is_dir()).flat_map(|label| label.read_dir().unwrap()) {
        let view = view.unwrap().file_name().to_string_lossy().into_owned();
        let view = view.trim_end_matches(".gz").trim_end_matches(".json");
        let last = view.rsplit('.').next().unwrap_or_default();
        let reason = match last {
            "operator_tree" => "the tree that other views are made of",
            "operator_pie" | "kernel_tc_pie" => "a chart of numbers of other views",
            _ if view.starts_with("ALL.distributed") || view.starts_with("diff.") => continue,
            view if VIEWS.iter().any(|(name, _)| *name == view) => continue,
            _ => "not known",
        };
        tally.except(&format!("TensorBoard {last}: {reason}"), 1);
    }
}

type Compare = fn(&Model<'_>, &Options, &Value, &str, &mut Tally);

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn ours(metric: &str, model: &Model<'_>, options: &Options) -> RecordBatch {
    let part = run::of_rank(Metric::find(metric).unwrap(), model, options).unwrap();
    run::over_ranks(Metric::find(metric).unwrap(), vec![part], options).unwrap()
}

/// The time of each step by role, and the mean over steps.
fn overview(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    const ROLES: [&str; 9] = [
        "kernel",
        "memcpy",
        "memset",
        "communication",
        "runtime",
        "data_loader",
        "cpu_exec",
        "other",
        "total",
    ];
    views::recommendations(model, options, theirs, context, tally);
    let label = "TensorBoard overview";
    let batch = ours("overview", model, options);
    let cells = Cells::of(&batch);
    let names = theirs["steps_names"].as_array().unwrap();
    let rows = (names.len() + 1).to_string();
    tally.value(label, context, &rows, &batch.num_rows().to_string(), Tolerance(0.0, 0.0));
    for row in 0..batch.num_rows() {
        let name = names.get(row).map_or("average", |name| name.as_str().unwrap());
        let own = cells.text("step", row).unwrap();
        tally.value(label, context, name, own, Tolerance(0.0, 0.0));
        let costs =
            if row < names.len() { &theirs["steps_costs"][row] } else { &theirs["avg_costs"] };
        for (at, role) in ROLES.iter().enumerate() {
            let own = cells.float(role, row).unwrap() / 1e3;
            // Theirs adds moments since 1970 in floating point: a quarter of a microsecond each.
            let context = format!("{context} step {name} {role}");
            let t = Tolerance(1.0, 0.0);
            tally.value(label, &context, &costs[at].to_string(), &own.to_string(), t);
        }
    }
}

fn devices(model: &Model<'_>, options: &Options, theirs: &Value, context: &str, tally: &mut Tally) {
    let label = "TensorBoard GPU utilization";
    let batch = ours("gpu_utilization", model, options);
    let cells = Cells::of(&batch);
    let ids = theirs["gpu_ids"].as_array().unwrap();
    let count = ids.len().to_string();
    tally.value(label, context, &count, &batch.num_rows().to_string(), Tolerance(0.0, 0.0));
    for (row, id) in ids.iter().enumerate() {
        let own = cells.int("device", row).unwrap_or(-1).to_string();
        tally.value(label, context, &id.to_string(), &own, Tolerance(0.0, 0.0));
        for (key, column, scale) in [
            ("gpu_utilization", "utilization", 100.0),
            ("est_sm_efficiency", "sm_efficiency", 100.0),
            ("est_occupancy", "occupancy", 1.0),
        ] {
            let theirs = &theirs[key][id.to_string()];
            let own =
                cells.float(column, row).map_or("null".to_owned(), |x| (x / scale).to_string());
            let t = Tolerance(0.0, 2e-5);
            tally.value(label, &format!("{context} {key}"), &theirs.to_string(), &own, t);
        }
    }
}

fn operators(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    of_operators("operators", &ours("operators", model, options), theirs, context, tally);
}

fn operators_by_shape(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let batch = ours("operators_by_shape", model, options);
    of_operators("operators_by_shape", &batch, theirs, context, tally);
}

fn of_operators(
    metric: &str,
    batch: &RecordBatch,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = format!("TensorBoard {metric}");
    let cells = Cells::of(batch);
    let theirs = theirs.as_array().or_else(|| theirs["data"].as_array()).unwrap();
    let none = Tolerance(0.0, 0.0);
    tally.value(&label, context, &theirs.len().to_string(), &batch.num_rows().to_string(), none);
    let key = |row| (cells.text("name", row).unwrap(), cells.text("input_shapes", row));
    let rows: HashMap<_, usize> = (0..batch.num_rows()).map(|row| (key(row), row)).collect();
    for row in theirs {
        let name = row["name"].as_str().unwrap();
        let context = format!("{context} {name}");
        let Some(own) = rows.get(&(name, row["input_shape"].as_str())).copied() else {
            tally.value(&label, &context, "a row", "none", none);
            continue;
        };
        tally.value(
            &label,
            &format!("{context} eligible"),
            row["tc_eligible"].as_str().unwrap(),
            cells.text("tensor_cores_eligible", own).unwrap(),
            none,
        );
        for (key, column, scale, apart) in [
            ("calls", "calls", 1.0, 0.0),
            ("device_self_duration", "self_device_time", 1e3, 0.51),
            ("device_total_duration", "device_time_total", 1e3, 0.51),
            ("host_self_duration", "self_cpu_time", 1e3, 0.51),
            ("host_total_duration", "cpu_time_total", 1e3, 0.51),
            ("tc_self_ratio", "tensor_cores_self", 1.0, 0.0051),
            ("tc_total_ratio", "tensor_cores_total", 1.0, 0.0051),
        ] {
            // Views without devices have fewer columns.
            if row.get(key).is_some() {
                let own = cells.float(column, own).unwrap() / scale;
                // Sums of floating-point microseconds, rounded.
                let t = Tolerance(apart, 1e-4);
                let context = format!("{context} {key}");
                tally.value(&label, &context, &row[key].to_string(), &own.to_string(), t);
            }
        }
    }
}

fn kernels_by_operator(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard kernels_by_operator";
    let batch = ours("kernels_by_operator", model, options);
    let cells = Cells::of(&batch);
    let theirs = theirs["data"]["rows"].as_array().unwrap();
    let none = Tolerance(0.0, 0.0);
    tally.value(label, context, &theirs.len().to_string(), &batch.num_rows().to_string(), none);
    let text = |column, row| cells.text(column, row).unwrap_or("None").to_owned();
    let int = |column, row| cells.int(column, row).unwrap_or(0).to_string();
    let key = |row| {
        let (grid, block) = (text("grid", row), text("block", row));
        [
            text("name", row),
            text("operator", row),
            grid,
            block,
            int("registers", row),
            int("shared_memory", row),
            text("operator_eligible", row),
        ]
    };
    let rows: HashMap<_, usize> = (0..batch.num_rows()).map(|row| (key(row), row)).collect();
    for row in theirs {
        let own = [0, 1, 2, 3, 4, 5, 7].map(|at| row[at].as_str().unwrap().to_owned());
        let context = format!("{context} {} {}", own[1], own[0]);
        let Some(own) = rows.get(&own).copied() else {
            tally.value(label, &context, "a row", "none", none);
            continue;
        };
        for (at, column, scale, apart) in [
            (8, "calls", 1.0, 0.0),
            (9, "total_duration", 1e3, 0.51),
            (10, "mean_duration", 1e3, 0.51),
            (11, "max_duration", 1e3, 0.0011),
            (12, "min_duration", 1e3, 0.0011),
            (13, "mean_blocks_per_sm", 1.0, 0.00501),
            (14, "mean_occupancy", 1.0, 0.00501),
        ] {
            if let Some(value) = row.get(at) {
                let own = (cells.float(column, own).unwrap() / scale).to_string();
                let context = format!("{context} {column}");
                tally.value(label, &context, &value.to_string(), &own, Tolerance(apart, 0.0));
            }
        }
    }
}

fn kernels(model: &Model<'_>, options: &Options, theirs: &Value, context: &str, tally: &mut Tally) {
    let mut theirs: Vec<&Value> = theirs["data"]["rows"].as_array().unwrap().iter().collect();
    // Rows of one duration are in no order.
    theirs.sort_by_key(|row| (-row[3].as_i64().unwrap(), row[0].as_str().unwrap().to_owned()));
    let batch = ours("kernels", model, options);
    let cells = Cells::of(&batch);
    let micros = |column, row| (cells.float(column, row).unwrap() / 1e3).round_ties_even();
    let mut ours: Vec<usize> = (0..batch.num_rows()).collect();
    ours.sort_by_key(|row| (-micros("total_duration", *row) as i64, cells.text("name", *row)));
    let label = "TensorBoard kernels";
    let none = Tolerance(0.0, 0.0);
    tally.value(label, context, &theirs.len().to_string(), &ours.len().to_string(), none);
    for (theirs, row) in theirs.into_iter().zip(ours) {
        let name = cells.text("name", row).unwrap();
        let context = format!("{context} {name}");
        tally.value(label, &context, theirs[0].as_str().unwrap(), name, none);
        let own = cells.text("tensor_cores", row).unwrap();
        let by_name = if uses_tensor_cores(name) { "Yes" } else { "No" };
        if theirs[1] == by_name && own != by_name {
            tally.except(
                "TensorBoard: kernels whose names it does not know, or takes for others",
                1,
            );
        } else {
            tally.value(label, &context, theirs[1].as_str().unwrap(), own, none);
        }
        let calls = cells.int("calls", row).unwrap();
        tally.value(label, &context, &theirs[2].to_string(), &calls.to_string(), none);
        let times = ["total_duration", "mean_duration", "max_duration", "min_duration"];
        for (at, column) in (3..).zip(times) {
            // A mean that was computed in floating point may fall to the other side of a half.
            let t = Tolerance(if column == "mean_duration" { 1.0 } else { 0.0 }, 0.0);
            let own = micros(column, row).to_string();
            tally.value(label, &format!("{context} {column}"), &theirs[at].to_string(), &own, t);
        }
        for (at, column) in [(7, "mean_blocks_per_sm"), (8, "mean_occupancy")] {
            if theirs.get(at).is_some() {
                let own = cells.float(column, row).unwrap().to_string();
                let t = Tolerance(0.00501, 0.0);
                tally.value(
                    label,
                    &format!("{context} {column}"),
                    &theirs[at].to_string(),
                    &own,
                    t,
                );
            }
        }
    }
}
