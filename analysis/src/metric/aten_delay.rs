//! How long operators take to launch their kernels: from the operator's beginning to the
//! launch, and from there to the kernel's beginning.
//!
//! A launch belongs to the innermost `aten::` operator around it; the exact reading looks on the
//! launch's thread only, HTA on all. An operator's kernels, in the order of their launches, are
//! its sequence; delays are those of the first. HTA adds the rows of earlier ranks to those of
//! later ones; the exact reading keeps ranks apart.

use kymograph_converters::order::Order as _;
use std::cell::Cell;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::HashMap;
use kymograph_converters::trace::StrId;

use crate::model::{Events, NONE, chains};
use crate::names::shorten;
use crate::table::{Cells, Rows, pick};
use crate::{Column, Error, Metric, Model, Options, Part};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "aten_delay",
    answers: "how long operators take to reach the device, by operator and kernels",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("aten_op_name", "the operator"),
    Column::text("kernel_sequence", "its kernels, with ` -> ` between them"),
    Column::int("occurrence_count", "how often it launched these"),
    Column::mean_duration("avg_aten_op_launch_delay", "the mean time before the first launch")
        .digits(3),
    Column::mean_duration("avg_runtime_delay", "the mean time from there to the kernel").digits(3),
];

/// What operators of one name and sequence did.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: i64,
    launch: f64,
    runtime: f64,
}

impl Sum {
    fn add(&mut self, launch: i64, runtime: i64) {
        self.count += 1;
        self.launch += launch as f64;
        self.runtime += runtime as f64;
    }
}

/// What ranks give by HTA's rules: an operator each.
const PARTS: &[Column] = &[
    Column::int("tid", "its thread"),
    Column::moment("ts", "when it begins"),
    Column::text("aten_op_name", "its name"),
    Column::text("kernel_sequence", "its kernels"),
    Column::duration("launch_delay", "the time before the first launch"),
    Column::duration("runtime_delay", "the time from there to the kernel"),
];

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    let hta = model.reading.hta().is_some();
    let events = &model.events;
    let mut is_launch = model.names_that(|name| is_launch(name, !hta));
    let launches = (0..events.len() as u32).filter(|row| is_launch(*row));
    let operators = Operators::of(model);
    // Launches by operator, in the order of the trace, each with its kernel.
    let mut found: Vec<(u32, u32, u32)> = Vec::new();
    for launch in launches {
        if let Some(operator) = operators.around(model, launch)
            && let Some(kernel) = model.peers().get(launch)
        {
            found.push((operator, launch, kernel));
        }
    }
    // Of one operator they stay in the order of the trace, which is that of rows.
    found.sort_unstable();
    let of = found.chunk_by(|a, b| a.0 == b.0).map(|same| {
        let (operator, launch, kernel) = same[0];
        let start = events.starts[launch as usize];
        let delays =
            (start - events.starts[operator as usize], events.starts[kernel as usize] - start);
        let kernels = same.iter().map(|(.., kernel)| events.names[*kernel as usize]);
        (operator, kernels, delays)
    });
    if found.is_empty() {
        let rank = model.rank;
        return Err(Error::Nothing(format!(
            "rank {rank} has no aten:: operator that launched a kernel"
        )));
    }
    if hta {
        let mut rows = Rows::new(PARTS);
        for (operator, kernels, (launch, runtime)) in of {
            rows.push([
                events.lane(operator).tid.into(),
                events.starts[operator as usize].into(),
                model.name(operator).into(),
                kernels
                    .map(|name| model.text(name))
                    .collect::<Vec<_>>()
                    .join(" -> ")
                    .as_str()
                    .into(),
                launch.into(),
                runtime.into(),
            ]);
        }
        return rows.finish();
    }
    let mut sequences = Sequences::default();
    let mut by_sequence: Vec<Sum> = Vec::new();
    for (operator, kernels, (launch, runtime)) in of {
        let number = sequences.number(events.names[operator as usize], kernels);
        if by_sequence.len() <= number {
            by_sequence.resize(number + 1, Sum::default());
        }
        by_sequence[number].add(launch, runtime);
    }
    // Shortened, names of several kernels may be one.
    let mut short: HashMap<StrId, String> = HashMap::new();
    let mut sums: BTreeMap<(&str, String), Sum> = BTreeMap::new();
    for (number, sum) in by_sequence.into_iter().enumerate().filter(|(_, sum)| sum.count > 0) {
        let (operator, kernels) = sequences.names(number);
        for name in &kernels {
            short.entry(*name).or_insert_with(|| shorten(model.text(*name)));
        }
        let names: Vec<&str> = kernels.iter().map(|name| short[name].as_str()).collect();
        let all = sums.entry((model.text(operator), names.join(" -> "))).or_default();
        all.count += sum.count;
        all.launch += sum.launch;
        all.runtime += sum.runtime;
    }
    let mut rows = Rows::new(COLUMNS);
    for ((name, sequence), sum) in sums {
        push(&mut rows, model.rank, name, &sequence, sum);
    }
    rows.finish()
}

/// Numbers for operators with the kernels that they launched: equal ones have the same.
#[derive(Default)]
struct Sequences {
    /// By the number of what is before the last name, and that name.
    numbers: HashMap<(u32, StrId), u32>,
    /// The same by number.
    ends: Vec<(u32, StrId)>,
}

impl Sequences {
    fn number(&mut self, operator: StrId, kernels: impl Iterator<Item = StrId>) -> usize {
        let Sequences { numbers, ends } = self;
        let number = std::iter::once(operator).chain(kernels).fold(NONE, |before, name| {
            *numbers.entry((before, name)).or_insert_with(|| {
                ends.push((before, name));
                ends.len() as u32 - 1
            })
        });
        number as usize
    }

    /// The operator and the kernels of a number.
    fn names(&self, number: usize) -> (StrId, Vec<StrId>) {
        let end = |number: u32| self.ends.get(number as usize).copied();
        let ends = std::iter::successors(end(number as u32), |(before, _)| end(*before));
        let mut names: Vec<StrId> = ends.map(|(_, name)| name).collect();
        let operator = names.pop().unwrap_or(StrId::NONE);
        names.reverse();
        (operator, names)
    }
}

fn push(rows: &mut Rows, rank: i64, name: &str, sequence: &str, sum: Sum) {
    let count = sum.count as f64;
    rows.push([
        rank.into(),
        name.into(),
        sequence.into(),
        sum.count.into(),
        (sum.launch / count).into(),
        (sum.runtime / count).into(),
    ]);
}

fn over_ranks(metric: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    if options.reading.hta().is_some() {
        return of_hta(parts);
    }
    let batches: Vec<_> = parts.iter().map(|part| &part.batch).collect();
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (n, batch) in batches.iter().enumerate() {
        order.extend((0..batch.num_rows()).map(|row| (n, row)));
    }
    let count = |(n, row): (usize, usize)| Cells::of(batches[n]).int("occurrence_count", row);
    order.order_by_numbers(|at| [at.0 as i64, !count(*at).unwrap_or(i64::MIN)]);
    pick(metric.columns, &batches, order.into_iter())
}

/// An operator as HTA knows it: thread, name, beginning.
type Operator<'a> = (i64, &'a str, i64);

/// The tables of all ranks, each with the rows of those before it. Operators of several ranks
/// that began at the same time on threads of one number become one.
fn of_hta(parts: &[Part]) -> Result<RecordBatch, Error> {
    let mut rows = Rows::new(COLUMNS);
    let mut operators: BTreeMap<Operator<'_>, (String, i64, i64)> = BTreeMap::new();
    for part in parts {
        let cells = Cells::of(&part.batch);
        for row in 0..part.batch.num_rows() {
            let text = |column| cells.text(column, row).unwrap_or_default();
            let int = |column| cells.int(column, row).unwrap_or_default();
            let key = (int("tid"), text("aten_op_name"), int("ts"));
            let new = || (String::new(), int("launch_delay"), int("runtime_delay"));
            let (sequence, ..) = operators.entry(key).or_insert_with(new);
            if !sequence.is_empty() {
                sequence.push_str(" -> ");
            }
            sequence.push_str(text("kernel_sequence"));
        }
        let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
        for ((_, name, _), (sequence, launch, runtime)) in &operators {
            sums.entry((name, sequence)).or_default().add(*launch, *runtime);
        }
        let mut order: Vec<_> = sums.into_iter().collect();
        order.order_by_numbers(|(_, sum)| [!sum.count]);
        for ((name, sequence), sum) in order {
            push(&mut rows, part.rank, name, sequence, sum);
        }
    }
    rows.finish()
}

fn is_launch(name: &str, hip: bool) -> bool {
    name.strip_prefix("cuda").is_some_and(|rest| rest.contains("LaunchKernel"))
        || name.starts_with("cuLaunchKernel")
        || name.starts_with("runFunction")
        || hip && name.starts_with("hip") && name.contains("LaunchKernel")
}

/// The `aten::` operators of a thread.
struct Thread {
    /// In the order of their beginnings.
    rows: Vec<u32>,
    /// For each, the place of the one around it.
    outer: Vec<usize>,
    /// The place behind those that begin before the event that was asked for last.
    reached: Cell<usize>,
}

impl Thread {
    /// How many operators begin no later than `time`. Mostly those who ask go forward, by little.
    fn after(&self, events: &Events, time: i64) -> usize {
        const NEAR: usize = 8;
        let begins = |row: &u32| events.starts[*row as usize] <= time;
        let reached = self.reached.get();
        let (before, behind) = self.rows.split_at(reached);
        let near = behind.iter().take(NEAR).take_while(|row| begins(row)).count();
        let after = match before.last() {
            Some(last) if !begins(last) => before.partition_point(begins),
            _ if near < NEAR => reached + near,
            _ => reached + behind.partition_point(begins),
        };
        self.reached.set(after);
        after
    }

    /// Operators that last from before the beginning of an event to its end or beyond, the
    /// innermost first.
    fn around(&self, events: &Events, event: u32) -> impl Iterator<Item = u32> {
        let (start, end) = events.interval(event);
        let after = self.after(events, start);
        let outer = |place: &usize| self.outer.get(*place).copied().filter(|at| *at != usize::MAX);
        let places = std::iter::successors(after.checked_sub(1), outer);
        places.map(|place| self.rows[place]).filter(move |row| events.end(*row) >= end)
    }
}

struct Operators {
    threads: Vec<Thread>,
    thread_of: Vec<u32>,
}

impl Operators {
    fn of(model: &Model<'_>) -> Operators {
        let calls = model.calls();
        let mut thread_of = vec![NONE; model.events.len()];
        let mut is_operator = model.names_that(|name| name.starts_with("aten::"));
        let mut threads = Vec::new();
        for thread in &calls.threads {
            let rows = &calls.order[thread.rows.clone()];
            rows.iter().for_each(|row| thread_of[*row as usize] = threads.len() as u32);
            let rows: Vec<u32> = rows.iter().copied().filter(|row| is_operator(*row)).collect();
            let outer = chains(&model.events, &rows);
            threads.push(Thread { rows, outer, reached: Cell::new(0) });
        }
        Operators { threads, thread_of }
    }

    /// The innermost operator around a launch. Of those that began at the same time HTA takes
    /// the first of the trace.
    fn around(&self, model: &Model<'_>, launch: u32) -> Option<u32> {
        let events = &model.events;
        if model.reading.hta().is_none() {
            let own = self.threads.get(self.thread_of[launch as usize] as usize)?;
            return own.around(events, launch).next();
        }
        let all = self.threads.iter().flat_map(|thread| thread.around(events, launch));
        all.min_by_key(|row| (std::cmp::Reverse(events.starts[*row as usize]), *row))
    }
}
