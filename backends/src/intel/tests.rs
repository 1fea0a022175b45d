//! Records of PTI, decoded one by one.

use std::ffi::CStr;

use kymograph_protos::device::{DeviceSlot, Vendor};
use kymograph_protos::{ArgType, Extra, Kind};

use super::decode::Decoder;
use super::levelzero::Device;
use crate::device::notes::Notes;
use crate::device::raw::{Raw, bytes};
use crate::device::realtime::Realtime;

fn args(notes: &Notes, extras: &[Extra]) -> String {
    let named: Vec<_> = extras.iter().filter(|arg| !arg.name.is_none()).copied().collect();
    notes.args(&named)
}

/// What devices did: queue, name, duration, arguments.
fn work(notes: &Notes) -> Vec<String> {
    let records = notes.records.lock().unwrap();
    let work = records.iter().filter(|(head, _)| head.kind == Kind::Device as u8);
    work.map(|(head, extras)| {
        let device: DeviceSlot = bytemuck::cast([extras[0], extras[1]]);
        let (_, queue) = Vendor::of_queue(device.queue);
        let ns = head.other - head.time;
        format!("{queue} {} {ns}{}", notes.text(head.site), args(notes, &extras[2..]))
    })
    .collect()
}

/// Ranges: name, arguments, and how many arrows.
fn ranges(notes: &Notes) -> Vec<String> {
    let records = notes.records.lock().unwrap();
    let ranges = records.iter().filter(|(head, _)| head.kind == Kind::RangeBegin as u8);
    ranges
        .map(|(head, extras)| {
            let arrows = extras.iter().filter(|arg| arg.ty == ArgType::Launch as u8).count();
            format!("{}{} {arrows}", notes.text(head.site), args(notes, extras))
        })
        .collect()
}

fn decoder() -> (&'static Notes, Decoder) {
    let notes = Notes::new();
    let device = |uuid| Device {
        uuid: [uuid; 16],
        name: "GPU".to_owned(),
        units: 0,
        clock_mhz: 0,
        part: false,
    };
    let devices = vec![device(1), device(2)];
    (notes, Decoder::new(notes, Realtime::same(), devices, false))
}

fn kernel(len: usize, name: &'static CStr, uuid: u8, sycl_queue: u64) -> Vec<u8> {
    let fields = [
        (0, 1, 4),
        (8, 0x77, 8),
        (24, name.as_ptr() as u64, 8),
        (56, 9, 4),
        (104, 1000, 8),
        (112, 1500, 8),
        (152, sycl_queue, 8),
    ];
    let mut record = bytes(len, &fields);
    record[80..96].fill(uuid);
    record
}

fn decode(decoder: &mut Decoder, records: &[Vec<u8>]) {
    for record in records {
        // SAFETY: names in them are C strings.
        unsafe { decoder.record(Raw::new(record)) };
    }
}

#[test]
fn kernels_of_both_layouts() {
    for len in [168, 184] {
        let (notes, mut decoder) = decoder();
        decode(&mut decoder, &[kernel(len, c"_ZTS3Add", 2, 4)]);
        assert_eq!(work(notes), ["0 Add 500 sycl queue=4"], "{len}");
    }
}

#[test]
fn queues_are_those_of_sycl_or_of_level_zero() {
    const NONE: u64 = u64::MAX - 1;
    let (notes, mut decoder) = decoder();
    let of = |uuid, queue| kernel(184, c"k", uuid, queue);
    decode(&mut decoder, &[of(1, 4), of(2, 4), of(1, NONE), of(1, 4), of(9, NONE)]);
    let queues: Vec<_> = work(notes).iter().map(|work| work[..1].to_owned()).collect();
    assert_eq!(queues, ["0", "1", "2", "0", "3"]);
    let records = notes.records.lock().unwrap();
    let of_kind = |kind| {
        let of = records.iter().filter(move |(head, _)| head.kind == kind as u8);
        of.map(|(head, _)| notes.text(head.site)).collect::<Vec<_>>()
    };
    let zero = "Level Zero queue 00";
    assert_eq!(of_kind(Kind::Queue), ["Stream 04", "Stream 04", zero, zero]);
    // A device that Level Zero did not list.
    assert_eq!(of_kind(Kind::Gpu), ["Intel GPU"]);
}

#[test]
fn copies_between_devices_say_which() {
    let (notes, mut decoder) = decoder();
    let times = [(112, 7, 4), (128, 100, 8), (136, 130, 8)];
    let kinds = [(0, 10, 4), (4, 10, 4), (8, 2, 4), (12, 2, 4), (152, 64, 8), (160, 1, 8)];
    let mut record = bytes(192, &[times.as_slice(), &kinds].concat());
    record[72..88].fill(1);
    record[88..104].fill(2);
    decode(&mut decoder, &[record]);
    let args = "bytes=64 fromDevice=0 toDevice=1 sycl queue=1";
    assert_eq!(work(notes), [format!("0 Memcpy D2D (Device -> Device) 30 {args}")]);
}

#[test]
fn times_that_were_lost_are_counted() {
    let (notes, mut decoder) = decoder();
    let mut record = kernel(184, c"k", 1, 1);
    record[112..120].fill(0);
    decode(&mut decoder, &[record, bytes(48, &[(0, 1, 4)])]);
    assert_eq!((work(notes).len(), *notes.lost.lock().unwrap()), (0, 2));
    assert_eq!(decoder.present.timeless, 2);
}

fn call(kind: u64, group: u64, times: (u64, u64), correlation: u64) -> Vec<u8> {
    let fields = [(0, kind, 4), (8, times.0, 8), (16, times.1, 8), (24, group, 4), (28, 1, 4)];
    bytes(48, &[fields.as_slice(), &[(36, 4711, 4), (40, correlation, 4)]].concat())
}

#[test]
fn one_of_two_calls_with_one_id_gets_the_arrow() {
    let (notes, mut decoder) = decoder();
    // Without PTI nobody knows what functions launch: none gets an arrow.
    decode(&mut decoder, &[call(3, 1, (20, 30), 5), call(6, 3, (10, 40), 5)]);
    decoder.settle(false);
    // The outer one comes first.
    assert_eq!(ranges(notes), ["SYCL function 1 0", "Level Zero function 1 0"]);
}

#[test]
fn collectives_and_external_ids() {
    let (notes, mut decoder) = decoder();
    let name = c"allreduce".as_ptr() as u64;
    let comms = [(0, 12, 4), (8, 5, 8), (16, 9, 8), (28, 4711, 4), (32, 64, 8), (48, 3, 8)];
    let external = [(0, 7, 4), (4, 9, 4), (8, 1234, 8), (16, 2, 4)];
    let records = [
        bytes(64, &[comms.as_slice(), &[(56, name, 8)]].concat()),
        bytes(24, &external),
        kernel(184, c"k", 1, 1),
        bytes(16, &[(0, 99, 4)]),
    ];
    decode(&mut decoder, &records);
    assert_eq!(ranges(notes), ["xccl::allreduce Communicator_id=3 send bytes=64 0"]);
    assert_eq!(work(notes), ["0 k 500 sycl queue=1 External id=1234"]);
    assert_eq!(decoder.counts.skipped, 1);
}
