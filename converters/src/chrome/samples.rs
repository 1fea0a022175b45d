//! Counters back into events: samples of one name and time are one event.

use std::ops::Range;

use super::ROW;
use super::line::Line;
use super::places::{pid_of, quoted};
use crate::json::{write_float, write_int, write_string};
use crate::trace::{Number, Sample, SeriesKind, StrId, Trace, TrackKind};

/// How a counter is written.
struct Shape {
    /// Everything before the time.
    head: String,
    key: String,
    /// Counters of one group may share an event.
    group: usize,
}

/// The counters of a trace as events, in the order of time, or in that of the file if it is known.
pub(super) struct Events {
    shapes: Vec<Shape>,
    /// With their positions.
    samples: Vec<(u32, Sample)>,
}

impl Events {
    /// In a trace that was `json` once, the description of a counter is its category.
    pub(super) fn new(trace: &Trace, json: bool) -> Events {
        let shapes = shapes(trace, json);
        let position = |row| trace.counters.position(row).unwrap_or(u32::MAX);
        let samples = trace.counters.iter().enumerate();
        let mut samples: Vec<(u32, Sample)> =
            samples.map(|(row, sample)| (position(row), sample)).collect();
        // What was one event may come from formats that keep one counter after the other.
        let key = |(position, sample): &(u32, Sample)| {
            let group = shapes.get(sample.series.index()).map(|shape| shape.group);
            (*position, group, sample.time)
        };
        let known = samples.first().is_some_and(|(position, _)| *position != u32::MAX);
        if known || !samples.is_sorted_by_key(|(_, sample)| sample.time) {
            samples.sort_by_key(key);
        }
        Events { shapes, samples }
    }

    /// The events: where they stood in the file, and their samples, by number.
    pub(super) fn ranges(&self) -> Vec<(u32, Range<usize>)> {
        let mut ranges: Vec<(u32, Range<usize>)> = Vec::new();
        let mut keys: Vec<usize> = Vec::new();
        let mut current = None;
        for (row, (position, sample)) in self.samples.iter().enumerate() {
            let index = sample.series.index();
            let Some(shape) = self.shapes.get(index) else { continue };
            let event = (*position, shape.group, sample.time);
            match ranges.last_mut().filter(|_| current == Some(event) && !keys.contains(&index)) {
                Some((_, range)) => range.end = row + 1,
                None => {
                    keys.clear();
                    current = Some(event);
                    ranges.push((*position, row..row + 1));
                }
            }
            keys.push(index);
        }
        ranges
    }

    /// Writes the event of these samples, without its last bracket.
    pub(super) fn write(&self, out: &mut Vec<u8>, line: &Line<'_>, samples: Range<usize>) {
        let samples = self.samples.get(samples).unwrap_or_default();
        for (number, (_, sample)) in samples.iter().enumerate() {
            let Some(shape) = self.shapes.get(sample.series.index()) else { continue };
            if number == 0 {
                out.extend_from_slice(shape.head.as_bytes());
                line.time_value(out, sample.time.0);
                out.extend_from_slice(b", \"args\": {");
            } else {
                out.extend_from_slice(b", ");
            }
            write_string(out, &shape.key);
            out.extend_from_slice(b": ");
            match sample.value {
                Number::I64(n) => write_int(out, n),
                Number::F64(x) => write_float(out, x),
            }
        }
        out.push(b'}');
    }
}

fn shapes(trace: &Trace, json: bool) -> Vec<Shape> {
    let text = |id: StrId| trace.strings.get(id);
    let alone = |index: usize, cat: &str, name: &str, ids: String, key: &str| Shape {
        head: head(cat, name, &format!("{ids}, \"tid\": 0")),
        key: key.to_owned(),
        group: usize::MAX - index,
    };
    let series = trace.counters.series.iter();
    let shape = series.map(|(id, series)| {
        let index = id.index();
        let device = |device| format!("\"pid\": \"GPU {} Counters\"", trace.devices[device].number);
        match series.kind {
            SeriesKind::Track(track) => {
                let parent = trace.tracks[track].parent;
                let group = parent.filter(|id| trace.tracks[*id].kind == TrackKind::Other);
                match group.filter(|id| trace.tracks[*id].parent.is_some()) {
                    Some(group) => Shape {
                        head: head(
                            if json { text(series.description) } else { "" },
                            text(trace.tracks[group].name),
                            &ids_above(trace, group, json),
                        ),
                        key: text(series.name).to_owned(),
                        group: group.index(),
                    },
                    None => alone(index, "", text(series.name), pid_of(trace, track), "value"),
                }
            }
            SeriesKind::Device { device: id, .. } => {
                alone(index, "hardware_counters", text(series.name), device(id), "")
            }
            SeriesKind::DeviceMemory { device, pid } => {
                let name = format!("GPU {} memory", trace.devices[device].number);
                alone(index, "", &name, format!("\"pid\": {pid}"), "bytes")
            }
            SeriesKind::DeviceFrequency { device: id } => {
                alone(index, "", "Frequency", device(id), "kHz")
            }
        }
    });
    shape.collect()
}

/// Process and, where the counter is a thread's, thread.
fn ids_above(trace: &Trace, group: crate::trace::TrackId, json: bool) -> String {
    let above = trace.tracks[group].parent.map(|id| (id, trace.tracks[id].kind));
    match above {
        Some((_, TrackKind::Thread(thread))) => {
            let thread = &trace.threads[thread];
            let pid = trace.processes[thread.process].pid;
            format!("\"pid\": {pid}, \"tid\": {}", thread.tid)
        }
        _ if json && trace.strings.get(trace.tracks[group].description) != ROW => {
            pid_of(trace, group)
        }
        _ => format!("{}, \"tid\": 0", pid_of(trace, group)),
    }
}

fn head(cat: &str, name: &str, ids: &str) -> String {
    let cat = if cat.is_empty() { String::new() } else { format!("\"cat\": {}, ", quoted(cat)) };
    format!("{{\"ph\": \"C\", {cat}\"name\": {}, {ids}, \"ts\": ", quoted(name))
}
