//! What is in a trace, in figures.

use crate::order::Order as _;
use hashbrown::HashMap;

use super::json::put_text;
use super::{ActivityId, Nanos, StrId, Trace, Value, Warning};

/// See the module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// What made the trace, if it says so.
    pub producer: String,
    /// When the first event begins, and the last one ends.
    pub span: Option<(Nanos, Nanos)>,
    /// When the first event begins, in nanoseconds since 1970, if that is known.
    pub began_unix: Option<i64>,
    /// Slices of the host.
    pub slices: u64,
    /// Those of them without an end.
    pub unfinished: u64,
    /// Moments.
    pub instants: u64,
    /// Activities of devices.
    pub activities: u64,
    /// Samples of counters.
    pub samples: u64,
    /// Arrows of both kinds.
    pub arrows: u64,
    /// The processes.
    pub processes: Vec<ProcessSummary>,
    /// The devices.
    pub devices: Vec<DeviceSummary>,
    /// Host events by category, and activities by stage; the most frequent first.
    pub categories: Vec<(String, u64)>,
    /// How many names slices and activities have.
    pub names: u64,
    /// The names with the longest time, [`LONGEST`] at most, the longest first.
    pub longest: Vec<NameSummary>,
    /// Packets or events of the file by kind.
    pub kinds: Vec<(String, u64)>,
    /// What is said about the job; long values are cut.
    pub metadata: Vec<(String, String)>,
    /// What was lost, as the trace says.
    pub losses: Vec<(String, u64)>,
    /// What the reader had to pass over.
    pub warnings: Vec<Warning>,
    /// How well the trace's clock is related to others.
    pub clock: ClockSummary,
}

/// How well the trace's clock is related to the time of day.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClockSummary {
    /// Readings of both at once.
    pub readings: u64,
    /// Between the first and the last of them.
    pub apart: Nanos,
    /// By how much the clocks moved against each other meanwhile: the largest difference.
    pub drift: Nanos,
}

/// A process in figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessSummary {
    /// The kernel's id.
    pub pid: i64,
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Slices and moments on its tracks.
    pub events: u64,
    /// Its rank in a distributed job.
    pub rank: Option<i64>,
    /// The machine that it ran on; empty if unknown.
    pub host: String,
}

/// A device in figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeviceSummary {
    /// Its number.
    pub number: i64,
    /// Its name.
    pub name: String,
    /// Its queues.
    pub queues: Vec<QueueSummary>,
    /// What it did.
    pub activities: u64,
}

/// A queue or stream of a device in figures.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueSummary {
    /// What viewers show.
    pub name: String,
    /// A text that explains it; may be empty.
    pub description: String,
    /// What ran on it.
    pub activities: u64,
    /// How long that took together. What overlaps counts twice.
    pub busy: Nanos,
}

/// What has a name in figures: slices of the host, or activities of devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NameSummary {
    /// The name.
    pub name: String,
    /// Whether devices did it.
    pub on_device: bool,
    /// How often.
    pub count: u64,
    /// How long that took together. What overlaps or lies in its own kind counts twice.
    pub total: Nanos,
}

/// How many names are listed.
const LONGEST: usize = 10;
/// Characters of a value that are shown.
const SHOWN: usize = 100;

impl Summary {
    /// Counts.
    pub fn of(trace: &Trace) -> Summary {
        let text = |id: StrId| trace.strings.get(id).to_owned();
        let span = trace.time_span();
        let offset = trace.facts.realtime_offset();
        let (names, longest) = names(trace);
        Summary {
            producer: text(trace.facts.producer),
            span,
            began_unix: span.zip(offset).map(|((start, _), offset)| (start + offset).0),
            slices: trace.slices.len() as u64,
            unfinished: trace.slices.durs().iter().filter(|dur| **dur < 0).count() as u64,
            instants: trace.instants.len() as u64,
            activities: trace.activities.len() as u64,
            samples: trace.counters.len() as u64,
            arrows: trace.flow_arrows().len() as u64 + trace.launch_arrow_count(),
            processes: processes(trace),
            devices: devices(trace),
            categories: categories(trace),
            names,
            longest,
            kinds: trace.facts.kinds.iter().map(|(k, n)| (k.to_string(), *n)).collect(),
            metadata: trace
                .facts
                .metadata
                .iter()
                .map(|(k, v)| (text(*k), shown(trace, *v)))
                .collect(),
            losses: trace.facts.losses.iter().map(|l| (l.what.clone(), l.count)).collect(),
            warnings: trace.facts.warnings.clone(),
            clock: clock(trace),
        }
    }

    /// How long the trace takes, in seconds.
    pub fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |(start, end)| (end - start).0 as f64 / 1e9)
    }

    /// All of it as one JSON object, on several lines.
    pub fn to_json(&self) -> String {
        let mut out = Object::default();
        out.text("producer", &self.producer);
        if let Some((start, end)) = self.span {
            out.raw("start_ns", start.0).raw("end_ns", end.0);
        }
        if let Some(began) = self.began_unix {
            out.raw("began_unix_ns", began);
        }
        let mut clock = Object::default();
        clock.raw("readings", self.clock.readings).raw("apart_ns", self.clock.apart.0);
        clock.raw("drift_ns", self.clock.drift.0);
        out.raw("clock", clock.close());
        out.raw("slices", self.slices).raw("unfinished", self.unfinished);
        out.raw("instants", self.instants).raw("activities", self.activities);
        out.raw("samples", self.samples).raw("arrows", self.arrows);
        out.raw(
            "processes",
            list(&self.processes, |p, o| {
                o.raw("pid", p.pid).text("name", &p.name);
                o.raw("threads", p.threads).raw("events", p.events);
                if let Some(rank) = p.rank {
                    o.raw("rank", rank);
                }
                if !p.host.is_empty() {
                    o.text("host", &p.host);
                }
            }),
        );
        out.raw(
            "devices",
            list(&self.devices, |d, o| {
                o.raw("number", d.number).text("name", &d.name);
                o.raw("activities", d.activities);
                let queues = list(&d.queues, |q, o| {
                    o.text("name", &q.name).text("description", &q.description);
                    o.raw("activities", q.activities).raw("busy_ns", q.busy.0);
                });
                o.raw("queues", queues);
            }),
        );
        out.raw("names", self.names);
        out.raw(
            "longest",
            list(&self.longest, |n, o| {
                o.text("name", &n.name).raw("on_device", n.on_device);
                o.raw("count", n.count).raw("total_ns", n.total.0);
            }),
        );
        for (name, rows) in
            [("categories", &self.categories), ("packets", &self.kinds), ("lost", &self.losses)]
        {
            let mut object = Object::default();
            for (key, count) in rows {
                object.raw(key, count);
            }
            out.raw(name, object.close());
        }
        let mut metadata = Object::default();
        for (key, value) in &self.metadata {
            metadata.text(key, value);
        }
        out.raw("metadata", metadata.close());
        out.raw(
            "warnings",
            list(&self.warnings, |w, o| {
                o.text("what", &w.what).raw("count", w.count);
                if let Some(offset) = w.offset {
                    o.raw("offset", offset);
                }
            }),
        );
        out.close() + "\n"
    }
}

fn processes(trace: &Trace) -> Vec<ProcessSummary> {
    let mut rows: Vec<ProcessSummary> = trace
        .processes
        .iter()
        .map(|(id, process)| ProcessSummary {
            pid: process.pid,
            name: trace.strings.get(process.name).to_owned(),
            rank: trace.rank(id),
            host: trace.host(id),
            ..ProcessSummary::default()
        })
        .collect();
    for (_, thread) in trace.threads.iter() {
        rows[thread.process.index()].threads += 1;
    }
    let mut of_track = vec![0u64; trace.tracks.len()];
    trace.slices.tracks().iter().for_each(|track| of_track[track.index()] += 1);
    trace.instants.iter().for_each(|instant| of_track[instant.track.index()] += 1);
    for ((id, _), events) in trace.tracks.iter().zip(of_track) {
        if let Some(process) = trace.process_of(id) {
            rows[process.index()].events += events;
        }
    }
    rows
}

fn devices(trace: &Trace) -> Vec<DeviceSummary> {
    let mut rows: Vec<DeviceSummary> = trace
        .devices
        .iter()
        .map(|(_, device)| DeviceSummary {
            number: device.number,
            name: trace.strings.get(device.name).to_owned(),
            ..DeviceSummary::default()
        })
        .collect();
    let mut queues: Vec<QueueSummary> = trace
        .queues
        .iter()
        .map(|(_, queue)| QueueSummary {
            name: trace.strings.get(queue.name).to_owned(),
            description: trace.strings.get(queue.description).to_owned(),
            ..QueueSummary::default()
        })
        .collect();
    for (queue, dur) in trace.activities.queues().iter().zip(trace.activities.durs()) {
        let queue = &mut queues[queue.index()];
        queue.activities += 1;
        queue.busy = queue.busy + Nanos(*dur);
    }
    for ((_, queue), summary) in trace.queues.iter().zip(queues) {
        let device = &mut rows[queue.device.index()];
        device.activities += summary.activities;
        device.queues.push(summary);
    }
    rows
}

fn clock(trace: &Trace) -> ClockSummary {
    let readings = trace.facts.readings.iter();
    let offsets: Vec<(Nanos, Nanos)> =
        readings.filter_map(|r| Some((r.trace, r.realtime? - r.trace))).collect();
    let span = |of: fn(&(Nanos, Nanos)) -> Nanos| {
        let (least, most) = (offsets.iter().map(of).min(), offsets.iter().map(of).max());
        most.zip(least).map_or(Nanos(0), |(most, least)| most - least)
    };
    ClockSummary { readings: offsets.len() as u64, apart: span(|o| o.0), drift: span(|o| o.1) }
}

fn categories(trace: &Trace) -> Vec<(String, u64)> {
    let mut counts: HashMap<StrId, u64> = HashMap::new();
    // Mostly the next one is of the same category.
    let slices = trace.slices.categories().chunk_by(|one, next| one == next);
    slices.for_each(|same| *counts.entry(same[0]).or_default() += same.len() as u64);
    trace.instants.iter().for_each(|instant| *counts.entry(instant.category).or_default() += 1);
    for same in trace.activities.stages().chunk_by(|one, next| one == next) {
        let stage = same[0].map_or(StrId::NONE, |stage| trace.stages[stage].name);
        *counts.entry(stage).or_default() += same.len() as u64;
    }
    let name = |id: StrId| match trace.strings.get(id) {
        "" => "(none)".to_owned(),
        name => name.to_owned(),
    };
    let mut rows: Vec<_> = counts.into_iter().map(|(id, count)| (name(id), count)).collect();
    rows.order_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// How many there are, and the longest of them.
fn names(trace: &Trace) -> (u64, Vec<NameSummary>) {
    // There are far more events than names, which are counted by their numbers: what the host did,
    // and what devices did.
    let mut times = [(); 2].map(|()| vec![(0_u64, Nanos(0)); trace.strings.len() + 1]);
    let mut add = |on_device: bool, name: StrId, dur: i64| {
        if let Some((count, total)) = times[usize::from(on_device)].get_mut(name.0 as usize) {
            *count += 1;
            *total = *total + Nanos(dur.max(0));
        }
    };
    for (name, dur) in trace.slices.names().iter().zip(trace.slices.durs()) {
        add(false, *name, *dur);
    }
    for (row, (name, dur)) in
        trace.activities.names().iter().zip(trace.activities.durs()).enumerate()
    {
        let of_kernel =
            || Some(trace.kernels[trace.activities.get(ActivityId::at(row)).kernel?].name);
        let named = Some(*name).filter(|name| *name != StrId::NONE);
        add(true, named.or_else(of_kernel).unwrap_or(StrId::NONE), *dur);
    }
    let mut rows: Vec<((StrId, bool), (u64, Nanos))> = Vec::new();
    for (id, _) in trace.strings.iter() {
        for (on_device, of_side) in [false, true].into_iter().zip(&times) {
            let own = of_side[id.0 as usize];
            rows.extend((own.0 > 0).then_some(((id, on_device), own)));
        }
    }
    let count = rows.len() as u64;
    let text = |id: StrId| trace.strings.get(id);
    rows.order_by(|((a, _), (_, x)), ((b, _), (_, y))| {
        y.cmp(x).then_with(|| text(*a).cmp(text(*b)))
    });
    rows.truncate(LONGEST);
    let row = |((name, on_device), (count, total))| NameSummary {
        name: text(name).to_owned(),
        on_device,
        count,
        total,
    };
    (count, rows.into_iter().map(row).collect())
}

fn shown(trace: &Trace, value: Value) -> String {
    let text = trace.plain(value);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A JSON object in the making.
#[derive(Default)]
struct Object(String);

impl Object {
    fn key(&mut self, key: &str) {
        self.0.push_str(if self.0.is_empty() { "{" } else { ", " });
        put_text(&mut self.0, key);
        self.0.push_str(": ");
    }

    fn raw(&mut self, key: &str, value: impl ToString) -> &mut Self {
        self.key(key);
        self.0.push_str(&value.to_string());
        self
    }

    fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        put_text(&mut self.0, value);
        self
    }

    fn close(self) -> String {
        if self.0.is_empty() { "{}".to_owned() } else { self.0 + "}" }
    }
}

fn list<T>(rows: &[T], fill: impl Fn(&T, &mut Object)) -> String {
    let object = |row: &T| {
        let mut object = Object::default();
        fill(row, &mut object);
        object.close()
    };
    format!("[{}]", rows.iter().map(object).collect::<Vec<_>>().join(", "))
}
