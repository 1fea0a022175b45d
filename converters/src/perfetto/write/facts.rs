//! What is known of the job, the machine and the clocks.

use crate::order::Order as _;
use std::io::{self, Write};

use kymograph_protos::packet::{self, Fact, Snapshot, System};

use super::{FACTS, FULL, Writer};
use crate::perfetto::read::{JSON_KEY, ORIGIN, PRODUCER, WARNING};
use crate::trace::{Nanos, Trace, Value};

/// The name of a trace.
const UUID: &str = "trace_uuid";
/// What uname(2) says.
const NAMES: [&str; 4] = ["system_sysname", "system_version", "system_release", "system_machine"];
/// The name of the machine.
const HOST: &str = "system_machine_name";

impl<W: Write> Writer<'_, W> {
    pub(super) fn facts(&mut self) -> io::Result<()> {
        for snapshot in &self.snapshots {
            packet::clock_snapshot(&mut self.packets, FACTS, snapshot);
        }
        let trace = self.trace;
        let mut facts: Vec<(String, String)> = Vec::new();
        // A recording of our own says so by its version.
        let version = trace.strings.find("kymograph.version").and_then(|k| trace.facts.get(k));
        if version.is_none() {
            let producer = trace.strings.get(trace.facts.producer).to_owned();
            facts.push((PRODUCER.to_owned(), producer));
        }
        let machine = self.machine();
        for (key, value) in &trace.facts.metadata {
            let key = trace.strings.get(*key);
            if machine.contains(&key) {
                continue;
            }
            match *value {
                Value::I64(n) => {
                    let fact = [(key, Fact::Number(n))];
                    packet::trace_attributes(&mut self.packets, FACTS, &fact);
                }
                Value::Str(text) => {
                    let fact = [(key, Fact::Text(trace.strings.get(text)))];
                    packet::trace_attributes(&mut self.packets, FACTS, &fact);
                }
                value => facts.push((format!("{JSON_KEY}{key}"), trace.json(value))),
            }
        }
        for warning in &trace.facts.warnings {
            let text = match warning.count {
                1 => warning.what.clone(),
                count => format!("{count} × {}", warning.what),
            };
            facts.push((WARNING.to_owned(), text));
        }
        if self.shift != 0 {
            let fact = [(ORIGIN, Fact::Number(self.shift))];
            packet::trace_attributes(&mut self.packets, FACTS, &fact);
        }
        for (key, text) in &facts {
            packet::trace_attributes(&mut self.packets, FACTS, &[(key, Fact::Text(text))]);
        }
        self.flush(FULL)
    }

    /// Facts that recordings of ours state in packets of their own, and that are stated so
    /// again: by their keys.
    fn machine(&mut self) -> Vec<&'static str> {
        let trace = self.trace;
        let mut stated = Vec::new();
        if !trace.is_own() {
            return stated;
        }
        let mut text = |name| {
            let key = trace.strings.find(name)?;
            // A merged trace has several.
            let mut values = trace.facts.metadata.iter().filter(|(of, _)| *of == key);
            match (values.next(), values.next()) {
                (Some((_, Value::Str(text))), None) => Some(trace.strings.get(*text)),
                _ => None,
            }
            .inspect(|_| stated.push(name))
        };
        let names = NAMES.map(|name| text(name).unwrap_or_default().as_bytes());
        let host = text(HOST).unwrap_or_default().as_bytes();
        let system = System { names, host, ..System::default() };
        if system != System::default() {
            packet::system_info(&mut self.packets, FACTS, &system);
        }
        let number = |half: &str| u64::from_str_radix(half, 16).ok();
        let uuid = text(UUID).filter(|uuid| uuid.len() == 32);
        let halves = uuid.and_then(|uuid| Some((uuid.get(..16)?, uuid.get(16..)?)));
        match halves.and_then(|(msb, lsb)| Some([number(msb)?, number(lsb)?])) {
            Some(uuid) => packet::trace_uuid(&mut self.packets, FACTS, uuid),
            None => stated.retain(|key| *key != UUID),
        }
        stated
    }
}

pub(super) fn snapshots(trace: &Trace, shift: i64) -> Vec<Snapshot> {
    let time = |time: Option<Nanos>| time.map_or(0, |time| time.0.max(0) as u64);
    let mut snapshots: Vec<Snapshot> = trace
        .facts
        .readings
        .iter()
        .filter(|reading| reading.trace.0.saturating_add(shift) >= 0)
        .map(|reading| Snapshot {
            boottime: reading.trace.0.saturating_add(shift) as u64,
            realtime: time(reading.realtime),
            monotonic: time(reading.monotonic),
        })
        .filter(|snapshot| snapshot.realtime != 0 || snapshot.monotonic != 0)
        .collect();
    snapshots.order_by_key(|snapshot| snapshot.boottime);
    snapshots.dedup();
    snapshots
}
