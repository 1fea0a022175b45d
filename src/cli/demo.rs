//! `kymo demo`: a trace to look at.

use super::{Failure, files, say, status, suffix, workload};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Records a small workload of its own, to see what a trace looks like.
#[derive(Args)]
pub(super) struct Demo {
    /// Where to write the trace.
    #[arg(short, long, value_name = "FILE", default_value = "demo.pftrace")]
    output: PathBuf,
    /// Replace FILE even if it is not a trace.
    #[arg(long)]
    force: bool,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

impl Demo {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        suffix::refuse_for_recordings(&self.output)?;
        files::may_replace(&self.output, self.force)?;
        let mut config = kymograph::Config::default();
        config.output.clone_from(&self.output);
        let summary = workload::run(config)?;
        if self.quiet {
            return Ok(ExitCode::SUCCESS);
        }
        say(&format!(
            "{}, {}, {} lost → {} ({})",
            status::count(summary.threads, "thread", "threads"),
            status::count(summary.events, "event", "events"),
            status::grouped(summary.lost),
            self.output.display(),
            status::size(summary.bytes)
        ));
        say(&status::look_at(&self.output));
        say(
            "look for: nested slices with arguments (click one), the counter, the arrows between threads, the async track",
        );
        Ok(ExitCode::SUCCESS)
    }
}
