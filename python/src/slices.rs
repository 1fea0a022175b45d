//! The events of a trace as a table, and traces in another format: what `torch.profiler`'s
//! interface needs beside metrics.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use kymograph_converters::format::{self, Format};
use kymograph_converters::trace::{SliceId, StrId, Trace, TrackId};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::Error;
use crate::background::{Course, wait};
use crate::load::Loaded;
use crate::table::Table;

/// A column: name, unit, meaning.
type Column = (&'static str, &'static str, &'static str);

const COLUMNS: [Column; 12] = [
    ("name", "", "what the event is called"),
    ("category", "", "what it is switched on and off by; of a device's work, its stage"),
    ("start", "ns", "when it begins, from the first event of the trace"),
    ("dur", "ns", "how long it takes; null if it does not end in the trace"),
    ("pid", "", "the process; null of devices"),
    ("tid", "", "the thread; null of other tracks and of devices"),
    ("track", "", "the row: a thread, a track or a queue of a device"),
    ("device", "", "the device's number; null on the host"),
    ("parent", "", "the row in this table of the slice around it; null if there is none"),
    ("correlation", "", "what joins a call with the work that it launched; null without"),
    ("input_shapes", "", "of an operator, the sizes of its inputs as JSON; null if not recorded"),
    ("concrete_inputs", "", "likewise, the values of inputs that are no tensors"),
];

/// The place of `parent` among the columns of numbers.
const PARENT: usize = 4;

/// The track beneath which those of tasks lie.
const ASYNCIO: &str = "asyncio";

/// The arguments of operators that have columns.
const INPUTS: [&str; 2] = ["Input Dims", "Concrete Inputs"];

/// All slices of the host and all work of devices of one rank, by track and time.
#[pyfunction]
pub fn events(py: Python<'_>, loaded: &Bound<'_, Loaded>, rank: i64) -> PyResult<Table> {
    let unknown = || PyValueError::new_err(format!("there is no rank {rank}"));
    let found = loaded.get().ranks.iter().find(|r| r.number == rank).ok_or_else(unknown)?.clone();
    let batch =
        wait(py, &Arc::new(Course::default()), None, move || table(&found.trace, found.process))?;
    Ok(Table::new("events", batch.map_err(|error| Error::new_err(error.to_string()))?))
}

#[derive(Default)]
struct Rows<'a> {
    texts: [Vec<&'a str>; 2],
    tracks: Vec<String>,
    starts: Vec<i64>,
    numbers: [Vec<Option<i64>>; 6],
    inputs: [Vec<Option<String>>; 2],
}

impl Rows<'_> {
    fn len(&self) -> usize {
        self.starts.len()
    }
}

fn table(
    trace: &Trace,
    process: Option<kymograph_converters::trace::ProcessId>,
) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let first = trace.slices.starts().iter().chain(trace.activities.starts()).min();
    let origin = first.copied().unwrap_or_default();
    let mut rows = Rows::default();
    host(trace, process, origin, &mut rows);
    if process.is_none() {
        devices(trace, origin, &mut rows);
    }
    let [dur, pid, tid, device, parent, correlation] = rows.numbers;
    let [names, categories] = rows.texts;
    let number = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let [shapes, values] = rows.inputs;
    let columns = vec![
        text(names),
        text(categories),
        Arc::new(Int64Array::from(rows.starts)),
        number(dur),
        number(pid),
        number(tid),
        Arc::new(StringArray::from(rows.tracks)),
        number(device),
        number(parent),
        number(correlation),
        Arc::new(StringArray::from(shapes)),
        Arc::new(StringArray::from(values)),
    ];
    let field = |(array, (name, unit, meaning)): (&ArrayRef, Column)| {
        let about = [("unit", unit), ("meaning", meaning)];
        let about = about.map(|(key, text)| (key.to_owned(), text.to_owned()));
        let nullable = *array.data_type() == DataType::Int64 || array.null_count() > 0;
        Field::new(name, array.data_type().clone(), nullable).with_metadata(about.into())
    };
    let fields: Vec<Field> = columns.iter().zip(COLUMNS).map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The slices of the host: track by track, each with the one around it, as `torch.profiler` tells
/// that: the innermost that lasts as long as it does.
fn host<'a>(
    trace: &'a Trace,
    process: Option<kymograph_converters::trace::ProcessId>,
    origin: i64,
    rows: &mut Rows<'a>,
) {
    let mut calls = HashMap::new();
    for link in &trace.flows.links {
        calls.insert(link.event, link.correlation);
    }
    let inputs = INPUTS.map(|name| trace.strings.find(name));
    let mut slices = Vec::new();
    // Slices that are open: row and end.
    let mut open: Vec<(i64, i64)> = Vec::new();
    let mut last: Option<(TrackId, Place)> = None;
    for id in trace.slices.by_track() {
        let slice = trace.slices.get(id);
        if last.as_ref().is_none_or(|(track, _)| *track != slice.track) {
            open.clear();
            last = Some((slice.track, Place::of(trace, slice.track)));
        }
        let Some((_, place)) = &last else { continue };
        if process.is_some_and(|process| trace.process_of(slice.track) != Some(process)) {
            continue;
        }
        let (start, end) = (slice.start.0, slice.end().map(|end| end.0));
        while open.pop_if(|(_, until)| *until <= start).is_some() {}
        let row = rows.len() as i64;
        let last = end.unwrap_or(start);
        let around = open.iter().rev().find(|(_, until)| *until > start && *until >= last);
        let around = around.map(|(row, _)| *row);
        rows.texts[0].push(trace.strings.get(slice.name));
        rows.texts[1].push(trace.strings.get(slice.category));
        rows.starts.push(start - origin);
        rows.tracks.push(place.name.clone());
        let correlation = calls.get(&kymograph_converters::trace::EventRef::Slice(id));
        let dur = end.map(|end| end - start);
        let correlation = correlation.and_then(|number| i64::try_from(*number).ok());
        let values = [dur, place.pid, place.tid, None, around, correlation];
        rows.numbers.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        for (column, name) in rows.inputs.iter_mut().zip(inputs) {
            let value = name.and_then(|name| trace.args.find(slice.args, name));
            column.push(value.map(|value| trace.json(value)));
        }
        open.push((row, end.unwrap_or(i64::MAX)));
        slices.push(id);
    }
    for task in tasks(trace, &slices) {
        if let Some(nested) = nest(trace, &slices, task) {
            nested.iter().for_each(|(row, around)| rows.numbers[PARENT][*row] = *around);
        }
    }
}

/// The rows of each task of asyncio: its scopes lie on tracks of its name beneath `asyncio`, those
/// inside others on further ones. `slices` are those of the rows.
fn tasks(trace: &Trace, slices: &[SliceId]) -> impl Iterator<Item = Vec<usize>> {
    let asyncio = trace.strings.find(ASYNCIO);
    let mut tasks: HashMap<(TrackId, StrId), Vec<usize>> = HashMap::new();
    for (row, slice) in slices.iter().enumerate() {
        let track = &trace.tracks[trace.slices.get(*slice).track];
        let above = track.parent.filter(|above| Some(trace.tracks[*above].name) == asyncio);
        if let Some(above) = above {
            tasks.entry((above, track.name)).or_default().push(row);
        }
    }
    tasks.into_values()
}

/// What is around each of these rows, which are one task's. `None` where they cross: then they are
/// of several tasks of one name, and nothing tells whose each is.
fn nest(
    trace: &Trace,
    slices: &[SliceId],
    mut rows: Vec<usize>,
) -> Option<Vec<(usize, Option<i64>)>> {
    let span = |row: usize| {
        let slice = trace.slices.get(slices[row]);
        (slice.start.0, slice.end().map_or(i64::MAX, |end| end.0))
    };
    rows.sort_by_key(|row| (span(*row).0, std::cmp::Reverse(span(*row).1)));
    let mut open: Vec<(usize, i64)> = Vec::new();
    let mut nested = Vec::with_capacity(rows.len());
    for row in rows {
        let (start, end) = span(row);
        while open.pop_if(|(_, until)| *until <= start).is_some() {}
        if open.last().is_some_and(|(_, until)| *until < end) {
            return None;
        }
        nested.push((row, open.last().map(|(around, _)| *around as i64)));
        open.push((row, end));
    }
    Some(nested)
}

/// Whose a track is.
struct Place {
    name: String,
    pid: Option<i64>,
    tid: Option<i64>,
}

impl Place {
    fn of(trace: &Trace, track: TrackId) -> Place {
        let pid = trace.process_of(track).map(|process| trace.processes[process].pid);
        match trace.thread_of(track) {
            Some(thread) => {
                let thread = &trace.threads[thread];
                let name = trace.strings.get(thread.name).to_owned();
                Place { name, pid, tid: Some(thread.tid) }
            }
            None => {
                let name = trace.strings.get(trace.tracks[track].name).to_owned();
                Place { name, pid, tid: None }
            }
        }
    }
}

/// The work of devices.
fn devices<'a>(trace: &'a Trace, origin: i64, rows: &mut Rows<'a>) {
    for id in trace.activities.by_queue() {
        let activity = trace.activities.get(id);
        let queue = &trace.queues[activity.queue];
        let stage = activity.stage.map_or("", |stage| trace.strings.get(trace.stages[stage].name));
        rows.texts[0].push(trace.strings.get(activity.name));
        rows.texts[1].push(stage);
        rows.starts.push(activity.start.0 - origin);
        rows.tracks.push(trace.strings.get(queue.name).to_owned());
        let device = trace.devices[queue.device].number;
        let correlation = i64::try_from(activity.correlation).ok().filter(|number| *number != 0);
        let values = [Some(activity.dur.0), None, None, Some(device), None, correlation];
        rows.numbers.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        rows.inputs.iter_mut().for_each(|column| column.push(None));
    }
}

/// Converts a trace; the name of `to` says into what (.json, .pftrace, .gz, .zst). It is written
/// under another name and takes its place when it is whole.
#[pyfunction]
pub fn convert(py: Python<'_>, from: PathBuf, to: PathBuf) -> PyResult<()> {
    let Some(into) = Format::of_file(&to) else {
        return Err(PyValueError::new_err(format!(
            "{}: its name ends in .json, .json.gz, .pftrace or .pftrace.gz",
            to.display()
        )));
    };
    let work = move || -> Result<(), PyErr> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| {
            PyOSError::new_err(format!("{}: {error}", path.display()))
        };
        let file = File::open(&from).map_err(|error| failed(&from, &error))?;
        let trace = format::read(file, None).map_err(|error| failed(&from, &error))?;
        let mut partial = to.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let written = File::create(&partial).and_then(|mut file| {
            format::write(&trace, &mut file, into, format::packing_of_file(&to))?;
            file.flush()?;
            std::fs::rename(&partial, &to)
        });
        written.map_err(|error| {
            let _ = std::fs::remove_file(&partial);
            failed(&to, &error)
        })
    };
    wait(py, &Arc::new(Course::default()), None, work)?
}
