//! `kymo demo`: a trace to look at.

use super::{Failure, say, status, workload};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Records a small workload of its own, to see what a trace looks like.
#[derive(Args)]
pub(super) struct Demo {
    /// Where to write the trace.
    #[arg(short, long, value_name = "FILE", default_value = "demo.pftrace")]
    output: PathBuf,
}

impl Demo {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let mut config = kymograph::Config::default();
        config.output.clone_from(&self.output);
        let summary = workload::run(config)?;
        say(&format!(
            "{}, {}, {} lost → {} ({})",
            status::count(summary.threads, "thread", "threads"),
            status::count(summary.events, "event", "events"),
            status::grouped(summary.lost),
            self.output.display(),
            status::size(summary.bytes)
        ));
        say(&format!("look at it: kymo open {}", self.output.display()));
        say(
            "look for: nested slices with arguments (click one), the counter, the arrows between threads, the async track",
        );
        Ok(ExitCode::SUCCESS)
    }
}
