//! What is slower in one run than in another, by name: `kymo analyze diff BASE… TEST…`, as many
//! words for one as for the other, each a file, a folder or a pattern: the ranks of a run.
//!
//! Counts and durations are those of one step in the mean, where all traces have steps, else
//! those of the whole traces; and of one rank in the mean. Rows are in the order of what was lost.
//! Durations of host events contain those of what they call, and host and device work at the same
//! time, so rows do not add up. Two runs number their steps differently, so `ProfilerStep#16` is
//! `ProfilerStep` here. HTA compares the first step of the first rank only, keeps the number, and has
//! its rows in the order of names.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use crate::model::Events;
use crate::names::{shorten, unnumbered};
use crate::table::{Cells, Rows};
use crate::{Column, Error, Metric, Model, Options, Part};

pub use crate::options::Side;

/// See the module.
pub const METRIC: Metric = Metric {
    name: "diff",
    answers: "what takes longer in one run than in another, by name",
    columns: COLUMNS,
    of_trace,
    over_ranks,
};

const COLUMNS: &[Column] = &[
    Column::text("name", "the event; shortened with --short-names"),
    Column::float("base_counts", "how often it came in BASE").hta("Control_counts"),
    Column::mean_duration("base_total_duration", "how long it took there")
        .hta("Control_total_duration"),
    Column::float("test_counts", "how often it came in TEST").hta("Test_counts"),
    Column::mean_duration("test_total_duration", "how long it took there")
        .hta("Test_total_duration"),
    Column::float("diff_counts", "second minus first"),
    Column::mean_duration("diff_duration", "second minus first"),
    Column::text("counts_change_categories", "`+` if it came more often, `-` less often, or `=`"),
];

/// What each trace gives.
const PARTS: &[Column] = &[
    Column::text("name", "the event"),
    Column::int("counts", "how often it came"),
    Column::duration("total_duration", "how long it took"),
    Column::int("steps", "how many steps these are; 0 if the trace has none"),
];

fn of_trace(model: &Model<'_>, options: &Options) -> Result<RecordBatch, Error> {
    let (events, steps) = (&model.events, model.steps());
    let numbers = steps.numbers();
    let wanted: Vec<i64> = match model.reading.hta() {
        Some(_) => numbers.iter().copied().take(1).collect(),
        None => numbers,
    };
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for row in 0..events.len() {
        let on_device = events.streams[row] != Events::HOST;
        let side = match options.side {
            Side::All => true,
            Side::Host => !on_device,
            Side::Device => on_device,
        };
        if !side || !wanted.is_empty() && !wanted.contains(&steps.of[row]) {
            continue;
        }
        let name = model.name(row as u32);
        let name = if model.reading.hta().is_some() { name } else { unnumbered(name) };
        let name = if options.short_names { shorten(name) } else { name.to_owned() };
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(events.durs[row]));
    }
    let mut rows = Rows::new(PARTS);
    for (name, (count, time)) in sums {
        rows.push([name.as_str().into(), count.into(), time.into(), wanted.len().into()]);
    }
    rows.finish()
}

fn over_ranks(_: &Metric, parts: &[Part], options: &Options) -> Result<RecordBatch, Error> {
    // HTA compares one rank of each.
    let most = if options.reading.hta().is_some() { 1 } else { usize::MAX };
    let side = |side: i64| parts.iter().filter(move |part| part.rank == side).take(most);
    let sides = [side(0), side(1)];
    let counts = sides.clone().map(Iterator::count);
    if counts.contains(&0) {
        return Err(Error::Option("diff compares two sides: BASE and TEST".to_owned()));
    }
    let steps = |part: &Part| Cells::of(&part.batch).int("steps", 0).unwrap_or(0);
    let by_step = sides.clone().into_iter().flatten().all(|part| steps(part) > 0);
    let mut names: BTreeMap<&str, [(f64, f64); 2]> = BTreeMap::new();
    for (n, parts) in sides.into_iter().enumerate() {
        for part in parts {
            let cells = Cells::of(&part.batch);
            let over = counts[n] as f64 * if by_step { steps(part) as f64 } else { 1.0 };
            for row in 0..part.batch.num_rows() {
                let value = |column| cells.int(column, row).unwrap_or(0) as f64 / over;
                let name = cells.text("name", row).unwrap_or_default();
                let sum = &mut names.entry(name).or_default()[n];
                *sum = (sum.0 + value("counts"), sum.1 + value("total_duration"));
            }
        }
    }
    let mut names: Vec<_> = names.into_iter().collect();
    if options.reading.hta().is_none() {
        names.order_by(|(_, [a, b]), (_, [c, d])| (d.1 - c.1).total_cmp(&(b.1 - a.1)));
    }
    let mut rows = Rows::new(COLUMNS);
    for (name, [base, test]) in names {
        let more = test.0 - base.0;
        rows.push([
            name.into(),
            base.0.into(),
            base.1.into(),
            test.0.into(),
            test.1.into(),
            more.into(),
            (test.1 - base.1).into(),
            if more > 0.0 {
                "+"
            } else if more < 0.0 {
                "-"
            } else {
                "="
            }
            .into(),
        ]);
    }
    rows.finish()
}
