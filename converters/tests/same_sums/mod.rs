//! Whether trace_processor sees in a trace what the JSON says that it was made from: how many
//! slices of each name and category there are and how long they take together, how many
//! arrows, and what their arguments amount to.
//!
//! The JSON is read with serde_json and by rules of its own, not with the reader under test.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

type Event = Map<String, Value>;

/// Count and total by whatever tells them apart.
type Sums = BTreeMap<(String, String), (i64, i64)>;

/// What differs, in words; nothing when all agrees.
pub fn differences(json: &str, trace: &oracle::Trace) -> Vec<String> {
    let whole: Value = serde_json::from_str(json).expect("JSON");
    let list = whole.get("traceEvents").unwrap_or(&whole);
    let events: Vec<&Event> =
        list.as_array().expect("events").iter().filter_map(Value::as_object).collect();
    let mut out = Vec::new();
    compare("slices", &slices_of(&events), &rows(trace, SLICES), &mut out);
    compare("arguments", &args_of(&events), &rows(trace, ARGS), &mut out);
    let (wanted, found) = (arrows_of(&events), trace.one_i64("SELECT count(*) FROM flow"));
    if wanted != found {
        out.push(format!("{wanted} arrows in the JSON, {found} in the trace"));
    }
    out
}

const SLICES: &str = "
    SELECT ifnull(name, ''), ifnull(category, ''), count(*), sum(dur) FROM slice GROUP BY 1, 2";

/// Numbers by a remainder, so that no sum overflows; texts by their lengths.
const ARGS: &str = "
    SELECT key, value_type, count(*), sum(CASE value_type
        WHEN 'string' THEN length(string_value) ELSE int_value % 1000003 END)
    FROM slice JOIN args USING (arg_set_id)
    WHERE value_type IN ('int', 'uint', 'string') GROUP BY 1, 2";

fn rows(trace: &oracle::Trace, sql: &str) -> Sums {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace("uint", "int");
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let mut sums = Sums::new();
    for row in trace.rows(sql) {
        let sum = sums.entry((text(&row[0]), text(&row[1]))).or_default();
        *sum = (sum.0 + number(&row[2]), sum.1 + number(&row[3]));
    }
    sums
}

fn compare(what: &str, wanted: &Sums, found: &Sums, out: &mut Vec<String>) {
    for (key, sums) in wanted {
        if found.get(key) != Some(sums) {
            out.push(format!("{what} {key:?}: {sums:?} in the JSON, {:?}", found.get(key)));
        }
    }
    // Of arguments, trace_processor has some of its own.
    for (key, sums) in found.iter().filter(|_| what == "slices") {
        if !wanted.contains_key(key) {
            out.push(format!("{what} {key:?}: none in the JSON, {sums:?}"));
        }
    }
}

fn text<'a>(event: &'a Event, key: &str) -> &'a str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Microseconds as nanoseconds. Good enough: what lies between is compared by another test.
fn nanos(event: &Event, key: &str) -> i64 {
    match event.get(key) {
        Some(Value::String(text)) => (text.parse::<f64>().unwrap_or(0.0) * 1000.0).round() as i64,
        Some(value) => (value.as_f64().unwrap_or(0.0) * 1000.0).round() as i64,
        None => 0,
    }
}

/// What a device did has no category in trace_processor.
fn is_work(event: &Event) -> bool {
    let on_stream = event.get("pid").is_some_and(|pid| pid.is_i64());
    matches!(
        text(event, "cat"),
        "kernel" | "Kernel" | "gpu_memcpy" | "Memcpy" | "gpu_memset" | "Memset" | "mtia_ccp_events"
    ) && on_stream
}

fn slices_of(events: &[&Event]) -> Sums {
    let mut sums = Sums::new();
    let mut open: HashMap<String, Vec<&Event>> = HashMap::new();
    let row = |event: &Event, keys: &[&str]| {
        keys.iter().fold(String::new(), |row, key| format!("{row} {:?}", event.get(*key)))
    };
    for event in events {
        let (said, dur) = match text(event, "ph") {
            "X" => (*event, nanos(event, "dur")),
            "i" | "I" | "R" | "n" => (*event, 0),
            "B" => {
                open.entry(row(event, &["pid", "tid"])).or_default().push(event);
                continue;
            }
            "b" => {
                open.entry(row(event, &["pid", "cat", "id", "id2"])).or_default().push(event);
                continue;
            }
            ph @ ("E" | "e") => {
                let keys: &[&str] =
                    if ph == "E" { &["pid", "tid"] } else { &["pid", "cat", "id", "id2"] };
                let Some(begin) = open.get_mut(&row(event, keys)).and_then(Vec::pop) else {
                    continue;
                };
                (begin, nanos(event, "ts") - nanos(begin, "ts"))
            }
            _ => continue,
        };
        let category = if is_work(said) { "" } else { text(said, "cat") };
        let sum = sums.entry((text(said, "name").to_owned(), category.to_owned())).or_default();
        *sum = (sum.0 + 1, sum.1 + dur);
    }
    for begin in open.into_values().flatten() {
        // No end: -1 to trace_processor.
        let key = (text(begin, "name").to_owned(), text(begin, "cat").to_owned());
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1 - 1);
    }
    sums
}

/// Arguments that are integers or texts, of complete events and moments.
fn args_of(events: &[&Event]) -> Sums {
    let mut sums = Sums::new();
    for event in events.iter().filter(|event| matches!(text(event, "ph"), "X" | "i")) {
        let Some(args) = event.get("args").and_then(Value::as_object) else { continue };
        for (key, value) in args {
            let key = match is_work(event) {
                true => key.clone(),
                // trace_processor takes these for structure.
                false => format!("debug.{}", key.replace(['.', '[', ']'], "_")),
            };
            let (kind, amount) = match value {
                Value::String(text) => ("string", text.chars().count() as i64),
                Value::Number(n) if n.is_i64() => ("int", n.as_i64().unwrap_or(0) % 1_000_003),
                _ => continue,
            };
            let sum = sums.entry((key, kind.to_owned())).or_default();
            *sum = (sum.0 + 1, sum.1 + amount);
        }
    }
    sums
}

/// From calls to what has their correlation number, and between what arrows of any other
/// category join.
fn arrows_of(events: &[&Event]) -> i64 {
    let correlation = |event: &Event| {
        let args = event.get("args")?.as_object()?;
        args.get("correlation")?.as_u64().filter(|number| *number != 0)
    };
    let complete = || events.iter().filter(|event| text(event, "ph") == "X");
    let is_call = |event: &Event| {
        let cat = text(event, "cat");
        cat.ends_with("_runtime") || cat.ends_with("_driver") || cat == "Runtime"
    };
    let calls: HashSet<u64> =
        complete().filter(|event| is_call(event)).filter_map(|event| correlation(event)).collect();
    let is_launched = |event: &Event| {
        let waits = matches!(text(event, "cat"), "cuda_sync" | "cuda_event" | "xpu_sync");
        (is_work(event) || waits) && correlation(event).is_some_and(|n| calls.contains(&n))
    };
    let launched = complete().filter(|event| is_launched(event)).count() as i64;
    let mut flows: HashMap<(&str, &str, String), (i64, i64)> = HashMap::new();
    for event in events.iter().filter(|event| text(event, "cat") != "ac2g") {
        let (starts, ends) = match text(event, "ph") {
            "s" => (1, 0),
            "t" | "f" => (0, 1),
            _ => continue,
        };
        let id = format!("{:?}", event.get("id"));
        let flow = flows.entry((text(event, "cat"), text(event, "name"), id)).or_default();
        *flow = (flow.0 + starts, flow.1 + ends);
    }
    let others: i64 = flows.values().filter(|(starts, _)| *starts > 0).map(|(_, ends)| ends).sum();
    launched + others
}
