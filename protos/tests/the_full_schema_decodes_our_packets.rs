//! What the encoder writes, read with Perfetto's own full schema (the .proto files of the
//! crate `perfetto_protos`): every field is known there, and says what was meant.

mod schema;

use kymograph_protos::device::{GpuApi, Stage};
use kymograph_protos::packet::{
    Activity, Arg, Correlation, CounterValue, Device, Event, EventType, Fact, Kernel, Launch, Name,
    ProcessTrack, Queue, Sequence, Snapshot, Strings, Text, ThreadTrack, Track, Value, devices,
    trace_attributes, trace_stats,
};
use kymograph_protos::{CounterUnit, StrId};
use prost_reflect::{DynamicMessage, ReflectMessage, Value as Found};
use schema::Source;

const WORDS: [&str; 5] = ["", "category", "name", "argument", "value"];

struct Words;

impl Strings for Words {
    fn text(&self, id: StrId) -> Text<'_> {
        Text { bytes: WORDS[id.0 as usize].as_bytes(), ..Text::default() }
    }
}

fn everything() -> Vec<u8> {
    let (mut out, clocks) =
        (Vec::new(), Snapshot { boottime: 5_000, monotonic: 4_000, realtime: 9 });
    let mut sequence = Sequence::new(3);
    sequence.restart(&mut out, 77, &clocks, clocks.boottime, true);
    let command = [b"program".to_vec(), b"--flag".to_vec()];
    ProcessTrack { uuid: 76, pid: 12, name: b"program", command: &command, started: 4, rank: 5 }
        .write(&mut out, 3);
    ThreadTrack { uuid: 77, parent: 76, pid: 12, tid: 13, name: b"main", rank: 0 }
        .write(&mut out, 3);
    let counter = Some(CounterUnit::Bytes);
    Track { uuid: 78, parent: 76, name: b"queued", counter, rank: Some(-1), orders_children: true }
        .write(&mut out, 3);
    let name = Name::Id(StrId(3));
    let values = [
        Value::Bool(true),
        Value::I64(-5),
        Value::U64(u64::MAX),
        Value::F64(0.5),
        Value::Str(StrId(4)),
        Value::Bytes(b"by value"),
        Value::Pointer(0xdead),
    ];
    let args = values.map(|value| Arg { name, value });
    let begin = Event {
        category: StrId(1),
        name: Name::Id(StrId(2)),
        args: &args,
        flows: &[1, 2],
        flow_ends: &[3],
        gpu: Some(Correlation { launched: &[1 << 32 | 7], waited: &[8], api: GpuApi::Cuda }),
        ..Event::new(EventType::Begin, 5_010)
    };
    sequence.event(&mut out, &Words, &begin);
    let end = Event { name: Name::Bytes(b"named"), ..Event::new(EventType::End, 5_020) };
    sequence.event(&mut out, &Words, &end);
    for value in [CounterValue::I64(-9), CounterValue::F64(2.5)] {
        let counter = Some(value);
        let event = Event { track: 78, counter, ..Event::new(EventType::Counter, 5_030) };
        sequence.event(&mut out, &Words, &event);
    }
    let queue = Queue {
        number: 0,
        name: b"Stream 07 (12)",
        description: b"a stream",
        context: 257,
        pid: 12,
        process: b"program",
        stream: 7,
        api: GpuApi::Cuda,
    };
    let activity = Activity {
        time: 5_040,
        duration: 1_000,
        event_id: 1 << 32 | 7,
        submission: 7,
        gpu: 1,
        architecture: b"sm_90",
        queue,
        stage: Stage::Kernel,
        name: Name::Id(StrId(2)),
        kernel: Some(Kernel { name: StrId(2), symbol: StrId(3), registers: 32, shared: 1024 }),
        launch: Some(Launch { grid: [1, 2, 3], block: [4, 5, 6] }),
        args: &args,
    };
    sequence.activity(&mut out, &Words, &activity);
    let gpu = Device {
        name: b"GPU 0",
        model: b"H200",
        vendor: b"NVIDIA",
        uuid: &[7; 16],
        ..Device::default()
    };
    devices(&mut out, 3, 5_050, &[gpu]);
    trace_attributes(&mut out, 3, &[("rank", Fact::Number(3)), ("job", Fact::Text("llm"))]);
    trace_stats(&mut out, 3, 1 << 20, 42, &[3]);
    out
}

/// Every field that the schema does not know, as `Message.number`.
fn unknown(message: &DynamicMessage, found: &mut Vec<String>) {
    let name = message.descriptor().name().to_owned();
    found.extend(message.unknown_fields().map(|field| format!("{name}.{}", field.number())));
    let inside = message.fields().map(|(_, value)| value.clone());
    for value in inside.chain(message.extensions().map(|(_, value)| value.clone())) {
        unknown_in(&value, found);
    }
}

fn unknown_in(value: &Found, found: &mut Vec<String>) {
    match value {
        Found::Message(message) => unknown(message, found),
        Found::List(values) => values.iter().for_each(|value| unknown_in(value, found)),
        _ => {}
    }
}

#[test]
fn the_full_schema_decodes_our_packets() {
    let source = Source::find();
    let trace = source.pool.get_message_by_name("perfetto.protos.Trace").unwrap();
    let trace = DynamicMessage::decode(trace, everything().as_slice()).expect("it decodes");
    let mut strange = Vec::new();
    unknown(&trace, &mut strange);
    strange.sort();
    strange.dedup();
    // Newer than that schema: see `fields_agree_with_perfetto.rs`, which checks them
    // against other sources.
    strange.retain(|field| !NEWER.contains(&field.as_str()));
    assert_eq!(strange, Vec::<String>::new());

    let text = format!("{trace:?}");
    for said in ["by value", "Stream 07 (12)", "0.5", "-5", "18446744073709551615", "--flag"] {
        assert!(text.contains(said), "{said} is missing in {text}");
    }
}

/// Fields that Perfetto v51 did not have yet.
const NEWER: [&str; 9] = [
    "GpuRenderStageEvent.19",
    "GpuRenderStageEvent.20",
    "GpuRenderStageEvent.21",
    "InternedData.1000",
    "InternedData.1001",
    "TracePacket.126",
    "TracePacket.128",
    "TrackEvent.3000",
    "TrackEvent.3001",
];
