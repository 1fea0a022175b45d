//! The events of all ranks as tables: a row for each, for SQL and for libraries of tables.

use std::sync::Arc;

use kymograph_analysis::model::{Events, Kind};
use kymograph_analysis::table::{Cell, Cells, RecordBatch, Rows};
use kymograph_analysis::{Column, Error as Failure, Metric, Model, Options, Reading, Unit, run};
use kymograph_converters::each;
use kymograph_converters::trace::{self, EventRef, SeriesKind};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::Error;
use crate::load::{Loaded, Rank};
use crate::table::{Make, Table, type_name};

/// A table: its name, what a row is, its columns, and how its rows are found.
struct Kept {
    name: &'static str,
    rows: &'static str,
    columns: &'static [Column],
    fill: fn(&Model<'_>, i64, &mut Rows) -> Result<(), Failure>,
}

const RANK: Column = Column::int("rank", "the rank");
const START: Column = Column::moment("start", "when it begins, from the first event of all ranks");
const DUR: Column = Column::duration("dur", "how long it takes");
const NAME: Column = Column::text("name", "what it is called");
const PID: Column = Column::int("pid", "the process");
const TID: Column = Column::int("tid", "the thread");
const STEP: Column = Column::int("step", "the step; null outside of steps");
const DEVICE: Column = Column::int("device", "the number of the device");
const STREAM: Column = Column::int("stream", "the stream or queue of the device");
const CORRELATION: Column =
    Column::int("correlation", "what joins a call with the work that it launched; null without");

const ALL: [Kept; 9] = [
    Kept {
        name: "kernels",
        rows: "kernel, copy, fill and collective of a device",
        columns: &[
            RANK,
            START,
            DUR,
            NAME,
            Column::text("kind", "kernel, memcpy, memset or communication"),
            Column::text("class", "COMPUTATION, COMMUNICATION, MEMORY or OTHER"),
            DEVICE,
            STREAM,
            CORRELATION,
            STEP,
            Column::text("operator", "the operator that launched it; null if none is known"),
        ],
        fill: kernels,
    },
    Kept {
        name: "calls",
        rows: "call of a device's runtime or driver library",
        columns: &[RANK, START, DUR, NAME, CATEGORY, PID, TID, CORRELATION, STEP],
        fill: |model, origin, rows| {
            host(model, origin, rows, |kind| matches!(kind, Kind::Runtime | Kind::Driver))
        },
    },
    Kept {
        name: "operators",
        rows: "call of a framework's operator",
        columns: &[
            RANK,
            START,
            DUR,
            NAME,
            PID,
            TID,
            STEP,
            Column::int("depth", "how many operators are around it on its thread"),
            Column::text("parent", "the operator around it; null if there is none"),
        ],
        fill: operators,
    },
    Kept {
        name: "annotations",
        rows: "range of the host that is none of these: what the program names, and calls of Python",
        columns: &[RANK, START, DUR, NAME, CATEGORY, PID, TID, CORRELATION, STEP],
        fill: |model, origin, rows| {
            let own = |kind| matches!(kind, Kind::Annotation | Kind::Other | Kind::Python);
            host(model, origin, rows, own)
        },
    },
    Kept {
        name: "collectives",
        rows: "collective and point-to-point operation, as a rank's device carries it out",
        columns: &[
            RANK,
            START,
            DUR,
            Column::text("collective", "what it does"),
            Column::text("group", "the process group"),
            STEP,
            Column::int("sequence", "its place among the collectives of the group and the step"),
            Column::int("group_size", "how many ranks take part; null if the trace does not say"),
            Column::int("message", "the larger of input and output").unit(Unit::Bytes),
        ],
        fill: collectives,
    },
    Kept {
        name: "steps",
        rows: "step, as the host marks it",
        columns: &[RANK, START, DUR, Column::int("step", "its number")],
        fill: steps,
    },
    Kept {
        name: "counters",
        rows: "value of a counter",
        columns: &[
            RANK,
            Column::moment("ts", "when, from the first event of all ranks"),
            NAME,
            Column::float("value", "the value, in the unit that `unit` says"),
            Column::text("unit", "ns, count, bytes or another; null if the trace does not say"),
            DEVICE,
        ],
        fill: counters,
    },
    Kept {
        name: "memory",
        rows: "allocation, with its release",
        columns: &[
            RANK,
            Column::moment("start", "when it was allocated; null if before the trace"),
            Column::duration("dur", "how long it was held; null if that is not known"),
            Column::text("device", "whose memory it is: CPU, GPU0, …"),
            Column::int("size", "how much").unit(Unit::Bytes),
            Column::text("operator", "the operator that allocated it; null if there is none"),
        ],
        fill: memory,
    },
    Kept {
        name: "flows",
        rows: "arrow from one event to another",
        columns: &[
            RANK,
            Column::text("kind", "flow (the program's) or launch (from a call to its work)"),
            Column::text("from_name", "where it begins"),
            Column::moment("from_ts", "when that begins"),
            Column::text("to_name", "where it ends"),
            Column::moment("to_ts", "when that begins"),
        ],
        fill: flows,
    },
];

const CATEGORY: Column = Column::text("category", "what it is switched on and off by");

/// Of a column: name, type, unit, meaning.
type About = (&'static str, &'static str, &'static str, &'static str);

/// All tables: name, what a row is, columns.
#[pyfunction]
pub fn tables() -> Vec<(&'static str, &'static str, Vec<About>)> {
    let column =
        |column: &Column| (column.name, type_name(column.ty), column.unit.name(), column.meaning);
    let of = |kept: &Kept| (kept.name, kept.rows, kept.columns.iter().map(column).collect());
    ALL.iter().map(of).collect()
}

/// A table of all ranks, which is made when it is first looked at.
#[pyfunction]
pub fn table(loaded: &Bound<'_, Loaded>, name: &str) -> PyResult<Table> {
    let unknown = || PyKeyError::new_err(format!("there is no table `{name}`"));
    let kept = ALL.iter().find(|kept| kept.name == name).ok_or_else(unknown)?;
    let ranks = loaded.get().ranks.clone();
    let make = move || fill(kept, &ranks).map_err(|error| Error::new_err(error.to_string()));
    Ok(Table::later(kept.name, Make(Arc::new(make))))
}

fn fill(kept: &Kept, ranks: &[Rank]) -> Result<RecordBatch, Failure> {
    let size = |rank: &Rank| rank.trace.bytes() as u64;
    let models = each(ranks, size, |_, rank| {
        Model::new(&rank.trace, rank.process, rank.number, Reading::Exact)
    });
    let origin = models.iter().map(|model| model.origin).min().unwrap_or(0);
    let mut rows = Rows::new(kept.columns);
    for model in &models {
        (kept.fill)(model, origin, &mut rows)?;
    }
    rows.finish()
}

/// The step of a row; null outside of steps.
fn step(model: &Model<'_>, row: u32) -> Option<i64> {
    Some(model.steps().of[row as usize]).filter(|step| *step >= 0)
}

fn correlation(events: &Events, row: u32) -> Option<i64> {
    Some(events.correlations[row as usize]).filter(|number| *number > 0)
}

/// The rows of the host of some kinds, in the order of their beginnings.
fn rows_of(model: &Model<'_>, wanted: impl Fn(Kind) -> bool) -> Vec<u32> {
    let events = &model.events;
    let is = |row: &u32| !events.on_device(*row) && wanted(events.kinds[*row as usize]);
    let mut rows: Vec<u32> = (0..events.len() as u32).filter(is).collect();
    rows.sort_by_key(|row| events.starts[*row as usize]);
    rows
}

fn kernels(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    let events = &model.events;
    for row in model.device().iter().copied() {
        let at = row as usize;
        let kind = match events.kinds[at] {
            Kind::Kernel => "kernel",
            Kind::Copy => "memcpy",
            Kind::Set => "memset",
            Kind::Communication => "communication",
            _ => continue,
        };
        let lane = events.lane(row);
        rows.push([
            model.rank.into(),
            (events.starts[at] - origin).into(),
            events.durs[at].into(),
            model.name(row).into(),
            kind.into(),
            model.classes().of_row(model, row).name().into(),
            lane.pid.into(),
            i64::from(events.streams[at]).into(),
            correlation(events, row).into(),
            step(model, row).into(),
            model.owners().get(row).map(|operator| model.name(operator)).into(),
        ]);
    }
    Ok(())
}

/// Ranges of threads with their category.
fn host(
    model: &Model<'_>,
    origin: i64,
    rows: &mut Rows,
    wanted: impl Fn(Kind) -> bool,
) -> Result<(), Failure> {
    let events = &model.events;
    for row in rows_of(model, wanted) {
        let (at, lane) = (row as usize, events.lane(row));
        rows.push([
            model.rank.into(),
            (events.starts[at] - origin).into(),
            events.durs[at].into(),
            model.name(row).into(),
            model.text(events.category(model.trace, row)).into(),
            lane.pid.into(),
            lane.thread.then_some(lane.tid).into(),
            correlation(events, row).into(),
            step(model, row).into(),
        ]);
    }
    Ok(())
}

fn operators(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    let events = &model.events;
    let is_operator = |row: &u32| events.kinds[*row as usize] == Kind::Operator;
    for row in rows_of(model, |kind| kind == Kind::Operator) {
        let (at, lane) = (row as usize, events.lane(row));
        let around: Vec<u32> = model.calls().callers(row).filter(is_operator).collect();
        rows.push([
            model.rank.into(),
            (events.starts[at] - origin).into(),
            events.durs[at].into(),
            model.name(row).into(),
            lane.pid.into(),
            lane.tid.into(),
            step(model, row).into(),
            around.len().into(),
            around.first().map(|parent| model.name(*parent)).into(),
        ]);
    }
    Ok(())
}

fn steps(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    let events = &model.events;
    let mut all = model.steps().all.clone();
    all.sort_by_key(|step| events.starts[step.row as usize]);
    for step in all {
        let at = step.row as usize;
        let start = events.starts[at] - origin;
        rows.push([model.rank.into(), start.into(), events.durs[at].into(), step.number.into()]);
    }
    Ok(())
}

/// A row for each row of a metric's own table, if the trace has anything of the kind.
fn of_metric<const N: usize>(
    name: &str,
    model: &Model<'_>,
    rows: &mut Rows,
    row: impl for<'c> Fn(Cells<'c>, usize) -> [Cell<'c>; N],
) -> Result<(), Failure> {
    let Some(metric) = Metric::find(name) else { return Ok(()) };
    let batch = match run::of_rank(metric, model, &Options::default()) {
        Ok(part) => part.batch,
        Err(Failure::Nothing(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let cells = Cells::of(&batch);
    (0..batch.num_rows()).for_each(|at| rows.push(row(cells, at)));
    Ok(())
}

fn collectives(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    of_metric("collectives", model, rows, |cells, row| {
        [
            model.rank.into(),
            cells.int("ts", row).map(|ts| ts - origin).into(),
            cells.int("duration", row).into(),
            cells.text("collective", row).into(),
            cells.text("group", row).into(),
            cells.int("step", row).filter(|step| *step >= 0).into(),
            cells.int("sequence", row).into(),
            cells.int("group_size", row).into(),
            cells.int("message", row).into(),
        ]
    })
}

fn memory(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    of_metric("memory_events", model, rows, |cells, row| {
        [
            model.rank.into(),
            cells.int("allocation_ts", row).map(|ts| ts - origin).into(),
            cells.int("duration", row).into(),
            cells.text("device", row).into(),
            cells.int("size", row).into(),
            cells.text("operator", row).into(),
        ]
    })
}

fn counters(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    let trace = model.trace;
    for sample in trace.counters.iter() {
        let series = &trace.counters.series[sample.series];
        let device = match series.kind {
            SeriesKind::Track(track) if !model.takes(track) => continue,
            SeriesKind::Track(_) => None,
            SeriesKind::Device { device, .. }
            | SeriesKind::DeviceMemory { device, .. }
            | SeriesKind::DeviceFrequency { device } => Some(trace.devices[device].number),
        };
        let unit = match series.unit {
            trace::Unit::None => None,
            trace::Unit::Nanoseconds => Some("ns"),
            trace::Unit::Count => Some("count"),
            trace::Unit::Bytes => Some("bytes"),
            trace::Unit::Named(name) => Some(model.text(name)),
        };
        rows.push([
            model.rank.into(),
            (sample.time.0 - origin).into(),
            model.text(series.name).into(),
            sample.value.to_f64().into(),
            unit.into(),
            device.into(),
        ]);
    }
    Ok(())
}

fn flows(model: &Model<'_>, origin: i64, rows: &mut Rows) -> Result<(), Failure> {
    let trace = model.trace;
    // Name and beginning of what an arrow touches; None if it is another rank's.
    let place = |event: EventRef| match event {
        EventRef::Slice(id) => {
            let slice = trace.slices.get(id);
            model.takes(slice.track).then_some((slice.name, slice.start))
        }
        EventRef::Instant(id) => {
            let instant = trace.instants.get(id);
            model.takes(instant.track).then_some((instant.name, instant.time))
        }
        EventRef::Activity(id) => {
            let activity = trace.activities.get(id);
            Some((activity.name, activity.start))
        }
    };
    for (kind, arrows) in [("flow", trace.flow_arrows()), ("launch", trace.launch_arrows())] {
        for arrow in arrows {
            let (Some(from), Some(to)) = (place(arrow.from), place(arrow.to)) else { continue };
            rows.push([
                model.rank.into(),
                kind.into(),
                model.text(from.0).into(),
                (from.1.0 - origin).into(),
                model.text(to.0).into(),
                (to.1.0 - origin).into(),
            ]);
        }
    }
    Ok(())
}
