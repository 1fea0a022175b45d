//! What metrics say of a trace, written back into it, for viewers: counters of queue lengths and
//! bandwidths, and the critical path as arrows.
//!
//! An [`Overlay`] is made of a [`Model`], which borrows the trace, and then put into the trace.

use kymograph_converters::trace::{
    ActivityId, Args, ArgsId, EventRef, FlowPoint, Nanos, Number, Phase, Sample, Series,
    SeriesKind, SliceId, StrId, Trace, Unit, Value,
};

use crate::metric::{critical_path, memory_bandwidth};
use crate::{Error, Model, Options};

/// What is put into a trace.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    counters: Vec<Counter>,
    /// Events that are marked.
    marked: Vec<EventRef>,
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
    for (name, changes) in memory_bandwidth::series(model)? {
        // What several devices copy at a time is added up.
        let device = changes.first().map_or(0, |(_, device, _)| *device);
        let values = changes.into_iter().map(|(time, _, bandwidth)| (time, bandwidth)).collect();
        let (name, unit) = (name.to_owned(), "GB/s");
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
    for step in critical_path::steps(model, options)? {
        let event = |row: u32| match model.events.activity_of(row) {
            Some(activity) => EventRef::Activity(ActivityId::at(activity)),
            None => EventRef::Slice(SliceId::at(model.events.rows[row as usize] as usize)),
        };
        overlay.marked.extend(step.event.map(event));
        if step.is_arrow {
            let [from, to] = step.ends;
            overlay.arrows.push([(event(from.0), from.1), (event(to.0), to.1)]);
        }
    }
    overlay.marked.sort_unstable();
    overlay.marked.dedup();
    Ok(overlay)
}

impl Overlay {
    /// Adds it to the trace that it was made of.
    pub fn put_into(self, trace: &mut Trace) {
        for counter in &self.counters {
            put_counter(trace, counter);
        }
        let critical = trace.strings.intern("critical");
        for event in self.marked {
            mark(trace, event, critical);
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

fn mark(trace: &mut Trace, event: EventRef, critical: StrId) {
    let with = |args: &mut Args, own: Option<ArgsId>| {
        let mark = args.add(&[(critical, Value::I64(1))]);
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
