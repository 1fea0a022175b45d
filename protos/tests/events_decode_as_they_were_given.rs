//! Whatever is encoded, prost decodes it to the same: any events, any strings, restarts at
//! any point.

use kymograph_protos::packet::{
    Arg, CounterValue, Event, EventType, Name, Sequence, Snapshot, Strings, Text, Value, clean,
};
use kymograph_protos::perfetto::trace_packet::{Data, OptionalTrustedPacketSequenceId as Id};
use kymograph_protos::perfetto::{
    DebugAnnotation, InternedData, Trace, TracePacket, TrackEvent, debug_annotation, track_event,
};
use kymograph_protos::record::StrId;
use proptest::prelude::*;
use prost::Message;
use std::collections::HashMap;

/// Every id stands for a text: of any length, of any bytes.
struct Known;

const KNOWN: u32 = 400;

impl Strings for Known {
    fn text(&self, id: StrId) -> Text<'_> {
        const LONG: [u8; 3000] = [b'l'; 3000];
        static TEXTS: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
        let texts = TEXTS.get_or_init(|| {
            let text = |n: u32| match n % 50 {
                7 => format!("{n} ").into_bytes().into_iter().chain(LONG).collect(),
                8 => [&n.to_le_bytes()[..], b"\xff\0\x01"].concat(),
                _ => format!("text {n}").into_bytes(),
            };
            (0..=KNOWN).map(text).collect()
        });
        let bytes = if id.is_none() { &[][..] } else { &texts[id.0 as usize] };
        Text { bytes, ..Text::default() }
    }

    /// `[n, text, {name: [], name: tree}]`, the last only for some.
    fn tree<'a>(&'a self, n: u64, out: &mut Vec<Arg<'a>>) {
        let (id, deeper) = (StrId(n as u32 % KNOWN + 1), n.is_multiple_of(3) && n > 0);
        let arg = |value| Arg { name: Name::Id(id), value };
        out.extend([arg(Value::List(3)), arg(Value::U64(n)), arg(Value::Str(id))]);
        out.extend([arg(Value::Dict(1 + u32::from(deeper))), arg(Value::List(0))]);
        if deeper {
            out.push(arg(Value::Tree(n / 2)));
        }
    }
}

fn tree_text(n: u64) -> String {
    let text = known(StrId(n as u32 % KNOWN + 1));
    let deeper = match n.is_multiple_of(3) && n > 0 {
        true => format!(", {text}: {}", tree_text(n / 2)),
        false => String::new(),
    };
    format!("[uint {n}, string {text}, {{{text}: []{deeper}}}]")
}

fn known(id: StrId) -> String {
    clean(Known.text(id).bytes).into_owned()
}

/// An event with everything spelled out.
#[derive(Clone, PartialEq, Debug)]
struct Said {
    ty: i32,
    time: u64,
    track: Option<u64>,
    category: Option<String>,
    name: Option<String>,
    args: Vec<(String, String)>,
    flows: (Vec<u64>, Vec<u64>),
    counter: Option<String>,
}

#[derive(Clone, Debug)]
enum Owned {
    Id(u32),
    Bytes(Vec<u8>),
}

impl Owned {
    fn name(&self) -> Name<'_> {
        match self {
            Owned::Id(id) => Name::Id(StrId(*id)),
            Owned::Bytes(bytes) => Name::Bytes(bytes),
        }
    }

    fn text(&self) -> String {
        match self {
            Owned::Id(id) => known(StrId(*id)),
            Owned::Bytes(bytes) => clean(bytes).into_owned(),
        }
    }
}

#[derive(Clone, Debug)]
enum Fact {
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(u64),
    Str(u32),
    Bytes(Vec<u8>),
    Pointer(u64),
    Tree(u64),
}

impl Fact {
    fn value(&self) -> Value<'_> {
        match self {
            Fact::Bool(b) => Value::Bool(*b),
            Fact::I64(n) => Value::I64(*n),
            Fact::U64(n) => Value::U64(*n),
            Fact::F64(bits) => Value::F64(f64::from_bits(*bits)),
            Fact::Str(id) => Value::Str(StrId(*id)),
            Fact::Bytes(bytes) => Value::Bytes(bytes),
            Fact::Pointer(p) => Value::Pointer(*p),
            Fact::Tree(n) => Value::Tree(*n),
        }
    }

    fn text(&self) -> String {
        match self {
            Fact::Bool(b) => format!("bool {b}"),
            Fact::I64(n) => format!("int {n}"),
            Fact::U64(n) => format!("uint {n}"),
            Fact::F64(bits) => format!("double {bits:x}"),
            Fact::Str(id) => format!("string {}", known(StrId(*id))),
            Fact::Bytes(bytes) => format!("string {}", clean(bytes)),
            Fact::Pointer(p) => format!("pointer {p:x}"),
            Fact::Tree(n) => tree_text(*n),
        }
    }
}

#[derive(Clone, Debug)]
struct Given {
    ty: u8,
    time: u64,
    track: u64,
    category: u32,
    name: Owned,
    args: Vec<(Owned, Fact)>,
    flows: Vec<u64>,
    flow_ends: Vec<u64>,
    counter: Option<Result<i64, u64>>,
}

#[derive(Clone, Debug)]
enum Step {
    Event(Given),
    Restart { time: u64, dropped: bool },
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..40),
        1 => prop::collection::vec(any::<u8>(), 100..20_000),
    ]
}

fn owned() -> impl Strategy<Value = Owned> {
    prop_oneof![4 => (0..=KNOWN).prop_map(Owned::Id), 1 => bytes().prop_map(Owned::Bytes)]
}

fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        any::<bool>().prop_map(Fact::Bool),
        any::<i64>().prop_map(Fact::I64),
        any::<u64>().prop_map(Fact::U64),
        any::<u64>().prop_map(Fact::F64),
        (1..=KNOWN).prop_map(Fact::Str),
        bytes().prop_map(Fact::Bytes),
        any::<u64>().prop_map(Fact::Pointer),
        prop_oneof![0..8u64, any::<u64>()].prop_map(Fact::Tree),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let few = || prop::collection::vec(any::<u64>(), 0..4);
    let counter = prop_oneof![any::<i64>().prop_map(Ok), any::<u64>().prop_map(Err)];
    // Times near each other, so that deltas are small, and any times at all.
    let time = || prop_oneof![8 => 1_000_000..1_000_300u64, 1 => any::<u64>()];
    let args = prop_oneof![
        9 => prop::collection::vec((owned(), fact()), 0..4),
        1 => prop::collection::vec((owned(), fact()), 30..80),
    ];
    let event = (
        1..=4u8,
        time(),
        prop_oneof![Just(0), any::<u64>()],
        0..=KNOWN,
        owned(),
        args,
        (few(), few()),
        prop::option::of(counter),
    )
        .prop_map(|(ty, time, track, category, name, args, (flows, flow_ends), counter)| Given {
            ty,
            time,
            track,
            category,
            name,
            args,
            flows,
            flow_ends,
            counter,
        });
    prop_oneof![
        12 => event.prop_map(Step::Event),
        1 => (time(), any::<bool>()).prop_map(|(time, dropped)| Step::Restart { time, dropped }),
    ]
}

fn encode(steps: &[Step], sequence: &mut Sequence, out: &mut Vec<u8>) -> Vec<Said> {
    let mut said = Vec::new();
    for step in steps {
        match step {
            Step::Restart { time, dropped } => {
                let clocks = Snapshot { boottime: *time, monotonic: 1, realtime: 2 };
                sequence.restart(out, 99, &clocks, clocks.boottime, *dropped);
            }
            Step::Event(given) => {
                let ty = [EventType::Begin, EventType::End, EventType::Instant, EventType::Counter];
                let args: Vec<Arg<'_>> = given
                    .args
                    .iter()
                    .map(|(name, value)| Arg { name: name.name(), value: value.value() })
                    .collect();
                let counter = given.counter.map(|counter| match counter {
                    Ok(n) => CounterValue::I64(n),
                    Err(bits) => CounterValue::F64(f64::from_bits(bits)),
                });
                let event = Event {
                    ty: ty[given.ty as usize - 1],
                    time: given.time,
                    track: given.track,
                    category: StrId(given.category),
                    name: given.name.name(),
                    args: &args,
                    flows: &given.flows,
                    flow_ends: &given.flow_ends,
                    gpu: None,
                    counter,
                };
                sequence.event(out, &Known, &event);
                said.push(Said {
                    ty: given.ty.into(),
                    time: given.time,
                    track: (given.track != 0).then_some(given.track),
                    category: (given.category != 0).then(|| known(StrId(given.category))),
                    name: match &given.name {
                        Owned::Id(0) => None,
                        name => Some(name.text()),
                    },
                    args: given.args.iter().map(|(n, v)| (n.text(), v.text())).collect(),
                    flows: (given.flows.clone(), given.flow_ends.clone()),
                    counter: given.counter.map(|counter| match counter {
                        Ok(n) => format!("int {n}"),
                        Err(bits) => format!("double {bits:x}"),
                    }),
                });
            }
        }
    }
    said
}

/// What a reader of the sequence keeps.
#[derive(Default)]
struct Tables {
    time: u64,
    names: HashMap<u64, String>,
    categories: HashMap<u64, String>,
    arg_names: HashMap<u64, String>,
    strings: HashMap<u64, String>,
}

impl Tables {
    fn learn(&mut self, data: InternedData) {
        let new = |table: &mut HashMap<u64, String>, iid: Option<u64>, name: String| {
            assert!(table.insert(iid.unwrap(), name).is_none(), "introduced twice");
        };
        for entry in data.event_names {
            new(&mut self.names, entry.iid, entry.name.unwrap());
        }
        for entry in data.event_categories {
            new(&mut self.categories, entry.iid, entry.name.unwrap());
        }
        for entry in data.debug_annotation_names {
            new(&mut self.arg_names, entry.iid, entry.name.unwrap());
        }
        for entry in data.debug_annotation_string_values {
            new(&mut self.strings, entry.iid, String::from_utf8(entry.str.unwrap()).unwrap());
        }
    }

    fn arg(&self, arg: DebugAnnotation) -> (String, String) {
        use debug_annotation::NameField;
        let name = match arg.name_field.clone() {
            Some(NameField::NameIid(iid)) => self.arg_names[&iid].clone(),
            Some(NameField::Name(name)) => name,
            None => String::new(),
        };
        (name, self.value(arg))
    }

    fn value(&self, arg: DebugAnnotation) -> String {
        use debug_annotation::Value;
        let join = |values: Vec<String>| values.join(", ");
        match arg.value {
            Some(Value::BoolValue(b)) => format!("bool {b}"),
            Some(Value::IntValue(n)) => format!("int {n}"),
            Some(Value::UintValue(n)) => format!("uint {n}"),
            Some(Value::DoubleValue(x)) => format!("double {:x}", x.to_bits()),
            Some(Value::StringValueIid(iid)) => format!("string {}", self.strings[&iid]),
            Some(Value::StringValue(text)) => format!("string {text}"),
            Some(Value::PointerValue(p)) => format!("pointer {p:x}"),
            // An empty list.
            Some(Value::NestedValue(_)) => "[]".to_owned(),
            None if !arg.dict_entries.is_empty() => {
                let entry = |arg| {
                    let (name, value) = self.arg(arg);
                    format!("{name}: {value}")
                };
                format!("{{{}}}", join(arg.dict_entries.into_iter().map(entry).collect()))
            }
            None => {
                let items = arg.array_values.into_iter().map(|item| self.value(item));
                format!("[{}]", join(items.collect()))
            }
            other => panic!("{other:?}"),
        }
    }

    fn event(&self, event: TrackEvent) -> Said {
        use track_event::{CounterValueField, NameField};
        Said {
            ty: event.r#type.unwrap(),
            time: self.time,
            track: event.track_uuid,
            category: event.category_iids.first().map(|iid| self.categories[iid].clone()),
            name: event.name_field.map(|name| match name {
                NameField::NameIid(iid) => self.names[&iid].clone(),
                NameField::Name(name) => name,
            }),
            args: event.debug_annotations.into_iter().map(|arg| self.arg(arg)).collect(),
            flows: (event.flow_ids, event.terminating_flow_ids),
            counter: event.counter_value_field.map(|counter| match counter {
                CounterValueField::CounterValue(n) => format!("int {n}"),
                CounterValueField::DoubleCounterValue(x) => format!("double {:x}", x.to_bits()),
            }),
        }
    }
}

fn decode(packets: Vec<TracePacket>, sequence: u32) -> Vec<Said> {
    let mut tables = Tables::default();
    let mut said = Vec::new();
    for packet in packets {
        assert_eq!(
            packet.optional_trusted_packet_sequence_id,
            Some(Id::TrustedPacketSequenceId(sequence))
        );
        if packet.sequence_flags == Some(1) {
            let Some(Data::ClockSnapshot(clocks)) = packet.data else { panic!("no clocks") };
            tables = Tables { time: clocks.clocks[1].timestamp.unwrap(), ..Tables::default() };
            continue;
        }
        assert_eq!(packet.sequence_flags, Some(2));
        tables.time = tables.time.wrapping_add(packet.timestamp.unwrap());
        tables.learn(packet.interned_data.unwrap_or_default());
        let Some(Data::TrackEvent(event)) = packet.data else { panic!("no event") };
        said.push(tables.event(event));
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours: one_of_everything has to do")]
    fn events_decode_as_they_were_given(
        steps in prop::collection::vec(step(), 1..60),
        id in prop_oneof![1..128u32, 128..u32::MAX],
    ) {
        let mut sequence = Sequence::new(id);
        let mut out = Vec::new();
        sequence.restart(&mut out, 99, &Snapshot::default(), 0, false);
        let said = encode(&steps, &mut sequence, &mut out);
        let trace = Trace::decode(&out[..]).unwrap();
        prop_assert_eq!(decode(trace.packet, id), said);
    }
}

#[test]
fn one_of_everything() {
    let facts = [
        Fact::Bool(true),
        Fact::I64(i64::MIN),
        Fact::U64(u64::MAX),
        Fact::F64(f64::to_bits(-0.5)),
        Fact::Str(8),
        Fact::Bytes(vec![0xff; 200]),
        Fact::Pointer(u64::MAX),
        Fact::Tree(3),
        Fact::Tree(7),
        Fact::Tree(3),
    ];
    let names = [Owned::Id(0), Owned::Id(300), Owned::Bytes(b"by value \0".to_vec())];
    let mut steps = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let args = facts.iter().map(|fact| (name.clone(), fact.clone())).collect();
        let given = Given {
            ty: n as u8 + 1,
            time: u64::MAX / (n as u64 + 1),
            track: [0, 7, u64::MAX][n],
            category: n as u32 * 150,
            name: name.clone(),
            args,
            flows: vec![u64::MAX; n],
            flow_ends: vec![1; 2 - n],
            counter: [None, Some(Ok(-1)), Some(Err(1))][n],
        };
        steps.extend([Step::Event(given.clone()), Step::Event(given)]);
        steps.push(Step::Restart { time: 5, dropped: n == 1 });
    }
    let mut sequence = Sequence::new(u32::MAX);
    let mut out = Vec::new();
    sequence.restart(&mut out, 99, &Snapshot::default(), 0, false);
    let said = encode(&steps, &mut sequence, &mut out);
    assert_eq!(said.len(), 6);
    let trace = Trace::decode(&out[..]).unwrap();
    assert_eq!(decode(trace.packet, u32::MAX), said);
}

#[test]
fn the_buffer_grows_with_what_is_in_it() {
    let mut sequence = Sequence::new(1);
    let mut out = Vec::new();
    sequence.restart(&mut out, 99, &Snapshot::default(), 0, false);
    for time in 0..if cfg!(miri) { 100 } else { 2000 } {
        let name = Name::Bytes(b"by value");
        let args = [Arg { name, value: Value::Bytes(b"also by value") }];
        let event = Event { name, args: &args, ..Event::new(EventType::Instant, time) };
        sequence.event(&mut out, &Known, &event);
    }
    assert!(out.capacity() < out.len() * 3, "{} for {}", out.capacity(), out.len());
}
