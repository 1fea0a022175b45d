//! `kymo-scale`: what `kymo dataset`, `kymo query`, and `kymo analyze` of a data set, are carried out
//! by.

mod ask;
mod progress;
#[cfg(feature = "query")]
mod shell;

use crate::progress::Progress;
use clap::{Args, Parser, Subcommand, ValueEnum};
use kymograph_analysis::{Metric, render, table};
use kymograph_scale::add::{self, METRICS, Wish};
use kymograph_scale::dataset::Dataset;
use kymograph_scale::input::Input;
use kymograph_scale::labels::Labels;
use kymograph_scale::questions::{self, outliers};
use kymograph_scale::store::Store;
use kymograph_scale::{Failure, over_ranks};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Data sets of many ranks.
#[derive(Parser)]
#[command(name = "kymo", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(subcommand)]
    Dataset(DatasetCommand),
    Analyze(Analyze),
    Query(ask::Query),
}

/// Data sets: the traces of all ranks of a job as Parquet. docs/DATASET.md describes the files.
#[derive(Subcommand)]
enum DatasetCommand {
    Add(Add),
    Check(Check),
}

/// Adds ranks. What is there already stays, so that it can be repeated, or run once per rank on
/// many machines.
#[derive(Args)]
struct Add {
    /// The folder of the data set, or its address, such as s3://bucket/job.set; it is made if it is
    /// not there.
    dataset: PathBuf,
    /// Traces of any format: files, folders, patterns such as 'rank*.json.gz', and addresses: of
    /// s3://, gs://, az:// and https://.
    #[arg(required = true)]
    traces: Vec<String>,
    /// How many traces are read at the same time; as many as there are processors without it.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The metrics whose tables are stored, beside those that are by default; `all` for all.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<String>,
    /// The rank of a trace that does not say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    rank: Option<i64>,
    /// Replace ranks that are there from another trace.
    #[arg(long)]
    replace: bool,
    /// Take what is there of traces whose end is missing.
    #[arg(long)]
    damaged: bool,
}

/// Says what a data set has and what is wrong with it: ranks that are missing, half written, or
/// of another job. Exit status 3 if anything is.
#[derive(Args)]
struct Check {
    /// The folder of the data set, or its address.
    dataset: PathBuf,
}

/// A metric, or a question that only all ranks together can answer, over all ranks.
#[derive(Args)]
#[command(after_help = questions_help())]
struct Analyze {
    /// The metric or the question.
    metric: String,
    /// The folder of the data set, or its address.
    dataset: PathBuf,
    /// The format of the table.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Where to write; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Order rows by this column: numbers from the largest down, texts from A to Z.
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// How many rows to show.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Hosts and switches of ranks: a CSV file with a column `rank` and one for each label.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Which ranks differ from the others in this column of the metric.
    #[arg(long, value_name = "COLUMN")]
    outliers: Option<String>,
    /// With --outliers: compare ranks, hosts, or any other label.
    #[arg(long, value_name = "LABEL", default_value = "rank", requires = "outliers")]
    by: String,
    /// Go on although ranks are missing, half written or damaged: the table is one of the others.
    #[arg(long)]
    partial: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
    Parquet,
    Arrow,
}

fn questions_help() -> String {
    let line =
        |question: &questions::Question| format!("  {:<16}{}\n", question.name, question.answers);
    let all: String = questions::ALL.iter().map(line).collect();
    format!("QUESTIONS\n{all}\nThe metrics that a data set has are those of `kymo dataset add`.")
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    keep_memory();
    let result = match cli.command {
        Command::Dataset(DatasetCommand::Add(add)) => add.run(),
        Command::Dataset(DatasetCommand::Check(check)) => check.run(),
        Command::Analyze(analyze) => analyze.run(),
        Command::Query(query) => query.run(),
    };
    result.unwrap_or_else(|why| {
        say(&why.0);
        ExitCode::from(2)
    })
}

/// Has what one rank took be there for the next. Otherwise glibc gives each large column back to
/// the kernel, which clears it for the next rank: a tenth of the time of adding.
fn keep_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes any numbers, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        // Some versions take at most 32 MiB.
        if libc::mallopt(libc::M_MMAP_THRESHOLD, i32::MAX) == 0 {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        }
    }
}

/// One line on stderr. A closed stderr is no reason to fail.
fn say(line: &str) {
    let printable: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(std::io::stderr(), "kymo: {printable}");
}

fn metric(name: &str) -> Result<&'static Metric, Failure> {
    let found = Metric::find(name).filter(|metric| !metric.compares());
    found.ok_or_else(|| {
        let questions: Vec<&str> = questions::ALL.iter().map(|question| question.name).collect();
        Failure(format!(
            "`{name}` is no metric of ranks; `kymo analyze --list` has all metrics, and data sets \
             have {}, too",
            questions.join(", ")
        ))
    })
}

impl Add {
    fn run(self) -> Result<ExitCode, Failure> {
        let mut metrics: Vec<&'static Metric> =
            METRICS.iter().map(|name| metric(name)).collect::<Result<_, _>>()?;
        for name in &self.metrics {
            let wanted = match name.as_str() {
                "all" => {
                    kymograph_analysis::registry::ALL.iter().filter(|m| !m.compares()).collect()
                }
                name => vec![metric(name)?],
            };
            for metric in wanted {
                if !metrics.iter().any(|known| known.name == metric.name) {
                    metrics.push(metric);
                }
            }
        }
        let root = Store::of(&self.dataset)?;
        let mut traces = Vec::new();
        for word in &self.traces {
            traces.extend(Input::all(word)?);
        }
        if self.rank.is_some() && traces.len() != 1 {
            return Err(Failure("--rank is for one trace".to_owned()));
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let wish = Wish {
            root,
            metrics,
            jobs: self.jobs.unwrap_or(processors).max(1),
            rank: self.rank,
            replace: self.replace,
            damaged: self.damaged,
        };
        let progress = Progress::new(traces.len());
        add::add(&wish, &traces, |path, done| progress.told(path, done))?;
        Ok(progress.end())
    }
}

/// What `kymo dataset check` ends with if something is wrong.
const WRONG: u8 = 3;

impl Check {
    fn run(self) -> Result<ExitCode, Failure> {
        let dataset = Dataset::open(Store::of(&self.dataset)?)?;
        let events: u64 = dataset.ranks.iter().map(|manifest| manifest.events).sum();
        let files = dataset.ranks.iter().flat_map(|manifest| &manifest.files);
        let size: u64 = files.map(|file| file.size).sum();
        let text = format!("{} ranks, {events} events, {size} bytes\n", dataset.ranks.len());
        let _ = std::io::stdout().write_all(text.as_bytes());
        let mut wrong = dataset.problems().sentences();
        wrong.extend(dataset.left_over().into_iter().map(|rank| {
            format!(
                "rank {rank}: beside it are files of a task that was killed or still runs, which \
                 engines that read files themselves see: the same `kymo dataset add` again \
                 removes those of a killed one"
            )
        }));
        wrong.iter().for_each(|sentence| say(sentence));
        Ok(ExitCode::from(if wrong.is_empty() { 0 } else { WRONG }))
    }
}

impl Analyze {
    fn run(self) -> Result<ExitCode, Failure> {
        let dataset = Dataset::open(Store::of(&self.dataset)?)?;
        let wrong = dataset.problems().sentences();
        if !wrong.is_empty() && !self.partial {
            let wrong = wrong.join("; ");
            return Err(Failure(format!(
                "{wrong}; --partial goes on with the ranks that are there"
            )));
        }
        wrong.iter().for_each(|sentence| say(sentence));
        let labels = Labels::of(&dataset, self.labels.as_deref())?;
        let question = questions::ALL.iter().find(|question| question.name == self.metric);
        let mut batch = match question {
            Some(question) => (question.table)(&dataset, &labels)?,
            None => {
                let (batch, mut left_out) = over_ranks::table(&dataset, metric(&self.metric)?)?;
                left_out.dedup();
                left_out.iter().for_each(|why| say(&format!("left out: {why}")));
                batch
            }
        };
        if let Some(column) = &self.outliers {
            batch = outliers::table(&batch, column, &self.by, &labels)?;
        }
        if let Some(column) = &self.sort {
            batch = table::sort(&batch, column)?;
        }
        if batch.num_rows() == 0 {
            say(&format!("{}: nothing to tell of these ranks", self.metric));
        }
        self.put(batch)
    }

    fn put(&self, batch: table::RecordBatch) -> Result<ExitCode, Failure> {
        let batch = match self.limit.filter(|_| self.format != Format::Table) {
            Some(limit) if limit < batch.num_rows() => batch.slice(0, limit),
            _ => batch,
        };
        let mut bytes = Vec::new();
        let packed = match self.format {
            Format::Table => {
                let limit = self.limit.or(self.output.is_none().then_some(50));
                bytes = render::text(&batch, limit).into_bytes();
                Ok(())
            }
            Format::Json => {
                bytes = render::json(&self.metric, &batch).into_bytes();
                Ok(())
            }
            Format::Csv => {
                bytes = render::csv(&batch).into_bytes();
                Ok(())
            }
            Format::Parquet => render::parquet(&batch, &mut bytes),
            Format::Arrow => render::arrow(&batch, &mut bytes),
        };
        packed.map_err(|error| Failure(error.to_string()))?;
        match &self.output {
            Some(path) => {
                let (mut file, partial) = begin(path)?;
                let written = file.write_all(&bytes);
                let failed = |error| Failure(format!("{}: {error}", path.display()));
                finish(path, &partial, written.map_err(failed))?;
            }
            None => drop(std::io::stdout().write_all(&bytes)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Begins a file, which gets its name when it is whole.
fn begin(path: &Path) -> Result<(std::fs::File, PathBuf), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    match std::fs::File::create(&partial) {
        Ok(file) => Ok((file, partial)),
        Err(error) => Err(Failure(format!("{}: {error}", path.display()))),
    }
}

/// Gives a file its name, or removes it.
fn finish(path: &Path, partial: &Path, written: Result<(), Failure>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure(format!("{}: {error}", path.display()));
    let renamed = written.and_then(|()| std::fs::rename(partial, path).map_err(failed));
    renamed.inspect_err(|_| drop(std::fs::remove_file(partial)))
}
