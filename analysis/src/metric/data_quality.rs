//! Whether a trace can be trusted, and what it lacks.
//!
//! A row is a check. `problem` says that numbers of other metrics are wrong, or lack something;
//! `note` that there is something to know; `ok` that nothing was found.
//!
//! What cannot be is counted here and left out everywhere: events without an end, and device
//! work that takes less than no time, or more than a second and ten times as long as anything
//! else was seen. Work that overlaps other work of its stream stays, since some kernels begin
//! before their predecessor ends (programmatic dependent launch, branches of a graph); sums of
//! durations count the time twice, those of `temporal_breakdown` do not.

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use crate::interval;
use crate::metric::one_by_one;
use crate::model::{Class, Kind, Model};
use crate::table::Rows;
use crate::{Column, Error, Metric, Options};

/// See the module.
pub const METRIC: Metric = Metric {
    name: "data_quality",
    answers: "whether the trace can be trusted, and what it lacks for other metrics",
    columns: COLUMNS,
    of_trace,
    over_ranks: one_by_one,
};

const COLUMNS: &[Column] = &[
    Column::int("rank", "the rank"),
    Column::text("check", "what was looked at"),
    Column::text("verdict", "ok, note or problem"),
    Column::int("count", "how many there are"),
    Column::int("of", "of how many; null where that has no meaning"),
    Column::duration("time", "how long it is about, altogether; null where that has no meaning"),
    Column::moment("first_ts", "when the first one begins; null if there is none"),
    Column::text("example", "the first one; null if there is none"),
    Column::text("meaning", "what it means"),
];

/// How bad it is if a check finds something, or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum If {
    /// Finding some is a problem.
    SomeProblem,
    /// Finding some is worth a note.
    SomeNote,
    /// Finding none is worth a note.
    NoneNote,
}

struct Check {
    name: &'static str,
    when: If,
    meaning: &'static str,
    count: u64,
    of: Option<u64>,
    time: Option<i64>,
    first: Option<(i64, String)>,
}

impl Check {
    fn new(name: &'static str, when: If, meaning: &'static str) -> Check {
        Check { name, when, meaning, count: 0, of: None, time: None, first: None }
    }

    fn of(self, of: usize) -> Check {
        Check { of: Some(of as u64), ..self }
    }

    /// Counts an event, of which `time` is what matters.
    fn add(&mut self, model: &Model<'_>, row: u32, time: i64) {
        self.count += 1;
        self.time = Some(self.time.unwrap_or(0).saturating_add(time));
        let start = model.events.starts[row as usize];
        if self.first.as_ref().is_none_or(|(first, _)| start < *first) {
            self.first = Some((start, model.name(row).to_owned()));
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.when, self.count) {
            (If::SomeProblem, 1..) => "problem",
            (If::SomeNote, 1..) | (If::NoneNote, 0) => "note",
            _ => "ok",
        }
    }
}

fn of_trace(model: &Model<'_>, _: &Options) -> Result<RecordBatch, Error> {
    if model.events.is_empty() && model.trace.slices.is_empty() {
        return Err(Error::Nothing(format!("rank {} has no events", model.rank)));
    }
    let mut checks = of_file(model);
    checks.extend(of_launches(model));
    checks.push(overlaps(model));
    checks.push(crossings(model));
    checks.extend(of_contents(model));
    let mut rows = Rows::new(COLUMNS);
    for check in checks {
        let verdict = check.verdict();
        let first = check.first.as_ref();
        rows.push([
            model.rank.into(),
            check.name.into(),
            verdict.into(),
            check.count.into(),
            check.of.into(),
            check.time.into(),
            first.map(|(time, _)| *time).into(),
            first.map(|(_, name)| name.as_str()).into(),
            check.meaning.into(),
        ]);
    }
    rows.finish()
}

/// What the file itself says, and what was left out of it.
fn of_file(model: &Model<'_>) -> Vec<Check> {
    let (trace, facts) = (model.trace, &model.trace.facts);
    let mut lost = Check::new(
        "lost_events",
        If::SomeProblem,
        "lost while the trace was recorded: counts and sums are too low (kymo info says where)",
    );
    lost.count = facts.losses.iter().map(|loss| loss.count).sum();
    let mut warnings = Check::new(
        "unreadable_events",
        If::SomeProblem,
        "the file has events that cannot be understood, or ends in the middle: see kymo info",
    );
    // Kineto writes many arrows with one end, which no metric looks at.
    let passed_over = facts.warnings.iter().filter(|warning| !warning.what.starts_with("arrow "));
    warnings.count = passed_over.map(|warning| warning.count).sum();
    let mut open =
        Check::new("without_end", If::SomeNote, "they were running when the trace ended: left out")
            .of(trace.slices.len());
    for (row, _) in trace.slices.durs().iter().enumerate().filter(|(_, dur)| **dur < 0) {
        open.count += 1;
        let start = trace.slices.starts()[row];
        if open.first.as_ref().is_none_or(|(first, _)| start < *first) {
            open.first = Some((start, model.text(trace.slices.names()[row]).to_owned()));
        }
    }
    let mut impossible = Check::new(
        "impossible_duration",
        If::SomeProblem,
        "device work that ends before it begins, or lasts ten times as long as all else: left out",
    )
    .of(trace.activities.len());
    impossible.count = model.events.impossible.len() as u64;
    impossible.first = model.events.impossible.iter().min().map(|(start, dur)| {
        let text = format!("a duration of {dur} ns");
        (*start, text)
    });
    vec![lost, warnings, open, impossible]
}

/// Launches and work that do not fit together.
fn of_launches(model: &Model<'_>) -> Vec<Check> {
    let events = &model.events;
    let is_work = |row: u32| events.kinds[row as usize].is_work() && events.on_device(row);
    let all: Vec<u32> = model.device().iter().copied().filter(|row| is_work(*row)).collect();
    let mut orphans = Check::new(
        "work_without_launch",
        If::SomeNote,
        "its call is not in the trace: no operator, step or cause of idle time is known of it",
    )
    .of(all.len());
    let mut early = Check::new(
        "work_before_launch",
        If::SomeProblem,
        "work begins before the call that launched it: the clocks of host and device differ by \
         up to `time`",
    )
    .of(all.len());
    let mut furthest = 0;
    for work in &all {
        let Some(call) = model.peers().get(*work) else {
            orphans.add(model, *work, events.durs[*work as usize]);
            continue;
        };
        let lead = events.starts[call as usize].saturating_sub(events.starts[*work as usize]);
        if lead > 0 {
            furthest = furthest.max(lead);
            early.add(model, *work, 0);
        }
    }
    early.time = early.time.map(|_| furthest);
    let mut idle = Check::new(
        "launch_without_work",
        If::SomeNote,
        "the work of these calls is not in the trace, or was not recorded",
    );
    let mut launches = 0;
    let mut is_launch = model.names_that(is_launch);
    for row in 0..events.len() as u32 {
        let launch = matches!(events.kinds[row as usize], Kind::Runtime | Kind::Driver)
            && is_launch(row)
            && events.correlations[row as usize] != -1;
        if launch {
            launches += 1;
            if model.peers().get(row).is_none() {
                idle.add(model, row, events.durs[row as usize]);
            }
        }
    }
    vec![orphans, early, idle.of(launches)]
}

/// Whether a call always gives a device something to do.
fn is_launch(call: &str) -> bool {
    ["LaunchKernel", "GraphLaunch", "MemcpyAsync", "MemsetAsync"]
        .iter()
        .any(|part| call.contains(part))
}

/// Work that begins before the work ahead of it on its stream has ended.
fn overlaps(model: &Model<'_>) -> Check {
    let events = &model.events;
    let mut check = Check::new(
        "overlap_on_stream",
        If::SomeNote,
        "work begins before its stream's work ahead of it ends: sums of durations count `time` \
         twice",
    );
    let mut busy: HashMap<(i64, i64), i64> = HashMap::new();
    let mut all = 0;
    for row in model.device().iter().copied().filter(|row| events.kinds[*row as usize].is_work()) {
        all += 1;
        let lane = events.lane(row);
        let (start, end) = events.interval(row);
        let until = busy.entry((lane.pid, lane.tid)).or_insert(start);
        if start < *until {
            check.add(model, row, end.min(*until) - start);
        }
        *until = (*until).max(end);
    }
    check.of(all)
}

/// Events of a thread that neither contain each other nor come one after the other.
fn crossings(model: &Model<'_>) -> Check {
    let events = &model.events;
    let mut check = Check::new(
        "crossing_on_thread",
        If::SomeNote,
        "they end after the event in which they begin: call trees take them for called by it",
    )
    .of(model.calls().order.len());
    for row in &model.calls().order {
        let Some(parent) = model.calls().parent(*row) else { continue };
        let beyond = events.end(*row).saturating_sub(events.end(parent));
        if beyond > 0 {
            check.add(model, *row, beyond);
        }
    }
    check
}

/// What the trace has for other metrics.
fn of_contents(model: &Model<'_>) -> Vec<Check> {
    let (events, strings) = (&model.events, &model.trace.strings);
    let note = |name, meaning| Check::new(name, If::NoneNote, meaning);
    let mut steps = note("steps", "without ranges named ProfilerStep#N nothing is said by step");
    let mut operators = note("operators", "operators, roofline and modules have nothing to say");
    let mut shapes = note("shapes", "no FLOPs, no roofline, nothing by shape (record_shapes=True)");
    let mut python = note("python", "no Python functions, stacks and modules (with_stack=True)");
    let mut overhead =
        Check::new("profiler", If::SomeNote, "what the profiler itself took on the host");
    let dims = strings.find("Input Dims");
    let mut of_profiler = Vec::new();
    for row in 0..events.len() as u32 {
        let dur = events.durs[row as usize];
        match events.kinds[row as usize] {
            Kind::Operator => {
                operators.add(model, row, dur);
                if dims.is_some() && model.arg(row, dims).is_some() {
                    shapes.add(model, row, dur);
                }
            }
            Kind::Python => python.add(model, row, dur),
            Kind::Overhead => {
                overhead.add(model, row, dur);
                of_profiler.push(events.interval(row));
            }
            _ => {}
        }
    }
    // Operators and functions contain each other: their sum would say nothing.
    for check in [&mut operators, &mut shapes, &mut python] {
        check.time = None;
    }
    of_profiler.sort_unstable();
    overhead.time = overhead.time.map(|_| interval::length(&interval::merge(of_profiler)));
    model.steps().all.iter().for_each(|step| {
        steps.add(model, step.row, events.durs[step.row as usize]);
    });
    let mut memory = note("memory", "nothing is said about memory (profile_memory=True)");
    if let Some(name) = strings.find("[memory]") {
        memory.count = model.trace.instants.iter().filter(|i| i.name == name).count() as u64;
    }
    let mut bare = Check::new(
        "collectives_without_metadata",
        If::SomeNote,
        "message sizes, bandwidths and process groups of these are not known",
    );
    let classes = model.classes();
    let comm = |row: &&u32| classes.of_row(model, **row) == Class::Communication;
    let group = strings.find("Process Group Name");
    let mut collectives = 0;
    for row in model.device().iter().filter(comm) {
        collectives += 1;
        if model.arg(*row, group).is_none() {
            bare.add(model, *row, events.durs[*row as usize]);
        }
    }
    vec![steps, operators, shapes, python, memory, overhead, bare.of(collectives)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::testing::{rows, table};

    #[test]
    fn what_cannot_be_is_counted_and_left_out() {
        let lines = r#"
            cuda_runtime | cudaLaunchKernel | 1 | 10 | 5 | "correlation": 1
            cuda_runtime | cudaLaunchKernel | 1 | 30 | 5 | "correlation": 9
            kernel | early   | 7 | 8  | 10 | "correlation": 1
            kernel | overlap | 7 | 15 | 10 | "correlation": 2
            kernel | forever | 7 | 40 | 9000000 | "correlation": 3
            cpu_op | a | 1 | 50 | 20 |
            cpu_op | b | 1 | 60 | 15 |
        "#;
        let batch = table(&METRIC, lines, &Options::default());
        let found = rows(&batch, &["check", "verdict", "count", "of", "time"]);
        for expected in [
            "lost_events ok 0 - -",
            "impossible_duration problem 1 3 -",
            "work_without_launch note 1 2 10000",
            "work_before_launch problem 1 2 2000",
            "launch_without_work note 1 2 5000",
            "overlap_on_stream note 1 2 3000",
            "crossing_on_thread note 1 4 5000",
            "steps note 0 - -",
            "operators ok 2 - -",
        ] {
            assert!(found.contains(&expected.to_owned()), "{expected} in {found:#?}");
        }
        let temporal = Metric::find("temporal_breakdown").unwrap();
        let busy = rows(&table(temporal, lines, &Options::default()), &["kernel_time"]);
        assert_eq!(busy, ["17000"], "the impossible kernel is left out of sums");
    }
}
