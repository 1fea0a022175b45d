//! Every message, field and enum value of `proto/perfetto.proto` is one of Perfetto's.
//!
//! Perfetto's schema comes from two crates that are only read, never built (see
//! `tests/schema/Cargo.toml`): the .proto files of v51, which decide all they know, and the
//! generated code of a newer SDK, which has numbers and types but not labels. What is newer
//! than both, or deliberately different, is listed in this file.
//!
//! With `PERFETTO_CHECKOUT=/path/to/perfetto` that checkout is compared instead, without
//! lists.

mod schema;

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use schema::Source;

/// In neither crate; agrees with Perfetto v58.2. A name with a dot at its end is a prefix.
const NEWER: [&str; 9] = [
    "GpuCounterDescriptor.GpuCounterSpec.ValueDirection.",
    "GpuCounterDescriptor.GpuCounterSpec.value_direction",
    "SystemInfo.machine_name",
    "SystemInfo.system_ram_bytes",
    "TracePacket.DataLossReason.",
    "TracePacket.trace_attributes",
    "TracePacket.zstd_compressed_packets",
    "TrackDescriptor.process_ordering",
    "TrackDescriptor.thread_ordering",
];

/// Changed after v51, without harm to readers of either; agrees with v58.2.
const CHANGED: [&str; 4] = [
    "ExtensionDescriptor.extension_set",   // not in a oneof then
    "GpuCounterEvent.counter_descriptor",  // not in a oneof then
    "ThreadDescriptor.tid",                // an int32 then
    "TracePacket.previous_packet_dropped", // a bool then
];

fn listed(list: &[&str], place: &str) -> bool {
    list.iter().any(|name| place == *name || name.ends_with('.') && place.starts_with(name))
}

/// What matters on the wire and to whoever reads the message, as text.
fn signature(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        // Bytes here, to save a copy of protobuf's own schema; the same on the wire.
        Kind::Message(m) if m.name() == "FileDescriptorSet" => "bytes".into(),
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(e) => e.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    };
    let packed = if field.is_packed() { " packed" } else { "" };
    let oneof = field.containing_oneof().map_or(String::new(), |o| format!(" in {}", o.name()));
    let name = field.name();
    format!("{:?} {kind} {name} = {}{packed}{oneof}", field.cardinality(), field.number())
        .to_lowercase()
}

/// The same field in `pool`, as a plain field or as an extension.
fn counterpart(pool: &DescriptorPool, field: &FieldDescriptor) -> Option<String> {
    let parent = pool.get_message_by_name(field.parent_message().full_name())?;
    if let Some(plain) = parent.get_field(field.number()) {
        return Some(signature(&plain));
    }
    let extension = parent.get_extension(field.number())?;
    let kind = match extension.kind() {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(e) => e.full_name().to_owned(),
        scalar => format!("{scalar:?}"),
    };
    let (name, number) = (extension.name(), extension.number());
    Some(format!("{:?} {kind} {name} = {number}", extension.cardinality()).to_lowercase())
}

/// As the SDK's generated code has it: `name: type, kind, number`.
fn sdk_line(field: &FieldDescriptor) -> String {
    let (ty, kind) = match field.kind() {
        Kind::Message(message) => (schema::flat(message.full_name()), "msg"),
        Kind::Enum(e) => (schema::flat(e.full_name()), "enum"),
        Kind::Uint64 | Kind::Fixed64 => ("u64".into(), "primitive"),
        Kind::Int64 => ("i64".into(), "primitive"),
        Kind::Uint32 => ("u32".into(), "primitive"),
        Kind::Int32 => ("i32".into(), "primitive"),
        Kind::Double => ("f64".into(), "primitive"),
        Kind::Bool => ("bool".into(), "primitive"),
        Kind::String | Kind::Bytes => ("String".into(), "primitive"),
        other => panic!("no field has the type {other:?} so far"),
    };
    format!("{}: {ty}, {kind}, {}", field.name(), field.number())
}

struct Comparison {
    source: Source,
    complaints: Vec<String>,
    compared: BTreeMap<&'static str, usize>,
}

impl Comparison {
    fn message(&mut self, message: &MessageDescriptor) {
        for field in message.fields() {
            self.field(message.full_name(), &field);
        }
        message.child_messages().for_each(|child| self.message(&child));
        message.child_enums().for_each(|child| self.enumeration(&child));
    }

    fn field(&mut self, message: &str, field: &FieldDescriptor) {
        let ours = signature(field);
        let place = format!("{}.{}", message.trim_start_matches("perfetto.protos."), field.name());
        let sdk = self.source.sdk.get(&schema::flat(message));
        let (known, verdict) = match counterpart(&self.source.pool, field) {
            Some(theirs) if theirs == ours => ("schema", Ok(())),
            Some(_) if self.source.aged && listed(&CHANGED, &place) => ("list", Ok(())),
            Some(theirs) => ("schema", Err(format!("{place}: {ours}\n  Perfetto: {theirs}"))),
            None if sdk.is_some_and(|lines| lines.contains(&sdk_line(field))) => ("sdk", Ok(())),
            None if self.source.aged && listed(&NEWER, &place) => ("list", Ok(())),
            None => ("none", Err(format!("{place}: not in Perfetto"))),
        };
        *self.compared.entry(known).or_default() += 1;
        self.complaints.extend(verdict.err());
    }

    fn enumeration(&mut self, ours: &EnumDescriptor) {
        let name = ours.full_name();
        let theirs = self.source.pool.get_enum_by_name(name);
        let sdk = self.source.sdk.get(&schema::flat(name));
        for value in ours.values() {
            let place = format!("{}.{}", name.trim_start_matches("perfetto.protos."), value.name());
            let line = format!("{}: {}", value.name(), value.number());
            let same = theirs.as_ref().and_then(|theirs| theirs.get_value(value.number()));
            let known = same.is_some_and(|same| same.name() == value.name())
                || sdk.is_some_and(|lines| lines.contains(&line))
                || self.source.aged && listed(&NEWER, &place);
            if !known {
                self.complaints.push(format!("{place}: not in Perfetto as {}", value.number()));
            }
        }
    }
}

#[test]
fn fields_agree_with_perfetto() {
    let ours = schema::ours();
    let mut comparison =
        Comparison { source: Source::find(), complaints: Vec::new(), compared: BTreeMap::new() };
    for file in ours.files().filter(|file| file.package_name() == "perfetto.protos") {
        file.messages().for_each(|message| comparison.message(&message));
        file.enums().for_each(|e| comparison.enumeration(&e));
    }
    println!("fields compared, by what they were found in: {:?}", comparison.compared);
    assert!(comparison.complaints.is_empty(), "\n{}", comparison.complaints.join("\n"));
}
