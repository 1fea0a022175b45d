//! What must hold for any bytes at all. The targets of cargo-fuzz (`converters/fuzz`) and the
//! test `any_bytes_are_read_within_bounds` run the same functions.
//!
//! Each reads `bytes` and panics if something does not hold: a reader that panics or reads
//! what its writer did not write, output that is no JSON, or memory that is out of all
//! proportion to what was read ([`bounded`]).

mod memory;

use kymograph_converters::format::{self, Format};
use kymograph_converters::json::{self, Document, Item, write_value};
use kymograph_converters::merge::{Align, Merger};
use kymograph_converters::packed::{Limits, Packing, Unpacked};
use kymograph_converters::trace::{Filter, Nanos, Summary, Trace};
use kymograph_converters::{chrome, kineto, perfetto};
use serde_json::Value;
use std::io::Read;

/// What packed input may unpack to: little, so that a bomb is one soon.
const LIMITS: Limits = Limits { bytes: 256 << 10, ratio: 20 };
/// Bytes of memory that reading may take in any case: windows and tables of readers, decoders
/// of zstd.
const FIXED: usize = 48 << 20;
/// Further bytes for each byte of the unpacked input. The smallest event in JSON has 17
/// bytes and costs a row of each table that it is in; vectors double.
const FACTOR: usize = 128;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: [(&str, Target); 12] = [
    ("read_json", read_json),
    ("json_values", json_values),
    ("read_perfetto", read_perfetto),
    ("read_speedscope", read_speedscope),
    ("read_firefox", read_firefox),
    ("read_xplane", read_xplane),
    ("read_perf", read_perf),
    ("read_rocprofv3", read_rocprofv3),
    ("read_rocpd", read_rocpd),
    ("read_nsys", read_nsys),
    ("unpack", unpack),
    ("part_and_merge", part_and_merge),
];

/// JSON of any producer: what was read is written as valid JSON, which is read as the same.
pub fn read_json(bytes: &[u8]) {
    let Some(trace) = bounded(bytes.len(), || json_of(bytes)) else { return };
    let mut out = Vec::new();
    kineto::write(&trace, &mut out).unwrap();
    let text = std::str::from_utf8(&out).unwrap();
    serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap();
    // A beginning and an end become one event, which may then be a device's.
    let events = |trace: &Trace| trace.slices.len() + trace.activities.len();
    match json_of(&out) {
        Some(again) => assert_eq!(events(&trace), events(&again)),
        // The only event was the end of an arrow to nothing, say. What is left is no trace.
        None => assert_eq!(events(&trace), 0),
    }
    through_perfetto(&trace);
}

/// What serde_json takes for an array of values, the reader takes too, without repairs, and
/// writes with the same meaning.
pub fn json_values(bytes: &[u8]) {
    let Ok(Value::Array(wanted)) = serde_json::from_slice(bytes) else { return };
    let mut document = Document::new(bytes, json::Limits::default());
    let mut got = Vec::new();
    while let Some(item) = document.next_item().unwrap() {
        let Item::Event(element) = item else { panic!("a member in an array") };
        let mut out = Vec::new();
        write_value(&mut out, element.root());
        got.push(serde_json::from_slice::<Value>(&out).unwrap());
    }
    assert_eq!(got, wanted);
    assert_eq!(document.repairs().total(), 0);
}

/// Perfetto's format, plain or packed: what was read can be written in every format.
pub fn read_perfetto(bytes: &[u8]) {
    let read = || perfetto::read(bytes, LIMITS).ok();
    let Some(trace) = bounded(unpacked_at_most(bytes), read) else { return };
    through_perfetto(&trace);
    let mut out = Vec::new();
    kineto::write(&trace, &mut out).unwrap();
    let text = std::str::from_utf8(&out).unwrap();
    serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap();
    let _ = Summary::of(&trace).to_json();
}

/// speedscope's files.
pub fn read_speedscope(bytes: &[u8]) {
    read_as(Format::Speedscope, bytes);
}

/// The Firefox Profiler's files, and Gecko's.
pub fn read_firefox(bytes: &[u8]) {
    read_as(Format::Firefox, bytes);
}

/// XLA's `.xplane.pb`.
pub fn read_xplane(bytes: &[u8]) {
    read_as(Format::Xplane, bytes);
}

/// What `perf script` prints.
pub fn read_perf(bytes: &[u8]) {
    read_as(Format::Perf, bytes);
}

/// rocprofv3's JSON.
pub fn read_rocprofv3(bytes: &[u8]) {
    read_as(Format::Rocprofv3, bytes);
}

/// ROCm's SQLite files.
pub fn read_rocpd(bytes: &[u8]) {
    read_as(Format::Rocpd, bytes);
}

/// nsys's SQLite files.
pub fn read_nsys(bytes: &[u8]) {
    read_as(Format::Nsys, bytes);
}

/// A format of another profiler, whatever the bytes look like: what was read can be written in
/// every format.
fn read_as(format: Format, bytes: &[u8]) {
    // Packed files are for the other targets: their limits are those of users here.
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5]) {
        return;
    }
    let read = || format::read(bytes, Some(format)).ok();
    let Some(trace) = bounded(bytes.len(), read) else { return };
    through_perfetto(&trace);
    for format in [Format::Speedscope, Format::Firefox] {
        let mut out = Vec::new();
        format::write(&trace, &mut out, format, Packing::Plain).unwrap();
        let text = std::str::from_utf8(&out).unwrap();
        serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap();
        format::read(&out[..], Some(format)).unwrap();
    }
}

/// gzip and zstd: unpacking ends at the limits.
pub fn unpack(bytes: &[u8]) {
    bounded(0, || {
        let mut buffer = vec![0; 64 << 10];
        let Ok(mut file) = Unpacked::new(bytes, LIMITS) else { return };
        while file.read(&mut buffer).is_ok_and(|read| read > 0) {}
        if file.packing() != kymograph_converters::packed::Packing::Plain {
            let most = LIMITS.bytes.max(LIMITS.ratio * bytes.len() as u64);
            assert!(file.unpacked() <= most + buffer.len() as u64);
        }
    });
}

/// Parts of traces, and traces put together, are traces again: the first byte says where
/// the bytes are cut in two traces.
pub fn part_and_merge(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let (first, second) = bytes.split_at(bytes.len() * usize::from(*cut) / 256);
    let read = |bytes: &[u8]| match bytes.first() {
        Some(b'{' | b'[') => json_of(bytes),
        _ => perfetto::read(bytes, LIMITS).ok(),
    };
    let [first, second] = [first, second].map(|bytes| read(bytes).unwrap_or_default());
    let slices = first.slices.len() + second.slices.len();
    let mut merger = Merger::new();
    merger.add("first", first);
    merger.add("second", second);
    let merged = merger.finish(Align::Collectives).0;
    assert_eq!(merged.slices.len(), slices);
    through_perfetto(&merged);
    let filter = Filter {
        times: merged.time_span().map(|(start, _)| (start, start + Nanos(1000))),
        categories: kymograph_protos::CategoryFilter::parse("kernel,cpu_op,-x*").ok(),
        ..Filter::default()
    };
    through_perfetto(&merged.filtered(&filter));
}

fn json_of(bytes: &[u8]) -> Option<Trace> {
    chrome::read(bytes, &json::Limits::default()).ok()
}

/// What the writer writes, the reader reads without complaint about its form.
fn through_perfetto(trace: &Trace) {
    let mut out = Vec::new();
    perfetto::write(trace, &mut out).unwrap();
    if !out.is_empty() {
        perfetto::read(&out[..], Limits::default()).unwrap();
    }
}

/// Bytes that packed input, or packets packed in it, are allowed to unpack to.
fn unpacked_at_most(bytes: &[u8]) -> usize {
    bytes.len().max(LIMITS.bytes as usize).max(bytes.len() * LIMITS.ratio as usize)
}

/// Runs `read`, and panics if it had more memory at any time than `size` bytes explain.
fn bounded<T>(size: usize, read: impl FnOnce() -> T) -> T {
    let (value, peak) = memory::peak(read);
    let most = FIXED + FACTOR * size;
    assert!(peak <= most, "{peak} bytes of memory for {size} bytes of input: at most {most}");
    value
}
