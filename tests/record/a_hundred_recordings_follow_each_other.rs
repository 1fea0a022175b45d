//! Recordings in one process, one after the other: each holds what was recorded while it
//! ran and nothing else, threads that live longer go on, and memory does not grow.

use harness::{alone, child};
use kymograph::sink::Memory;
use kymograph::{Config, Recording, instant, scope};
use kymograph_protos::perfetto::TracePacket;
use kymograph_protos::perfetto::trace_packet::Data;
use kymograph_protos::perfetto::track_event::{NameField, Type};
use oracle::Trace;
use prost::Message;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const RECORDINGS: u64 = 100;
/// Several chunks of every thread's queue.
const SCOPES: u64 = 1500;

/// How many slices and instants of each interned name began. What the writer itself says,
/// such as how much was lost, is named by value.
fn count(mut trace: &[u8]) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    let mut counts = BTreeMap::new();
    // One packet after the other: what all of them take at once an allocator may keep, and
    // it would look like a leak.
    while let Some((&field, rest)) = trace.split_first() {
        assert_eq!(field, 0x0a, "a packet");
        trace = rest;
        let packet = TracePacket::decode_length_delimited(&mut trace).unwrap();
        let sequence = format!("{:?}", packet.optional_trusted_packet_sequence_id);
        if packet.sequence_flags == Some(1) {
            names.retain(|(owner, _), _| *owner != sequence);
        }
        for entry in packet.interned_data.iter().flat_map(|data| &data.event_names) {
            names.insert((sequence.clone(), entry.iid()), entry.name().to_owned());
        }
        let Some(Data::TrackEvent(event)) = packet.data else { continue };
        if let (true, Some(NameField::NameIid(iid))) =
            (event.r#type() != Type::SliceEnd, &event.name_field)
        {
            *counts.entry(names[&(sequence, *iid)].clone()).or_default() += 1;
        }
    }
    counts
}

fn work(n: u64) {
    for i in 0..SCOPES {
        let _scope = scope!("inside", recording = n);
        instant!("leaf", i = i);
    }
}

#[test]
fn a_hundred_recordings_follow_each_other() {
    alone!();
    // Lives through all recordings, and works when it is told to.
    let (order, orders) = mpsc::channel::<u64>();
    let (done, dones) = mpsc::channel();
    std::thread::spawn(move || {
        for n in orders {
            work(n);
            done.send(()).unwrap();
        }
    });
    // Never stops: it records while recordings start and end.
    static STOP: AtomicBool = AtomicBool::new(false);
    let wild = std::thread::spawn(|| {
        while !STOP.load(Ordering::Relaxed) {
            let _outer = scope!("wild");
            let _inner = scope!("wild");
            // So that a slow machine does not make it fill the buffers: they stay resident
            // once used, and that would look like a leak.
            std::thread::sleep(Duration::from_micros(20));
        }
    });
    let mut resident = Vec::new();
    for n in 0..RECORDINGS {
        let outside = scope!("outside");
        let memory = Memory::new();
        let mut config = Config::default();
        // Every fourth loses most of it: what it lost is not the next one's loss.
        config.set("BUFFER", if n % 4 == 3 { "64K" } else { "64M" }).unwrap();
        let recording = Recording::start_with(config, memory.clone()).unwrap();
        drop(outside);
        order.send(n).unwrap();
        work(n);
        std::thread::spawn(move || work(n)).join().unwrap();
        dones.recv().unwrap();
        let still_open = scope!("open");
        let summary = recording.stop();
        drop(still_open);
        instant!("outside");

        let counts = count(&memory.bytes());
        let wild = counts.get("wild").copied().unwrap_or(0);
        let written: u64 = counts.values().sum();
        assert_eq!(written, summary.events, "{n}: {summary:?}");
        assert!(!counts.contains_key("outside"), "{n}: {counts:?}");
        let attempts = 3 * 2 * SCOPES + 1;
        if n % 4 == 3 {
            assert!(summary.events - wild + summary.lost >= attempts, "{n}: {summary:?}");
        } else {
            assert_eq!(summary.lost, 0, "{n}: {summary:?}");
            assert_eq!(summary.events - wild, attempts, "{n}: {counts:?}");
            assert_eq!(counts["inside"], 3 * SCOPES);
        }
        assert!(summary.threads <= 4, "{n}: {summary:?}");
        if n % 20 == 0 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.pftrace");
            std::fs::write(&path, memory.bytes()).unwrap();
            let trace = Trace::open(&path);
            trace.assert_clean();
            assert_eq!(
                trace.one_i64("SELECT count(*) FROM slice WHERE name = 'inside' AND dur >= 0"),
                3 * SCOPES as i64
            );
        }
        drop(memory);
        resident.push(child::resident_kb());
    }
    STOP.store(true, Ordering::Relaxed);
    wild.join().unwrap();
    let (early, late) = (resident[20], resident[99]);
    println!("resident after 20 recordings: {early} kB, after 100: {late} kB");
    assert!(late < early + 12 * 1024, "{resident:?}");
}
