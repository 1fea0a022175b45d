//! Counters of devices.

use kymograph_protos::fields::{
    generic_gpu_frequency_event, gpu_counter_descriptor, gpu_counter_descriptor::gpu_counter_spec,
    gpu_counter_event, gpu_counter_event::gpu_counter, gpu_mem_total_event,
};

use super::Reader;
use super::sequence::intern_text;
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{
    DeviceId, Nanos, Number, Sample, Series, SeriesId, SeriesKind, StrId, Trace, Unit,
};

impl Reader {
    /// A `GpuCounterEvent`.
    pub(super) fn gpu_counters(&mut self, row: usize, machine: u32, time: i64, bytes: &[u8]) {
        let (mut gpu, mut descriptor, mut inline) = (0, None, None);
        for (number, field) in Fields::new(bytes) {
            match number {
                gpu_counter_event::COUNTER_DESCRIPTOR => inline = Some(field),
                gpu_counter_event::GPU_ID => gpu = i64::from(field.int() as i32),
                gpu_counter_event::COUNTER_DESCRIPTOR_IID => descriptor = Some(field.uint()),
                _ => {}
            }
        }
        let device = self.gpu.device(&mut self.trace, machine, gpu);
        if let Some(inline) = inline {
            for (id, series) in descriptor_series(&mut self.trace, device, inline) {
                self.gpu.counters.entry((device, id)).or_insert(series);
            }
        }
        for (_, counter) in
            Fields::new(bytes).filter(|(number, _)| *number == gpu_counter_event::COUNTERS)
        {
            let (mut id, mut value) = (0, None);
            for (number, field) in counter.fields() {
                match number {
                    gpu_counter::COUNTER_ID => id = field.uint(),
                    gpu_counter::INT_VALUE => value = Some(Number::I64(field.int())),
                    gpu_counter::DOUBLE_VALUE => value = Some(Number::F64(field.double())),
                    _ => {}
                }
            }
            let series = match descriptor {
                Some(iid) => {
                    let known = self.sequences[row].tables.counters.get(iid);
                    known.and_then(|list| list.iter().find(|(n, _)| *n == id)).map(|(_, s)| *s)
                }
                None => self.gpu.counters.get(&(device, id)).copied(),
            };
            match (series, value) {
                (Some(series), Some(value)) => {
                    self.trace.counters.push(Sample { series, time: Nanos(time), value });
                }
                _ => self.odd("a value of a device counter that is not described"),
            }
        }
    }

    /// A `GpuMemTotalEvent`.
    pub(super) fn gpu_memory(&mut self, machine: u32, time: i64, bytes: &[u8]) {
        let (mut gpu, mut pid, mut size) = (0, 0, 0);
        for (number, field) in Fields::new(bytes) {
            match number {
                gpu_mem_total_event::GPU_ID => gpu = i64::from(field.int() as i32),
                gpu_mem_total_event::PID => pid = field.int(),
                gpu_mem_total_event::SIZE => size = field.int(),
                _ => {}
            }
        }
        let trace = &mut self.trace;
        let device = self.gpu.device(trace, machine, gpu);
        let kind = SeriesKind::DeviceMemory { device, pid };
        let new = || device_series(trace, kind, "GPU Memory", Unit::Bytes);
        let series = *self.gpu.memory.entry((device, pid)).or_insert_with(new);
        trace.counters.push(Sample { series, time: Nanos(time), value: Number::I64(size) });
    }

    /// A `GenericGpuFrequencyEvent`.
    pub(super) fn gpu_frequency(&mut self, machine: u32, time: i64, bytes: &[u8]) {
        let (mut gpu, mut khz) = (0, 0);
        for (number, field) in Fields::new(bytes) {
            match number {
                generic_gpu_frequency_event::GPU_ID => gpu = i64::from(field.int() as i32),
                generic_gpu_frequency_event::FREQUENCY_KHZ => khz = field.int(),
                _ => {}
            }
        }
        let trace = &mut self.trace;
        let device = self.gpu.device(trace, machine, gpu);
        let kind = SeriesKind::DeviceFrequency { device };
        let new = || device_series(trace, kind, "GPU Frequency", Unit::None);
        let series = *self.gpu.frequency.entry(device).or_insert_with(new);
        trace.counters.push(Sample { series, time: Nanos(time), value: Number::I64(khz) });
    }
}

fn device_series(trace: &mut Trace, kind: SeriesKind, name: &str, unit: Unit) -> SeriesId {
    let (name, description) = (trace.strings.intern(name), StrId::NONE);
    trace.counters.series.push(Series { kind, name, description, unit })
}

/// The counters of a `GpuCounterDescriptor`, by Perfetto's ids.
pub fn descriptor_series(
    trace: &mut Trace,
    device: DeviceId,
    field: Field<'_>,
) -> Vec<(u64, SeriesId)> {
    let mut all = Vec::new();
    for (_, spec) in field.fields().filter(|(number, _)| *number == gpu_counter_descriptor::SPECS) {
        let (mut id, mut groups, mut forwards) = (0, 0, false);
        let (mut name, mut description) = (StrId::NONE, StrId::NONE);
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for (number, field) in spec.fields() {
            match number {
                gpu_counter_spec::COUNTER_ID => id = field.uint(),
                gpu_counter_spec::NAME => name = intern_text(&mut trace.strings, field.bytes()),
                gpu_counter_spec::DESCRIPTION => {
                    description = intern_text(&mut trace.strings, field.bytes())
                }
                gpu_counter_spec::NUMERATOR_UNITS => over.extend(field.numbers()),
                gpu_counter_spec::DENOMINATOR_UNITS => under.extend(field.numbers()),
                gpu_counter_spec::GROUPS => field.numbers().for_each(|n| groups |= 1 << n.min(31)),
                gpu_counter_spec::VALUE_DIRECTION => forwards = field.uint() == 2,
                _ => {}
            }
        }
        let unit = unit(trace, &over, &under);
        let kind = SeriesKind::Device { device, groups, forwards };
        all.push((id, trace.counters.series.push(Series { kind, name, description, unit })));
    }
    all
}

/// Names of `MeasureUnit`, by number.
pub const UNITS: [&str; 41] = [
    "",
    "bit",
    "Kbit",
    "Mbit",
    "Gbit",
    "Tbit",
    "Pbit",
    "B",
    "KB",
    "MB",
    "GB",
    "TB",
    "PB",
    "Hz",
    "KHz",
    "MHz",
    "GHz",
    "THz",
    "PHz",
    "ns",
    "us",
    "ms",
    "s",
    "min",
    "h",
    "vertices",
    "pixels",
    "triangles",
    "mW",
    "W",
    "KW",
    "J",
    "V",
    "A",
    "C",
    "F",
    "K",
    "%",
    "primitives",
    "fragments",
    "instructions",
];

fn unit(trace: &mut Trace, over: &[u64], under: &[u64]) -> Unit {
    let names = |units: &[u64]| {
        let name = |unit: &u64| UNITS.get(*unit as usize).copied().unwrap_or("?");
        units.iter().map(name).collect::<Vec<_>>().join("*")
    };
    match (over, under) {
        ([], []) | ([0], []) => Unit::None,
        ([7], []) => Unit::Bytes,
        ([19], []) => Unit::Nanoseconds,
        (over, []) => Unit::Named(trace.strings.intern(&names(over))),
        (over, under) => {
            let text = format!("{}/{}", names(over), names(under));
            Unit::Named(trace.strings.intern(&text))
        }
    }
}
