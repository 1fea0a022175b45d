//! What to do about it: findings from the tables of several metrics, each with its evidence and
//! an estimate of what it costs.
//!
//! A finding is a sentence. It comes from rules over numbers that stand in the tables, and says
//! those numbers, so that it can be checked. Where there are steps, it is about their time, not
//! about what lies before the first and after the last of them.

use kymograph_converters::order::Order as _;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use crate::table::Cells;

/// The metrics whose tables are read.
pub const METRICS: [&str; 7] = [
    "temporal_breakdown",
    "comm_comp_overlap",
    "step_variance",
    "idle_causes",
    "kernel_durations",
    "collectives",
    "data_quality",
];

/// Something that can be done.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// What is the matter.
    pub what: String,
    /// The numbers that say so.
    pub evidence: String,
    /// What may help.
    pub advice: String,
    /// The time that it costs each rank, in nanoseconds; 0 where that cannot be said.
    pub cost: i64,
}

/// Shares of the time from which on something is worth saying.
const IDLE: f64 = 0.1;
const WAITING: f64 = 0.02;
const EXPOSED: f64 = 0.1;

/// Findings, the costliest first; before them what makes numbers wrong. `tables` has the tables of
/// [`METRICS`], where there are any.
pub fn findings(tables: &[(&str, RecordBatch)]) -> Vec<Finding> {
    let table = |name: &str| tables.iter().find(|(n, _)| *n == name).map(|(_, batch)| batch);
    let mut found: Vec<Finding> = Vec::new();
    if let Some(job) = Job::of(table("step_variance"), &table) {
        let causes = table("idle_causes");
        found.extend(table("collectives").and_then(|t| {
            let straggler = Straggler::of(t, &job)?;
            straggler.finding(&job, causes, table("kernel_durations"))
        }));
        found.extend(idle(&job, causes));
        found.extend(exposed(&job));
    }
    found.order_by_key(|finding| Reverse(finding.cost));
    if let Some(doubtful) = table("data_quality").and_then(doubtful) {
        found.insert(0, doubtful);
    }
    found
}

/// What the time of a rank divides into.
#[derive(Clone, Copy, Default)]
struct Times {
    whole: i64,
    computing: i64,
    communication: i64,
    idle: i64,
}

/// The ranks of a job.
struct Job {
    ranks: BTreeMap<i64, Times>,
    /// Whether times are those of steps.
    by_step: bool,
}

impl Job {
    fn of<'t>(
        steps: Option<&RecordBatch>,
        table: &impl Fn(&str) -> Option<&'t RecordBatch>,
    ) -> Option<Job> {
        let mut ranks: BTreeMap<i64, Times> = BTreeMap::new();
        if let Some(steps) = steps {
            let cells = Cells::of(steps);
            for row in 0..steps.num_rows() {
                let all = cells.float("mean", row)? * cells.float("steps", row)?;
                let times = ranks.entry(cells.int("rank", row)?).or_default();
                match cells.text("quantity", row)? {
                    "duration" => times.whole = all as i64,
                    "computing" => times.computing = all as i64,
                    "communication" => times.communication = all as i64,
                    "idle" => times.idle = all as i64,
                    _ => {}
                }
            }
            return Some(Job { ranks, by_step: true });
        }
        let temporal = table("temporal_breakdown")?;
        let cells = Cells::of(temporal);
        for row in 0..temporal.num_rows() {
            let times = ranks.entry(cells.int("rank", row)?).or_default();
            times.whole = cells.int("kernel_time", row)?;
            times.computing = cells.int("compute_time", row)?;
            times.idle = cells.int("idle_time", row)?;
        }
        if let Some(overlap) = table("comm_comp_overlap") {
            let cells = Cells::of(overlap);
            for row in 0..overlap.num_rows() {
                let times = ranks.entry(cells.int("rank", row)?).or_default();
                times.communication =
                    cells.int("communication", row)? - cells.int("overlap", row)?;
            }
        }
        Some(Job { ranks, by_step: false })
    }

    fn sum(&self, of: impl Fn(&Times) -> i64) -> i64 {
        self.ranks.values().map(of).sum()
    }

    fn count(&self) -> i64 {
        (self.ranks.len() as i64).max(1)
    }

    fn whose(&self) -> &'static str {
        if self.by_step { "of the steps' time" } else { "of the time" }
    }
}

/// The rank that the others wait for.
struct Straggler {
    rank: i64,
    times: u64,
    of: u64,
    waited_for: i64,
    /// The collective that was waited for longest.
    longest: Option<(i64, String)>,
}

impl Straggler {
    /// `None` unless half of all waiting is for one rank.
    fn of(collectives: &RecordBatch, job: &Job) -> Option<Straggler> {
        let cells = Cells::of(collectives);
        let mut ranks: BTreeMap<i64, (i64, u64)> = BTreeMap::new();
        let (mut all, mut of) = (0, 0);
        let counts = |row: &usize| !job.by_step || cells.int("step", *row) != Some(-1);
        let rows: Vec<usize> = (0..collectives.num_rows()).filter(counts).collect();
        for row in &rows {
            let Some(last) = cells.int("last_rank", *row) else { continue };
            let waited = cells.int("wait_sum", *row).unwrap_or(0);
            let sum = ranks.entry(last).or_default();
            *sum = (sum.0 + waited, sum.1 + 1);
            all += waited;
            of += 1;
        }
        let (rank, (waited_for, times)) =
            ranks.into_iter().max_by_key(|(rank, (waited, _))| (*waited, -rank))?;
        if waited_for * 2 < all {
            return None;
        }
        let longest = rows.into_iter().filter(|row| cells.int("last_rank", *row) == Some(rank));
        let longest = longest.max_by_key(|row| cells.int("wait_max", *row)).and_then(|row| {
            let number = cells.int("sequence", row)?;
            let step = match cells.int("step", row)? {
                -1 => String::new(),
                step => format!(" of step {step}"),
            };
            let what = format!("{} {number}{step}", cells.text("collective", row)?);
            Some((cells.int("wait_max", row)?, what))
        });
        Some(Straggler { rank, times, of, waited_for, longest })
    }

    fn finding(
        &self,
        job: &Job,
        causes: Option<&RecordBatch>,
        kernels: Option<&RecordBatch>,
    ) -> Option<Finding> {
        let rank = self.rank;
        let others = job.ranks.iter().filter(|(own, _)| **own != rank);
        let whole: i64 = others.map(|(_, times)| times.whole).sum();
        let share = self.waited_for as f64 / whole as f64;
        if job.ranks.len() < 2 || share.is_nan() || share < WAITING {
            return None;
        }
        let longest = self.longest.as_ref().map_or_else(String::new, |(wait, what)| {
            format!("; at most {} for the {what}", time(*wait))
        });
        let (why, advice) = why_late(rank, job, causes, kernels);
        Some(Finding {
            what: format!("the other ranks wait for rank {rank}"),
            evidence: format!(
                "it came last to {} of {} collectives; the others waited {} for it, {} {}{longest}\
                 {why}",
                self.times,
                self.of,
                time(self.waited_for),
                percent(share),
                job.whose()
            ),
            advice,
            cost: self.waited_for / (job.count() - 1),
        })
    }
}

/// Whether it was a rank's device that was late, or its host, and with what.
fn why_late(
    late: i64,
    job: &Job,
    causes: Option<&RecordBatch>,
    kernels: Option<&RecordBatch>,
) -> (String, String) {
    let own = job.ranks.get(&late).copied().unwrap_or_default();
    let count = (job.count() - 1) as f64;
    let more = |of: fn(&Times) -> i64| of(&own) as f64 - (job.sum(of) - of(&own)) as f64 / count;
    let (idle, computing) = (more(|times| times.idle), more(|times| times.computing));
    if computing > idle && computing > 0.0 {
        let name = kernels.and_then(|table| most_more(table, late, count, "sum", &["name"]));
        let name = name.map_or_else(String::new, |name| format!(", most of it in {name}"));
        let why =
            format!("; its device computed {} longer than theirs{name}", time(computing as i64));
        return (why, format!("compare its kernels: kymo analyze kernel_durations --rank {late}"));
    }
    if idle > 0.0 {
        let columns = ["cause", "doing", "operator"];
        let name = causes.and_then(|table| most_more(table, late, count, "idle_time", &columns));
        let name = name.map_or_else(String::new, |name| format!(", most of it for {name}"));
        let why = format!("; its device was idle {} longer than theirs{name}", time(idle as i64));
        return (why, format!("see what its host does: kymo analyze idle_causes --rank {late}"));
    }
    (String::new(), format!("look at rank {late} around its collectives"))
}

/// What a rank has most more of than the others in the mean.
fn most_more(
    table: &RecordBatch,
    rank: i64,
    others: f64,
    value: &str,
    names: &[&str],
) -> Option<String> {
    let cells = Cells::of(table);
    let mut sums: BTreeMap<Vec<&str>, f64> = BTreeMap::new();
    for row in 0..table.num_rows() {
        // That communication takes longer on a rank says that it came early.
        if cells.text("kernel_type", row) == Some("COMMUNICATION") {
            continue;
        }
        let own = cells.int("rank", row)? == rank;
        let part = cells.int(value, row)? as f64 * if own { 1.0 } else { -1.0 / others };
        let key = names.iter().filter_map(|name| cells.text(name, row)).collect();
        *sums.entry(key).or_default() += part;
    }
    let (name, more) = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (more > 0.0).then(|| name.into_iter().map(short).collect::<Vec<_>>().join(" "))
}

/// Names of kernels may be very long.
fn short(name: &str) -> String {
    let name = crate::names::shorten(name);
    if name.chars().count() <= 60 {
        return name;
    }
    name.chars().take(59).chain(['…']).collect()
}

/// Devices that have nothing to do.
fn idle(job: &Job, causes: Option<&RecordBatch>) -> Option<Finding> {
    let (idle, whole) = (job.sum(|times| times.idle), job.sum(|times| times.whole));
    let share = idle as f64 / whole as f64;
    if share.is_nan() || share < IDLE {
        return None;
    }
    let causes = causes.and_then(main_causes).unwrap_or_default();
    Some(Finding {
        what: "devices are idle".to_owned(),
        evidence: format!(
            "{} of {}, {} {}{causes}",
            time(idle),
            time(whole),
            percent(share),
            job.whose()
        ),
        advice: "larger batches, fewer waits for the device, CUDA graphs or torch.compile; \
                 kymo analyze idle_causes says what the host did, critical_path_summary what a \
                 step waits for"
            .to_owned(),
        cost: idle / job.count(),
    })
}

/// What the host did in most of the idle time.
fn main_causes(causes: &RecordBatch) -> Option<String> {
    let cells = Cells::of(causes);
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for row in 0..causes.num_rows() {
        *sums.entry(cells.text("cause", row)?).or_default() += cells.int("idle_time", row)?;
    }
    let all: i64 = sums.values().sum();
    let mut sums: Vec<(&str, i64)> = sums.into_iter().collect();
    sums.order_by_key(|(name, sum)| (Reverse(*sum), *name));
    let parts = sums.iter().take(3).filter(|(_, sum)| *sum * 20 > all);
    let parts: Vec<String> =
        parts.map(|(name, sum)| format!("{} {name}", percent(*sum as f64 / all as f64))).collect();
    (!parts.is_empty()).then(|| format!("; the host meanwhile: {}", parts.join(", ")))
}

/// Communication that nothing hides.
fn exposed(job: &Job) -> Option<Finding> {
    let (open, whole) = (job.sum(|times| times.communication), job.sum(|times| times.whole));
    let share = open as f64 / whole as f64;
    if share.is_nan() || share < EXPOSED {
        return None;
    }
    Some(Finding {
        what: "communication is not hidden behind computing".to_owned(),
        evidence: format!(
            "{} of {}, {} {}; waiting for late ranks is in it",
            time(open),
            time(whole),
            percent(share),
            job.whose()
        ),
        advice: "first what makes ranks late; then larger buckets, overlap, fewer bytes: kymo \
                 analyze collectives has bandwidths"
            .to_owned(),
        cost: open / job.count(),
    })
}

/// What makes numbers wrong.
fn doubtful(checks: &RecordBatch) -> Option<Finding> {
    let cells = Cells::of(checks);
    let mut problems: BTreeMap<&str, i64> = BTreeMap::new();
    for row in 0..checks.num_rows() {
        if cells.text("verdict", row) == Some("problem") {
            *problems.entry(cells.text("check", row)?).or_default() += cells.int("count", row)?;
        }
    }
    let problems: Vec<String> =
        problems.into_iter().map(|(check, count)| format!("{count} × {check}")).collect();
    (!problems.is_empty()).then(|| Finding {
        what: "the trace has problems that make numbers wrong".to_owned(),
        evidence: problems.join(", "),
        advice: "kymo analyze data_quality says what each means".to_owned(),
        cost: 0,
    })
}

fn time(nanos: i64) -> String {
    match nanos.unsigned_abs() {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} µs", nanos as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}
