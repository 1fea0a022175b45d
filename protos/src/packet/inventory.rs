//! Devices and their counters, of any origin.

use super::clocks::BOOTTIME;
use super::cold::{some_string, state_at, string};
use super::event::CounterValue;
use super::message::Message;
use super::sequence::Sequence;
use super::{packet, packet_of};
use crate::fields::{
    generic_gpu_frequency_event, gpu_counter_descriptor, gpu_counter_descriptor::gpu_counter_spec,
    gpu_counter_event, gpu_counter_event::gpu_counter, gpu_mem_total_event, interned_data,
    interned_gpu_counter_descriptor, trace_packet,
};
use crate::perfetto::GpuInfo;
use crate::perfetto::gpu_info::Gpu;
use crate::perfetto::gpu_info::gpu::KeyValue;
use crate::perfetto::trace_packet::Data;

/// A device.
#[derive(Clone, Debug, Default)]
pub struct Device<'a> {
    /// What viewers show; may be empty, as may the other texts.
    pub name: &'a [u8],
    /// Its vendor.
    pub vendor: &'a [u8],
    /// Its model.
    pub model: &'a [u8],
    /// Its architecture.
    pub architecture: &'a [u8],
    /// 16 bytes that no other device has; may be empty.
    pub uuid: &'a [u8],
    /// Its address on the bus.
    pub pci: &'a [u8],
    /// Further facts, as texts.
    pub facts: Vec<(&'a [u8], String)>,
}

/// States the devices of the machine, in the order of their indices. Comes before any
/// activity.
pub fn devices(out: &mut Vec<u8>, sequence: u32, time: u64, devices: &[Device<'_>]) {
    let gpu = |device: &Device<'_>| Gpu {
        name: some_string(device.name),
        vendor: some_string(device.vendor),
        model: some_string(device.model),
        architecture: some_string(device.architecture),
        uuid: Some(device.uuid.to_vec()).filter(|uuid| !uuid.is_empty()),
        extra_info: device.facts.iter().map(key_value).collect(),
        pci_bdf: some_string(device.pci),
    };
    let info = GpuInfo { gpus: devices.iter().map(gpu).collect() };
    state_at(out, sequence, time, Data::GpuInfo(info));
}

fn key_value((key, value): &(&[u8], String)) -> KeyValue {
    KeyValue { key: Some(string(key)), value: Some(string(value.as_bytes())) }
}

/// How much memory of a device a process has allocated; process 0 is all of them together.
pub fn device_memory(out: &mut Vec<u8>, sequence: u32, time: u64, gpu: i64, pid: i64, size: u64) {
    packet_of(out, sequence, |p| {
        p.uint(trace_packet::TIMESTAMP, time)
            .uint(trace_packet::TIMESTAMP_CLOCK_ID, BOOTTIME)
            .message(trace_packet::GPU_MEM_TOTAL_EVENT, |event| {
                event
                    .int(gpu_mem_total_event::GPU_ID, gpu)
                    .int(gpu_mem_total_event::PID, pid)
                    .uint(gpu_mem_total_event::SIZE, size);
            });
    });
}

/// The clock rate of a device.
pub fn device_frequency(out: &mut Vec<u8>, sequence: u32, time: u64, gpu: i64, khz: u64) {
    packet_of(out, sequence, |p| {
        p.uint(trace_packet::TIMESTAMP, time)
            .uint(trace_packet::TIMESTAMP_CLOCK_ID, BOOTTIME)
            .message(trace_packet::GENERIC_GPU_FREQUENCY_EVENT, |event| {
                event
                    .int(generic_gpu_frequency_event::GPU_ID, gpu)
                    .uint(generic_gpu_frequency_event::FREQUENCY_KHZ, khz);
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
        packet_of(out, self.id(), |p| {
            p.uint(trace_packet::SEQUENCE_FLAGS, 2).message(
                trace_packet::INTERNED_DATA,
                |interned| {
                    interned.message(interned_data::GPU_COUNTER_DESCRIPTORS, |entry| {
                        entry
                            .uint(interned_gpu_counter_descriptor::IID, number)
                            .int(interned_gpu_counter_descriptor::GPU_ID, gpu)
                            .message(
                                interned_gpu_counter_descriptor::COUNTER_DESCRIPTOR,
                                |descriptor| {
                                    specs
                                        .iter()
                                        .for_each(|spec| describe_counter(descriptor, spec));
                                },
                            );
                    });
                },
            );
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
            p.uint(trace_packet::TIMESTAMP, delta)
                .uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.id().into())
                .uint(trace_packet::SEQUENCE_FLAGS, 2)
                .message(trace_packet::GPU_COUNTER_EVENT, |event| {
                    event
                        .uint(gpu_counter_event::COUNTER_DESCRIPTOR_IID, number)
                        .int(gpu_counter_event::GPU_ID, gpu);
                    for (id, value) in values {
                        event.message(gpu_counter_event::COUNTERS, |counter| {
                            counter.uint(gpu_counter::COUNTER_ID, *id);
                            match value {
                                CounterValue::I64(n) => counter.int(gpu_counter::INT_VALUE, *n),
                                CounterValue::F64(x) => {
                                    counter.double(gpu_counter::DOUBLE_VALUE, *x)
                                }
                            };
                        });
                    }
                });
        });
    }
}

fn describe_counter(descriptor: &mut Message<'_>, spec: &CounterSpec<'_>) {
    descriptor.message(gpu_counter_descriptor::SPECS, |s| {
        s.uint(gpu_counter_spec::COUNTER_ID, spec.id).text(gpu_counter_spec::NAME, spec.name);
        if !spec.description.is_empty() {
            s.text(gpu_counter_spec::DESCRIPTION, spec.description);
        }
        for (field, units) in [
            (gpu_counter_spec::NUMERATOR_UNITS, &spec.over),
            (gpu_counter_spec::DENOMINATOR_UNITS, &spec.under),
        ] {
            for unit in units {
                s.uint(field, *unit);
            }
        }
        for group in (0..32).filter(|group| spec.groups >> group & 1 == 1) {
            s.uint(gpu_counter_spec::GROUPS, group);
        }
        if spec.forwards {
            s.uint(gpu_counter_spec::VALUE_DIRECTION, 2);
        }
    });
}
