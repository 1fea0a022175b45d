//! Which traces there are, and what metrics give for each.

use super::{Refusal, files, named, say, status};
use kymograph_analysis::{Metric, Options, Part, run};
use kymograph_converters::folder;
use kymograph_converters::format::Format;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files with traces.
pub(super) struct Inputs(pub(super) Vec<PathBuf>);

/// What a file gave: for each rank in it, a part or a complaint for each metric.
type Given = Result<Vec<(i64, Vec<Result<Part, String>>)>, Refusal>;

impl Inputs {
    /// The files that words stand for.
    pub(super) fn find(words: &[String]) -> Result<Inputs, Refusal> {
        let mut found = Vec::new();
        for word in words {
            let path = Path::new(word);
            if !path.exists() && !files::is_pipe(path) && !word.contains(['.', '/', '*']) {
                return Err(Refusal(format!(
                    "`{word}` is neither a file nor a metric; `kymo analyze --list` has all metrics"
                )));
            }
            found.extend(folder::traces(word).map_err(Refusal)?);
        }
        if found.is_empty() {
            return Err(Refusal("say which trace: kymo analyze METRIC TRACE…".to_owned()));
        }
        Ok(Inputs(found))
    }

    /// What metrics give for each rank, in their order; `ranks` says which, if not all. Files
    /// are read one after the other by as many threads as there are cores, and forgotten.
    pub(super) fn parts(
        &self,
        metrics: &[&Metric],
        options: &Options,
        ranks: &[i64],
    ) -> Result<Vec<Vec<Part>>, Refusal> {
        let given = self.each(|number, path| of_file(metrics, options, ranks, number, path));
        let mut files: BTreeMap<i64, &Path> = BTreeMap::new();
        let mut parts: Vec<Vec<Part>> = metrics.iter().map(|_| Vec::new()).collect();
        let mut complaints: Vec<String> = Vec::new();
        for (path, given) in self.0.iter().zip(given) {
            for (rank, given) in given? {
                if let Some(other) = files.insert(rank, path) {
                    let (one, two) = (named(other), named(path));
                    return Err(Refusal(format!(
                        "{one} and {two} are both rank {rank}: give one of them only"
                    )));
                }
                for (n, part) in given.into_iter().enumerate() {
                    match part {
                        Ok(part) => parts[n].push(part),
                        Err(why) => complaints.push(why),
                    }
                }
            }
        }
        if files.is_empty() {
            let ranks: Vec<String> = ranks.iter().map(i64::to_string).collect();
            return Err(Refusal(format!("there is no rank {} in the traces", ranks.join(", "))));
        }
        complaints.dedup();
        if parts.iter().all(Vec::is_empty) {
            return Err(Refusal(complaints.swap_remove(0)));
        }
        // With several metrics, what one of them lacks is no news.
        if metrics.len() == 1 {
            complaints.iter().for_each(|why| say(&format!("left out: {why}")));
        }
        Ok(parts)
    }

    fn each<T: Send>(&self, of: impl Fn(usize, &Path) -> T + Sync) -> Vec<T> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let work = || {
            while let Some((number, path)) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                self.0.get(number).map(|path| (number, path))
            } {
                let given = of(number, path);
                if let Ok(mut done) = done.lock() {
                    done.push((number, given));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..cores.min(self.0.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, given)| given).collect()
    }
}

/// What a metric that compares gives for BASE and for TEST: the first half of the words, and the
/// second. The rank of a part is its side, 0 or 1.
pub(super) fn sides(
    words: &[String],
    metric: &Metric,
    options: &Options,
    ranks: &[i64],
) -> Result<Vec<Vec<Part>>, Refusal> {
    if words.len() < 2 || !words.len().is_multiple_of(2) {
        return Err(Refusal(format!(
            "{} compares BASE and TEST: as many words for one as for the other, each a file, a \
             folder, or a pattern in quotes, not {} in all",
            metric.name,
            words.len()
        )));
    }
    let mut parts = Vec::new();
    for (side, words) in (0..).zip(words.chunks(words.len() / 2)) {
        let inputs = Inputs::find(words)?;
        let given = inputs.each(|number, path| of_file(&[metric], options, ranks, number, path));
        for given in given {
            for part in given?.into_iter().flat_map(|(_, given)| given) {
                parts.push(Part { rank: side, ..part.map_err(Refusal)? });
            }
        }
    }
    Ok(vec![parts])
}

fn of_file(
    metrics: &[&Metric],
    options: &Options,
    ranks: &[i64],
    number: usize,
    path: &Path,
) -> Given {
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
    let mut given = Vec::new();
    for (process, rank) in run::ranks(&trace, number as i64) {
        if !ranks.is_empty() && !ranks.contains(&rank) {
            continue;
        }
        let parts = run::of_process(metrics, &trace, process, rank, options);
        let parts = parts.into_iter().zip(metrics).map(|(part, metric)| {
            part.map_err(|error| format!("{}: {}: {error}", named(path), metric.name))
        });
        given.push((rank, parts.collect()));
    }
    Ok(given)
}
