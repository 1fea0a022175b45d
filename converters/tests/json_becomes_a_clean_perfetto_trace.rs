//! JSON becomes a Perfetto trace that trace_processor finds nothing wrong with, with as many
//! slices of each name, category and total duration as the JSON has. And it becomes JSON again.

mod same_events;

use std::collections::BTreeMap;

use judge::Trace;
use kymograph_converters::perfetto::Packets;
use kymograph_converters::{chrome, json, kineto, packed, perfetto};
use same_events::Through;
use serde_json::Value;

fn convert(json: &str, path: &std::path::Path, packets: Packets) {
    let trace = chrome::read(json.as_bytes(), &json::Limits::default()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let written = perfetto::write_packets(&trace, file, packets).unwrap();
    assert_eq!((written.before_zero, written.flow_ends), (0, 0));
}

/// Count and total duration in nanoseconds of complete events, by name.
fn of_json(json: &str) -> BTreeMap<String, (i64, i64)> {
    let whole: Value = serde_json::from_str(json).unwrap();
    let mut out = BTreeMap::<String, (i64, i64)>::new();
    for event in whole["traceEvents"].as_array().unwrap() {
        if event["ph"] == "X" {
            let entry = out.entry(event["name"].as_str().unwrap().to_owned()).or_default();
            entry.0 += 1;
            entry.1 += (event["dur"].as_f64().unwrap() * 1000.0).round() as i64;
        }
    }
    out
}

fn of_perfetto(trace: &Trace) -> BTreeMap<String, (i64, i64)> {
    let rows = trace.rows("SELECT name, count(*), sum(dur) FROM slice WHERE dur > 0 GROUP BY name");
    let row = |row: Vec<Value>| {
        let number = |value: &Value| value.as_i64().unwrap();
        (row[0].as_str().unwrap_or("").to_owned(), (number(&row[1]), number(&row[2])))
    };
    rows.into_iter().map(row).collect()
}

fn check(json: &str) {
    check_packets(json, Packets::Plain);
    check_packets(json, Packets::Deflated);
}

fn check_packets(json: &str, packets: Packets) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    convert(json, &path, packets);
    let trace = Trace::open(&path);
    trace.assert_clean();
    let mut wanted = of_json(json);
    // Those without a duration look like moments.
    wanted.retain(|_, (_, dur)| *dur > 0);
    assert_eq!(of_perfetto(&trace), wanted);

    let file = std::fs::File::open(&path).unwrap();
    let again = perfetto::read(file, packed::Limits::default()).unwrap();
    let mut out = Vec::new();
    kineto::write(&again, &mut out).unwrap();
    let found = same_events::compare(json, std::str::from_utf8(&out).unwrap(), Through::Perfetto);
    assert!(found.differences.is_empty(), "{:#?}", found.differences);
}

#[test]
fn of_cuda() {
    check(include_str!("data/kineto_cuda.json"));
}

#[test]
fn of_rocm() {
    check(include_str!("data/kineto_rocm.json"));
}

#[test]
fn arrows_go_from_calls_to_what_they_launched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    convert(include_str!("data/kineto_cuda.json"), &path, Packets::Deflated);
    let trace = Trace::open(&path);
    let arrows = trace.table(
        "SELECT a.name, b.name, count(*) FROM flow
         JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in
         GROUP BY 1, 2 ORDER BY 1, 2",
    );
    for arrow in [
        ["aten::mm", "MmBackward0"],
        ["cudaGraphLaunch", "overlaps"],
        ["cudaLaunchKernel", "void gemm<128, 64>(float*, \"x\")"],
        ["cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)"],
        ["cudaStreamSynchronize", "Stream Sync"],
    ] {
        let found = arrows.lines().any(|line| arrow.iter().all(|name| line.contains(name)));
        assert!(found, "{arrow:?} in\n{arrows}");
    }
}

#[test]
fn overlapping_kernels_keep_their_durations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    convert(include_str!("data/kineto_cuda.json"), &path, Packets::Deflated);
    let trace = Trace::open(&path);
    let durations =
        "SELECT dur FROM slice WHERE category IS NULL AND name = 'overlaps' ORDER BY ts";
    let durations: Vec<i64> =
        trace.rows(durations).iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert_eq!(durations, [20_000, 1]);
}
