//! Counters of the host and of devices.

use crate::order::Order as _;
use std::io::{self, Write};

use hashbrown::HashSet;
use kymograph_protos::packet::source;
use kymograph_protos::packet::{
    CounterSpec, CounterValue, Event, EventType, Sequence, device_frequency, device_memory,
};

use super::host::uuid;
use super::rows::TrackRow;
use super::{FACTS, FULL, Writer};
use crate::perfetto::read::UNITS;
use crate::trace::{
    DeviceId, Number, Position, Sample, SeriesKind, StrId, Trace, TrackId, TrackKind, Unit,
};

impl<W: Write> Writer<'_, W> {
    pub(super) fn counters(&mut self) -> io::Result<()> {
        let trace = self.trace;
        let samples = trace.counters.iter().enumerate();
        let mut samples: Vec<(Sample, usize)> = samples.map(|(row, s)| (s, row)).collect();
        samples.sort_by_key(|(sample, _)| (sample.series, sample.time));
        let mut shared = self.sequence();
        let mut of_devices = Vec::new();
        for (sample, row) in samples {
            let series = trace.counters.series[sample.series];
            if let SeriesKind::Device { device, .. } = series.kind {
                of_devices.push((device, sample));
                continue;
            }
            let Some(time) = self.time(sample.time) else { continue };
            match series.kind {
                SeriesKind::Track(track) => {
                    self.ready(&mut shared, 0, time);
                    let event = Event {
                        track: uuid(trace, track),
                        counter: Some(value(sample.value)),
                        ..Event::new(EventType::Counter, time)
                    };
                    let start = self.packets.len();
                    shared.event(&mut self.packets, &self.texts, &event);
                    self.stood(start, trace.counters.position(row).map(Position::new));
                }
                SeriesKind::DeviceMemory { device, pid } => {
                    let (gpu, size) = (trace.devices[device].number, whole(sample.value) as u64);
                    device_memory(&mut self.packets, FACTS, time, gpu, pid, size);
                }
                SeriesKind::DeviceFrequency { device } => {
                    let (gpu, khz) = (trace.devices[device].number, whole(sample.value) as u64);
                    device_frequency(&mut self.packets, FACTS, time, gpu, khz);
                }
                SeriesKind::Device { .. } => {}
            }
            self.flush(FULL)?;
        }
        of_devices.order_by_key(|(device, sample)| (*device, sample.time));
        for of_device in of_devices.chunk_by(|a, b| a.0 == b.0) {
            self.device_counters(of_device[0].0, of_device)?;
        }
        Ok(())
    }

    /// The samples of one device, in the order of time: what lies at one moment is one
    /// event.
    fn device_counters(
        &mut self,
        device: DeviceId,
        samples: &[(DeviceId, Sample)],
    ) -> io::Result<()> {
        let trace = self.trace;
        let mut sequence: Option<Sequence> = None;
        let specs = specs(trace, device);
        let gpu = trace.devices[device].number;
        for moment in samples.chunk_by(|a, b| a.1.time == b.1.time) {
            let values: Vec<_> =
                moment.iter().map(|(_, s)| (s.series.index() as u64, value(s.value))).collect();
            let Some(time) = moment.iter().fold(None, |_, (_, s)| self.time(s.time)) else {
                continue;
            };
            if sequence.is_none() {
                let mut new = self.sequence();
                self.ready(&mut new, 0, time);
                new.describe_counters(&mut self.packets, 1, gpu, &specs);
                sequence = Some(new);
            }
            if let Some(sequence) = &mut sequence {
                sequence.counter_values(&mut self.packets, time, 1, gpu, &values);
            }
            self.flush(FULL)?;
        }
        Ok(())
    }
}

/// Tracks under which counters lie that were one event in JSON, and nothing else does. Viewers
/// show those under their process, by their whole name.
pub(super) fn groups(trace: &Trace, rows: &[TrackRow]) -> HashSet<TrackId> {
    let is_group = |id: &TrackId| {
        let track = &trace.tracks[*id];
        track.kind == TrackKind::Other && track.parent.is_some() && track.uuid == 0
    };
    let mut groups: HashSet<TrackId> = HashSet::new();
    for (_, series) in trace.counters.series.iter() {
        if let SeriesKind::Track(track) = series.kind {
            groups.extend(trace.tracks[track].parent.filter(is_group));
        }
    }
    for (_, track) in trace.tracks.iter() {
        if let (Some(parent), false) = (track.parent, matches!(track.kind, TrackKind::Counter(_))) {
            groups.remove(&parent);
        }
    }
    for row in rows {
        groups.remove(&row.track);
    }
    groups
}

/// What a counter of a group is called: as trace_processor calls it.
pub(super) fn full_name(trace: &Trace, group: TrackId, key: StrId) -> String {
    let name = trace.strings.get(trace.tracks[group].name);
    format!("{name} {}", trace.strings.get(key))
}

/// The process of a group, or whatever it lies under.
pub(super) fn parent(trace: &Trace, group: TrackId) -> Option<TrackId> {
    let parent = trace.tracks[group].parent?;
    match trace.tracks[parent].kind {
        TrackKind::Thread(thread) => Some(trace.processes[trace.threads[thread].process].track),
        _ => Some(parent),
    }
}

/// Whose a group is: see [`source::COUNTER_OF`].
pub(super) fn owner(trace: &Trace, group: TrackId) -> u64 {
    let group = &trace.tracks[group];
    match group.parent.map(|parent| trace.tracks[parent].kind) {
        Some(TrackKind::Thread(thread)) => {
            source::zigzag(trace.threads[thread].tid).saturating_add(3)
        }
        _ if group.description.is_none() => 1,
        _ => 2,
    }
}

fn specs(trace: &Trace, device: DeviceId) -> Vec<CounterSpec<'_>> {
    let series = trace.counters.series.iter();
    series
        .filter_map(|(id, series)| match series.kind {
            SeriesKind::Device { device: of, groups, forwards } if of == device => {
                let (over, under) = units(trace, series.unit);
                Some(CounterSpec {
                    id: id.index() as u64,
                    name: trace.strings.get(series.name).as_bytes(),
                    description: trace.strings.get(series.description).as_bytes(),
                    over,
                    under,
                    groups,
                    forwards,
                })
            }
            _ => None,
        })
        .collect()
}

/// `MeasureUnit`s of a unit, above and below the line. Units that Perfetto has no numbers
/// for are left out.
fn units(trace: &Trace, unit: Unit) -> (Vec<u64>, Vec<u64>) {
    let text = match unit {
        Unit::None | Unit::Count => "",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "B",
        Unit::Named(name) => trace.strings.get(name),
    };
    let numbers = |text: &str| -> Vec<u64> {
        let number = |name: &str| UNITS.iter().position(|unit| *unit == name && !name.is_empty());
        text.split('*').filter_map(|name| number(name).map(|n| n as u64)).collect()
    };
    let (over, under) = text.split_once('/').unwrap_or((text, ""));
    (numbers(over), numbers(under))
}

fn value(number: Number) -> CounterValue {
    match number {
        Number::I64(n) => CounterValue::I64(n),
        Number::F64(x) => CounterValue::F64(x),
    }
}

fn whole(number: Number) -> i64 {
    match number {
        Number::I64(n) => n,
        Number::F64(x) => x as i64,
    }
}
