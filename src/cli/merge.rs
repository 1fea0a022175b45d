//! `kymo merge`: several traces on one timeline.

use super::{Failure, files, say, status};
use clap::{Args, ValueEnum};
use kymograph_converters::format::Format;
use kymograph_converters::merge::{Align, Merger, Part, Related};
use kymograph_converters::trace::Nanos;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  The ranks of a job, whatever host they ran on:
      kymo merge job.pftrace rank*.json.gz
  Hosts whose clocks are not synchronised well, by the ends of their collectives:
      kymo merge --align collectives job.pftrace node1/*.pftrace node2/*.pftrace";

/// Puts several traces on one timeline, such as those of the ranks of a job.
///
/// Processes and devices stay apart even where their numbers coincide: in all but the first
/// trace that has one, it is replaced. Ranks and hosts are found in the traces and shown
/// beside the names.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Merge {
    /// Where to write the merged trace; `-` for standard output. The name says the format.
    #[arg(value_name = "OUT", required_unless_present = "output")]
    out: Option<PathBuf>,
    /// The traces, of any format; their clocks are related to that of the first.
    #[arg(value_name = "IN", required_unless_present = "output")]
    inputs: Vec<PathBuf>,
    /// OUT, as an option: all else are traces to read then.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How clocks are aligned.
    #[arg(long, value_enum, default_value = "clocks")]
    align: By,
    /// The format of OUT, if its name does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = files::parse_written)]
    to: Option<Format>,
    /// Leave the packets of a .pftrace as they are, for tools that cannot unpack them.
    #[arg(long)]
    plain: bool,
    /// Only complain; say nothing about the clocks.
    #[arg(short, long)]
    quiet: bool,
    /// Replace OUT even if it is not a trace.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// By the time of day that each trace states.
    Clocks,
    /// By that, and then so that collectives end together.
    Collectives,
}

impl Merge {
    pub(super) fn run(mut self) -> Result<ExitCode, Failure> {
        let output = match (self.output.take(), self.out.take()) {
            (Some(output), first) => {
                self.inputs.splice(0..0, first);
                output
            }
            (None, first) => first.unwrap_or_default(),
        };
        if self.inputs.is_empty() {
            return Err(Failure("there is no trace to merge: name some behind OUT".to_owned()));
        }
        let to = files::format_of(&output, self.to)?;
        files::may_replace(&output, self.force)?;
        let mut merger = Merger::new();
        for input in &self.inputs {
            merger.add(&self.name(input), files::read(input, None)?);
        }
        let align = match self.align {
            By::Clocks => Align::Clocks,
            By::Collectives => Align::Collectives,
        };
        let (trace, parts) = merger.finish(align);
        let left_out = files::write(&trace, &output, to, self.plain)?;
        for part in &parts {
            let unsure = matches!(part.related, Related::Assumed | Related::Unrelated);
            if !self.quiet || unsure {
                say(&describe(part, align));
            }
        }
        files::say_warnings(trace.facts.warnings.iter().chain(&left_out));
        Ok(ExitCode::SUCCESS)
    }
}

impl Merge {
    /// What an input is called: by its file's name, or its path if others have that name.
    fn name(&self, input: &Path) -> String {
        let same = self.inputs.iter().filter(|other| other.file_name() == input.file_name());
        match input.file_name() {
            Some(name) if same.count() == 1 => name.to_string_lossy().into_owned(),
            _ => input.display().to_string(),
        }
    }
}

/// A trace's clock in one line.
fn describe(part: &Part, align: Align) -> String {
    let related = match part.related {
        Related::First => "its clock is that of the merged trace",
        Related::Same => "the same clock as the first",
        Related::TimeOfDay => "by the time of day",
        Related::Assumed => "states no time of day: taken to have the clock of the first",
        Related::Unrelated => "states no time of day: made to begin with the first",
    };
    let collectives = match (part.collectives, align) {
        (Some(found), _) if !found.agree() => format!(
            "; not moved further, since {} disagree: half of them by more than {}",
            status::count(found.matched, "collective", "collectives"),
            duration(found.spread)
        ),
        (Some(found), _) => format!(
            "; moved by {} so that {} end together, half of them within {}",
            duration(found.offset),
            status::count(found.matched, "collective", "collectives"),
            duration(found.spread)
        ),
        (None, Align::Collectives) if part.related != Related::First => {
            "; no collectives in common with the others, not moved further".to_owned()
        }
        _ => String::new(),
    };
    let (name, label) = (&part.name, &part.label);
    let label = if name == label { String::new() } else { format!(" ({label})") };
    format!("{name}{label}: {related}{collectives}")
}

fn duration(time: Nanos) -> String {
    match time.0.unsigned_abs() {
        0..1_000 => format!("{} ns", time.0),
        1_000..1_000_000 => format!("{:.1} µs", time.0 as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", time.0 as f64 / 1e6),
        _ => format!("{:.6} s", time.0 as f64 / 1e9),
    }
}
