//! What stands around the events in Kineto's files.

use std::fmt::Write as _;
use std::io;

use crate::chrome::{
    BARE_MOMENTS, Frame, GPU_ROWS, LAUNCH_ARROWS, METADATA_EVENTS, METADATA_POSITIONS,
    METADATA_TIME, QUOTED_TIDS, WHOLE_TIMES, first_time, property, write_in, write_text,
};
use crate::trace::{Job, StrId, Trace, Value};

/// Writes a trace as Kineto would have: its members, its names of arguments and categories, and
/// `ts` relative to `baseTimeNanoseconds`, so that they are exact in floating point too.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(trace: &Trace, out: impl io::Write) -> io::Result<()> {
    write_in(trace, out, &frame(trace))
}

/// Kineto counts time from the last multiple of this: three months.
const PERIOD: i64 = 7_889_238 * 1_000_000_000;

/// Members that this writer makes, or that are not for the file.
const OWN: [&str; 12] = [
    "schemaVersion",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceName",
    METADATA_EVENTS,
    METADATA_TIME,
    METADATA_POSITIONS,
    WHOLE_TIMES,
    QUOTED_TIDS,
    BARE_MOMENTS,
    LAUNCH_ARROWS,
    GPU_ROWS,
];

/// What stands around the events.
fn frame(trace: &Trace) -> Frame {
    let fact = |key| trace.strings.find(key).and_then(|key| trace.facts.get(key));
    let json = trace.was_json();
    let text = |value| write_text(trace, value);
    let mut before = String::from("{");
    // Writing to a string does not fail, here and below.
    let unit = fact("displayTimeUnit").map_or("\"ms\"".to_owned(), text);
    let real = trace.facts.realtime_offset().map(|offset| offset.0);
    let base = match (fact("baseTimeNanoseconds"), real) {
        (Some(Value::I64(base)), _) => Some(base),
        // Times of day without a base, as in files of PyTorch before 2.2; they stay so.
        (_, Some(0)) | (_, None) => None,
        (_, Some(real)) => {
            let first = first_time(trace).saturating_add(real);
            Some(first.div_euclid(PERIOD) * PERIOD)
        }
    };
    let shift = base.map_or(0, |base| real.unwrap_or(base).saturating_sub(base));
    if let Some(version) = fact("schemaVersion").map(text).or((!json).then(|| "1".to_owned())) {
        let _ = write!(before, "\n\"schemaVersion\": {version},");
    }
    devices(trace, &mut before);
    let mut done: Vec<StrId> = Vec::new();
    for (key, _) in &trace.facts.metadata {
        let name = trace.strings.get(*key);
        let of_ours = trace.is_own() && (name == "trace_uuid" || name.starts_with("system_"));
        if OWN.contains(&name) || of_ours || done.contains(key) {
            continue;
        }
        done.push(*key);
        if let Some(value) = trace.facts.get(*key) {
            let name = write_text(trace, Value::Str(*key));
            let _ = write!(before, "\n{name}: {},", text(value));
        }
    }
    // By this tools know the ranks of a job.
    let job = Job::of(trace);
    if let Some(rank) = job.rank.filter(|_| trace.is_own() && fact("distributedInfo").is_none()) {
        let size = job.world_size.unwrap_or(rank.saturating_add(1));
        let _ = write!(
            before,
            "\n\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": {size}}},"
        );
    }
    if fact("displayTimeUnit").is_some() || !json {
        let _ = write!(before, "\n\"displayTimeUnit\": {unit},");
    }
    if let Some(base) = base {
        let _ = write!(before, "\n\"baseTimeNanoseconds\": {base},");
    }
    before.push_str("\n\"traceEvents\": [");
    let mut after = String::from("\n]");
    if let Some(name) = fact("traceName") {
        let _ = write!(after, ",\n\"traceName\": {}", text(name));
    }
    after.push_str("\n}\n");
    let mut events = Vec::new();
    if !json && trace.strings.find("Record Window End").is_none() {
        let mut time = Vec::new();
        crate::json::write_micros(&mut time, last_time(trace).saturating_add(shift));
        events.push(format!(
            "{{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \
             \"pid\": \"\", \"tid\": \"\", \"ts\": {}}}",
            String::from_utf8_lossy(&time)
        ));
    }
    Frame { before, after, events, shift, steps: true }
}

/// `deviceProperties`: the devices that something is known about.
fn devices(trace: &Trace, out: &mut String) {
    let known = trace
        .devices
        .iter()
        .filter(|(_, device)| device.name != StrId::NONE || device.properties.is_some());
    let known: Vec<String> = known
        .map(|(_, device)| {
            let mut text = format!("{{\"id\": {}", device.number);
            if device.name != StrId::NONE {
                text += &format!(", \"name\": {}", write_text(trace, Value::Str(device.name)));
            }
            for (key, value) in trace.args.entries(device.properties) {
                let (name, said) = (trace.strings.get(key), trace.plain(value));
                if trace.is_own() && property(&mut text, name, &said) {
                    continue;
                }
                let key = write_text(trace, Value::Str(key));
                text += &format!(", {key}: {}", write_text(trace, value));
            }
            text + "}"
        })
        .collect();
    if !known.is_empty() {
        let _ = write!(out, "\n\"deviceProperties\": [\n{}\n],", known.join(",\n"));
    }
}

/// When the last event of a trace ends; 0 in an empty one.
fn last_time(trace: &Trace) -> i64 {
    let slices = trace.slices.iter().map(|slice| (slice.start + slice.dur).0.max(slice.start.0));
    let activities = trace.activities.iter().map(|activity| activity.end().0);
    let instants = trace.instants.iter().map(|instant| instant.time.0);
    slices.chain(activities).chain(instants).max().unwrap_or(0)
}
