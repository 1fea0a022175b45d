//! `kymo info`: what is in a trace.

use super::files::{describe, read};
use super::{Refusal, status};
use clap::Args;
use kymograph_converters::format::Format;
use kymograph_converters::trace::Summary;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows what is in a trace: processes, devices, events, losses, warnings.
#[derive(Args)]
pub(super) struct Info {
    /// The trace; `-` for standard input. May be packed with gzip or zstd.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// For programs.
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(super) fn run(self) -> Result<ExitCode, Refusal> {
        let trace = read(&self.input, None::<Format>)?;
        let summary = Summary::of(&trace);
        let text = if self.json { summary.to_json() } else { page(&summary) };
        // A closed stdout is no reason to fail.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    }
}

fn page(summary: &Summary) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: String| lines.push(format!("{name:<12}{value}"));
    if !summary.producer.is_empty() {
        line("producer", summary.producer.clone());
    }
    line("time", format!("{:.6} s", summary.seconds()));
    if let Some(began) = summary.began_unix {
        line(
            "began",
            format!("{}.{:09} (Unix time)", began / 1_000_000_000, began % 1_000_000_000),
        );
    }
    let counts = [
        ("slices", summary.slices),
        ("unfinished", summary.unfinished),
        ("instants", summary.instants),
        ("device", summary.activities),
        ("samples", summary.samples),
        ("arrows", summary.arrows),
    ];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        line(name, status::grouped(count));
    }
    let mut section = |title: &str, rows: Vec<(String, String)>| {
        if !rows.is_empty() {
            lines.push(format!("\n{title}"));
            let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
            lines.extend(rows.iter().map(|(name, value)| format!("  {name:<width$}  {value}")));
        }
    };
    let grouped = |rows: &[(String, u64)]| {
        rows.iter().map(|(name, count)| (name.clone(), status::grouped(*count))).collect()
    };
    let events = |n: u64| status::count(n, "event", "events");
    let process = |p: &kymograph_converters::trace::ProcessSummary| {
        let threads = status::count(p.threads, "thread", "threads");
        (format!("{} {}", p.pid, p.name), format!("{threads}, {}", events(p.events)))
    };
    section("processes", summary.processes.iter().map(process).collect());
    let device = |d: &kymograph_converters::trace::DeviceSummary| {
        let queues = status::count(d.queues, "queue", "queues");
        (format!("{} {}", d.number, d.name), format!("{queues}, {}", events(d.activities)))
    };
    section("devices", summary.devices.iter().map(device).collect());
    section("categories", grouped(&summary.categories));
    section("packets", grouped(&summary.kinds));
    section("metadata", summary.metadata.clone());
    section("lost", grouped(&summary.losses));
    if !summary.warnings.is_empty() {
        lines.push("\nwarnings".to_owned());
        lines.extend(summary.warnings.iter().map(|warning| format!("  {}", describe(warning))));
    }
    lines.push(String::new());
    lines.join("\n")
}
