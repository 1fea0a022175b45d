//! `kymo analyze`: what traces say.

mod help;
mod inputs;
mod page;
mod tuning;

use super::{Failure, files, say, status, suffix};
use clap::{Args, ValueEnum};
use inputs::{Inputs, Wanted};
use kymograph_analysis::compat::hta::{Rules, Version};
use kymograph_analysis::compat::tensorboard::{self, Plugin};
use kymograph_analysis::{Metric, Model, Options, Reading, overlay, render, run, table};
use kymograph_converters::format as traces;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tuning::Tuning;

const EXAMPLES: &str = "\
EXAMPLES
  What this is, where the time goes, and what to do about it:
      kymo analyze run.pftrace
  Which kernels take the most time on each rank of a job:
      kymo analyze kernel_breakdown traces/
  Which collectives waited longest, as CSV:
      kymo analyze collectives rank*.json.gz --sort wait_sum --format csv -o waits.csv
  The same numbers as HTA has:
      kymo analyze idle_time rank0.json.gz --compat hta
  What key_averages().table() prints, by the own time on devices:
      kymo analyze operators trace.json --compat torch --sort self_device_time
  Whether a change made steps slower, for CI (exit status 3 if it did):
      kymo analyze regressions main/ branch/ --fail-above 3%
  The critical path of the third step as arrows in a viewer, and what if nothing communicated:
      kymo analyze critical_path trace.json --instance 2 --overlay path.pftrace
      kymo analyze critical_path_summary trace.json --instance 2 --scale nccl=0
  A flame graph:
      kymo analyze stacks trace.json --format collapsed -o stacks.txt
  All metrics, a line each:
      kymo analyze --list

docs/ANALYSIS.md describes each metric and its columns.";

/// Says what traces of any format say: where the time goes, and what to do about it.
#[derive(Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(super) struct Analyze {
    /// A metric, if a certain one is wanted, or several with commas between them, and traces:
    /// files, folders, or patterns such as
    /// 'rank*.json.gz'. Each rank of a job is a file, or a process in one.
    #[arg(value_name = "[METRIC] TRACE", required_unless_present_any = ["list", "help"])]
    words: Vec<String>,
    /// All metrics, a line each; with METRIC, its columns.
    #[arg(long)]
    list: bool,
    /// What there is; with METRIC, what it says, how it is computed, and its columns.
    #[arg(short, long)]
    help: bool,
    /// The format of the table.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Where to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace FILE or OUT even if it is something else: a trace, a script.
    #[arg(long)]
    force: bool,
    /// Say nothing but errors; do not name what was left out.
    #[arg(short, long)]
    quiet: bool,
    /// counters, critical_path, frequent_sequences: write the trace again, to this file, with the
    /// counters in it, the path as arrows, or the argument `Patterns` at the events of the most
    /// frequent sequences. Its name says the format (.pftrace, .json) and the packing (.gz, .zst).
    #[arg(long, value_name = "OUT", conflicts_with_all = ["output", "format"])]
    overlay: Option<PathBuf>,
    /// The rules and the rounding of another tool, and the names of its columns.
    #[arg(long, value_enum, value_name = "TOOL")]
    compat: Option<Compat>,
    /// With --compat: do not round times to microseconds, as HTA does not with
    /// HTA_DISABLE_NS_ROUNDING=1.
    #[arg(long, requires = "compat")]
    no_rounding: bool,
    /// With --compat: keep the last step, as HTA does with include_last_profiler_step.
    #[arg(long, requires = "compat")]
    last_step: bool,
    /// Order rows by this column: numbers from the largest down, texts from A to Z.
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// How many rows to show.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    tuning: Tuning,
}

/// Which part of the traces.
#[derive(Args)]
#[command(next_help_heading = "Part of the traces")]
struct Part {
    /// Only these steps, such as 3 or 3..5 (both included).
    #[arg(long, value_name = "N|A..B", value_parser = parse_steps)]
    step: Option<(i64, i64)>,
    /// Only these ranks.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    rank: Vec<i64>,
    /// Only these processes, by their ids; each is a rank.
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    process: Vec<i64>,
    /// Only events whose names contain one of these. Launches and steps are found before.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    name: Vec<String>,
    /// Only what happens between two times after the beginning, such as 1.5s..2s.
    #[arg(long, value_name = "A..B", value_parser = super::part::parse_range)]
    time_range: Option<(i64, i64)>,
    /// Only devices of these numbers.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    device: Vec<i64>,
    /// Only these streams.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    stream: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For reading; long texts are cut.
    Table,
    /// {"metric": …, "columns": […], "rows": […]}.
    Json,
    /// Comma-separated values.
    Csv,
    /// Parquet, packed with zstd.
    Parquet,
    /// Arrow's file format (Feather).
    Arrow,
    /// `stacks`: a line for each, as flamegraph.pl reads them.
    Collapsed,
    /// `stacks`: JSON for speedscope.
    Speedscope,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compat {
    /// Holistic Trace Analysis 0.5.0.
    Hta,
    /// traceinsight 0.6, its successor.
    Traceinsight,
    /// torch-tb-profiler 0.4.3, TensorBoard's plugin: `overview`, `operators` and the other views
    /// that it has.
    Tensorboard,
    /// The last state of that plugin's source.
    TensorboardLast,
    /// torch.profiler: `operators` as `key_averages().table()` prints them, `stacks` as
    /// `export_stacks` writes them.
    Torch,
}

/// Tables one after the other.
#[derive(Default)]
struct Sheet {
    several: bool,
    /// Each is written when it is there: what follows can't fail as a whole.
    at_once: bool,
    held: Vec<u8>,
    has_any: bool,
    is_worse: bool,
}

impl Analyze {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        self.output.iter().try_for_each(|output| may_write(output, self.force))?;
        let metrics = self.metrics()?;
        if self.help {
            return Ok(help::print(&metrics));
        }
        if self.list {
            let text = if metrics.is_empty() {
                help::list()
            } else {
                metrics.iter().map(|m| help::columns(m)).collect()
            };
            let _ = std::io::stdout().write_all(text.as_bytes());
            return Ok(ExitCode::SUCCESS);
        }
        let words = &self.words[usize::from(!metrics.is_empty())..];
        let options = self.options();
        let part = &self.part;
        let wanted = Wanted { ranks: part.rank.clone(), processes: part.process.clone() };
        if metrics.is_empty() {
            let text = page::page(&Inputs::find(words)?, &options, &wanted)?;
            return self.put(text.as_bytes());
        }
        if let Some(out) = &self.overlay {
            files::may_replace(out, self.force)?;
            let [metric] = metrics[..] else {
                return Err(Failure("--overlay is for one metric".to_owned()));
            };
            let limit = self.limit.unwrap_or(SEQUENCES);
            return overlay(metric, &Inputs::find(words)?, (&options, limit), &wanted, out);
        }
        let mut sheet = Sheet {
            several: metrics.len() > 1,
            at_once: self.sort.is_none() && self.output.is_none(),
            ..Sheet::default()
        };
        let mut take = |metric: &Metric, parts: Vec<_>, complaints: Vec<String>| {
            self.table(&mut sheet, &options, metric, parts, complaints)
        };
        match metrics[..] {
            [metric] if metric.compares() => {
                take(metric, inputs::sides(words, metric, &options, &wanted)?, Vec::new())?;
            }
            _ => Inputs::find(words)?.each_metric(&metrics, &options, &wanted, &mut take)?,
        }
        if !sheet.has_any {
            return Err(Failure("none of these metrics has anything to tell".to_owned()));
        }
        let done = self.put(&sheet.held)?;
        Ok(if sheet.is_worse { ExitCode::from(REGRESSION) } else { done })
    }

    /// Puts a metric's table on the sheet, from what it gave for each rank.
    fn table(
        &self,
        sheet: &mut Sheet,
        options: &Options,
        metric: &Metric,
        parts: Vec<kymograph_analysis::Part>,
        mut complaints: Vec<String>,
    ) -> Result<(), Failure> {
        let say = |line: &str| {
            if !self.quiet {
                say(line)
            }
        };
        complaints.dedup();
        complaints.iter().for_each(|why| say(&format!("left out: {why}")));
        // One of several that has nothing to say is no reason to refuse the others.
        let nothing = parts.is_empty() && sheet.several;
        let mut batch = match run::over_ranks(metric, parts, options) {
            Ok(batch) => batch,
            Err(_) if nothing => return Ok(()),
            Err(why) if sheet.several => {
                say(&format!("left out: {}: {why}", metric.name));
                return Ok(());
            }
            Err(why) => return Err(why.into()),
        };
        sheet.is_worse |= metric.name == "regressions" && regressed(&batch);
        if let Some(column) = &self.sort {
            batch = table::sort(&batch, column)?;
        }
        if batch.num_rows() == 0 {
            say(&format!("{}: nothing to tell of these traces", metric.name));
        }
        if let Some(limit) = self.limit.filter(|_| self.format != Format::Table)
            && limit < batch.num_rows()
        {
            batch = batch.slice(0, limit);
        }
        sheet.has_any = true;
        if sheet.at_once && self.format == Format::Csv {
            // A closed stdout is no reason to fail.
            let _ = csv(metric, &batch, sheet.several, &mut std::io::stdout().lock());
            return Ok(());
        }
        sheet.held.append(&mut self.rendered(metric, batch, sheet.several)?);
        if sheet.at_once {
            self.put(&sheet.held)?;
            sheet.held = Vec::new();
        }
        Ok(())
    }

    /// The metrics that the first word names, with commas between them; none for the page.
    fn metrics(&self) -> Result<Vec<&'static Metric>, Failure> {
        let Some(word) = self.words.first() else { return Ok(Vec::new()) };
        let found: Vec<Option<&'static Metric>> = word.split(',').map(Metric::find).collect();
        if found.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let unknown = word.split(',').zip(&found).find(|(_, metric)| metric.is_none());
        if let Some((name, _)) = unknown {
            let what = format!("there is no metric `{name}`; `kymo analyze --list` has all");
            return Err(Failure(what));
        }
        let found: Vec<&'static Metric> = found.into_iter().flatten().collect();
        if found.len() > 1 && matches!(self.format, Format::Parquet | Format::Arrow) {
            return Err(Failure("Parquet and Arrow files hold one table: name one metric".into()));
        }
        let of_torch =
            |metric: &&Metric| metric.name.starts_with("operators") || metric.name == "stacks";
        if matches!(self.compat, Some(Compat::Torch)) && !found.iter().all(of_torch) {
            let what = "--compat torch is for operators, those by shape and by stack, and stacks";
            return Err(Failure(what.to_owned()));
        }
        let of_plugin = |metric: &&Metric| tensorboard::METRICS.contains(&metric.name);
        let plugin = matches!(self.compat, Some(Compat::Tensorboard | Compat::TensorboardLast));
        if plugin && !found.iter().all(of_plugin) {
            let what = format!("--compat tensorboard is for {}", tensorboard::METRICS.join(", "));
            return Err(Failure(what));
        }
        let for_stacks = matches!(self.format, Format::Collapsed | Format::Speedscope);
        if for_stacks && found.iter().any(|metric| metric.name != "stacks") {
            let what = "--format collapsed and speedscope are for the metric stacks";
            return Err(Failure(what.to_owned()));
        }
        if found.len() > 1
            && let Some(metric) = found.iter().find(|metric| metric.compares())
        {
            let name = metric.name;
            return Err(Failure(format!("{name} compares two sides: ask for it alone")));
        }
        Ok(found)
    }

    fn rendered(
        &self,
        metric: &Metric,
        batch: table::RecordBatch,
        one_of_several: bool,
    ) -> Result<Vec<u8>, Failure> {
        let text = match self.format {
            Format::Table
                if matches!(self.compat, Some(Compat::Torch)) && metric.name != "stacks" =>
            {
                let row_limit = self.limit.unwrap_or(100);
                render::TorchTable { row_limit, ..Default::default() }.text(&batch)
            }
            Format::Table => {
                // A terminal's worth, unless it goes to a file or all of it is asked for.
                let limit = self.limit.or(self.output.is_none().then_some(50));
                let title =
                    if one_of_several { format!("{}\n", metric.name) } else { String::new() };
                title + &render::text(&batch, limit) + if one_of_several { "\n" } else { "" }
            }
            Format::Json => render::json(metric.name, &batch),
            Format::Csv => {
                let mut bytes = Vec::new();
                let _ = csv(metric, &batch, one_of_several, &mut bytes);
                return Ok(bytes);
            }
            Format::Collapsed => {
                // PyTorch's lines have microseconds.
                let unit = if matches!(self.compat, Some(Compat::Torch)) { 1000 } else { 1 };
                render::collapsed(&batch, self.tuning.weight(), unit)
            }
            Format::Speedscope => render::speedscope(&batch, self.tuning.weight()),
            Format::Parquet | Format::Arrow => return packed(self.format, &batch),
        };
        Ok(text.into_bytes())
    }

    fn put(&self, bytes: &[u8]) -> Result<ExitCode, Failure> {
        match &self.output {
            Some(path) if !files::is_pipe(path) => {
                files::whole(path, |file| file.write_all(bytes))?;
            }
            // A closed stdout is no reason to fail.
            _ => drop(std::io::stdout().write_all(bytes)),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self) -> Options {
        let part = &self.part;
        let mut options = Options::default();
        if let Some(tool) = self.compat {
            let (rounding, last_step) = (!self.no_rounding, self.last_step);
            let hta = |version| Reading::Hta(Rules { version, rounding, last_step });
            options.reading = match tool {
                Compat::Hta => hta(Version::Hta),
                Compat::Traceinsight => hta(Version::TraceInsight),
                Compat::Torch | Compat::Tensorboard | Compat::TensorboardLast => Reading::Exact,
            };
            options.tensorboard = match tool {
                Compat::Tensorboard => Some(Plugin::Wheel),
                Compat::TensorboardLast => Some(Plugin::Last),
                _ => None,
            };
            options.torch = matches!(tool, Compat::Torch);
        }
        self.tuning.put(&mut options);
        options.steps = part.step.map_or_else(Vec::new, |(from, to)| (from..=to).collect());
        options.devices = part.device.clone();
        options.streams = part.stream.clone();
        options.times = part.time_range;
        options.names = part.name.clone();
        options
    }
}

/// Frequent sequences that are marked, unless `--limit` says otherwise.
const SEQUENCES: usize = 5;

/// Writes a trace again with what a metric says in it.
fn overlay(
    metric: &Metric,
    inputs: &Inputs,
    (options, limit): (&Options, usize),
    wanted: &Wanted,
    out: &Path,
) -> Result<ExitCode, Failure> {
    let [path] = &inputs.0[..] else {
        return Err(Failure("--overlay writes one trace: give one".to_owned()));
    };
    let to = files::format_of(out, None)?;
    files::may_replace(out, false)?;
    let mut trace = files::read(path, None)?;
    let mut found = Vec::new();
    for (process, rank) in wanted.of(&trace, 0) {
        let mut model = Model::new(&trace, process, rank, options.reading);
        model.restrict(options);
        found.push(match metric.name {
            "counters" => overlay::counters(&model)?,
            "critical_path" => overlay::critical_path(&model, options)?,
            "frequent_sequences" => overlay::frequent_sequences(&model, options, limit)?,
            _ => {
                let what = "--overlay is for counters, critical_path and frequent_sequences";
                return Err(Failure(what.to_owned()));
            }
        });
    }
    if found.is_empty() {
        return Err(Failure(wanted.is_missing()));
    }
    found.into_iter().for_each(|overlay| overlay.put_into(&mut trace));
    let left_out = files::write(&trace, out, to, false)?;
    files::say_warnings(trace.facts.warnings.iter().chain(&left_out));
    Ok(ExitCode::SUCCESS)
}

/// The exit status when TEST is slower than BASE.
const REGRESSION: u8 = 3;

/// Writes a table; one of several has its name above it.
fn csv(
    metric: &Metric,
    batch: &table::RecordBatch,
    one_of_several: bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    if one_of_several {
        writeln!(out, "# {}", metric.name)?;
    }
    render::write_csv(batch, out)
}

/// Refuses a name that promises packing, and to replace what is no table.
fn may_write(path: &Path, force: bool) -> Result<(), Failure> {
    suffix::refuse_any_packed(path)?;
    let is_file = path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0);
    let is_table =
        || suffix::is_of_tables(path) && !std::fs::File::open(path).is_ok_and(traces::is_trace);
    if force || files::is_pipe(path) || !is_file || is_table() {
        return Ok(());
    }
    let name = path.display();
    Err(Failure(format!("{name} is there and no table: it is not replaced without --force")))
}

fn regressed(batch: &table::RecordBatch) -> bool {
    let cells = table::Cells::of(batch);
    (0..batch.num_rows()).any(|row| cells.text("verdict", row) == Some("regression"))
}

fn packed(format: Format, batch: &table::RecordBatch) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    match format {
        Format::Parquet => render::parquet(batch, &mut bytes)?,
        _ => render::arrow(batch, &mut bytes)?,
    }
    Ok(bytes)
}

fn parse_steps(text: &str) -> Result<(i64, i64), String> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("`{text}` is not a number"));
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (number(from)?, number(to.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    match to.checked_sub(from) {
        Some(0..100_000) => Ok((from, to)),
        _ => Err("a number, or two with `..` between them, the smaller one first".to_owned()),
    }
}

/// What a file is called in messages.
fn named(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_understood() {
        assert_eq!(parse_steps("3"), Ok((3, 3)));
        assert_eq!(parse_steps("3..5"), Ok((3, 5)));
        for wrong in ["", "a", "5..3", "0..9000000"] {
            assert!(parse_steps(wrong).is_err(), "{wrong}");
        }
    }
}
