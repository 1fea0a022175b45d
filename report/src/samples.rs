//! The counters of a trace, as JSON.
//!
//! `{"series": [{"name", "owner", "unit", "of", "times": […], "values": […]}]}`: times are
//! nanoseconds since the rank's first event, `of` is how many samples there are. Of a long series
//! the extremes of stretches are kept.

use kymograph_analysis::Model;
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::{Sample, SeriesKind, Trace, TrackKind, Unit};
use std::fmt::Write as _;

use crate::columns::text;

/// Stretches that a long series is divided into.
const STRETCHES: usize = 500;

/// The counters of a rank; `None` if there are none.
pub fn of(model: &Model<'_>) -> Option<String> {
    let trace = model.trace;
    let mut all: Vec<Vec<Sample>> = vec![Vec::new(); trace.counters.series.len()];
    for sample in trace.counters.iter() {
        all[sample.series.index()].push(sample);
    }
    let mut out = String::from("{\"series\":[");
    let mut any = false;
    for ((_, series), mut samples) in trace.counters.series.iter().zip(all) {
        if samples.is_empty() || matches!(series.kind, SeriesKind::Track(id) if !model.takes(id)) {
            continue;
        }
        samples.order_by_numbers(|sample| [sample.time.0]);
        let of = samples.len();
        let samples = thinned(&samples);
        let (owner, unit) = described(trace, series.kind, series.unit);
        out += if any { ",\n{\"name\":" } else { "{\"name\":" };
        any = true;
        text(&mut out, trace.strings.get(series.name));
        out += ",\"owner\":";
        text(&mut out, &owner);
        out += ",\"unit\":";
        text(&mut out, &unit);
        let _ = write!(out, ",\"of\":{of},\"times\":[");
        for (n, sample) in samples.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let _ = write!(out, "{comma}{}", sample.time.0.saturating_sub(model.origin));
        }
        out += "],\"values\":[";
        for (n, sample) in samples.iter().enumerate() {
            let value = Some(sample.value.to_f64()).filter(|value| value.is_finite());
            let value = value.map_or("null".to_owned(), |value| value.to_string());
            let _ = write!(out, "{}{value}", if n == 0 { "" } else { "," });
        }
        out += "]}";
    }
    any.then(|| out + "]}")
}

/// Whose it is, and in which unit.
fn described(trace: &Trace, kind: SeriesKind, unit: Unit) -> (String, String) {
    let owner = match kind {
        SeriesKind::Track(id) => {
            let process = trace.process_of(id).map(|id| &trace.processes[id]);
            process.map_or(String::new(), |process| format!("process {}", process.pid))
        }
        SeriesKind::Device { device, .. }
        | SeriesKind::DeviceMemory { device, .. }
        | SeriesKind::DeviceFrequency { device } => {
            format!("GPU {}", trace.devices[device].number)
        }
    };
    let of_track = match kind {
        SeriesKind::Track(id) => match trace.tracks[id].kind {
            TrackKind::Counter(unit) => unit,
            _ => unit,
        },
        SeriesKind::DeviceMemory { .. } => Unit::Bytes,
        SeriesKind::Device { .. } | SeriesKind::DeviceFrequency { .. } => unit,
    };
    let unit = match of_track {
        Unit::None | Unit::Count => String::new(),
        Unit::Nanoseconds => "ns".to_owned(),
        Unit::Bytes => "bytes".to_owned(),
        Unit::Named(name) => trace.strings.get(name).to_owned(),
    };
    (owner, unit)
}

fn thinned(samples: &[Sample]) -> Vec<Sample> {
    if samples.len() <= STRETCHES * 4 {
        return samples.to_vec();
    }
    let mut kept = Vec::new();
    for stretch in samples.chunks(samples.len().div_ceil(STRETCHES)) {
        let by = |a: &&Sample, b: &&Sample| a.value.to_f64().total_cmp(&b.value.to_f64());
        let mut four: Vec<&Sample> =
            [stretch.first(), stretch.iter().min_by(by), stretch.iter().max_by(by), stretch.last()]
                .into_iter()
                .flatten()
                .collect();
        four.order_by_numbers(|sample| [sample.time.0]);
        kept.extend(four.into_iter().copied());
    }
    kept
}
