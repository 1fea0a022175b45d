//! Which ranks, hosts and links make steps longer, and what of them.
//!
//! A slow rank makes others wait, and those make others wait in turn; so what counts is only what
//! a rank does itself ([`crate::steps`]): how long its kernels compute, how long its device has
//! nothing to do since its host is late, or its data loader. In each step a rank is compared with
//! the median of all ranks. It is to blame where it takes longer by more than a twentieth of a
//! step, and by more than six deviations of the other ranks.
//!
//! A link is slow where collectives of one process group take longer to move data than those of
//! other groups that do the same with messages of the same size, over as many hosts.

use super::collectives::{self, Collectives};
use super::{deviation, median};
use crate::Failure;
use crate::dataset::Dataset;
use crate::labels::Labels;
use crate::layout;
use arrow_array::RecordBatch;
use kymograph_analysis::Column;
use kymograph_analysis::table::{Cells, Rows};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Over all steps.
pub const BLAME: super::Question = super::Question {
    name: "blame",
    answers: "which ranks, hosts and links make steps longer, and whether by computing, by the \
              host, by the data loader or by moving data",
    columns: COLUMNS,
    table,
};

/// Step by step.
pub const STEPS: super::Question = super::Question {
    name: "blame_steps",
    answers: "which ranks make which steps longer, and by what",
    columns: STEP_COLUMNS,
    table: steps_table,
};

const COLUMNS: &[Column] = &[
    Column::text("scope", "rank, host or group: what is to blame"),
    Column::text("name", "its number or name"),
    Column::text("cause", "compute, host, data_loader or link"),
    Column::int("ranks", "how many ranks it has"),
    Column::int("steps", "in how many steps"),
    Column::int("of_steps", "of how many"),
    Column::int("first_step", "the first of them"),
    Column::mean_duration("excess", "how much longer it took in those steps, in the mean"),
    Column::percent("of_step", "the same, of the median step"),
    Column::float("factor", "how many times as long as the others; null where they take no time"),
];

const STEP_COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::int("step", "the step"),
    Column::text("cause", "compute, host or data_loader"),
    Column::duration("time", "how long it took"),
    Column::duration("median", "the median of all ranks"),
    Column::duration("excess", "how much longer than that"),
    Column::percent("of_step", "the same, of the median step"),
];

/// Columns of `steps` and what they blame.
const CAUSES: [(&str, &str); 3] =
    [("compute", "compute"), ("idle_host", "host"), ("idle_data_loader", "data_loader")];
/// What is much, of a step.
const OF_STEP: f64 = 0.05;
/// And of the deviation of the ranks.
const DEVIATIONS: f64 = 6.0;
/// A link is slow from this factor on.
const SLOW_LINK: f64 = 1.4;
/// Groups that do the same, at least, and collectives of each.
const GROUPS: usize = 3;
const COLLECTIVES: usize = 4;
/// Shorter transfers say nothing about links.
const TRANSFER: i64 = 20_000;
/// Of the ranks of a host, so many have the same cause before it is the host's.
const MOST: f64 = 0.75;

/// A rank in a step that took longer by one cause.
struct Excess {
    rank: i64,
    step: i64,
    cause: usize,
    time: i64,
    median: i64,
    of_step: f64,
}

/// What the steps of all ranks say.
struct Found {
    excesses: Vec<Excess>,
    /// The duration of a step, in the median.
    step: i64,
    steps: usize,
}

fn find(dataset: &Dataset) -> Result<Found, Failure> {
    let ranks = dataset.each(
        |rank| layout::table("steps", rank),
        |manifest, batch| {
            let cells = Cells::of(&batch);
            let row = |row: usize| {
                let int = |column: &str| cells.int(column, row);
                let times = CAUSES.map(|(column, _)| int(column).unwrap_or(0));
                Some((manifest.rank, int("step")?, int("dur")?, times))
            };
            Ok((0..batch.num_rows()).filter_map(row).collect::<Vec<_>>())
        },
    )?;
    let mut steps: BTreeMap<i64, Vec<(i64, i64, [i64; 3])>> = BTreeMap::new();
    for (rank, step, dur, times) in ranks.into_iter().flatten() {
        steps.entry(step).or_default().push((rank, dur, times));
    }
    // Of two ranks, either may be the one that differs.
    steps.retain(|_, ranks| ranks.len() > 2);
    if steps.is_empty() {
        let what = "no step is in the traces of three ranks or more, so ranks cannot be compared";
        return Err(Failure(what.to_owned()));
    }
    let mut durations: Vec<i64> = steps.values().flatten().map(|(_, dur, _)| *dur).collect();
    let usual = median(&mut durations);
    let mut excesses = Vec::new();
    for (step, ranks) in &steps {
        for cause in 0..CAUSES.len() {
            let mut times: Vec<i64> = ranks.iter().map(|(_, _, times)| times[cause]).collect();
            let middle = median(&mut times);
            let most = (OF_STEP * usual as f64).max(DEVIATIONS * deviation(&times, middle));
            for (rank, _, times) in ranks {
                let excess = times[cause] - middle;
                if excess as f64 > most {
                    let of_step = excess as f64 / usual.max(1) as f64;
                    excesses.push(Excess {
                        rank: *rank,
                        step: *step,
                        cause,
                        time: times[cause],
                        median: middle,
                        of_step,
                    });
                }
            }
        }
    }
    Ok(Found { excesses, step: usual, steps: steps.len() })
}

fn steps_table(dataset: &Dataset, _: &Labels) -> Result<RecordBatch, Failure> {
    let mut found = find(dataset)?;
    found.excesses.sort_by_key(|excess| (excess.step, excess.rank, excess.cause));
    let mut rows = Rows::new(STEP_COLUMNS);
    for excess in found.excesses {
        rows.push([
            excess.rank.into(),
            excess.step.into(),
            CAUSES[excess.cause].1.into(),
            excess.time.into(),
            excess.median.into(),
            (excess.time - excess.median).into(),
            (100.0 * excess.of_step).into(),
        ]);
    }
    Ok(rows.finish()?)
}

/// A line of the answer.
struct Line {
    scope: &'static str,
    name: String,
    cause: &'static str,
    ranks: usize,
    steps: BTreeSet<i64>,
    excess: f64,
    factor: Option<f64>,
}

fn table(dataset: &Dataset, labels: &Labels) -> Result<RecordBatch, Failure> {
    let found = find(dataset)?;
    let mut lines = lines(&found, labels);
    lines.extend(links(&collectives::read(dataset)?, labels));
    lines.sort_by(|a, b| {
        let cost = |line: &Line| line.excess * line.steps.len() as f64;
        cost(b).total_cmp(&cost(a)).then_with(|| a.name.cmp(&b.name))
    });
    let mut rows = Rows::new(COLUMNS);
    for line in lines {
        rows.push([
            line.scope.into(),
            line.name.as_str().into(),
            line.cause.into(),
            line.ranks.into(),
            line.steps.len().into(),
            found.steps.into(),
            line.steps.first().copied().into(),
            line.excess.into(),
            (100.0 * line.excess / found.step.max(1) as f64).into(),
            line.factor.into(),
        ]);
    }
    Ok(rows.finish()?)
}

/// Ranks that are to blame, and hosts where most of their ranks are.
fn lines(found: &Found, labels: &Labels) -> Vec<Line> {
    let mut by_rank: BTreeMap<(usize, i64), Vec<&Excess>> = BTreeMap::new();
    for excess in &found.excesses {
        by_rank.entry((excess.cause, excess.rank)).or_default().push(excess);
    }
    let line = |scope, name: String, cause: usize, ranks: usize, all: &[&Excess]| {
        let sum = |of: fn(&Excess) -> i64| all.iter().map(|excess| of(excess)).sum::<i64>() as f64;
        let medians = sum(|excess| excess.median);
        Line {
            scope,
            name,
            cause: CAUSES[cause].1,
            ranks,
            steps: all.iter().map(|excess| excess.step).collect(),
            excess: sum(|excess| excess.time - excess.median) / all.len().max(1) as f64,
            factor: Some(sum(|excess| excess.time) / medians).filter(|_| medians > 0.0),
        }
    };
    let mut lines = Vec::new();
    for (host, ranks) in labels.groups("host") {
        for cause in 0..CAUSES.len() {
            let guilty = |rank: &&i64| by_rank.contains_key(&(cause, **rank));
            let count = ranks.iter().filter(guilty).count();
            if ranks.len() < 2 || (count as f64) < MOST * ranks.len() as f64 {
                continue;
            }
            let all: Vec<&Excess> =
                ranks.iter().filter_map(|rank| by_rank.remove(&(cause, *rank))).flatten().collect();
            lines.push(line("host", host.to_owned(), cause, ranks.len(), &all));
        }
    }
    for ((cause, rank), all) in by_rank {
        lines.push(line("rank", rank.to_string(), cause, 1, &all));
    }
    lines
}

/// Collectives that do the same: what, how much, over how many ranks and hosts.
type Same = ((u32, Option<i64>), usize, usize);

/// How a process group moves data: its ranks, how many thousandths of what others take each
/// collective takes, and how much longer those of each step take.
type Moving = (usize, Vec<i64>, BTreeMap<i64, i64>);

/// Process groups that are slow at moving data.
fn links(collectives: &Collectives, labels: &Labels) -> Vec<Line> {
    let mut hosts: HashMap<u32, usize> = HashMap::new();
    let mut same: HashMap<Same, BTreeMap<u32, Vec<(i64, i64)>>> = HashMap::new();
    for one in collectives.all.iter().filter(|one| one.step >= 0) {
        let hosts = *hosts.entry(one.group).or_insert_with(|| {
            let of = one.shares.iter().filter_map(|share| labels.get("host", share.rank));
            of.collect::<BTreeSet<_>>().len()
        });
        let of = same.entry((one.what, one.shares.len(), hosts)).or_default();
        of.entry(one.group).or_default().push((one.step, one.transfer()));
    }
    let mut slow: BTreeMap<u32, Moving> = BTreeMap::new();
    for ((_, ranks, _), groups) in same.into_iter().filter(|(_, groups)| groups.len() >= GROUPS) {
        let typical = |all: &[(i64, i64)]| {
            median(&mut all.iter().map(|(_, transfer)| *transfer).collect::<Vec<i64>>())
        };
        let middle = median(&mut groups.values().map(|all| typical(all)).collect::<Vec<i64>>());
        if middle < TRANSFER {
            continue;
        }
        for (group, all) in groups {
            let of = slow.entry(group).or_insert((ranks, Vec::new(), BTreeMap::new()));
            for (step, transfer) in all {
                of.1.push(1000 * transfer / middle);
                *of.2.entry(step).or_default() += transfer - middle;
            }
        }
    }
    let mut lines = Vec::new();
    for (group, (ranks, mut factors, steps)) in slow {
        let factor = median(&mut factors) as f64 / 1000.0;
        if factor < SLOW_LINK || factors.len() < COLLECTIVES {
            continue;
        }
        lines.push(Line {
            scope: "group",
            name: collectives.groups[group as usize].clone(),
            cause: "link",
            ranks,
            excess: steps.values().sum::<i64>() as f64 / steps.len().max(1) as f64,
            steps: steps.into_keys().collect(),
            factor: Some(factor),
        });
    }
    lines
}
