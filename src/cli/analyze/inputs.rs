//! Which traces there are, and what metrics give for each.

use super::{Failure, files, named, say, status};
use kymograph_analysis::{Error, Metric, Options, Part, run};
use kymograph_converters::folder;
use kymograph_converters::format::Format;
use kymograph_converters::trace::{ProcessId, Trace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Which parts of files are wanted: all, if neither ranks nor processes are named.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) ranks: Vec<i64>,
    pub(super) processes: Vec<i64>,
}

impl Wanted {
    /// The parts of a trace, each a rank; `otherwise` is the rank of one that does not say.
    pub(super) fn of(&self, trace: &Trace, otherwise: i64) -> Vec<(Option<ProcessId>, i64)> {
        let mut parts = run::ranks(trace, otherwise);
        if !self.processes.is_empty() {
            let whole = parts.first().map_or(otherwise, |(_, rank)| *rank);
            let ranks: Vec<_> = parts;
            let wanted =
                trace.processes.iter().filter(|(_, own)| self.processes.contains(&own.pid));
            // Of processes that are no ranks, the first has the rank of the trace.
            parts = (0..)
                .zip(wanted)
                .map(|(n, (id, _))| {
                    let own = ranks.iter().find(|(of, _)| *of == Some(id));
                    (Some(id), own.map_or(whole + n, |(_, rank)| *rank))
                })
                .collect();
        }
        parts.retain(|(_, rank)| self.ranks.is_empty() || self.ranks.contains(rank));
        parts
    }

    pub(super) fn is_missing(&self) -> String {
        let list = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        match (&self.ranks[..], &self.processes[..]) {
            (ranks, []) => format!("there is no rank {} in the traces", list(ranks)),
            (_, pids) => format!("there is no process {} in the traces", list(pids)),
        }
    }
}

/// Takes what a metric gave for each rank, and why some gave nothing.
type Take<'a> = dyn FnMut(&Metric, Vec<Part>, Vec<String>) -> Result<(), Failure> + 'a;

/// Files with traces.
pub(super) struct Inputs(pub(super) Vec<PathBuf>);

/// What a file gave: for each rank in it, a part or a complaint for each metric.
type Given = Vec<(i64, Vec<Result<Part, String>>)>;

impl Inputs {
    /// The files that words stand for.
    pub(super) fn find(words: &[String]) -> Result<Inputs, Failure> {
        let mut found = Vec::new();
        for word in words {
            let path = Path::new(word);
            if !path.exists() && !files::is_pipe(path) && !word.contains(['.', '/', '*']) {
                return Err(Failure(format!(
                    "`{word}` is neither a file nor a metric; `kymo analyze --list` has all metrics"
                )));
            }
            found.extend(folder::traces(word).map_err(Failure)?);
        }
        if found.is_empty() {
            return Err(Failure("say which trace: kymo analyze METRIC TRACE…".to_owned()));
        }
        Ok(Inputs(found))
    }

    /// What metrics give for each rank, in their order. Files are read one after the other by as
    /// many threads as there are cores, and forgotten. Of one file with one rank, each metric's
    /// part is taken before the next is computed.
    pub(super) fn each_metric(
        &self,
        metrics: &[&Metric],
        options: &Options,
        wanted: &Wanted,
        take: &mut Take<'_>,
    ) -> Result<(), Failure> {
        let given = match &self.0[..] {
            [path] => {
                let trace = read(path)?;
                match wanted.of(&trace, 0)[..] {
                    [(process, rank)] => {
                        let parts = run::of_process(metrics, &trace, process, rank, options);
                        return one_by_one(metrics, parts, path, take);
                    }
                    _ => vec![Ok(of_trace(metrics, options, wanted, 0, path, &trace))],
                }
            }
            _ => self.each(|number, path| {
                read(path).map(|trace| of_trace(metrics, options, wanted, number, path, &trace))
            }),
        };
        let mut files: BTreeMap<i64, &Path> = BTreeMap::new();
        let mut parts: Vec<Vec<Part>> = metrics.iter().map(|_| Vec::new()).collect();
        let mut complaints: Vec<Vec<String>> = metrics.iter().map(|_| Vec::new()).collect();
        for (path, given) in self.0.iter().zip(given) {
            for (rank, given) in given? {
                if let Some(other) = files.insert(rank, path) {
                    let (one, two) = (named(other), named(path));
                    return Err(Failure(format!(
                        "{one} and {two} are both rank {rank}: give one of them only"
                    )));
                }
                for (n, part) in given.into_iter().enumerate() {
                    match part {
                        Ok(part) => parts[n].push(part),
                        Err(why) => complaints[n].push(why),
                    }
                }
            }
        }
        if files.is_empty() {
            return Err(Failure(wanted.is_missing()));
        }
        if parts.iter().all(Vec::is_empty) {
            return Err(nothing(complaints.into_iter().flatten().next()));
        }
        let of_metrics = metrics.iter().zip(parts).zip(complaints);
        of_metrics.into_iter().try_for_each(|((metric, parts), whys)| take(metric, parts, whys))
    }

    fn each<T: Send>(&self, of: impl Fn(usize, &Path) -> T + Sync) -> Vec<T> {
        let size = |path: &PathBuf| path.metadata().map_or(0, |about| about.len());
        kymograph_converters::each(&self.0, size, |number, path| of(number, path))
    }
}

/// What a metric that compares gives for BASE and for TEST: the first half of the words, and the
/// second. The rank of a part is its side, 0 or 1.
pub(super) fn sides(
    words: &[String],
    metric: &Metric,
    options: &Options,
    wanted: &Wanted,
) -> Result<Vec<Part>, Failure> {
    if words.len() < 2 || !words.len().is_multiple_of(2) {
        return Err(Failure(format!(
            "{} compares BASE and TEST: as many words for one as for the other, each a file, a \
             folder, or a pattern in quotes, not {} in all",
            metric.name,
            words.len()
        )));
    }
    let mut parts = Vec::new();
    for (side, words) in (0..).zip(words.chunks(words.len() / 2)) {
        let inputs = Inputs::find(words)?;
        let given = inputs.each(|number, path| {
            read(path).map(|trace| of_trace(&[metric], options, wanted, number, path, &trace))
        });
        for given in given {
            for part in given?.into_iter().flat_map(|(_, given)| given) {
                parts.push(Part { rank: side, ..part.map_err(Failure)? });
            }
        }
    }
    Ok(parts)
}

/// A trace, after its warnings and losses were said.
fn read(path: &Path) -> Result<Trace, Failure> {
    let trace = files::read(path, None::<Format>)?;
    // Arrows are not what metrics look at, and Kineto writes many with one end.
    for warning in trace.facts.warnings.iter().filter(|w| !w.what.starts_with("arrow ")) {
        say(&format!("{}: {}", named(path), files::describe(warning)));
    }
    let lost: u64 = trace.facts.losses.iter().map(|loss| loss.count).sum();
    if lost > 0 {
        let lost = status::count(lost, "event was", "events were");
        say(&format!("{}: {lost} lost while it was recorded", named(path)));
    }
    Ok(trace)
}

fn of_trace(
    metrics: &[&Metric],
    options: &Options,
    wanted: &Wanted,
    number: usize,
    path: &Path,
    trace: &Trace,
) -> Given {
    let mut given = Vec::new();
    for (process, rank) in wanted.of(trace, number as i64) {
        let parts = run::of_process(metrics, trace, process, rank, options);
        let parts = parts
            .zip(metrics)
            .map(|(part, metric)| part.map_err(|error| complaint(path, metric, &error)));
        given.push((rank, parts.collect()));
    }
    given
}

/// Has each metric's part taken before the next is computed; and nothing, if there is none.
fn one_by_one(
    metrics: &[&Metric],
    parts: impl Iterator<Item = Result<Part, Error>>,
    path: &Path,
    take: &mut Take<'_>,
) -> Result<(), Failure> {
    let mut complaints: Vec<(&Metric, String)> = Vec::new();
    let mut any = false;
    for (metric, part) in metrics.iter().zip(parts) {
        match part {
            Ok(part) => {
                any = true;
                for (metric, why) in complaints.drain(..) {
                    take(metric, Vec::new(), vec![why])?;
                }
                take(metric, vec![part], Vec::new())?;
            }
            Err(error) => complaints.push((metric, complaint(path, metric, &error))),
        }
    }
    if !any {
        return Err(nothing(complaints.into_iter().map(|(_, why)| why).next()));
    }
    complaints.into_iter().try_for_each(|(metric, why)| take(metric, Vec::new(), vec![why]))
}

fn complaint(path: &Path, metric: &Metric, error: &Error) -> String {
    format!("{}: {}: {error}", named(path), metric.name)
}

/// The failure when no metric gave anything, with the first reason.
fn nothing(why: Option<String>) -> Failure {
    Failure(why.unwrap_or_else(|| "there is nothing to analyze".to_owned()))
}
