//! `kymo convert`: a trace in another format.

use super::part::Part;
use super::{Failure, files, say, status};
use clap::Args;
use kymograph_converters::format::Format;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const EXAMPLES: &str = "\
EXAMPLES
  PyTorch's JSON into a trace that opens fast and shows overlapping kernels:
      kymo convert run.pt.trace.json.gz run.pftrace
  A recording for tools that read Kineto's JSON:
      kymo convert app.pftrace app.json.gz
  What Nsight Systems recorded, for `kymo analyze` and Perfetto:
      nsys export --type sqlite run.nsys-rep && kymo convert run.sqlite run.pftrace
  The second second of a trace, through a pipe:
      kymo convert --time-range 1s..2s --to chrome big.pftrace - | gzip > part.json.gz";

/// Converts a trace between Perfetto's format, the JSON of Kineto and Chrome, speedscope and the
/// Firefox Profiler; also reads XPlane (JAX), Nsight Systems' SQLite export, rocprofv3's JSON and
/// database, and the text of `perf script`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Convert {
    /// The trace to read; `-` for standard input. May be packed with gzip or zstd.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write it; `-` for standard output. The name says the format (.pftrace, .json,
    /// .chrome.json, .speedscope.json, .firefox.json) and the packing (.gz, .zst).
    #[arg(value_name = "OUT", required_unless_present = "output")]
    out: Option<PathBuf>,
    /// OUT, as an option.
    #[arg(short, long, value_name = "FILE", conflicts_with = "out")]
    output: Option<PathBuf>,
    /// The format of IN, if its beginning does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = files::parse_format)]
    from: Option<Format>,
    /// The format of OUT, if its name does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = files::parse_written)]
    to: Option<Format>,
    /// Leave the packets of a .pftrace as they are, for tools that cannot unpack them; the
    /// file is some five times larger. What goes to standard output always is as it is.
    #[arg(long)]
    plain: bool,
    /// Replace OUT even if it is not a trace.
    #[arg(long)]
    force: bool,
    /// Only complain.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    part: Part,
}

impl Convert {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let started = Instant::now();
        // One of the two is there, and not both.
        let output = self.out.or(self.output).unwrap_or_default();
        let to = files::format_of(&output, self.to)?;
        files::may_replace(&output, self.force)?;
        let trace = self.part.of_some(files::read(&self.input, self.from)?)?;
        let left_out = files::write(&trace, &output, to, self.plain)?;
        if io::stderr().is_terminal() && !self.quiet {
            let events = trace.slices.len() + trace.activities.len() + trace.instants.len();
            say(&format!(
                "{} → {} in {:.1} s",
                status::count(events as u64, "event", "events"),
                output.display(),
                started.elapsed().as_secs_f64()
            ));
        }
        files::say_warnings(trace.facts.warnings.iter().chain(&left_out));
        Ok(ExitCode::SUCCESS)
    }
}
