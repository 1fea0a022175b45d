//! What `kymo record` wrote, as JSON, is read by the tools that Kineto's users have:
//! HolisticTraceAnalysis and torch-tb-profiler, in the versions that `tests/oracle/setup` fetches.
//! They find the kernels, the calls that launched them, and the times that were recorded. And
//! it is JSON by Python's standard, in which every arrow has two ends at events.

use fakes::Machine;
use harness::{fakes, kymo};
use kymo::kymo;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording of a program with CUDA (fakes, since there is no GPU here), as JSON.
fn recorded(folder: &Path) -> PathBuf {
    let machine = Machine::with("13.1");
    let step = "kernel gemm grid=4,2,1 block=128 regs=40 shared=512 dynamic=256 dur=2000us\n\
                kernel reduce dur=1000us\n\
                copy htod 4096 dur=500us\n\
                set 1024 value=7 dur=100us\n\
                sync\n";
    let (trace, json) = (folder.join("t.pftrace"), folder.join("t.json"));
    let mut command = kymo();
    machine.prepare(&mut command);
    command.env("RANK", "5").env("WORLD_SIZE", "8");
    command.args(["record", "--quiet", "--output"]).arg(&trace).arg("--");
    let output = command.arg(machine.program()).arg(machine.script(&step.repeat(10))).output();
    assert!(output.as_ref().unwrap().status.success(), "{output:?}");
    let output = kymo().arg("convert").args([&trace, &json]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    json
}

fn python(arguments: &[&Path]) -> String {
    let output = Command::new(oracle::readers_python()).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// The rows of a table, by the name in their first column.
fn row<'a>(table: &'a Value, name: &str) -> &'a [Value] {
    let rows = table["rows"].as_array().unwrap();
    let found = rows.iter().map(|row| row.as_array().unwrap()).find(|row| row[0] == name);
    found.unwrap_or_else(|| panic!("no {name} in {table:#}"))
}

#[test]
fn tools_find_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let json = recorded(folder.path());
    let said: Value =
        serde_json::from_str(&python(&[&here("compat/what_tools_say.py"), &json])).unwrap();
    let hta = &said["HTA"];
    // The rank is the one of the environment.
    let temporal = &hta["temporal breakdown"]["rows"][0];
    assert_eq!(temporal[0], 5, "{said:#}");
    // It rounds the beginning and the end of each event to microseconds.
    let is = |value: &Value, micros: f64, events: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - micros).abs() <= events, "{value} is not {micros}: {hta:#}");
    };
    is(&temporal[2], 30_000.0, 20.0);
    let [types, each] = [0, 1].map(|index| &hta["kernel breakdown"][index]);
    is(&row(types, "COMPUTATION")[1], 30_000.0, 20.0);
    is(&row(types, "MEMORY")[1], 6_000.0, 20.0);
    is(&row(each, "gemm")[1], 20_000.0, 10.0);
    let launches = hta["launches"]["5"]["rows"].as_array().unwrap();
    assert_eq!(launches.len(), 40, "each call with what it launched: {:#}", hta["launches"]);
    let kernels = &said["TB"]["kernels"]["data"];
    let columns: Vec<_> = kernels["columns"].as_array().unwrap().iter().collect();
    let column = |name: &str| columns.iter().position(|column| column["name"] == name).unwrap();
    let gemm = row(kernels, "gemm");
    assert_eq!(gemm[column("Calls")], 10);
    is(&gemm[column("Total Duration (us)")], 20_000.0, 10.0);
    assert!(gemm[column("Mean Blocks Per SM")].as_f64() > Some(0.0), "{kernels:#}");
    assert!(said["TB"]["overview"].is_object(), "{said:#}");
}

#[test]
fn it_is_json_and_arrows_bind() {
    let folder = tempfile::tempdir().unwrap();
    let json = recorded(folder.path());
    let script = folder.path().join("check.py");
    // An arrow's end binds to the slice on its row that it lies in.
    let text = "
import json, sys
events = json.load(open(sys.argv[1]), parse_constant=sys.exit)['traceEvents']
slices = {}
for e in events:
    if e['ph'] == 'X':
        slices.setdefault((e['pid'], e['tid']), []).append((e['ts'], e['ts'] + e['dur'], e['name']))
ends = {}
for e in events:
    if e['ph'] in 'sf':
        around = [s for s in slices[e['pid'], e['tid']] if s[0] <= e['ts'] <= s[1]]
        assert around, e
        ends.setdefault((e['cat'], e['id']), []).append((e['ph'], around[-1][2]))
print(len(ends), sorted({tuple(sorted(pair)) for pair in ends.values()}))
";
    std::fs::write(&script, text).unwrap();
    assert_eq!(
        python(&[&script, &json]),
        "40 [(('f', 'Memcpy HtoD (Pinned -> Device)'), ('s', 'cudaMemcpyAsync')), \
         (('f', 'Memset (Device)'), ('s', 'cudaMemsetAsync')), \
         (('f', 'gemm'), ('s', 'cudaLaunchKernel')), \
         (('f', 'reduce'), ('s', 'cudaLaunchKernel'))]\n"
    );
}

#[test]
fn every_process_has_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(recorded(folder.path())).unwrap();
    let json: Value = serde_json::from_slice(&bytes).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let mut labels: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_labels")
        .filter_map(|event| event["args"]["labels"].as_str())
        .collect();
    labels.sort_unstable();
    assert_eq!(labels, ["CPU", "GPU 0"]);
}

#[test]
fn a_trace_of_the_host_alone_is_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, json) = (folder.path().join("t.pftrace"), folder.path().join("t.json"));
    let output = kymo().args(["demo", "-o"]).arg(&trace).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let output = kymo().arg("convert").args([&trace, &json]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = python(&[&here("compat/what_tools_say.py"), &json]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["TB"].get("load"), None, "{said:#}");
    assert_eq!(said["HTA"].get("load"), None, "{said:#}");
    assert!(said["TB"]["operators"].is_array(), "{said:#}");
}
