//! The tables: which columns each has.

use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;

use super::columns::Columns;
use crate::trace::{
    ActivityId, Arrow, Dim3, EventRef, InstantId, Sample, SeriesKind, SliceId, Trace, TrackId,
    TrackKind, Unit, work_category,
};

/// Puts some rows of a table together.
type Batch<'a> = Box<dyn Fn(Range<usize>) -> io::Result<RecordBatch> + 'a>;

/// A table.
pub(super) struct Table<'a> {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    pub(super) batch: Batch<'a>,
}

/// All tables of a trace, also those without rows.
pub(super) fn all(trace: &Trace) -> Vec<Table<'_>> {
    let table = |name, rows, batch| Table { name, rows, batch };
    let arrows = Arrows::new(trace);
    let facts = facts(trace);
    let samples: Vec<Sample> = trace.counters.iter().collect();
    vec![
        table("slices", trace.slices.len(), slices(trace)),
        table("instants", trace.instants.len(), instants(trace)),
        table("activities", trace.activities.len(), activities(trace)),
        table("flows", arrows.0.len(), flows(arrows)),
        table("counters", samples.len(), counters(trace, samples)),
        table("metadata", facts.len(), metadata(facts)),
    ]
}

/// What is said about an event by its track.
struct Place<'a> {
    track: &'a str,
    pid: Option<i64>,
    tid: Option<i64>,
    process: Option<&'a str>,
    rank: Option<i64>,
}

fn places(trace: &Trace) -> Vec<Place<'_>> {
    let ranks: Vec<Option<i64>> = trace.processes.iter().map(|(id, _)| trace.rank(id)).collect();
    let place = |id: TrackId| {
        let thread = trace.thread_of(id).map(|thread| &trace.threads[thread]);
        let process = trace.process_of(id);
        let name = match trace.tracks[id].kind {
            TrackKind::Thread(thread) => trace.threads[thread].name,
            TrackKind::Process(process) => trace.processes[process].name,
            _ => trace.tracks[id].name,
        };
        Place {
            track: trace.strings.get(name),
            pid: process.map(|process| trace.processes[process].pid),
            tid: thread.map(|thread| thread.tid),
            process: process.map(|process| trace.strings.get(trace.processes[process].name)),
            rank: process.and_then(|process| ranks[process.index()]),
        }
    };
    trace.tracks.iter().map(|(id, _)| place(id)).collect()
}

/// The columns of where an event lies.
fn place_columns<'a>(
    columns: &mut Columns,
    places: &'a [Place<'a>],
    tracks: impl Iterator<Item = TrackId> + Clone,
) {
    let of = || tracks.clone().map(|track| &places[track.index()]);
    columns.int("track_id", tracks.clone().map(|track| track.index() as i64));
    columns.text("track", of().map(|place| place.track));
    columns.maybe_int("pid", of().map(|place| place.pid));
    columns.maybe_int("tid", of().map(|place| place.tid));
    columns.maybe_text("process", of().map(|place| place.process));
    columns.maybe_int("rank", of().map(|place| place.rank));
}

fn slices(trace: &Trace) -> Batch<'_> {
    let places = places(trace);
    Box::new(move |rows| {
        let text = |id| trace.strings.get(id);
        let all = || rows.clone().map(|row| trace.slices.get(SliceId::at(row)));
        let mut columns = Columns::default();
        columns.int("id", rows.clone().map(|row| row as i64));
        columns.int("ts", all().map(|slice| slice.start.0));
        columns.maybe_int("dur", all().map(|s| s.dur.is_finished().then_some(s.dur.0)));
        columns.text("name", all().map(|slice| text(slice.name)));
        columns.text("category", all().map(|slice| text(slice.category)));
        place_columns(&mut columns, &places, all().map(|slice| slice.track));
        columns.args(trace, all().map(|slice| trace.args.entries(slice.args)))?;
        columns.finish()
    })
}

fn instants(trace: &Trace) -> Batch<'_> {
    let places = places(trace);
    Box::new(move |rows| {
        let text = |id| trace.strings.get(id);
        let all = || rows.clone().map(|row| trace.instants.get(InstantId::at(row)));
        let mut columns = Columns::default();
        columns.int("id", rows.clone().map(|row| row as i64));
        columns.int("ts", all().map(|instant| instant.time.0));
        columns.text("name", all().map(|instant| text(instant.name)));
        columns.text("category", all().map(|instant| text(instant.category)));
        place_columns(&mut columns, &places, all().map(|instant| instant.track));
        columns.args(trace, all().map(|instant| trace.args.entries(instant.args)))?;
        columns.finish()
    })
}

fn activities(trace: &Trace) -> Batch<'_> {
    Box::new(move |rows| {
        let text = |id| trace.strings.get(id);
        let all = || rows.clone().map(|row| trace.activities.get(ActivityId::at(row)));
        let queues = || all().map(|activity| trace.queues[activity.queue]);
        let devices = || queues().map(|queue| &trace.devices[queue.device]);
        let contexts = || all().map(|a| a.context.map(|context| trace.contexts[context]));
        let stages = || all().map(|a| a.stage.map(|stage| &trace.stages[stage]));
        let kernels = || all().map(|a| a.kernel.map(|kernel| &trace.kernels[kernel]));
        let mut columns = Columns::default();
        columns.int("id", rows.clone().map(|row| row as i64));
        columns.int("ts", all().map(|activity| activity.start.0));
        columns.int("dur", all().map(|activity| activity.dur.0));
        columns.text("name", all().map(|activity| text(activity.name)));
        columns.text("category", stages().map(|stage| work_category(trace, stage)));
        columns.maybe_text("stage", stages().map(|stage| stage.map(|s| text(s.name))));
        columns.int("device", devices().map(|device| device.number));
        columns.text("device_name", devices().map(|device| text(device.name)));
        columns.int("queue", queues().map(|queue| queue.number as i64));
        columns.text("queue_name", queues().map(|queue| text(queue.name)));
        columns.maybe_int("context", contexts().map(|c| c.map(|c| c.number as i64)));
        let pid = |c: Option<crate::trace::Context>| c.map(|c| c.pid).filter(|pid| *pid != 0);
        columns.maybe_int("pid", contexts().map(pid));
        let correlations = all().map(|a| Some(a.correlation as i64).filter(|n| *n != 0));
        columns.maybe_int("correlation", correlations);
        columns.maybe_text("kernel", kernels().map(|kernel| kernel.map(|k| text(k.name))));
        columns.maybe_text(
            "kernel_demangled",
            kernels().map(|kernel| kernel.map(|k| text(k.demangled))),
        );
        let launches = || all().map(|a| a.launch.map(|launch| trace.launches[launch]));
        for (name, of) in EXTENTS {
            let grids = launches().map(|launch| launch.and_then(|l| l.grid).map(of));
            columns.maybe_int(&format!("grid_{name}"), grids);
        }
        for (name, of) in EXTENTS {
            let blocks = launches().map(|launch| launch.and_then(|l| l.block).map(of));
            columns.maybe_int(&format!("block_{name}"), blocks);
        }
        let entries = all().map(|activity| {
            let kernel = activity.kernel.and_then(|kernel| trace.kernels[kernel].args);
            trace.args.entries(activity.args).chain(trace.args.entries(kernel))
        });
        columns.args(trace, entries)?;
        columns.finish()
    })
}

/// A column of each extent.
type Extent = (&'static str, fn(Dim3) -> i64);

const EXTENTS: [Extent; 3] =
    [("x", |dim| dim.x.into()), ("y", |dim| dim.y.into()), ("z", |dim| dim.z.into())];

/// All arrows, and what they stand for.
struct Arrows(Vec<(Arrow, &'static str)>);

impl Arrows {
    fn new(trace: &Trace) -> Arrows {
        let flows = trace.flow_arrows().into_iter().map(|arrow| (arrow, "flow"));
        let launches = trace.launch_arrows().into_iter().map(|arrow| match arrow.from {
            EventRef::Activity(_) => (arrow, "wait"),
            _ => (arrow, "launch"),
        });
        Arrows(flows.chain(launches).collect())
    }
}

fn flows(arrows: Arrows) -> Batch<'static> {
    let end = |event| match event {
        EventRef::Slice(id) => ("slices", id.index() as i64),
        EventRef::Instant(id) => ("instants", id.index() as i64),
        EventRef::Activity(id) => ("activities", id.index() as i64),
    };
    Box::new(move |rows| {
        let all = || arrows.0[rows.clone()].iter();
        let mut columns = Columns::default();
        columns.text("kind", all().map(|(_, kind)| *kind));
        columns.text("from_table", all().map(|(arrow, _)| end(arrow.from).0));
        columns.int("from_id", all().map(|(arrow, _)| end(arrow.from).1));
        columns.text("to_table", all().map(|(arrow, _)| end(arrow.to).0));
        columns.int("to_id", all().map(|(arrow, _)| end(arrow.to).1));
        columns.finish()
    })
}

fn counters(trace: &Trace, samples: Vec<Sample>) -> Batch<'_> {
    let places = places(trace);
    Box::new(move |rows| {
        let all = || samples[rows.clone()].iter();
        let series = || all().map(|sample| &trace.counters.series[sample.series]);
        let place = |kind| match kind {
            SeriesKind::Track(track) => places.get(track.index()),
            _ => None,
        };
        let device = |kind| match kind {
            SeriesKind::Track(_) => None,
            SeriesKind::Device { device, .. }
            | SeriesKind::DeviceMemory { device, .. }
            | SeriesKind::DeviceFrequency { device } => Some(trace.devices[device].number),
        };
        let pid = |kind| match kind {
            SeriesKind::DeviceMemory { pid, .. } => Some(pid).filter(|pid| *pid != 0),
            kind => place(kind).and_then(|place| place.pid),
        };
        let unit = |unit| match unit {
            Unit::None => None,
            Unit::Nanoseconds => Some("ns"),
            Unit::Count => Some("count"),
            Unit::Bytes => Some("bytes"),
            Unit::Named(name) => Some(trace.strings.get(name)),
        };
        let mut columns = Columns::default();
        columns.int("counter_id", all().map(|sample| sample.series.index() as i64));
        columns.int("ts", all().map(|sample| sample.time.0));
        columns.float("value", all().map(|sample| sample.value.to_f64()));
        columns.text("name", series().map(|series| trace.strings.get(series.name)));
        columns.maybe_text("unit", series().map(|series| unit(series.unit)));
        columns.maybe_int("pid", series().map(|series| pid(series.kind)));
        columns.maybe_int("device", series().map(|series| device(series.kind)));
        columns.maybe_int("rank", series().map(|s| place(s.kind).and_then(|place| place.rank)));
        columns.finish()
    })
}

/// Facts, and before them what else is known about the trace as a whole.
fn facts(trace: &Trace) -> Vec<(String, String)> {
    let text = |id| trace.strings.get(id).to_owned();
    let mut facts = vec![("trace.producer".to_owned(), text(trace.facts.producer))];
    if let Some(offset) = trace.facts.realtime_offset() {
        facts.push(("trace.realtime_offset_ns".to_owned(), offset.0.to_string()));
    }
    let metadata = trace.facts.metadata.iter();
    facts.extend(metadata.map(|(key, value)| (text(*key), trace.plain(*value))));
    facts
}

fn metadata(facts: Vec<(String, String)>) -> Batch<'static> {
    Box::new(move |rows| {
        let all = || facts[rows.clone()].iter();
        let mut columns = Columns::default();
        columns.text("key", all().map(|(key, _)| key.as_str()));
        columns.text("value", all().map(|(_, value)| value.as_str()));
        columns.finish()
    })
}
