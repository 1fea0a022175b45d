//! Collectives as the TensorBoard plugin sees them: ranges of the host, and kernels that have their
//! numbers.

use kymograph_converters::order::Order as _;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use hashbrown::HashMap;

use super::{Sum, Waits, times};
use crate::bundle::{bundle, unbundle};
use crate::compat::tensorboard::{self, Plugin, is_collective};
use crate::interval::{Interval, length, merge};
use crate::metric::overview;
use crate::model::{Kind, Model};
use crate::table::{Cells, Rows};
use crate::{Column, Error, Options, Part};

/// What each rank gives: a row for each range of a collective.
const RANGES: &[Column] = &[
    Column::int("number", "the number of the collective"),
    Column::text("name", "what it is called"),
    Column::text("step", "its step; null if it lies in none"),
    Column::int("bytes", "the size of its inputs"),
    Column::duration("start", "when the range begins"),
    Column::duration("end", "when it ends"),
];

struct Collective {
    row: u32,
    time: Interval,
    ranges: Vec<Interval>,
}

pub(super) fn of_trace(
    model: &Model<'_>,
    options: &Options,
    state: Plugin,
) -> Result<RecordBatch, Error> {
    let steps = overview::steps(model, options)?;
    let roles = overview::merged(model, options);
    let moving = &roles[3];
    let mut found = found(model, state);
    if moving.is_empty() || found.is_empty() {
        return Err(Error::Nothing(format!(
            "rank {} has no collectives that the plugin knows: ranges named nccl:all_reduce and \
             the like",
            model.rank
        )));
    }
    let computing = if roles[0].is_empty() { &roles[6] } else { &roles[0] };
    let mut rows = Rows::new(RANGES);
    let mut at = 0;
    for (number, collective) in found.iter_mut().enumerate() {
        let (start, end) = collective.time;
        let holds = |step: &&overview::Step| start >= step.start && end <= step.end;
        while steps.get(at).is_some_and(|step| start >= step.end && !holds(&step)) {
            at += 1;
        }
        let step = steps.get(at).filter(holds);
        collective.ranges.order_by_numbers(|(start, end)| [*start, !*end]);
        for (from, to) in &collective.ranges {
            rows.push([
                number.into(),
                model.name(collective.row).into(),
                step.map(|step| step.name.as_str()).into(),
                bytes(model, collective.row).into(),
                (*from).into(),
                (*to).into(),
            ]);
        }
    }
    bundle(&[("steps", times(&steps, [computing, moving])?), ("ranges", rows.finish()?)])
}

/// In the order of their beginnings.
fn found(model: &Model<'_>, state: Plugin) -> Vec<Collective> {
    let events = &model.events;
    let external = tensorboard::External::of(model);
    let interval = |row| tensorboard::interval(Some(state), events.interval(row));
    let mut rows: Vec<u32> = (0..events.len() as u32).collect();
    events.sort_by_start(&mut rows);
    let mut by_number: HashMap<Option<i64>, usize> = HashMap::new();
    let mut found: Vec<Collective> = Vec::new();
    let (mut nccl, mut gloo) = (false, false);
    for row in rows.iter().copied() {
        let kind = events.kinds[row as usize];
        let name = model.name(row);
        let host = matches!(kind, Kind::Operator | Kind::Annotation | Kind::DeviceAnnotation);
        if !host || !is_collective(name) {
            continue;
        }
        (nccl, gloo) = (nccl || name.starts_with("nccl"), gloo || name.starts_with("gloo"));
        let time = interval(row);
        let collective = Collective { row, time, ranges: vec![time] };
        // Of those of one number the last counts.
        match by_number.entry(external.number(model, row)) {
            hashbrown::hash_map::Entry::Occupied(at) => found[*at.get()] = collective,
            hashbrown::hash_map::Entry::Vacant(at) => {
                at.insert(found.len());
                found.push(collective);
            }
        }
    }
    if nccl && gloo {
        return Vec::new();
    }
    for row in rows.into_iter().filter(|row| nccl && events.kinds[*row as usize] == Kind::Kernel) {
        if let Some(at) = by_number.get(&external.number(model, row)) {
            found[*at].ranges.push(interval(row));
        }
    }
    found.order_by_numbers(|collective| [collective.time.0, !collective.time.1]);
    found
}

/// The size of the inputs, of the types that the plugin knows.
fn bytes(model: &Model<'_>, row: u32) -> i64 {
    let find = |name| model.trace.strings.find(name);
    let dims = model.list(row, find("Input Dims")).or_else(|| model.list(row, find("Input dims")));
    let types = model.list(row, find("Input type"));
    let (Some(dims), Some(types)) = (dims, types) else { return 0 };
    let width = |ty: &str| match ty {
        "long int" => 8.0,
        "float" | "int" => 4.0,
        "c10::Half" | "c10::BFloat16" => 2.0,
        "unsigned char" => 1.0,
        _ => 0.0,
    };
    let sizes = model.trace.args.items(dims).zip(model.texts(types)).map(|(dims, ty)| {
        let dims = match dims {
            kymograph_converters::trace::Value::List(dims) => model.numbers(dims),
            _ => None,
        };
        dims.map_or(0.0, |dims| dims.iter().product::<f64>() * width(ty))
    });
    sizes.sum::<f64>() as i64
}

/// Collectives of all ranks, each rank's n-th with the others' n-th.
pub(super) struct Collectives {
    tables: Vec<(i64, RecordBatch)>,
    /// How long the shortest of each range is, over ranks.
    shortest: Vec<i64>,
}

impl Collectives {
    pub(super) fn of(parts: &[Part]) -> Result<Collectives, Error> {
        let tables: Vec<(i64, RecordBatch)> = parts
            .iter()
            .filter_map(|part| Some((part.rank, unbundle(&part.batch, "ranges")?)))
            .collect();
        let shape = |batch: &RecordBatch| -> Vec<Option<i64>> {
            (0..batch.num_rows()).map(|row| Cells::of(batch).int("number", row)).collect()
        };
        if tables.windows(2).any(|pair| shape(&pair[0].1) != shape(&pair[1].1)) {
            let what = "ranks have different numbers of collectives, so the plugin compares none";
            return Err(Error::Nothing(what.to_owned()));
        }
        let rows = tables.first().map_or(0, |(_, batch)| batch.num_rows());
        let shortest = |row| -> i64 {
            let ranges = tables.iter().map(|(_, batch)| range(batch, row));
            ranges.map(|(from, to)| to - from).min().unwrap_or(0)
        };
        let shortest = (0..rows).map(shortest).collect();
        Ok(Collectives { tables, shortest })
    }

    /// Ranges of a rank, and their parts in which data moved, by a key; in the order in which
    /// keys come first.
    fn by<'a, K: PartialEq>(
        &'a self,
        batch: &'a RecordBatch,
        key: impl Fn(Cells<'a>, usize) -> K,
    ) -> Vec<(K, Vec<usize>)> {
        let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
        for row in 0..batch.num_rows() {
            let key = key(Cells::of(batch), row);
            match groups.iter_mut().find(|(own, _)| *own == key) {
                Some((_, rows)) => rows.push(row),
                None => groups.push((key, vec![row])),
            }
        }
        groups
    }

    /// How long any of some ranges lasts, and how long data moved in any.
    fn lengths(&self, batch: &RecordBatch, rows: &[usize]) -> (i64, i64) {
        let joined = |mut ranges: Vec<Interval>| {
            ranges.sort_unstable();
            length(&merge(ranges))
        };
        let all = rows.iter().map(|row| range(batch, *row)).collect();
        let moved = rows.iter().map(|row| {
            let (_, end) = range(batch, *row);
            (end - self.shortest[*row], end)
        });
        (joined(all), joined(moved.collect()))
    }

    pub(super) fn waits(&self) -> Waits<'_> {
        let mut waits: Waits<'_> = BTreeMap::new();
        for (rank, batch) in &self.tables {
            for (step, rows) in self.by(batch, |cells, row| cells.text("step", row)) {
                let (all, moved) = self.lengths(batch, &rows);
                waits.insert((*rank, step), (moved, all - moved));
            }
        }
        waits
    }

    pub(super) fn operations(&self) -> Vec<((i64, String), Sum)> {
        let mut sums = Vec::new();
        for (rank, batch) in &self.tables {
            for (name, rows) in self.by(batch, |cells, row| cells.text("name", row)) {
                let cells = Cells::of(batch);
                let number = |row: usize| cells.int("number", row);
                let is_first = |row: &&usize| **row == 0 || number(**row) != number(**row - 1);
                let firsts = || rows.iter().filter(is_first);
                let bytes = firsts().filter_map(|row| cells.int("bytes", *row)).sum();
                let (all, moved) = self.lengths(batch, &rows);
                let name = name.unwrap_or_default().to_owned();
                sums.push(((*rank, name), (firsts().count() as i64, bytes, all, moved)));
            }
        }
        sums
    }
}

fn range(batch: &RecordBatch, row: usize) -> Interval {
    let cell = |column| Cells::of(batch).int(column, row).unwrap_or(0);
    (cell("start"), cell("end"))
}
