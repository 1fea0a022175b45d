//! What inputs are made from: the fixtures, in all formats and packings, and bombs.

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use kymograph_converters::packed::{Limits, Unpacked};
use kymograph_converters::{chrome, json, perfetto};
use std::io::{Read, Write};

const FIXTURES: [&[u8]; 9] = [
    include_bytes!("../data/chrome.json"),
    include_bytes!("../data/gaudi.json"),
    include_bytes!("../data/jax.json"),
    include_bytes!("../data/kineto_2021.json"),
    include_bytes!("../data/kineto_broken.json"),
    include_bytes!("../data/kineto_broken_fixed.json"),
    include_bytes!("../data/kineto_cuda.json"),
    include_bytes!("../data/kineto_rocm.json"),
    include_bytes!("../data/kineto_xpu.json"),
];

/// Files of other profilers; the last two are packed.
const OTHERS: [&[u8]; 8] = [
    include_bytes!("../data/jax.xplane.pb"),
    include_bytes!("../data/pyspy.speedscope.json"),
    include_bytes!("../data/perf_script.txt"),
    include_bytes!("../data/firefox_gecko.json"),
    include_bytes!("../data/firefox_processed.json"),
    include_bytes!("../data/rocprofv3.json"),
    include_bytes!("../data/nsys.sqlite.gz"),
    include_bytes!("../data/rocpd.db.gz"),
];

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Unpacked::new(bytes, Limits::default()).unwrap().read_to_end(&mut out).unwrap();
    out
}

/// All seeds.
pub fn all() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = FIXTURES.iter().map(|bytes| bytes.to_vec()).collect();
    seeds.extend(OTHERS.map(unpacked));
    for fixture in FIXTURES {
        let trace = chrome::read(fixture, &json::Limits::default()).unwrap();
        let mut out = Vec::new();
        perfetto::write(&trace, &mut out).unwrap();
        seeds.push(out);
    }
    let whole = seeds.last().unwrap().clone();
    seeds.push(gzip(&whole));
    seeds.push(zstd::encode_all(&whole[..], 1).unwrap());
    seeds.push(packet(50, &zlib(&whole)));
    seeds.extend([
        // Eight megabytes of nothing, also packed twice, and as packets.
        gzip(&vec![0; 8 << 20]),
        gzip(&gzip(&vec![0; 8 << 20])),
        zstd::encode_all(&vec![0; 8 << 20][..], 1).unwrap(),
        packet(50, &zlib(&packet(50, &zlib(&packet(50, &zlib(&event(b"a").repeat(20_000))))))),
        gzip(&br#"{"ph":"i","ts":1},"#.repeat(100_000)),
        names(),
        deep_packet(),
        (2000..4000).flat_map(|kind| packet(kind, b"x")).collect(),
        format!(r#"[{{"ph":"X","ts":1,"dur":1,"args":{{"a":{}"#, "[".repeat(5000)).into_bytes(),
        many_rows(),
        // What is written of it has no event any more.
        br#"[{"nn":5},{"ph":"f","id":5,"pid":7,"tid":8,"ts":1,"cat":"ac2g","name":"ac2g"}]"#
            .to_vec(),
    ]);
    seeds
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn message(field: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A packet of this kind.
fn packet(kind: u64, bytes: &[u8]) -> Vec<u8> {
    message(1, &message(kind, bytes))
}

/// A slice's beginning.
fn event(name: &[u8]) -> Vec<u8> {
    let event = [number(9, 1), number(11, 7), message(22, name)].concat();
    message(1, &[number(8, 1), number(10, 1), message(11, &event)].concat())
}

/// Interned names under numbers that lie far apart.
fn names() -> Vec<u8> {
    let entry = |n: u64| message(2, &[number(1, n * 0x0123_4567), message(2, b"n")].concat());
    let entries: Vec<u8> = (1..3000).flat_map(entry).collect();
    message(1, &[number(10, 1), number(41, 1), message(12, &entries)].concat())
}

/// An argument in arguments.
fn deep_packet() -> Vec<u8> {
    let mut argument = [message(10, b"x"), number(4, 1)].concat();
    for _ in 0..300 {
        argument = [message(11, &argument), message(10, b"y")].concat();
    }
    let event = [number(9, 1), number(11, 7), message(4, &argument)].concat();
    message(1, &[number(8, 1), number(10, 1), message(11, &event)].concat())
}

/// Events that have nothing in common.
fn many_rows() -> Vec<u8> {
    let event = |n: u64| {
        format!(r#"{{"ph":"X","ts":{n},"dur":1,"pid":{n},"tid":{n},"cat":"c{n}","name":"n{n}"}},"#)
    };
    let flow = |n: u64| {
        let ph = ["s", "t", "f"][n as usize % 3];
        format!(r#"{{"ph":"{ph}","ts":{n},"id":{},"pid":{n},"tid":{n},"cat":"a"}},"#, n / 3)
    };
    let events: String = (0..1000).map(event).chain((0..999).map(flow)).collect();
    format!("[{events}").into_bytes()
}
