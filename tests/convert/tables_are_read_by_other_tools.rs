//! `kymo export`: pyarrow reads the tables in all three formats, and finds in them the counts
//! and sums of the trace, and the columns that docs/EXPORT.md describes.

use harness::kymo;
use kymo::kymo;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const FIXTURE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/converters/tests/data/kineto_cuda.json");

/// Prints, of each table: its columns, and what the test compares.
const SCRIPT: &str = "
import json, pathlib, sys
import pyarrow.csv, pyarrow.feather, pyarrow.parquet
folder, ending = pathlib.Path(sys.argv[1]), sys.argv[2]
read = {'parquet': pyarrow.parquet.read_table, 'arrow': pyarrow.feather.read_table,
        'csv': pyarrow.csv.read_csv}[ending]
out = {}
for path in sorted(folder.iterdir()):
    table = read(path)
    columns = [f'{field.name} {field.type}'.replace(\" ('args')\", '') for field in table.schema]
    rows = table.to_pylist()
    out[path.name.split('.')[0]] = {'columns': columns, 'rows': rows}
def args(row):
    found = row['args']
    return json.loads(found) if isinstance(found, str) else dict(found)
slices, activities = out['slices']['rows'], out['activities']['rows']
summary = {
    'tables': {name: len(table['rows']) for name, table in out.items()},
    'slices': sum(row['dur'] or 0 for row in slices),
    'activities': sum(row['dur'] for row in activities),
    'ids': sorted(args(row).get('External id', '') for row in slices if row['category'] == 'cpu_op'),
    'streams': sorted({(row['device'], args(row)['stream']) for row in activities}),
    'grids': sorted(str((r['grid_x'], r['grid_y'], r['grid_z'])) for r in activities),
    'launches': sorted(
        (slices[row['from_id']]['name'], activities[row['to_id']]['name'])
        for row in out['flows']['rows'] if row['kind'] == 'launch'),
    'ranks': sorted({row['rank'] for row in slices if row['rank'] is not None}),
    'metadata': {row['key']: row['value'] for row in out['metadata']['rows']}['distributedInfo'],
}
json.dump({'columns': {n: t['columns'] for n, t in out.items()}, 'summary': summary}, sys.stdout)
";

fn export(folder: &Path, options: &[&str]) {
    let output = kymo().args(["export", FIXTURE]).arg(folder).args(options).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{errors}");
}

fn read(folder: &Path, format: &str) -> Value {
    let mut python = Command::new(oracle::readers_python());
    let output = python.args(["-c", SCRIPT]).arg(folder).arg(format).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Counts and sums of the fixture itself.
fn expected() -> (usize, usize, i64, i64) {
    let text = std::fs::read(FIXTURE).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let is_work = |event: &&Value| {
        ["kernel", "gpu_memcpy", "gpu_memset"].contains(&event["cat"].as_str().unwrap_or_default())
    };
    let complete = || events.iter().filter(|event| event["ph"] == "X");
    let nanos = |event: &Value| (event["dur"].as_f64().unwrap() * 1000.0).round() as i64;
    let (work, host): (Vec<&Value>, Vec<&Value>) = complete().partition(is_work);
    (
        host.len(),
        work.len(),
        host.iter().map(|event| nanos(event)).sum(),
        work.iter().map(|event| nanos(event)).sum(),
    )
}

#[test]
fn all_formats_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut summaries = Vec::new();
    for format in ["parquet", "arrow", "csv"] {
        let tables = folder.path().join(format);
        export(&tables, &["--format", format]);
        let names = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<_> = std::fs::read_dir(&tables).unwrap().map(names).collect();
        names.sort();
        let wanted = ["activities", "counters", "flows", "instants", "metadata", "slices"];
        assert_eq!(names, wanted.map(|name| format!("{name}.{format}")), "nothing else");
        let mut found = read(&tables, format);
        if format == "csv" {
            // Text has no types.
            found["columns"] = Value::Null;
        }
        summaries.push(found);
    }
    assert_eq!(summaries[0]["summary"], summaries[1]["summary"]);
    assert_eq!(summaries[0]["summary"], summaries[2]["summary"]);
    assert_eq!(summaries[0]["columns"], summaries[1]["columns"]);
    let (host, work, host_nanos, work_nanos) = expected();
    let summary = &summaries[0]["summary"];
    assert_eq!(summary["tables"]["slices"], json!(host));
    assert_eq!(summary["tables"]["activities"], json!(work));
    assert_eq!(
        (&summary["slices"], &summary["activities"]),
        (&json!(host_nanos), &json!(work_nanos))
    );
    assert_eq!(summary["ranks"], json!([3]));
    assert!(summary["metadata"].as_str().unwrap().contains("\"rank\": 3"), "{summary:#}");
    let launches = json!([
        ["cudaGraphLaunch", "overlaps"],
        ["cudaGraphLaunch", "overlaps"],
        ["cudaLaunchKernel", "void gemm<128, 64>(float*, \"x\")"],
        ["cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"],
    ]);
    assert_eq!(summary["launches"], launches);
    assert_eq!(summary["streams"], json!([[0, "20"], [0, "7"]]));
    assert!(summary["grids"].as_array().unwrap().contains(&json!("(3072, 1, 1)")), "{summary:#}");
}

#[test]
fn the_columns_are_those_of_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), &[]);
    let found = read(folder.path(), "parquet");
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "docs", "EXPORT.md"].iter().collect();
    let text = std::fs::read_to_string(path).unwrap();
    let mut documented = serde_json::Map::new();
    let mut table = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## `") {
            table = name.trim_end_matches('`').to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let mut cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
            let (name, ty) = (cells.next().unwrap(), cells.next().unwrap());
            let ty = ty.trim_end_matches('?');
            let column = json!(format!("{name} {ty}"));
            let columns = documented.entry(table.clone()).or_insert_with(|| json!([]));
            columns.as_array_mut().unwrap().push(column);
        }
    }
    assert_eq!(found["columns"], Value::Object(documented));
}

#[test]
fn a_part_is_exported_and_files_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), &["--category", "kernel"]);
    let found = read(folder.path(), "parquet");
    let tables = &found["summary"]["tables"];
    assert!(tables["slices"] == 0 && tables["activities"].as_u64() > Some(0), "{tables}");
    // What is there stays when the export fails.
    let before = std::fs::read(folder.path().join("slices.parquet")).unwrap();
    let bad = folder.path().join("bad");
    std::fs::write(&bad, "no trace").unwrap();
    let output = kymo().arg("export").args([&bad, folder.path()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(folder.path().join("slices.parquet")).unwrap(), before);
    // A file in the way of the folder.
    let output = kymo().args(["export", FIXTURE]).arg(&bad).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write") && said.contains("bad"), "{said}");
}
