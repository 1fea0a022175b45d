//! Counters of devices.
//!
//! They are described by device, in a table of the process's sequence: again when the
//! sequence starts anew, and when a counter is met for the first time. So values are kept
//! until the end of a pass, by when all that belong together have come.

use kymograph_protos::StrId;
use kymograph_protos::device::GpuUnit;
use kymograph_protos::packet::{CounterSpec, CounterValue, Sequence, Strings};

/// Counters of a device that are told apart.
const MAX: usize = 64;
/// Values that are kept for the end of a pass.
const MAX_KEPT: usize = 1 << 14;
/// Groups in which viewers show them: `SYSTEM`.
const SYSTEM: u32 = 1 << 1;

/// See the module.
#[derive(Debug, Default)]
pub struct GpuCounters {
    devices: Vec<Device>,
    kept: Vec<Kept>,
    /// Values for which there was no room.
    pub lost: u64,
}

#[derive(Debug)]
struct Device {
    gpu: u32,
    counters: Vec<(StrId, GpuUnit)>,
    /// How many of them the sequence knows.
    described: usize,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    time: u64,
    device: usize,
    counter: usize,
    value: CounterValue,
}

impl GpuCounters {
    /// A counter has a value.
    pub fn value(&mut self, gpu: u32, name: (StrId, GpuUnit), time: u64, value: CounterValue) {
        let known = self.devices.iter().position(|device| device.gpu == gpu);
        let device = known.unwrap_or_else(|| {
            self.devices.push(Device { gpu, counters: Vec::new(), described: 0 });
            self.devices.len() - 1
        });
        let counters = &mut self.devices[device].counters;
        let known = counters.iter().position(|known| *known == name);
        let counter = known.unwrap_or(counters.len());
        if counter >= MAX || self.kept.len() >= MAX_KEPT {
            self.lost += 1;
            return;
        }
        if known.is_none() {
            counters.push(name);
        }
        self.kept.push(Kept { time, device, counter, value });
    }

    /// The sequence has started anew and knows nothing.
    pub fn forget(&mut self) {
        self.devices.iter_mut().for_each(|device| device.described = 0);
    }

    /// Writes what was kept: values of the same device and time together.
    pub fn write(&mut self, out: &mut Vec<u8>, sequence: &mut Sequence, strings: &impl Strings) {
        let kept = std::mem::take(&mut self.kept);
        for values in kept.chunk_by(|a, b| (a.time, a.device) == (b.time, b.device)) {
            let device = &mut self.devices[values[0].device];
            let count = device.counters.len();
            // A table that grew is another table.
            let number = (u64::from(device.gpu) + 1) * (MAX as u64 + 1) + count as u64;
            let gpu = i64::from(device.gpu);
            if device.described != count {
                device.described = count;
                let specs = device.counters.iter().zip(1..).map(|((name, unit), id)| {
                    let units = |unit: u8| (unit != 0).then_some(unit.into()).into_iter().collect();
                    CounterSpec {
                        id,
                        name: strings.text(*name).bytes,
                        description: b"",
                        over: units(unit.over),
                        under: units(unit.under),
                        groups: SYSTEM,
                        forwards: true,
                    }
                });
                sequence.describe_counters(out, number, gpu, &specs.collect::<Vec<_>>());
            }
            let time = values[0].time;
            let values: Vec<_> = values.iter().map(|v| (v.counter as u64 + 1, v.value)).collect();
            sequence.counter_values(out, time, number, gpu, &values);
        }
        self.kept = kept;
        self.kept.clear();
    }
}
