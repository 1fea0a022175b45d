//! What metrics say of a trace, written back into it, for viewers: counters of queue lengths and
//! bandwidths, the critical path as arrows, and which events belong to frequent sequences.
//!
//! An [`Overlay`] is made of a [`Model`], which borrows the trace, and then put into the trace.

use hashbrown::HashMap;
use kymograph_converters::trace::{
    ActivityId, Args, ArgsId, EventRef, FlowPoint, Nanos, Number, Phase, Sample, Series,
    SeriesKind, SliceId, StrId, Trace, Unit, Value,
};

use crate::metric::{critical_path, frequent_sequences, memory_bandwidth};
use crate::model::NONE;
use crate::{Error, Model, Options};

/// What is put into a trace.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    counters: Vec<Counter>,
    /// Events that are on the critical path.
    critical: Vec<EventRef>,
    /// Frequent sequences: the pattern, how often it came, and the events that belong to it.
    sequences: Vec<(String, usize, Vec<EventRef>)>,
    /// From, to, and when.
    arrows: Vec<[(EventRef, i64); 2]>,
}

#[derive(Clone, Debug)]
struct Counter {
    device: i64,
    name: String,
    unit: &'static str,
    /// When the value changes, and to what.
    values: Vec<(i64, f64)>,
}

/// A counter for the length of each stream's queue and for the bandwidth of each kind of copy.
///
/// # Errors
///
/// When the trace has no device work.
pub fn counters(model: &Model<'_>) -> Result<Overlay, Error> {
    let mut overlay = Overlay::default();
    for (stream, changes) in model.queues() {
        let device = changes.first().map_or(0, |change| model.events.lane(change.work).pid);
        let values = changes.iter().map(|change| (change.time, change.length as f64)).collect();
        let (name, unit) = (format!("Queue Length {stream}"), "launches");
        overlay.counters.push(Counter { device, name, unit, values });
    }
    for (name, changes) in memory_bandwidth::series(model)?.iter() {
        // What several devices copy at a time is added up.
        let device = changes.first().map_or(0, |(_, device, _)| *device);
        let values = changes.iter().map(|(time, _, bandwidth)| (*time, *bandwidth)).collect();
        let (name, unit) = (name.clone(), "GB/s");
        overlay.counters.push(Counter { device, name, unit, values });
    }
    Ok(overlay)
}

/// The critical path: its events have the argument `critical`, and arrows lead where it goes from
/// one thread or stream to another: launches, waits and dependencies.
///
/// # Errors
///
/// Those of the metric `critical_path`.
pub fn critical_path(model: &Model<'_>, options: &Options) -> Result<Overlay, Error> {
    let mut overlay = Overlay::default();
    let event = |row| event(model, row);
    for step in critical_path::steps(model, options)? {
        overlay.critical.extend(step.event.map(event));
        if step.is_arrow {
            let [from, to] = step.ends;
            overlay.arrows.push([(event(from.0), from.1), (event(to.0), to.1)]);
        }
    }
    overlay.critical.sort_unstable();
    overlay.critical.dedup();
    Ok(overlay)
}

/// The `limit` most frequent sequences of kernels: the events of each have the argument
/// `Patterns`.
///
/// # Errors
///
/// Those of the metric `frequent_sequences`.
pub fn frequent_sequences(
    model: &Model<'_>,
    options: &Options,
    limit: usize,
) -> Result<Overlay, Error> {
    let (sequences, operators) = frequent_sequences::sequences(model, options)?;
    let mut below: HashMap<u32, Vec<EventRef>> = HashMap::new();
    for (row, operator) in (0..).zip(&operators).filter(|(_, operator)| **operator != NONE) {
        below.entry(*operator).or_default().push(event(model, row));
    }
    let most = sequences.into_iter().take(limit).map(|sequence| {
        let events = sequence.operators.iter().filter_map(|row| below.remove(row));
        (sequence.pattern, sequence.operators.len(), events.flatten().collect())
    });
    Ok(Overlay { sequences: most.collect(), ..Overlay::default() })
}

fn event(model: &Model<'_>, row: u32) -> EventRef {
    match model.events.activity_of(row) {
        Some(activity) => EventRef::Activity(ActivityId::at(activity)),
        None => EventRef::Slice(SliceId::at(model.events.rows[row as usize] as usize)),
    }
}

impl Overlay {
    /// Adds it to the trace that it was made of.
    pub fn put_into(self, trace: &mut Trace) {
        for counter in &self.counters {
            put_counter(trace, counter);
        }
        let critical = trace.strings.intern("critical");
        for event in self.critical {
            mark(trace, event, (critical, Value::I64(1)));
        }
        let patterns = trace.strings.intern("Patterns");
        for (pattern, count, events) in self.sequences {
            let pattern = trace.strings.intern(&pattern);
            let pattern = trace.args.dict(&[(pattern, Value::I64(count as i64))]);
            for event in events {
                mark(trace, event, (patterns, pattern));
            }
        }
        let name = trace.strings.intern("critical_path");
        let taken = trace.flows.points.iter().map(|point| point.id);
        let first = taken.max().map_or(1, |id| id.wrapping_add(1));
        // Ends of arrows at device work are drawn where they have a place in a file: the last.
        let known = trace.flows.points.iter().map(|point| point.position).max().unwrap_or(0);
        let events = trace.slices.len() + trace.activities.len() + trace.instants.len();
        let mut position = known.max(events as u32).saturating_mul(2);
        for (id, ends) in (first..).zip(self.arrows) {
            for ((event, time), phase) in ends.into_iter().zip([Phase::Start, Phase::End]) {
                position = position.saturating_add(1);
                let time = Nanos(time);
                trace.flows.points.push(FlowPoint { id, phase, event, time, name, position });
            }
        }
    }
}

fn put_counter(trace: &mut Trace, counter: &Counter) {
    let values = &counter.values;
    let of = trace.devices.iter().find(|(_, of)| of.number == counter.device).map(|(id, _)| id);
    let Some(device) = of else { return };
    let name = trace.strings.intern(&counter.name);
    let unit = Unit::Named(trace.strings.intern(counter.unit));
    let kind = SeriesKind::Device { device, groups: 0, forwards: true };
    let series = Series { kind, name, description: StrId::NONE, unit };
    let series = trace.counters.series.push(series);
    // Of several changes at one moment the last holds.
    for (at, (time, value)) in values.iter().enumerate() {
        if values.get(at + 1).is_none_or(|(next, _)| next != time) {
            let (time, value) = (Nanos(*time), Number::F64(*value));
            trace.counters.push(Sample { series, time, value });
        }
    }
}

/// Gives an event an argument.
fn mark(trace: &mut Trace, event: EventRef, argument: (StrId, Value)) {
    let with = |args: &mut Args, own: Option<ArgsId>| {
        let mark = args.add(&[argument]);
        args.join(own, mark)
    };
    match event {
        EventRef::Slice(id) => {
            let mut slice = trace.slices.get(id);
            slice.args = with(&mut trace.args, slice.args);
            trace.slices.set(id, slice);
        }
        EventRef::Activity(id) => {
            let mut activity = trace.activities.get(id);
            activity.args = with(&mut trace.args, activity.args);
            trace.activities.set(id, activity);
        }
        EventRef::Instant(_) => {}
    }
}
