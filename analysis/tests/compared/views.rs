//! The memory, module, distributed and diff views of the TensorBoard plugin.

use std::collections::HashMap;

use kymograph_analysis::table::{Cells, RecordBatch};
use kymograph_analysis::{Metric, Model, Options, Part, run};
use serde_json::Value;

use super::tensorboard::ours;
use super::{Tally, Tolerance};

const NONE: Tolerance = Tolerance(0.0, 0.0);
/// Two decimal places, of numbers that are kept in floating point since 1970.
const ROUNDED: Tolerance = Tolerance(0.00501, 1e-9);
/// Microseconds since 1970 are exact to a quarter.
const MICROS: Tolerance = Tolerance(0.51, 1e-9);

/// Their rows by device, as one list with the device.
fn by_device(view: &Value) -> Vec<(&str, &Vec<Value>)> {
    let rows = view["rows"].as_object().unwrap();
    rows.iter()
        .flat_map(|(device, rows)| {
            rows.as_array().unwrap().iter().map(|row| (device.as_str(), row.as_array().unwrap()))
        })
        .collect()
}

/// Our table, empty if there is nothing to tell.
fn table(metric: &str, model: &Model<'_>, options: &Options) -> Option<RecordBatch> {
    run::of_rank(Metric::find(metric).unwrap(), model, options).ok()?;
    Some(ours(metric, model, options))
}

fn same_rows(label: &str, context: &str, theirs: usize, ours: usize, tally: &mut Tally) {
    tally.value(label, &format!("{context} rows"), &theirs.to_string(), &ours.to_string(), NONE);
}

fn text(value: Option<f64>) -> String {
    value.map_or("null".to_owned(), |value| value.to_string())
}

pub fn memory_statistics(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard memory_statistics";
    let theirs = by_device(theirs);
    let batch = table("memory_statistics", model, options);
    same_rows(label, context, theirs.len(), batch.as_ref().map_or(0, RecordBatch::num_rows), tally);
    let Some(batch) = batch else { return };
    let cells = Cells::of(&batch);
    let key = |row| (cells.text("device", row).unwrap(), cells.text("operator", row).unwrap());
    let rows: HashMap<_, usize> = (0..batch.num_rows()).map(|row| (key(row), row)).collect();
    for (device, row) in theirs {
        let name = row[0].as_str().unwrap();
        let context = format!("{context} {device} {name}");
        let Some(own) = rows.get(&(device, name)).copied() else {
            tally.value(label, &context, "a row", "none", NONE);
            continue;
        };
        for (at, column, scale) in [
            (1, "calls", 1.0),
            (2, "size_increase", 1024.0),
            (3, "self_size_increase", 1024.0),
            (4, "allocation_count", 1.0),
            (5, "self_allocation_count", 1.0),
            (6, "allocation_size", 1024.0),
            (7, "self_allocation_size", 1024.0),
        ] {
            let own = text(cells.float(column, own).map(|value| value / scale));
            let t = if scale == 1.0 { NONE } else { ROUNDED };
            tally.value(label, &format!("{context} {column}"), &row[at].to_string(), &own, t);
        }
    }
}

pub fn memory_curve(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard memory_curve";
    let theirs = by_device(theirs);
    let batch = table("memory_curve", model, options);
    same_rows(label, context, theirs.len(), batch.as_ref().map_or(0, RecordBatch::num_rows), tally);
    let Some(batch) = batch else { return };
    let cells = Cells::of(&batch);
    for (at, (device, row)) in theirs.into_iter().enumerate() {
        let context = format!("{context} {at}");
        tally.value(label, &context, device, cells.text("device", at).unwrap_or("none"), NONE);
        for (n, column, scale, t) in [
            (0, "ts", 1e6, Tolerance(0.00051, 1e-9)),
            (1, "allocated", 1_048_576.0, Tolerance(0.0, 1e-9)),
            (2, "reserved", 1_048_576.0, Tolerance(0.0, 1e-9)),
        ] {
            let own = text(cells.float(column, at).map(|value| value / scale));
            tally.value(label, &format!("{context} {column}"), &row[n].to_string(), &own, t);
        }
    }
}

pub fn memory_events(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard memory_events";
    let theirs = by_device(theirs);
    let batch = table("memory_events", model, options);
    same_rows(label, context, theirs.len(), batch.as_ref().map_or(0, RecordBatch::num_rows), tally);
    let Some(batch) = batch else { return };
    let cells = Cells::of(&batch);
    let mut rows: Vec<usize> = (0..batch.num_rows()).collect();
    rows.sort_by_key(|row| cells.text("device", *row));
    for ((device, theirs), row) in theirs.into_iter().zip(rows) {
        let context = format!("{context} {device} {row}");
        tally.value(label, &context, device, cells.text("device", row).unwrap(), NONE);
        let own = cells.text("operator", row).unwrap();
        tally.value(label, &context, theirs[0].as_str().unwrap(), own, NONE);
        for (n, column, scale) in [
            (1, "size", 1024.0),
            (2, "allocation_ts", 1e6),
            (3, "release_ts", 1e6),
            (4, "duration", 1e6),
        ] {
            let own = text(cells.float(column, row).map(|value| value / scale));
            let t = Tolerance(0.0057, 1e-9);
            tally.value(label, &format!("{context} {column}"), &theirs[n].to_string(), &own, t);
        }
    }
}

pub fn modules(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard modules";
    let mut rows = Vec::new();
    fn size(module: &Value) -> usize {
        1 + module["children"].as_array().unwrap().iter().map(size).sum::<usize>()
    }
    // Theirs of one name are in no order.
    let mut roots: Vec<&Value> = theirs["data"].as_array().unwrap().iter().collect();
    roots.sort_by_key(|module| (module["name"].as_str(), std::cmp::Reverse(size(module))));
    let mut open: Vec<(i64, &Value)> = roots.into_iter().rev().map(|module| (0, module)).collect();
    while let Some((depth, module)) = open.pop() {
        rows.push((depth, module));
        let below = module["children"].as_array().unwrap().iter().rev();
        open.extend(below.map(|child| (depth + 1, child)));
    }
    let batch = table("modules", model, options);
    same_rows(label, context, rows.len(), batch.as_ref().map_or(0, RecordBatch::num_rows), tally);
    let Some(batch) = batch else { return };
    let cells = Cells::of(&batch);
    for (at, (depth, module)) in rows.into_iter().enumerate() {
        let context = format!("{context} {} ({at})", module["name"]);
        let own = cells.text("module", at).unwrap_or("none");
        tally.value(label, &context, module["name"].as_str().unwrap(), own, NONE);
        let own = text(cells.float("depth", at));
        tally.value(label, &context, &depth.to_string(), &own, NONE);
        for (key, column, scale, t) in [
            ("id", "module_id", 1.0, NONE),
            ("occurences", "occurrences", 1.0, NONE),
            ("operators", "operators", 1.0, NONE),
            ("host_duration", "host_duration", 1e3, MICROS),
            ("self_host_duration", "self_host_duration", 1e3, MICROS),
            ("device_duration", "device_duration", 1e3, MICROS),
            ("self_device_duration", "self_device_duration", 1e3, MICROS),
            ("avg_duration", "avg_duration", 1e3, MICROS),
        ] {
            let own = text(cells.float(column, at).map(|value| value / scale));
            tally.value(label, &format!("{context} {key}"), &module[key].to_string(), &own, t);
        }
    }
}

/// Which rules hold: their sentences are their own.
pub fn recommendations(
    model: &Model<'_>,
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    const RULES: [(&str, &str); 7] = [
        ("cost on input data loading", "loading data takes long"),
        ("instead of DataParallel", "DataParallel is used"),
        ("Nccl backend", "DistributedDataParallel does not use NCCL"),
        ("cost on communication", "communication takes long"),
        ("low utilization", "devices are little used"),
        ("Tensor Cores eligible", "tensor cores are not used"),
        ("limit of device memory", "device memory is nearly full"),
    ];
    let label = "TensorBoard recommendations";
    let batch = ours("recommendations", model, options);
    let cells = Cells::of(&batch);
    let theirs = theirs["recommendations_list"].as_array().unwrap();
    same_rows(label, context, theirs.len(), batch.num_rows(), tally);
    for (row, sentence) in theirs.iter().enumerate() {
        let sentence = sentence.as_str().unwrap();
        let rule = RULES.iter().find(|(words, _)| sentence.contains(words));
        let own = cells.text("finding", row).unwrap_or("none");
        tally.value(label, context, rule.map_or("another rule", |(_, rule)| rule), own, NONE);
        // Both say how much with one decimal place.
        if sentence.contains('%') {
            let own = number_in(cells.text("evidence", row).unwrap_or_default());
            tally.value(label, context, &number_in(sentence), &own, Tolerance(0.1, 0.0));
        }
    }
}

/// The first percentage of a sentence.
fn number_in(text: &str) -> String {
    let before = text.split_once('%').map_or("", |(before, _)| before.trim_end());
    before.rsplit([' ', '(']).next().unwrap_or_default().to_owned()
}

/// The table of all ranks; none if the plugin's rules have none.
fn over(metric: &str, models: &[(&str, Model<'_>)], options: &Options) -> Option<RecordBatch> {
    let metric = Metric::find(metric).unwrap();
    let part = |(_, model): &(&str, Model<'_>)| run::of_rank(metric, model, options).ok();
    let parts: Option<Vec<Part>> = models.iter().map(part).collect();
    run::over_ranks(metric, parts?, options).ok()
}

pub fn distributed(
    models: &[(&str, Model<'_>)],
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard distributed";
    let Some(batch) = over("distributed", models, options) else {
        return tally.value(label, context, "a view", "none", NONE);
    };
    let cells = Cells::of(&batch);
    let mut rows: HashMap<(i64, &str), usize> = HashMap::new();
    for row in 0..batch.num_rows() {
        let step = cells.text("step", row).unwrap_or("null");
        rows.insert((cells.int("rank", row).unwrap(), step), row);
    }
    let views: [(&str, &[&str]); 2] = [
        ("steps_to_overlap", &["computation", "overlapping", "communication", "other"]),
        ("steps_to_wait", &["data_transfer", "synchronizing"]),
    ];
    for (view, columns) in views {
        for (step, workers) in theirs[view]["data"].as_object().unwrap() {
            for (rank, (worker, _)) in models.iter().enumerate() {
                let Some(theirs) = workers.get(*worker) else { continue };
                let row = rows.get(&(rank as i64, step.as_str())).copied();
                for (n, column) in columns.iter().enumerate() {
                    let own = row.and_then(|row| cells.float(column, row)).map(|x| x / 1e3);
                    // Means are cut to whole microseconds.
                    let own = if step == "all" { own.map(f64::trunc) } else { own };
                    let t = Tolerance(if step == "all" { 1.0 } else { 0.51 }, 1e-9);
                    let context = format!("{context} {step} {worker} {column}");
                    tally.value(label, &context, &theirs[n].to_string(), &text(own), t);
                }
            }
        }
    }
    let label = "TensorBoard distributed_operations";
    let batch = over("distributed_operations", models, options).unwrap();
    let cells = Cells::of(&batch);
    let mut next = 0;
    for (rank, (worker, _)) in models.iter().enumerate() {
        for theirs in theirs["comm_ops"]["data"][worker]["rows"].as_array().unwrap() {
            let context = format!("{context} {worker} {}", theirs[0]);
            let own = cells.int("rank", next).unwrap_or(-1).to_string();
            tally.value(label, &context, &rank.to_string(), &own, NONE);
            let own = cells.text("operation", next).unwrap_or("none");
            tally.value(label, &context, theirs[0].as_str().unwrap(), own, NONE);
            for (n, column, scale, t) in [
                (1, "calls", 1.0, NONE),
                (2, "total_size", 1.0, NONE),
                (3, "avg_size", 1.0, Tolerance(0.5, 0.0)),
                (4, "total_latency", 1e3, MICROS),
                (5, "avg_latency", 1e3, MICROS),
                (6, "data_transfer", 1e3, MICROS),
                (7, "avg_data_transfer", 1e3, MICROS),
            ] {
                let own = text(cells.float(column, next).map(|value| value / scale));
                let context = format!("{context} {column}");
                tally.value(label, &context, &theirs[n].to_string(), &own, t);
            }
            next += 1;
        }
    }
    same_rows(label, context, next, batch.num_rows(), tally);
}

pub fn diff(
    models: &[(&str, Model<'_>)],
    options: &Options,
    theirs: &Value,
    context: &str,
    tally: &mut Tally,
) {
    let label = "TensorBoard diff_tree";
    let batch = over("diff_tree", models, options).unwrap();
    let cells = Cells::of(&batch);
    let mut rows: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for row in 0..batch.num_rows() {
        rows.insert((cells.text("path", row).unwrap(), cells.text("operator", row)), row);
    }
    let mut count = 0;
    let mut open = vec![("0".to_owned(), theirs)];
    while let Some((path, piece)) = open.pop() {
        let below = piece["children"].as_array().unwrap().iter().enumerate();
        open.extend(below.map(|(n, child)| (format!("{path}-{n}"), child)));
        let mut names: Vec<&str> = Vec::new();
        for (side, own) in [("left", "base"), ("right", "test")] {
            let theirs = &piece[side];
            let context = format!("{context} {path} {side}");
            let row = rows.get(&(path.as_str(), None)).copied();
            let name = row.and_then(|row| cells.text(&format!("{own}_name"), row));
            let expected = theirs["name"].as_str().unwrap();
            tally.value(label, &context, expected, name.unwrap_or("none"), NONE);
            for key in ["duration", "device_duration", "total_duration"] {
                let value = row.and_then(|row| cells.float(&format!("{own}_{key}"), row));
                let value = text(value.map(|value| value / 1e3));
                let context = format!("{context} {key}");
                tally.value(label, &context, &theirs[key].to_string(), &value, MICROS);
            }
            for operator in theirs["aggs"].as_array().unwrap() {
                let name = operator["name"].as_str().unwrap();
                names.push(name);
                let row = rows.get(&(path.as_str(), Some(name))).copied();
                for (key, column, scale, t) in [
                    ("calls", "calls", 1.0, NONE),
                    ("host_duration", "duration", 1e3, MICROS),
                    ("device_duration", "device_duration", 1e3, MICROS),
                    ("self_host_duration", "self_duration", 1e3, MICROS),
                    ("self_device_duration", "self_device_duration", 1e3, MICROS),
                ] {
                    let value = row.and_then(|row| cells.float(&format!("{own}_{column}"), row));
                    let value = text(value.map(|value| value / scale));
                    let context = format!("{context} {name} {key}");
                    tally.value(label, &context, &operator[key].to_string(), &value, t);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        count += 1 + names.len();
    }
    same_rows(label, context, count, batch.num_rows(), tally);
}
