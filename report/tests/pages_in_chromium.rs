//! Reports of traces of this repository in a browser: every page shows without complaint, the
//! tables are those of `kymo analyze --format json`, and what can be used works
//! (`in_chromium.mjs`). Needs Node, npm and Chromium, and says so where they are not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use kymograph_analysis::{Metric, Options, Part, render, run};
use kymograph_converters::format;
use kymograph_report::{Rank, Report, Settings, metrics};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A report of traces, a run for each name, with the tables that must be in it.
fn make(folder: &Path, name: &str, traces: &[(&str, PathBuf)]) {
    let compared = traces.iter().any(|(name, _)| *name != traces[0].0);
    let settings = Settings { compared, ..Settings::default() };
    let mut ranks = Vec::new();
    let mut parts: Vec<Vec<Part>> = Vec::new();
    let mut names: Vec<&str> = metrics::OF_RUN.to_vec();
    names.push(metrics::RECOMMENDATIONS);
    let all: Vec<&Metric> = metrics::find(&names);
    for (number, (of, path)) in traces.iter().enumerate() {
        let trace = format::read(File::open(path).unwrap(), None).unwrap();
        for (process, rank) in run::ranks(&trace, number as i64) {
            let file = path.file_name().unwrap().to_string_lossy();
            let read = Rank::read(&trace, process, rank, &file, &settings);
            ranks.push(((*of).to_owned(), read));
            let options = Options::default();
            let given = run::of_process(&all, &trace, process, rank, &options);
            let own = *of == traces[0].0;
            parts.resize(all.len(), Vec::new());
            for (parts, part) in parts.iter_mut().zip(given).filter(|_| own) {
                parts.extend(part);
            }
        }
    }
    let mut expected = Vec::new();
    for (metric, parts) in all.iter().zip(parts) {
        let table = run::over_ranks(metric, parts, &Options::default());
        let table = table.map_or("null".to_owned(), |batch| render::json(metric.name, &batch));
        expected.push(format!("{{\"metric\": \"{}\", \"table\": {table}}}", metric.name));
    }
    fs::write(folder.join(format!("{name}.json")), format!("[{}]", expected.join(",\n"))).unwrap();
    let mut page = File::create(folder.join(format!("{name}.html"))).unwrap();
    Report::new(ranks, &settings).write(&mut page).unwrap();
}

/// A trace whose names would do harm if they were more than text.
fn hostile(folder: &Path) -> PathBuf {
    let names = [
        "<script>window.hacked = 1</script>",
        "</script><img src=x onerror=\\\"window.hacked = 1\\\">",
        "\\\"><svg onload=window.hacked=1>",
        "<!--<script>",
    ];
    let event = |(n, name): (usize, &&str)| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"{name}\", \"pid\": 1, \"tid\": 1, \
             \"ts\": {}, \"dur\": 5}}",
            10 * n + 1
        )
    };
    let events: Vec<String> = names.iter().enumerate().map(event).collect();
    let path = folder.join("<img src=x onerror=window.hacked=1>.json");
    let device = "{\"id\": 0, \"name\": \"<script>window.hacked=1</script>\"}";
    let process = "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"ts\": 0, \
                   \"args\": {\"name\": \"</script><b>\"}}";
    let text = format!(
        "{{\"schemaVersion\": 1, \"deviceProperties\": [{device}], \"traceEvents\": [{process}, {}]}}",
        events.join(", ")
    );
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn every_page_shows_what_the_tables_say() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let chromium = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    if !(there("node") && there("npm") && there(&chromium)) {
        println!("skipped: this asks a browser (Debian: apt install nodejs npm chromium)");
        return;
    }
    if !web.join("node_modules/axe-core").exists() {
        let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"];
        let done = Command::new("npm").args(install).current_dir(&web).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| repository().join(name);
    let traces = "analysis/tests/data/traces";
    let rank = |n: usize| at(&format!("{traces}/ddp_cut_rank{n}.json.gz"));
    make(folder.path(), "ranks", &[("", rank(0)), ("", rank(1))]);
    make(folder.path(), "runs", &[("base", rank(0)), ("test", rank(1))]);
    let empty = folder.path().join("empty.json.txt");
    fs::write(&empty, "{\"schemaVersion\": 1, \"traceEvents\": []}").unwrap();
    make(folder.path(), "empty", &[("", empty)]);
    make(folder.path(), "hostile", &[("", hostile(folder.path()))]);
    let script = at("report/tests/in_chromium.mjs");
    let done = Command::new("node").arg(script).arg(folder.path()).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", said(&done.stdout), said(&done.stderr));
    println!("{}", said(&done.stdout));
}
