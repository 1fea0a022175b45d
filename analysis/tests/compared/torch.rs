//! `key_averages()` and `table()` of PyTorch's profiler.

use std::fs::File;
use std::path::Path;

use kymograph_analysis::metric::stacks::Weight;
use kymograph_analysis::render::{TorchTable, collapsed};
use kymograph_analysis::{Metric, Model, Options, Reading, run, table};
use kymograph_converters::format;
use kymograph_converters::trace::Trace;

use super::{Tally, Tolerance};

/// Compares the rows and tables of each run in a folder.
pub fn folder(folder: &Path, tally: &mut Tally) {
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Some((tag, _)) = name.split_once(".pt.trace.json") else { continue };
        let trace = format::read(File::open(file).unwrap(), None).unwrap();
        for file in &files {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if let Some(what) = name.strip_prefix(&format!("{tag}.")) {
                one((&trace, tag == "verbose"), what, file, tally);
            }
        }
    }
}

fn ours(trace: &Trace, verbose: bool, metric: &str, sort: Option<&str>) -> table::RecordBatch {
    let options =
        Options { python_functions: verbose, stack_depth: 3, torch: true, ..Options::default() };
    with(trace, &options, metric, sort)
}

fn with(trace: &Trace, options: &Options, metric: &str, sort: Option<&str>) -> table::RecordBatch {
    let metric = Metric::find(metric).unwrap();
    let model = Model::new(trace, None, 0, Reading::Exact);
    let part = run::of_rank(metric, &model, options).unwrap();
    let batch = run::over_ranks(metric, vec![part], options).unwrap();
    sort.map_or(batch.clone(), |column| table::sort(&batch, column).unwrap())
}

/// A trace, and whether the profiler was told to be verbose.
type Run<'a> = (&'a Trace, bool);

fn one(run: Run<'_>, what: &str, file: &Path, tally: &mut Tally) {
    let context = file.file_name().unwrap().to_string_lossy().into_owned();
    let text = || std::fs::read_to_string(file).unwrap();
    let cpu_sorted = Some("self_cpu_time");
    match what {
        "key_averages.json" => rows(run, "operators", &text(), &context, tally),
        "key_averages_stack3.json" => rows(run, "operators_by_stack", &text(), &context, tally),
        "stacks_self_cpu.txt" => {
            let own = collapsed(&ours(run.0, run.1, "stacks", None), Weight::Host, 1000);
            let (mut theirs, mut own) = (text(), own.lines().map(str::to_owned));
            theirs += "(end)\n";
            for (n, line) in theirs.lines().enumerate() {
                let own = own.next().unwrap_or_else(|| "(end)".to_owned());
                let context = format!("{context} line {n}");
                tally.value(
                    "torch export_stacks, lines",
                    &context,
                    line,
                    &own,
                    Tolerance(0.0, 0.0),
                );
            }
        }
        "key_averages_py.json" => {
            let batch = with_python(run.0, "operators");
            rows_of(&batch, "operators", &text(), &context, tally);
        }
        "total_average.json" => total(run, &text(), &context, tally),
        "key_averages_shapes.json" => rows(run, "operators_by_shape", &text(), &context, tally),
        "table_default.txt" => lines(run, None, TorchTable::default(), &text(), &context, tally),
        "table_shapes.txt" => {
            let row_limit = text().lines().count() - if context.contains("full") { 6 } else { 5 };
            let table = TorchTable { row_limit, ..TorchTable::default() };
            let sort =
                if context.contains("full") { "device_time_total" } else { "cpu_time_total" };
            lines(run, Some(sort), table, &text(), &context, tally);
        }
        "table_self_cpu_top15.txt" => {
            let table = TorchTable { row_limit: 15, ..TorchTable::default() };
            lines(run, cpu_sorted, table, &text(), &context, tally);
        }
        "table_self_cuda_top20.txt" => {
            let table = TorchTable { row_limit: 20, ..TorchTable::default() };
            lines(run, Some("self_device_time"), table, &text(), &context, tally);
        }
        "table_cpu_total_ms.txt" => {
            let table = TorchTable {
                row_limit: 20,
                name_width: 40,
                header: Some("HDR"),
                time_unit: Some("ms"),
                ..TorchTable::default()
            };
            lines(run, Some("cpu_time_total"), table, &text(), &context, tally);
        }
        _ if what.ends_with(".gz") || what.contains("trace.json") => {}
        "events_top_level.txt" => {
            tally.except("torch table of events: of those without callers, each by itself", 1);
        }
        "memory_timeline.json" => {
            tally.except("torch memory timeline: its categories are not in the trace", 1);
        }
        "table_stack3.txt" => {
            tally
                .except("torch table by stacks: its last two columns have each other's headers", 1);
        }
        _ => tally.except(&format!("torch {what}: not known"), 1),
    }
}

fn rows(run: Run<'_>, metric: &str, text: &str, context: &str, tally: &mut Tally) {
    rows_of(&ours(run.0, run.1, metric, None), metric, text, context, tally);
}

/// With rows for Python functions.
fn with_python(trace: &Trace, metric: &str) -> table::RecordBatch {
    let options = Options { python_functions: true, python_rows: true, ..Options::default() };
    with(trace, &options, metric, None)
}

fn rows_of(batch: &table::RecordBatch, metric: &str, text: &str, context: &str, tally: &mut Tally) {
    let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
    let cells = table::Cells::of(batch);
    let theirs = theirs.as_array().unwrap();
    let label = format!("torch {metric}");
    let none = Tolerance(0.0, 0.0);
    tally.value(&label, context, &theirs.len().to_string(), &batch.num_rows().to_string(), none);
    for (n, row) in theirs.iter().enumerate().take(batch.num_rows()) {
        let context = format!("{context} row {n}");
        let name = row["key"].as_str().unwrap();
        let own = cells.text("name", n).unwrap_or_default();
        tally.value(&label, &format!("{context} key"), name, own, none);
        for (key, column, scale) in [
            ("count", "calls", 1.0),
            ("cpu_time_total", "cpu_time_total", 1e3),
            ("self_cpu_time_total", "self_cpu_time", 1e3),
            ("cpu_time", "cpu_time_avg", 1e3),
            ("device_time_total", "device_time_total", 1e3),
            ("self_device_time_total", "self_device_time", 1e3),
            ("cpu_memory_usage", "cpu_memory", 1.0),
            ("self_cpu_memory_usage", "self_cpu_memory", 1.0),
            ("device_memory_usage", "device_memory", 1.0),
            ("self_device_memory_usage", "self_device_memory", 1.0),
            ("flops", "flops", 1.0),
        ] {
            let own = cells.float(column, n).unwrap_or(0.0) / scale;
            let context = format!("{context} {name} {key}");
            // PyTorch adds floating point microseconds.
            // Annotations on devices end some nanoseconds later in the file than in the process.
            let later = row["device_type"] != "DeviceType.CPU" && row["is_user_annotation"] == true;
            let t = if later { Tolerance(0.01, 0.0) } else { Tolerance(1e-6, 1e-9) };
            tally.value(&label, &context, &row[key].to_string(), &own.to_string(), t);
        }
        if metric == "operators_by_stack" {
            let frames =
                row["stack"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap());
            let stack = frames.collect::<Vec<_>>().join(";");
            let own = cells.text("stack", n).unwrap_or_default();
            tally.value(&label, &format!("{context} {name} stack"), &stack, own, none);
        }
        if metric == "operators_by_shape" {
            let shapes = row["input_shapes"]
                .as_str()
                .map_or_else(|| row["input_shapes"].to_string(), str::to_owned);
            let own = cells.text("input_shapes", n).unwrap_or_default();
            let own = own.replace(' ', "");
            tally.value(&label, &format!("{context} {name} shapes"), &shapes, &own, none);
        }
    }
}

fn lines(
    (trace, verbose): Run<'_>,
    sort: Option<&str>,
    table: TorchTable<'_>,
    text: &str,
    context: &str,
    tally: &mut Tally,
) {
    let metric = if context.contains("shapes") { "operators_by_shape" } else { "operators" };
    let own = table.text(&ours(trace, verbose, metric, sort));
    let (mut theirs, mut own) = (text.trim_end_matches('\n').lines(), own.lines());
    loop {
        let (a, b) = (theirs.next(), own.next());
        if a.is_none() && b.is_none() {
            return;
        }
        let none = Tolerance(0.0, 0.0);
        if let (Some(a), Some(b)) = (a, b)
            && a != b
            && nearly(a, b)
        {
            let why = "torch table: annotations on devices end 4 ns later in the file than in the \
                       process, which shows in the last digit";
            tally.except(why, 1);
            continue;
        }
        tally.value(
            "torch table, lines",
            context,
            a.unwrap_or("(end)"),
            b.unwrap_or("(end)"),
            none,
        );
    }
}

/// Whether two lines about an annotation on a device differ in the last digits only.
fn nearly(a: &str, b: &str) -> bool {
    let (mut ours, mut theirs) = (a.split_whitespace(), b.split_whitespace());
    let annotation = ["ProfilerStep*", "## forward ##", "Optimizer.step#"];
    if !annotation.iter().any(|name| a.trim_start().starts_with(name)) {
        return false;
    }
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let number = |text: &str| -> Option<f64> {
                    text.trim_end_matches(|c: char| c.is_alphabetic() || c == '%').parse().ok()
                };
                let apart = number(a).zip(number(b)).map(|(a, b)| (a - b).abs());
                if apart.is_none_or(|apart| apart > 0.0101) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// `total_average()`.
fn total((trace, verbose): Run<'_>, text: &str, context: &str, tally: &mut Tally) {
    let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
    // It is of all events: a verbose profiler's Python functions, too.
    let batch = match verbose {
        true => with_python(trace, "operators_total"),
        false => ours(trace, false, "operators_total", None),
    };
    let cells = table::Cells::of(&batch);
    for (key, value) in theirs.as_object().unwrap().iter().filter(|(key, _)| *key != "key") {
        let scale = if key.contains("time") { 1e3 } else { 1.0 };
        let own = cells.float(key, 0).map(|own| (own / scale).to_string()).unwrap_or_default();
        let t = Tolerance(0.001, 1e-9);
        tally.value(
            "torch total_average",
            &format!("{context} {key}"),
            &value.to_string(),
            &own,
            t,
        );
    }
}
