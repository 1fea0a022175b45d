//! Counters back into events: samples of one name and time are one event.

use super::places::{pid_of, quoted};
use crate::json::{write_float, write_int, write_micros, write_string};
use crate::trace::{Number, Sample, SeriesKind, StrId, Trace, TrackKind};

/// How a counter is written.
struct Shape {
    /// Everything before the time.
    head: String,
    key: String,
    /// Counters of one group may share an event.
    group: usize,
}

/// Calls `line` with each event, without its end. In a trace that was `json` once, the
/// description of a counter is its category.
pub(super) fn write(
    trace: &Trace,
    (shift, json): (i64, bool),
    mut line: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let shapes = shapes(trace, json);
    let mut samples: Vec<Sample> = trace.counters.iter().collect();
    // What was one event may come from formats that keep one counter after the other.
    let group = |sample: &Sample| shapes.get(sample.series.index()).map(|shape| shape.group);
    if !samples.is_sorted_by_key(|sample| sample.time) {
        samples.sort_by_key(|sample| (group(sample), sample.time));
    }
    let mut out = Vec::new();
    let mut current = None;
    let mut keys: Vec<usize> = Vec::new();
    for sample in samples {
        let index = sample.series.index();
        let Some(shape) = shapes.get(index) else { continue };
        let event = (shape.group, sample.time);
        if current == Some(event) && !keys.contains(&index) {
            out.extend_from_slice(b", ");
        } else {
            if current.is_some() {
                out.extend_from_slice(b"}}");
                line(&out)?;
            }
            out.clear();
            keys.clear();
            out.extend_from_slice(shape.head.as_bytes());
            write_micros(&mut out, sample.time.0.saturating_add(shift));
            out.extend_from_slice(b", \"args\": {");
            current = Some(event);
        }
        keys.push(index);
        write_string(&mut out, &shape.key);
        out.extend_from_slice(b": ");
        match sample.value {
            Number::I64(n) => write_int(&mut out, n),
            Number::F64(x) => write_float(&mut out, x),
        }
    }
    if current.is_some() {
        out.extend_from_slice(b"}}");
        line(&out)?;
    }
    Ok(())
}

fn shapes(trace: &Trace, json: bool) -> Vec<Shape> {
    let text = |id: StrId| trace.strings.get(id);
    let alone = |index: usize, cat: &str, name: &str, ids: String, key: &str| Shape {
        head: head(cat, name, &ids),
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
                            &ids_above(trace, group),
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
fn ids_above(trace: &Trace, group: crate::trace::TrackId) -> String {
    let above = trace.tracks[group].parent.map(|id| (id, trace.tracks[id].kind));
    match above {
        Some((_, TrackKind::Thread(thread))) => {
            let thread = &trace.threads[thread];
            let pid = trace.processes[thread.process].pid;
            format!("\"pid\": {pid}, \"tid\": {}", thread.tid)
        }
        _ => pid_of(trace, group),
    }
}

fn head(cat: &str, name: &str, ids: &str) -> String {
    let cat = if cat.is_empty() { String::new() } else { format!("\"cat\": {}, ", quoted(cat)) };
    let tid = if ids.contains("\"tid\"") { "" } else { ", \"tid\": 0" };
    format!("{{\"ph\": \"C\", {cat}\"name\": {}, {ids}{tid}, \"ts\": ", quoted(name))
}
