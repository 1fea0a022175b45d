//! JSON becomes a Perfetto trace that trace_processor finds nothing wrong with, with as many
//! slices of each name, category and total duration as the JSON has. And it becomes JSON again.

mod same_events;
mod same_sums;

use kymograph_converters::perfetto::Packets;
use kymograph_converters::{chrome, json, kineto, packed, perfetto};
use oracle::Trace;
use same_events::Through;

fn convert(json: &str, path: &std::path::Path, packets: Packets) {
    let trace = chrome::read(json.as_bytes(), &json::Limits::default()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let written = perfetto::write_packets(&trace, file, packets).unwrap();
    assert_eq!((written.before_zero, written.flow_ends), (0, 0));
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
    let differences = same_sums::differences(json, &trace);
    assert!(differences.is_empty(), "{differences:#?}");

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
fn of_xpu() {
    check(include_str!("data/kineto_xpu.json"));
}

#[test]
fn of_mtia() {
    check(include_str!("data/kineto_mtia.json"));
}

#[test]
fn of_privateuse1() {
    check(include_str!("data/kineto_privateuse1.json"));
}

#[test]
fn of_gaudi() {
    check(include_str!("data/gaudi.json"));
}

#[test]
fn of_old_pytorch() {
    check(include_str!("data/kineto_2021.json"));
}

#[test]
fn of_jax() {
    check(include_str!("data/jax.json"));
}

#[test]
fn of_chrome() {
    let json = include_str!("data/chrome.json");
    // Perfetto's arrows touch an event where it begins.
    let arrows = [
        (r#""ph": "s", "id": 1, "pid": 1, "tid": 2, "ts": 11"#, "11", "10"),
        (r#""ph": "t", "id": 1, "pid": 1, "tid": 2, "ts": 30.5"#, "30.5", "30.25"),
        (r#""ph": "f", "id": 1, "pid": 3, "tid": 3, "ts": 32"#, "32", "31"),
    ];
    let json = arrows.iter().fold(json.to_owned(), |json, (arrow, from, to)| {
        assert!(json.contains(arrow));
        json.replace(arrow, &arrow.replace(from, to))
    });
    check(&json);
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
