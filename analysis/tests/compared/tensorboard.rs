//! Views of the TensorBoard plugin.

use std::fs::File;
use std::path::{Path, PathBuf};

use kymograph_analysis::compat::tensorboard::uses_tensor_cores;
use kymograph_analysis::table::Cells;
use kymograph_analysis::{Metric, Model, Options, Reading, run};
use kymograph_converters::format;

use super::{Tally, Tolerance, hta};

/// The traces of a set, by worker and span.
fn traces(set: &str, data: &Path) -> Option<Vec<(String, PathBuf)>> {
    if set != "resnet50_workers0" {
        let worker = |(rank, file): (i64, PathBuf)| (format!("worker{rank}"), file);
        return Some(hta::traces(set, data)?.into_iter().map(worker).collect());
    }
    let mut files: Vec<_> = data.join(set).read_dir().ok()?.map(|e| e.unwrap().path()).collect();
    files.sort();
    Some((1..).zip(files).map(|(span, file)| (format!("worker0.span{span}"), file)).collect())
}

/// Compares the views of a set that we have.
pub fn set(folder: &Path, data: &Path, tally: &mut Tally) {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let Some(files) = traces(&name, data) else {
        return tally.except(&format!("TensorBoard {name}: no traces"), 1);
    };
    for (worker, file) in files {
        let trace = format::read(File::open(file).unwrap(), None).unwrap();
        let model = Model::new(&trace, None, 0, Reading::Exact);
        for label in ["as_is", "final"] {
            let view = folder.join(label).join(format!("{worker}.kernel_by_name.json"));
            if view.exists() {
                kernels(&model, &view, &format!("{name}/{label}/{worker}"), tally);
            }
        }
    }
    let views = ["as_is", "final"].iter().flat_map(|label| folder.join(label).read_dir().unwrap());
    for view in views {
        let view = view.unwrap().file_name().to_string_lossy().into_owned();
        let view = view.trim_end_matches(".gz").trim_end_matches(".json").rsplit('.').next();
        if view != Some("kernel_by_name") {
            let view = view.unwrap_or_default();
            tally.except(&format!("TensorBoard {view}: not implemented yet"), 1);
        }
    }
}

fn kernels(model: &Model<'_>, view: &Path, context: &str, tally: &mut Tally) {
    let text = std::fs::read_to_string(view).unwrap();
    let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut theirs: Vec<&serde_json::Value> =
        theirs["data"]["rows"].as_array().unwrap().iter().collect();
    // Rows of one duration are in no order.
    theirs.sort_by_key(|row| (-row[3].as_i64().unwrap(), row[0].as_str().unwrap().to_owned()));
    let metric = Metric::find("kernels").unwrap();
    let batch = run::of_rank(metric, model, &Options::default()).unwrap().batch;
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
