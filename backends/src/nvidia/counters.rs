//! Counters of devices, as NVML gives them: utilisation, memory, power, clocks, temperature,
//! and what goes over PCIe and NVLink.
//!
//! They are read on the thread that reads CUPTI's buffers, now and then. A round takes some
//! milliseconds at worst, in which buffers wait, of which there are enough; and rounds take no
//! more than a twentieth of the thread's time, however often they are wanted. What a device
//! or a driver does not tell is left out: throughput comes from Hopper on, by two samples of
//! its performance monitor. (The older call for PCIe measures for 20 ms each time.)
//!
//! Only devices in which the process has a context are asked: of the processes that share a
//! machine's devices, each reports its own.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kymograph_protos::device::{GpuUnit, Vendor};
use kymograph_protos::{ArgType, ColdRecorder, Extra, Kind, Record, StrId};

use super::nvml::{Clock, Device, Metric, Nvml, Sample};
use crate::device::names;
use crate::device::remark;

/// A round every `every`, and none for so many times as long as the last one took.
const REST: u32 = 19;

const THROUGHPUT: [(Metric, &str); 4] = [
    (Metric::PcieSent, "PCIe sent"),
    (Metric::PcieReceived, "PCIe received"),
    (Metric::NvlinkSent, "NVLink sent"),
    (Metric::NvlinkReceived, "NVLink received"),
];

/// See the module.
pub(crate) struct Sampler {
    recorder: &'static dyn ColdRecorder,
    every: Duration,
    next: Instant,
    /// By CUDA's number; none: NVML does not know it.
    devices: HashMap<u32, Option<Sampled>>,
    names: HashMap<&'static str, StrId>,
    pub(crate) rounds: u64,
    pub(crate) took: Duration,
}

struct Sampled {
    device: Device,
    /// The last sample of the performance monitor, if there is one.
    sample: Option<Sample>,
}

/// NVML, which stays once it was found.
fn nvml(recorder: &dyn ColdRecorder) -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    let load = || Nvml::load().map_err(|why| remark::not_recorded(recorder, names::NVML, &why));
    NVML.get_or_init(|| load().ok()).as_ref()
}

impl Sampler {
    pub(crate) fn new(recorder: &'static dyn ColdRecorder, every: Duration) -> Sampler {
        Sampler {
            recorder,
            every,
            next: Instant::now(),
            devices: HashMap::new(),
            names: HashMap::new(),
            rounds: 0,
            took: Duration::ZERO,
        }
    }

    /// The next round is due now: there will be no other.
    pub(crate) fn hurry(&mut self) {
        self.next = Instant::now();
    }

    /// A round if it is time for one. `used` are the devices; `uuid` says what NVML calls
    /// them.
    pub(crate) fn sample(
        &mut self,
        used: impl Iterator<Item = u32>,
        uuid: impl Fn(u32) -> Option<String>,
    ) {
        if Instant::now() < self.next {
            return;
        }
        let used: Vec<u32> = used.collect();
        // Before the round begins: what is done once must not cause a rest as if each round
        // took so long.
        used.iter().for_each(|number| self.find(*number, &uuid));
        let began = Instant::now();
        let mut any = false;
        for number in used {
            let known = self.devices.remove(&number).flatten();
            let known = known.map(|sampled| self.device(number, sampled));
            any |= known.is_some();
            self.devices.insert(number, known);
        }
        let took = began.elapsed();
        self.rounds += u64::from(any);
        self.took += took;
        self.next = began + self.every.max(took * REST);
    }

    /// Asks NVML for a device that it was not asked for before.
    fn find(&mut self, number: u32, uuid: impl Fn(u32) -> Option<String>) {
        let Some(nvml) = nvml(self.recorder) else { return };
        self.devices.entry(number).or_insert_with(|| {
            let device = nvml.device(&uuid(number)?)?;
            Some(Sampled { device, sample: None })
        });
    }

    fn device(&mut self, number: u32, mut sampled: Sampled) -> Sampled {
        let time = self.recorder.now();
        let device = &sampled.device;
        let mut say = |name, unit, value: Option<f64>| {
            if let Some(value) = value {
                self.value(number, time, name, unit, value);
            }
        };
        let rates = device.utilization();
        say("GPU utilization", GpuUnit::PERCENT, rates.as_ref().map(|r| f64::from(r.gpu)));
        let memory = rates.as_ref().map(|r| f64::from(r.memory));
        say("Memory utilization", GpuUnit::PERCENT, memory);
        let used = device.memory_used().map(|used| used as f64);
        say("Memory used", GpuUnit::BYTES, used);
        let power = device.power().map(|milliwatt| f64::from(milliwatt) / 1e3);
        say("Power", GpuUnit::WATT, power);
        let temperature = device.temperature().map(f64::from);
        say("Temperature", GpuUnit::CELSIUS, temperature);
        for (name, clock) in [("SM clock", Clock::Sm), ("Memory clock", Clock::Memory)] {
            say(name, GpuUnit::MEGAHERTZ, device.clock(clock).map(f64::from));
        }
        // A device without the monitor says so, once for each round: that costs nothing.
        let sample = device.sample();
        if let (Some(before), Some(now)) = (&sampled.sample, &sample) {
            let found = device.between(before, now, THROUGHPUT.map(|(metric, _)| metric));
            for ((_, name), value) in THROUGHPUT.iter().zip(found) {
                // In MiB/s.
                say(name, GpuUnit::BYTES_PER_SECOND, value.map(|value| value * 1_048_576.0));
            }
        }
        sampled.sample = sample;
        sampled
    }

    fn value(&mut self, number: u32, time: u64, name: &'static str, unit: GpuUnit, value: f64) {
        let recorder = self.recorder;
        let site = *self
            .names
            .entry(name)
            .or_insert_with(|| recorder.intern_or_wait(StrId::NONE, name.as_bytes()));
        let head = Record {
            time,
            other: Vendor::Nvidia.gpu(number).into(),
            arg: value.to_bits(),
            site,
            kind: Kind::GpuCounter as u8,
            tag: ArgType::F64 as u8,
            ..Record::default()
        };
        recorder.push(head, &[Extra::new(StrId::NONE, ArgType::U64, unit.to_bits())]);
    }
}
