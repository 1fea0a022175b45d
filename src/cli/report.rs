//! `kymo report`: one HTML file that shows where the time went.

use super::room::Room;
use super::{Failure, files, say, status, suffix};
use clap::{Args, ValueEnum};
use kymograph_analysis::compat::tensorboard::Plugin;
use kymograph_converters::folder;
use kymograph_converters::format::Format;
use kymograph_converters::order::Order as _;
use kymograph_report::{Rank, Settings, page, parallel};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  Where the time of a program went:
      kymo report run.pftrace
  The ranks of a job on one page:
      kymo report traces/ -o job.html
  Two runs, and what is different:
      kymo report main/ branch/ -o compared.html
      kymo report --each main.json.gz branch.json.gz -o compared.html

The page opens in any browser, without a network. docs/REPORT.md describes it.";

/// Writes one HTML file that shows where the time went: tables, charts, a timeline.
///
/// Ranks are told from the traces, as `kymo analyze` does; where nothing tells, files are numbered
/// in their order. A folder is a run, and so is each folder in it that has traces; files that are
/// named one by one are one run together. A rank that comes again begins another run.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Report {
    /// The traces: files, folders, or patterns such as 'rank*.json.gz'.
    #[arg(value_name = "TRACE", required = true)]
    words: Vec<String>,
    /// Where to write the page; `-` for standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Each TRACE is a run of its own.
    #[arg(long)]
    each: bool,
    /// Leave the times of timelines with more than 200,000 events as they are, which makes the page
    /// up to four times as large; else they are rounded to microseconds there.
    #[arg(long)]
    exact: bool,
    /// The rules of another tool, for the pages that it has, too.
    #[arg(long, value_enum, value_name = "TOOL")]
    compat: Option<Compat>,
    /// Replace FILE also if it is no report.
    #[arg(long)]
    force: bool,
    /// Only complain; do not say what was written.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Compat {
    /// torch-tb-profiler 0.4.3, TensorBoard's plugin.
    Tensorboard,
    /// The last state of that plugin's source.
    TensorboardLast,
}

impl Report {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        suffix::refuse_any_packed(&self.output)?;
        if !self.force {
            may_replace(&self.output)?;
        }
        keep_memory();
        let report = self.read()?;
        if files::is_pipe(&self.output) {
            // Nobody may read it to its end.
            let _ = report.write(&mut BufWriter::new(std::io::stdout().lock()));
            return Ok(ExitCode::SUCCESS);
        }
        files::whole(&self.output, |file| {
            let mut file = BufWriter::new(file);
            report.write(&mut file)?;
            file.flush()
        })?;
        if !self.quiet {
            let size = self.output.metadata().map_or(0, |about| about.len());
            say(&format!(
                "{}, {} → {} ({})",
                status::count(report.runs() as u64, "run", "runs"),
                status::count(report.events() as u64, "event", "events"),
                self.output.display(),
                status::size(size)
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<kymograph_report::Report, Failure> {
        let inputs = inputs(&self.words, self.each)?;
        let plugin = self.compat.map(|tool| match tool {
            Compat::Tensorboard => Plugin::Wheel,
            Compat::TensorboardLast => Plugin::Last,
        });
        read(&inputs, &Settings { exact: self.exact, plugin, ..Settings::default() })
    }
}

/// Has what one metric took be there for the next. Otherwise glibc gives each large column back to the
/// kernel, which clears it for the next one.
fn keep_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes any numbers, and no other thread runs yet.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        // The most that all versions take.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
    }
}

/// Reads traces into a report. Runs are compared where there are several.
pub(super) fn read(
    inputs: &[Input],
    settings: &Settings,
) -> Result<kymograph_report::Report, Failure> {
    let what = match inputs {
        [one] => format!("reading {}", one.path.display()),
        all => format!("reading {} traces", all.len()),
    };
    let _room = Room::watch(what, "name fewer or shorter traces, or use a machine that has more");
    let cores = parallel::cores();
    let threads = cores / inputs.len().clamp(1, cores);
    let mut settings = Settings { threads, compared: are_several(inputs), ..*settings };
    let mut ranks = ranks(inputs, &settings)?;
    // Only the traces say that a rank comes again: what runs are compared by is computed then.
    if !settings.compared && comes_again(ranks.iter().map(|(run, rank)| (run, rank.rank))) {
        settings.compared = true;
        ranks = self::ranks(inputs, &settings)?;
    }
    Ok(kymograph_report::Report::new(ranks, &settings))
}

/// The ranks of traces, each with the name of its run.
fn ranks(inputs: &[Input], settings: &Settings) -> Result<Vec<(String, Rank)>, Failure> {
    let size = |input: &Input| input.path.metadata().map_or(0, |about| about.len());
    let given = kymograph_converters::each(inputs, size, |_, input| of_file(input, settings));
    let mut ranks = Vec::new();
    for (source, (input, given)) in inputs.iter().zip(given).enumerate() {
        for mut rank in given? {
            rank.source = source;
            ranks.push((input.run.clone(), rank));
        }
    }
    Ok(ranks)
}

/// Whether traces are known to be of several runs before they are read: by the names of the runs, or
/// by a worker that comes again in one.
fn are_several(inputs: &[Input]) -> bool {
    inputs.iter().any(|input| input.run != inputs[0].run)
        || comes_again(inputs.iter().map(|input| (&input.run, input.otherwise)))
}

/// Whether a run has a rank twice.
fn comes_again<'r>(ranks: impl Iterator<Item = (&'r String, i64)>) -> bool {
    let mut known = HashSet::new();
    ranks.into_iter().any(|rank| !known.insert(rank))
}

/// A trace, the run that it belongs to, and its rank if it does not say.
pub(super) struct Input {
    run: String,
    pub(super) path: PathBuf,
    pub(super) otherwise: i64,
}

/// The traces that words stand for.
pub(super) fn inputs(words: &[String], each: bool) -> Result<Vec<Input>, Failure> {
    let mut runs: Vec<(String, Vec<PathBuf>)> = Vec::new();
    for word in words {
        let path = Path::new(word);
        let own = path.is_dir() || word.contains('*');
        let name = if own || each { called(word, words) } else { String::new() };
        let mut found = runs_of(word, &name)?;
        match runs.last_mut() {
            Some((before, files)) if !own && !each && before.is_empty() => {
                files.extend(found.drain(..).flat_map(|(_, more)| more));
            }
            _ => runs.extend(found),
        }
    }
    let mut inputs = Vec::new();
    for (run, files) in runs {
        let mut workers: Vec<&str> = files.iter().filter_map(|path| worker(path)).collect();
        workers.sort_unstable();
        workers.dedup();
        for (number, path) in files.iter().enumerate() {
            let own = worker(path).and_then(|own| workers.iter().position(|it| *it == own));
            let otherwise = own.unwrap_or(number) as i64;
            inputs.push(Input { run: run.clone(), path: path.clone(), otherwise });
        }
    }
    Ok(inputs)
}

/// What a run is called: the last part of its path, if that tells it from the others.
fn called(word: &str, words: &[String]) -> String {
    let last = |word: &str| word.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    let alone = words.iter().filter(|other| last(other) == last(word)).count() == 1;
    match last(word) {
        Some(name) if alone && !["", ".", "..", "*"].contains(&name.as_str()) => name,
        _ => word.to_owned(),
    }
}

/// The runs of a word: what it stands for, or the folders in a folder without traces.
fn runs_of(word: &str, name: &str) -> Result<Vec<(String, Vec<PathBuf>)>, Failure> {
    let why = match folder::traces(word) {
        Ok(found) => return Ok(vec![(name.to_owned(), found)]),
        Err(why) => why,
    };
    let mut folders: Vec<PathBuf> = match Path::new(word).read_dir() {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => Vec::new(),
    };
    folders.retain(|path| path.is_dir());
    folders.order_by(Ord::cmp);
    let mut runs = Vec::new();
    for path in folders {
        if let Ok(found) = folder::traces(&path.to_string_lossy()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            runs.push((name, found));
        }
    }
    if runs.is_empty() { Err(Failure(why)) } else { Ok(runs) }
}

/// The worker in a name as PyTorch's `tensorboard_trace_handler` gives it:
/// `WORKER.TIME.pt.trace.json`.
fn worker(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let (name, _) = name.split_once(".pt.trace.json")?;
    let (worker, time) = name.rsplit_once('.')?;
    let is_time = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    is_time.then_some(worker)
}

fn of_file(input: &Input, settings: &Settings) -> Result<Vec<Rank>, Failure> {
    let trace = files::read(&input.path, None::<Format>)?;
    let named = input.path.display();
    // Arrows that lead nowhere are not shown, and Kineto writes many of those.
    for warning in trace.facts.warnings.iter().filter(|w| !w.what.starts_with("arrow ")) {
        say(&format!("{named}: {}", files::describe(warning)));
    }
    let name = input.path.file_name().unwrap_or(input.path.as_os_str()).to_string_lossy();
    let ranks = kymograph_analysis::run::ranks(&trace, input.otherwise);
    let read = |(process, rank)| Rank::read(&trace, process, rank, &name, settings);
    Ok(ranks.into_iter().map(read).collect())
}

/// Refuses to replace what is no report.
fn may_replace(path: &Path) -> Result<(), Failure> {
    let is_file = path.metadata().is_ok_and(|about| about.is_file() && about.len() > 0);
    if files::is_pipe(path) || !is_file {
        return Ok(());
    }
    let mut beginning = Vec::new();
    // One that cannot be read cannot be asked either, and is left as it is.
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut beginning));
    let marked = String::from_utf8_lossy(&beginning).contains(page::MARK);
    if read.is_ok() && marked {
        return Ok(());
    }
    let name = path.display();
    Err(Failure(format!(
        "{name} is there and no report: name another file with -o, or replace it with --force"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pytorch_tell_workers() {
        let of = |name| worker(Path::new(name));
        assert_eq!(of("a/worker0.1623143089861.pt.trace.json.gz"), Some("worker0"));
        assert_eq!(of("host_4711.1623143089861.pt.trace.json"), Some("host_4711"));
        assert_eq!(of("gpt.pt.trace.json"), None);
        assert_eq!(of("rank0.json.gz"), None);
    }

    #[test]
    fn runs_are_several_by_their_names_or_by_a_worker_that_comes_again() {
        let several = |all: &[(&str, i64)]| {
            let input = |(run, otherwise): &(&str, i64)| Input {
                run: (*run).to_owned(),
                path: PathBuf::new(),
                otherwise: *otherwise,
            };
            are_several(&all.iter().map(input).collect::<Vec<_>>())
        };
        assert!(!several(&[]));
        assert!(!several(&[("a", 0), ("a", 1)]), "the ranks of a job");
        assert!(several(&[("a", 0), ("b", 0)]));
        assert!(several(&[("a", 0), ("a", 0)]), "two spans of a worker");
    }

    #[test]
    fn only_a_report_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.html");
        assert!(may_replace(&path).is_ok(), "nothing is there");
        std::fs::write(&path, "<html>mine").unwrap();
        assert!(may_replace(&path).is_err());
        std::fs::write(&path, format!("<html>{}", page::MARK)).unwrap();
        assert!(may_replace(&path).is_ok());
    }
}
