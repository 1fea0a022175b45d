//! `kymo recover`: the trace of a program that was killed while it recorded itself.

use super::{Failure, say, status, suffix};
use clap::Args;
use kymograph::collect::Recovered;
use kymograph::config::Config;
use kymograph::sink;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Makes a trace of what a killed program had recorded by itself, with RECOVER set.
///
/// FILE is what it left beside its output: OUTPUT.recover. It stays as it is.
#[derive(Args)]
pub(super) struct Recover {
    /// What the program has left: OUTPUT.recover.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the trace goes; .gz and .zst at its end choose a compression. By default it lies
    /// beside OUTPUT: app.recovered.pftrace for app.pftrace.recover.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there.
    #[arg(long)]
    force: bool,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

impl Recover {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let shown = self.file.display();
        let failed = |error| Failure(format!("{shown} cannot be recovered: {error}"));
        let output = self.output.clone().unwrap_or_else(|| beside(&self.file));
        suffix::refuse_for_recordings(&output)?;
        if output.symlink_metadata().is_ok() && !self.force {
            let there = output.display();
            return Err(Failure(format!(
                "{there} is there already: give another name with -o, or replace it with --force"
            )));
        }
        let recovered = Recovered::open(&self.file).map_err(failed)?;
        let (pid, is_whole) = (recovered.pid(), recovered.is_whole());
        let mut config = Config::to_file(&output);
        // The folder may be another user's.
        config.safe = true;
        // Under a name of its own until it is whole.
        let draft = output.with_added_extension(format!("{}.part", std::process::id()));
        let sink = sink::open_file(&config, &draft)?;
        let summary = recovered.write(config, sink).map_err(failed);
        let summary = summary.inspect_err(|_| _ = fs::remove_file(&draft))?;
        if summary.failure.is_some() || summary.events == 0 {
            let _ = fs::remove_file(&draft);
            let why = summary.failure.unwrap_or_else(|| "there is no event in it".to_owned());
            return Err(Failure(format!("{shown} cannot be recovered: {why}")));
        }
        fs::rename(&draft, &output)?;
        if !self.quiet {
            let length = output.metadata().map_or(0, |file| file.len());
            say(&format!(
                "process {pid}: {}, {} lost → {} ({})",
                status::count(summary.events, "event", "events"),
                status::grouped(summary.lost),
                output.display(),
                status::size(length)
            ));
            if !is_whole {
                say("it recorded more than RECOVER has room for: this is only what was not \
                     written yet when it was killed; the rest is in its own output");
            }
            say(&status::look_at(&output));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// `app.recovered.pftrace` for `app.pftrace.recover`.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let name = name.strip_suffix(".old").unwrap_or(&name);
    let name = name.strip_suffix(".recover").unwrap_or(name);
    let (stem, extension) = name.split_once('.').unwrap_or((name, "pftrace"));
    file.with_file_name(format!("{stem}.recovered.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_lies_beside_the_output() {
        for (file, output) in [
            ("/a/t.pftrace.recover", "/a/t.recovered.pftrace"),
            ("t.pftrace.gz.recover.old", "t.recovered.pftrace.gz"),
            ("left", "left.recovered.pftrace"),
        ] {
            assert_eq!(beside(Path::new(file)), Path::new(output));
        }
    }
}
