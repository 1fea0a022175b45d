//! JSON into the hub and out of it, against serde_json on the same bytes in the same run.
//!
//! `cargo bench -p kymograph-converters --bench json [FILE…]`; without files, a synthetic trace
//! of 64 MB. Prints the best of several runs, in MB of JSON per second, and the peak of the
//! resident memory after streaming each file.

use std::hint::black_box;
use std::io::Read;
use std::time::Instant;

use kymograph_converters::json::{Document, Limits};
use kymograph_converters::{chrome, kineto, perfetto};

const RUNS: usize = 5;

fn main() {
    let mut files: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let folder = tempfile::tempdir().expect("a folder");
    if files.is_empty() {
        let path = folder.path().join("synthetic.json");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/synthetic_kineto.py");
        let made = std::process::Command::new("python3").args([script, "64"]).arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()), "python3 is needed");
        files.push(path.to_string_lossy().into_owned());
    }
    println!("MB/s, best of {RUNS}");
    for path in files {
        let bytes = std::fs::read(&path).expect("the file");
        println!("{path}: {:.1} MB", bytes.len() as f64 / 1e6);
        let serde = measure("serde_json, Value", bytes.len(), || {
            black_box(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        });
        measure("serde_json, IgnoredAny", bytes.len(), || {
            black_box(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
        });
        measure("json::Document alone", bytes.len(), || {
            let mut document = Document::new(&bytes[..], Limits::default());
            while let Ok(Some(item)) = document.next_item() {
                black_box(item);
            }
        });
        let read = measure("JSON to hub", bytes.len(), || {
            black_box(chrome::read(&bytes[..], &Limits::default()).is_ok());
        });
        let trace = chrome::read(&bytes[..], &Limits::default()).expect("a trace");
        let mut out = Vec::new();
        kineto::write(&trace, &mut out).expect("memory");
        let length = out.len();
        measure("hub to JSON", length, || {
            out.clear();
            kineto::write(&trace, &mut out).expect("memory");
        });
        measure("JSON to .pftrace", bytes.len(), || {
            let trace = chrome::read(&bytes[..], &Limits::default()).expect("a trace");
            black_box(perfetto::write(&trace, std::io::sink()).expect("a sink"));
        });
        println!("  {:<26}{:>8.2}", "JSON to hub / Value", read / serde);
    }
    memory();
}

fn measure(what: &str, bytes: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    let rate = bytes as f64 / best / 1e6;
    println!("  {what:<26}{rate:>8.0}");
    rate
}

fn memory() {
    let mut status = String::new();
    let file = std::fs::File::open("/proc/self/status");
    if file.and_then(|mut file| file.read_to_string(&mut status)).is_ok() {
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        println!("{peak} (with the file itself in memory)");
    }
}
