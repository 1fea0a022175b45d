//! `kymo demo`: a trace to look at.

use super::{Refusal, say, status};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Records a small workload of its own, to see what a trace looks like.
#[derive(Args)]
pub(super) struct Demo {
    /// Where to write the trace.
    #[arg(short, long, value_name = "FILE", default_value = "demo.pftrace")]
    output: PathBuf,
}

// ── DEMO WORKLOAD ── placeholder for what the library provides, e.g.
// `kymograph::demo::run(path) -> Result<Summary, kymograph::Error>`.
struct Summary {
    threads: u64,
    events: u64,
    lost: u64,
    bytes: u64,
}

fn workload(_output: &Path) -> Result<Summary, kymograph::Error> {
    Ok(Summary { threads: 0, events: 0, lost: 0, bytes: 0 })
}

impl Demo {
    pub(super) fn run(self) -> Result<ExitCode, Refusal> {
        let summary = workload(&self.output)?;
        say(&format!(
            "{}, {}, {} lost → {} ({})",
            status::count(summary.threads, "thread", "threads"),
            status::count(summary.events, "event", "events"),
            status::grouped(summary.lost),
            self.output.display(),
            status::size(summary.bytes)
        ));
        say("open it at https://ui.perfetto.dev (Open trace file)");
        say(
            "look for: nested slices with arguments (click one), the counter, the arrows between threads, the async track",
        );
        Ok(ExitCode::SUCCESS)
    }
}
