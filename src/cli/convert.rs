//! `kymo convert`: a trace in another format.

use super::{Refusal, say, status};
use clap::Args;
use kymograph_converters::format::{self, Format};
use kymograph_converters::packed::Packing;
use kymograph_converters::trace::{Filter, Nanos, Trace, Warning};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const EXAMPLES: &str = "\
EXAMPLES
  PyTorch's JSON into a trace that opens fast and shows overlapping kernels:
      kymo convert run.pt.trace.json.gz run.pftrace
  A recording for tools that read Kineto's JSON:
      kymo convert app.pftrace app.json.gz
  The second second of a trace, through a pipe:
      kymo convert --time-range 1s..2s --to chrome big.pftrace - | gzip > part.json.gz";

/// Converts a trace between Perfetto's format and Kineto's or Chrome's JSON.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Convert {
    /// The trace to read; `-` for standard input. May be packed with gzip or zstd.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write it; `-` for standard output. The name says the format (.pftrace,
    /// .json, .chrome.json) and the packing (.gz, .zst).
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The format of IN, if its beginning does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    from: Option<Format>,
    /// The format of OUT, if its name does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    to: Option<Format>,
    /// Only what happens between two times after the trace's beginning, such as
    /// `1.5s..2s` or `100ms..`.
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    time_range: Option<(i64, i64)>,
    /// Only host events of these categories. May be given several times.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    category: Vec<String>,
    /// Only processes with these ids or names. May be given several times.
    #[arg(long, value_name = "PID|NAME", value_delimiter = ',')]
    process: Vec<String>,
    /// Leave the packets of a .pftrace as they are, for tools that cannot unpack them; the
    /// file is some five times larger. What goes to standard output always is as it is.
    #[arg(long)]
    plain: bool,
}

impl Convert {
    pub(super) fn run(self) -> Result<ExitCode, Refusal> {
        let started = Instant::now();
        let to = self.to.or_else(|| Format::of_file(&self.output)).ok_or_else(|| {
            format!("which format {} should have is not clear: say --to", self.output.display())
        })?;
        let mut trace = read(&self.input, self.from)?;
        if let Some(filter) = self.filter(&trace) {
            trace = trace.filtered(&filter);
        }
        let left_out = write(&trace, &self.output, to, self.plain)?;
        if io::stderr().is_terminal() {
            let events = trace.slices.len() + trace.activities.len() + trace.instants.len();
            say(&format!(
                "{} → {} in {:.1} s",
                status::count(events as u64, "event", "events"),
                self.output.display(),
                started.elapsed().as_secs_f64()
            ));
        }
        for warning in trace.facts.warnings.iter().chain(&left_out) {
            say(&describe(warning));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn filter(&self, trace: &Trace) -> Option<Filter> {
        let wanted =
            self.time_range.is_some() || !self.category.is_empty() || !self.process.is_empty();
        let start = trace.time_span().map_or(Nanos(0), |(start, _)| start);
        wanted.then(|| Filter {
            times: self.time_range.map(|(from, to)| (start + Nanos(from), start + Nanos(to))),
            categories: self.category.clone(),
            processes: self.process.clone(),
        })
    }
}

/// A warning in one line.
pub(super) fn describe(warning: &kymograph_converters::trace::Warning) -> String {
    let times = match warning.count {
        1 => String::new(),
        count => format!(" ({} times)", status::grouped(count)),
    };
    match warning.offset {
        Some(offset) => format!("{}{times}, first at byte {offset}", warning.what),
        None => format!("{}{times}", warning.what),
    }
}

/// Reads a trace; `-` is standard input.
pub(super) fn read(path: &Path, from: Option<Format>) -> Result<Trace, Refusal> {
    let named = |error: &dyn std::fmt::Display| Refusal(format!("{}: {error}", path.display()));
    if path == Path::new("-") {
        return format::read(io::stdin().lock(), from).map_err(|error| named(&error));
    }
    let file = File::open(path).map_err(|error| named(&error))?;
    format::read(file, from).map_err(|error| named(&error))
}

/// Writes a trace; `-` is standard output. Under a name of its own until it is whole: what
/// was there before is replaced only then.
fn write(trace: &Trace, path: &Path, to: Format, plain: bool) -> Result<Vec<Warning>, Refusal> {
    let named = |error: io::Error| Refusal(format!("cannot write {}: {error}", path.display()));
    if path == Path::new("-") {
        let out = io::stdout().lock();
        return match format::write(trace, out, to, Packing::Plain) {
            // Whoever read it has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Vec::new()),
            result => result.map_err(named),
        };
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let packing = match format::packing_of_file(path) {
        Packing::Packets if plain => Packing::Plain,
        packing => packing,
    };
    let written = File::create(&partial).and_then(|mut file| {
        let left_out = format::write(trace, &mut file, to, packing)?;
        file.flush()?;
        std::fs::rename(&partial, path)?;
        Ok(left_out)
    });
    written.map_err(|error| {
        // What is half written is of no use.
        let _ = std::fs::remove_file(&partial);
        named(error)
    })
}

fn parse_format(text: &str) -> Result<Format, String> {
    Format::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

fn parse_range(text: &str) -> Result<(i64, i64), String> {
    let (from, to) = text.split_once("..").ok_or("two times with `..` between them")?;
    let from = if from.is_empty() { 0 } else { parse_time(from)? };
    let to = if to.is_empty() { i64::MAX } else { parse_time(to)? };
    if from < to { Ok((from, to)) } else { Err("the second time must be after the first".into()) }
}

fn parse_time(text: &str) -> Result<i64, String> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let found = units.iter().find_map(|(unit, nanos)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number * nanos)
    });
    found
        .map(|nanos| nanos as i64)
        .ok_or_else(|| format!("`{text}` is no time such as 1.5s or 20ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_understood() {
        assert_eq!(parse_range("1.5s..2s"), Ok((1_500_000_000, 2_000_000_000)));
        assert_eq!(parse_range("100ms.."), Ok((100_000_000, i64::MAX)));
        assert_eq!(parse_range("..7ns"), Ok((0, 7)));
        for wrong in ["", "1s", "1..2", "2s..1s", "-1s..2s", "NaNs..1s"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
}
