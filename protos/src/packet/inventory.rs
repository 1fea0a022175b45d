//! Devices and their counters, of any origin.

use super::event::CounterValue;
use super::message::Message;
use super::packet;
use super::sequence::{BOOTTIME, Sequence};

/// A device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device<'a> {
    /// What viewers show; may be empty, as may the other texts.
    pub name: &'a [u8],
    /// Who made it.
    pub vendor: &'a [u8],
    /// Its model.
    pub model: &'a [u8],
    /// Its architecture.
    pub architecture: &'a [u8],
    /// 16 bytes that no other device has; may be empty.
    pub uuid: &'a [u8],
    /// Where it is plugged in.
    pub pci: &'a [u8],
    /// Further facts, as texts.
    pub facts: &'a [(&'a [u8], String)],
}

/// States the devices of the machine, in the order of their indices. Comes before any
/// activity.
pub fn devices(out: &mut Vec<u8>, sequence: u32, time: u64, devices: &[Device<'_>]) {
    packet(out, |p| {
        p.uint(10, sequence.into()).uint(8, time).uint(58, BOOTTIME).message(128, |info| {
            for device in devices {
                info.message(1, |gpu| {
                    for (field, text) in [
                        (1, device.name),
                        (2, device.vendor),
                        (3, device.model),
                        (4, device.architecture),
                        (7, device.pci),
                    ] {
                        if !text.is_empty() {
                            gpu.text(field, text);
                        }
                    }
                    if !device.uuid.is_empty() {
                        gpu.bytes(5, device.uuid);
                    }
                    for (key, value) in device.facts {
                        gpu.message(6, |fact| {
                            fact.text(1, key).text(2, value.as_bytes());
                        });
                    }
                });
            }
        });
    });
}

/// How much memory of a device a process has allocated; process 0 is all of them together.
pub fn device_memory(out: &mut Vec<u8>, sequence: u32, time: u64, gpu: i64, pid: i64, size: u64) {
    packet(out, |p| {
        p.uint(10, sequence.into()).uint(8, time).uint(58, BOOTTIME).message(71, |event| {
            event.int(1, gpu).int(2, pid).uint(3, size);
        });
    });
}

/// The clock rate of a device.
pub fn device_frequency(out: &mut Vec<u8>, sequence: u32, time: u64, gpu: i64, khz: u64) {
    packet(out, |p| {
        p.uint(10, sequence.into()).uint(8, time).uint(58, BOOTTIME).message(129, |event| {
            event.int(1, gpu).uint(2, khz);
        });
    });
}

/// A counter of a device.
#[derive(Clone, Debug)]
pub struct CounterSpec<'a> {
    /// Its number among the counters of its device.
    pub id: u64,
    /// What viewers show.
    pub name: &'a [u8],
    /// A sentence about it; may be empty.
    pub description: &'a [u8],
    /// Its unit: the product of these `MeasureUnit`s,
    pub over: Vec<u64>,
    /// divided by these.
    pub under: Vec<u64>,
    /// `GpuCounterGroup`s that it is shown in, as bits.
    pub groups: u32,
    /// Whether a value describes the time after it.
    pub forwards: bool,
}

impl Sequence {
    /// Introduces the counters of a device, under a number that is not 0. The sequence must
    /// have been started; a restart forgets them.
    pub fn describe_counters(
        &mut self,
        out: &mut Vec<u8>,
        number: u64,
        gpu: i64,
        specs: &[CounterSpec<'_>],
    ) {
        packet(out, |p| {
            p.uint(10, self.id().into()).uint(13, 2).message(12, |interned| {
                interned.message(47, |entry| {
                    entry.uint(1, number).int(3, gpu).message(2, |descriptor| {
                        specs.iter().for_each(|spec| describe_counter(descriptor, spec));
                    });
                });
            });
        });
    }

    /// Appends values of counters that were introduced under `number`.
    pub fn counter_values(
        &mut self,
        out: &mut Vec<u8>,
        time: u64,
        number: u64,
        gpu: i64,
        values: &[(u64, CounterValue)],
    ) {
        let delta = self.advance(time);
        packet(out, |p| {
            p.uint(8, delta).uint(10, self.id().into()).uint(13, 2).message(52, |event| {
                event.uint(4, number).int(3, gpu);
                for (id, value) in values {
                    event.message(2, |counter| {
                        counter.uint(1, *id);
                        match value {
                            CounterValue::I64(n) => counter.int(2, *n),
                            CounterValue::F64(x) => counter.double(3, *x),
                        };
                    });
                }
            });
        });
    }
}

fn describe_counter(descriptor: &mut Message<'_>, spec: &CounterSpec<'_>) {
    descriptor.message(1, |s| {
        s.uint(1, spec.id).text(2, spec.name);
        if !spec.description.is_empty() {
            s.text(3, spec.description);
        }
        for (field, units) in [(7, &spec.over), (8, &spec.under)] {
            for unit in units {
                s.uint(field, *unit);
            }
        }
        for group in (0..32).filter(|group| spec.groups >> group & 1 == 1) {
            s.uint(10, group);
        }
        if spec.forwards {
            s.uint(11, 2);
        }
    });
}
