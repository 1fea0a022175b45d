//! What packets say about the job, the machine and losses.

use kymograph_protos::fields::{
    system_info, trace_attributes, trace_attributes::attribute, trace_stats,
    trace_stats::buffer_stats, trace_uuid, utsname,
};

use super::Reader;
use super::launch::Maker;
use super::sequence::intern_text;
use crate::json::is_valid;
use crate::perfetto::wire::Fields;
use crate::trace::{Loss, Value, Warning};

/// Attributes are numbers and texts. Under a key that begins so, the text is JSON: a value of
/// another type.
pub const JSON_KEY: &str = "json.";

/// The key of what was added to all times.
pub const ORIGIN: &str = "kymograph.time_shift";
/// The key under which a converted trace says what made it first.
pub const PRODUCER: &str = "kymograph.source";
/// The key of what had to be passed over when it was converted.
pub const WARNING: &str = "kymograph.source_warning";

impl Reader {
    /// A `TraceAttributes`.
    pub(super) fn attributes(&mut self, bytes: &[u8]) {
        let trace = &mut self.trace;
        for (_, attribute) in
            Fields::new(bytes).filter(|(number, _)| *number == trace_attributes::ATTRIBUTE)
        {
            let (mut key, mut value) = (None, Value::Null);
            for (number, field) in attribute.fields() {
                match number {
                    attribute::KEY => key = Some(String::from_utf8_lossy(field.bytes())),
                    attribute::LONG_VALUE => value = Value::I64(field.int()),
                    attribute::STRING_VALUE => {
                        value = Value::Str(intern_text(&mut trace.strings, field.bytes()))
                    }
                    _ => {}
                }
            }
            let Some(mut key) = key.as_deref() else { continue };
            if let (Some(rest), Value::Str(text)) = (key.strip_prefix(JSON_KEY), value)
                && is_valid(trace.strings.get(text))
            {
                (key, value) = (rest, Value::Json(text));
            }
            match (key, value) {
                ("kymograph.version", Value::Str(version)) => {
                    self.maker = Maker::Recording;
                    let producer = format!("Kymograph {}", trace.strings.get(version));
                    trace.facts.producer = trace.strings.intern(&producer);
                }
                (PRODUCER, Value::Str(producer)) => {
                    self.maker = Maker::Converter;
                    trace.facts.producer = producer;
                    continue;
                }
                (WARNING, Value::Str(text)) => {
                    trace.facts.warnings.push(warning(trace.strings.get(text)));
                    continue;
                }
                _ => {}
            }
            let key = trace.strings.intern(key);
            trace.facts.metadata.push((key, value));
        }
    }

    /// A `TraceStats`: each holds the totals, so the last one counts.
    pub(super) fn stats(&mut self, bytes: &[u8]) {
        let (mut writers, mut overwritten, mut patches) = (0u64, 0u64, 0u64);
        for (number, field) in Fields::new(bytes) {
            match number {
                trace_stats::BUFFER_STATS => {
                    for (number, field) in field.fields() {
                        match number {
                            buffer_stats::TRACE_WRITER_PACKET_LOSS => {
                                writers = writers.saturating_add(field.uint())
                            }
                            buffer_stats::CHUNKS_OVERWRITTEN => {
                                overwritten = overwritten.saturating_add(field.uint())
                            }
                            buffer_stats::PATCHES_FAILED => {
                                patches = patches.saturating_add(field.uint())
                            }
                            _ => {}
                        }
                    }
                }
                trace_stats::CHUNKS_DISCARDED => {
                    overwritten = overwritten.saturating_add(field.uint())
                }
                _ => {}
            }
        }
        self.trace.facts.losses = [
            ("records without room in a writer's buffer", writers),
            ("chunks overwritten or discarded in the trace buffer", overwritten),
            ("chunks that were never completed", patches),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| Loss { what: what.to_owned(), count })
        .collect();
    }

    /// A `TraceUuid`.
    pub(super) fn uuid(&mut self, bytes: &[u8]) {
        let (mut msb, mut lsb) = (0, 0);
        for (number, field) in Fields::new(bytes) {
            match number {
                trace_uuid::MSB => msb = field.uint(),
                trace_uuid::LSB => lsb = field.uint(),
                _ => {}
            }
        }
        self.fact("trace_uuid", &format!("{msb:016x}{lsb:016x}"));
    }

    /// A `SystemInfo`.
    pub(super) fn system(&mut self, bytes: &[u8]) {
        for (number, field) in Fields::new(bytes) {
            match number {
                system_info::UTSNAME => {
                    for (number, field) in field.fields() {
                        let name = match number {
                            utsname::SYSNAME => "sysname",
                            utsname::VERSION => "version",
                            utsname::RELEASE => "release",
                            utsname::MACHINE => "machine",
                            _ => continue,
                        };
                        let text = String::from_utf8_lossy(field.bytes());
                        self.fact(&format!("system_{name}"), &text);
                    }
                }
                system_info::TRACING_SERVICE_VERSION => {
                    let version = intern_text(&mut self.trace.strings, field.bytes());
                    self.trace.facts.producer = version;
                }
                system_info::MACHINE_NAME => {
                    let text = String::from_utf8_lossy(field.bytes());
                    self.fact("system_machine_name", &text);
                }
                _ => {}
            }
        }
    }

    fn fact(&mut self, key: &str, text: &str) {
        let trace = &mut self.trace;
        let (key, text) = (trace.strings.intern(key), trace.strings.intern(text));
        trace.facts.metadata.push((key, Value::Str(text)));
    }
}

/// `7 × what it was`, or without a number.
fn warning(text: &str) -> Warning {
    let counted = text.split_once(" × ").and_then(|(n, what)| Some((n.parse().ok()?, what)));
    let (count, what) = counted.unwrap_or((1, text));
    Warning { what: what.to_owned(), count, offset: None }
}
