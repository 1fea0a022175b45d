//! Whether two traces in JSON say the same: compares them as multisets of events.
//!
//! Reads both with serde_json and not with the reader under test. Times are compared to the
//! nanosecond, integers are not floats, order does not matter. Of the first trace these are
//! expected to come back in another form, and nothing else:
//!
//! * `ac2g` arrows are those that correlation numbers imply; other arrows with one end are gone.
//!   Every arrow from a call to something else must still be there; ends at calls are gone.
//! * `B` and `E` are an `X`; what an `E` or `e` says in arguments is said by the beginning.
//! * `I` and `R` are `i`; a moment without a scope has the thread's, `t`.
//! * Ids of processes, threads, arrows and counters, times and values of counters are numbers
//!   where they were numbers in quotes; a missing `tid` is 0.
//! * Events of unknown phases and samples (`P`) are gone, as are entries that are no objects.
//! * Only the end of an arrow has a `bp`, and it is `e`.
//! * A thread called `stream 7` is 7.
//! * Empty arguments are none.
//! * Metadata events may be added where there were none, and they are only the usual five.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::value::RawValue;

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Differences, in words; none when the traces say the same.
    pub differences: Vec<String>,
    /// Events of the first trace.
    #[allow(dead_code, reason = "for reports")]
    pub events: usize,
    /// Ends of `ac2g` arrows that had no other end.
    pub arrows_gone: usize,
    /// Ends of `ac2g` arrows that only correlation numbers told of.
    pub arrows_added: usize,
    /// Metadata events that there were none of.
    pub metadata_added: usize,
}

/// What the second trace went through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "each test has its own way")]
pub enum Through {
    /// JSON and nothing else: members around the events are compared too.
    Json,
    /// The same, for viewers: without the members.
    Chrome,
    /// Perfetto's format: ids of arrows are other ones there, and of arrows without a launch so
    /// are names; the end of the window is marked.
    Perfetto,
}

/// Compares `again` with the `original`.
pub fn compare(original: &str, again: &str, through: Through) -> Comparison {
    let members = through != Through::Chrome;
    let (before, before_members) = events(original);
    let (after, after_members) = events(again);
    let mut out = Comparison { events: before.len(), ..Comparison::default() };
    if members && before_members != after_members {
        for (key, value) in &before_members {
            if after_members.get(key) != Some(value) {
                let now = after_members.get(key);
                out.differences.push(format!("member {key} was {value}, is {now:?}"));
            }
        }
        for key in after_members.keys().filter(|key| !before_members.contains_key(*key)) {
            out.differences.push(format!("member {key} is new"));
        }
    }
    let implied = implied(&before);
    let (mut before, gone) = normalise(before);
    let (mut after, _) = normalise(after);
    if through == Through::Perfetto {
        before = anonymous(before);
        after = anonymous(after);
        let ends = |event: &Event| event.get("name") == "\"Record Window End\"";
        if !before.iter().any(ends) {
            after.retain(|event| !ends(event));
        }
    }
    let (gone, at_calls) = at_calls(&before, gone);
    out.arrows_gone = at_calls;
    launches(&gone, &implied, &after, &mut out);
    let plain = |event: &&Event| !event.is_launch();
    let mut count: HashMap<String, i64> = HashMap::new();
    for event in before.iter().filter(plain) {
        *count.entry(event.line()).or_default() += 1;
    }
    for event in after.iter().filter(plain) {
        *count.entry(event.line()).or_default() -= 1;
    }
    let mut lines: Vec<_> = count.into_iter().filter(|(_, n)| *n != 0).collect();
    lines.sort();
    for (line, n) in lines {
        match n {
            1.. => out.differences.push(format!("{n} times gone: {line}")),
            _ if is_metadata(&line) => out.metadata_added += n.unsigned_abs() as usize,
            _ => out.differences.push(format!("{} times new: {line}", -n)),
        }
    }
    out
}

/// Checks that `ac2g` arrows are those that correlation numbers imply, and that no arrow with
/// two ends is missing.
fn launches(before: &[Event], implied: &HashSet<String>, after: &[Event], out: &mut Comparison) {
    let after: Vec<String> = after.iter().filter(|e| e.is_launch()).map(Event::line).collect();
    let set: HashSet<&String> = after.iter().collect();
    if set.len() != after.len() {
        out.differences.push("an ac2g arrow has the same end twice".to_owned());
    }
    let lines: HashSet<String> = before.iter().map(Event::line).collect();
    out.arrows_gone += before.len() - before.iter().filter(|e| set.contains(&e.line())).count();
    out.arrows_added = after.iter().filter(|line| !lines.contains(*line)).count();
    for line in &after {
        if !implied.contains(line) && !lines.contains(line) {
            out.differences.push(format!("arrow from nowhere: {line}"));
        }
    }
    // Whoever has a beginning and, elsewhere, an end.
    let mut ends: HashMap<&str, (HashSet<String>, HashSet<String>)> = HashMap::new();
    for event in before {
        let entry = ends.entry(event.get("id")).or_default();
        let place = event.place();
        if event.get("ph") == "\"s\"" {
            entry.0.insert(place)
        } else {
            entry.1.insert(place)
        };
    }
    for event in before {
        let (starts, stops) = &ends[event.get("id")];
        let here = event.place();
        let other = if event.get("ph") == "\"s\"" { stops } else { starts };
        if other.iter().any(|place| *place != here) && !set.contains(&event.line()) {
            out.differences.push(format!("arrow gone: {}", event.line()));
        }
    }
}

/// Arrows other than launches named after where their ends are.
fn anonymous(mut events: Vec<Event>) -> Vec<Event> {
    let is_arrow = |event: &Event| {
        matches!(event.get("ph"), "\"s\"" | "\"t\"" | "\"f\"") && !event.is_launch()
    };
    let flow = |event: &Event| ["cat", "name", "id"].map(|key| event.get(key)).join(" ");
    let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| is_arrow(event)) {
        ends.entry(flow(event)).or_default().push(event.place());
    }
    for event in events.iter_mut() {
        if is_arrow(event) {
            let mut places = ends[&flow(event)].clone();
            places.sort();
            event.fields.insert("id".to_owned(), places.join(" "));
            event.fields.remove("cat");
            event.fields.remove("name");
        }
    }
    events
}

/// Without the ends that stand at calls, where arrows only begin; and how many those were.
fn at_calls(events: &[Event], launches: Vec<Event>) -> (Vec<Event>, usize) {
    let is_call = |event: &&Event| {
        let cat = event.get("cat").trim_matches('"');
        cat.ends_with("runtime") || cat.ends_with("driver") || cat == "Runtime"
    };
    let calls: HashSet<String> = events.iter().filter(is_call).map(Event::place).collect();
    let before = launches.len();
    let mut rest = launches;
    rest.retain(|end| end.get("ph") == "\"s\"" || !calls.contains(&end.place()));
    let gone = before - rest.len();
    (rest, gone)
}

/// Both ends of the arrows that correlation numbers imply.
fn implied(events: &[Event]) -> HashSet<String> {
    let mut out = HashSet::new();
    for event in events.iter().filter(|event| event.get("ph") == "\"X\"") {
        if event.correlation.is_empty() {
            continue;
        }
        for ph in ["s", "f"] {
            let mut end = Event::default();
            let mut set = |key: &str, value: &str| {
                end.fields.insert(key.to_owned(), value.to_owned());
            };
            set("ph", &format!("\"{ph}\""));
            set("id", &event.correlation);
            for key in ["pid", "tid", "ts"] {
                set(key, event.get(key));
            }
            set("cat", "\"ac2g\"");
            set("name", "\"ac2g\"");
            if ph == "f" {
                set("bp", "\"e\"");
            }
            out.insert(end.line());
        }
    }
    out
}

fn is_metadata(line: &str) -> bool {
    ["process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"]
        .iter()
        .any(|name| line.contains(&format!("name=\"{name}\" ph=\"M\"")))
}

/// An event: its members in canonical form.
#[derive(Clone, Debug, Default)]
struct Event {
    fields: BTreeMap<String, String>,
    correlation: String,
}

impl Event {
    fn get(&self, key: &str) -> &str {
        self.fields.get(key).map_or("", String::as_str)
    }

    fn is_launch(&self) -> bool {
        self.get("cat") == "\"ac2g\"" && matches!(self.get("ph"), "\"s\"" | "\"f\"")
    }

    fn place(&self) -> String {
        format!("{} {} {}", self.get("pid"), self.get("tid"), self.get("ts"))
    }

    fn line(&self) -> String {
        self.fields.iter().fold(String::new(), |mut line, (key, value)| {
            let _ = write!(line, "{key}={value} ");
            line
        })
    }
}

/// All events, and the members around them.
fn events(text: &str) -> (Vec<Event>, BTreeMap<String, String>) {
    let mut members = BTreeMap::new();
    let list: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).expect("an array")
    } else {
        let whole: Object = serde_json::from_str(text).expect("an object");
        for (key, value) in &whole {
            if key != "traceEvents" {
                members.insert(key.clone(), canonical(value.get()));
            }
        }
        serde_json::from_str(whole["traceEvents"].get()).expect("traceEvents")
    };
    let objects = list.iter().filter(|event| event.get().starts_with('{'));
    (objects.map(|event| read(event.get())).collect(), members)
}

fn read(text: &str) -> Event {
    let object: Object = serde_json::from_str(text).expect("an event");
    let mut event = Event::default();
    for (key, value) in object {
        let raw = value.get();
        let text = match key.as_str() {
            "ts" | "dur" => nanos(raw.trim_matches('"')),
            "pid" | "tid" => whole_number(raw).unwrap_or_else(|| canonical(raw)),
            "args" if raw.starts_with('{') => {
                let args: Object = serde_json::from_str(raw).expect("arguments");
                if let Some(number) = args.get("correlation") {
                    event.correlation = canonical(number.get());
                }
                canonical(raw)
            }
            _ => canonical(raw),
        };
        event.fields.insert(key, text);
    }
    event
}

/// A number, also one in quotes.
fn whole_number(raw: &str) -> Option<String> {
    raw.trim_matches('"')
        .trim_start_matches("stream ")
        .parse::<i64>()
        .ok()
        .map(|number| number.to_string())
}

/// Decimal microseconds as nanoseconds, by moving the point.
fn nanos(raw: &str) -> String {
    let (whole, fraction) = raw.split_once('.').unwrap_or((raw, ""));
    if raw.contains(['e', 'E']) || fraction.len() > 3 {
        return format!("{:.0}", raw.parse::<f64>().expect("a time") * 1000.0);
    }
    let digits = format!("{whole}{fraction:0<3}");
    digits.parse::<i128>().expect("a time").to_string()
}

/// Sorted keys, no spaces, numbers by value but integers and floats apart.
fn canonical(raw: &str) -> String {
    let raw = raw.trim();
    match raw.as_bytes().first() {
        Some(b'{') => {
            let object: Object = serde_json::from_str(raw).expect("an object");
            let fields = object.iter().map(|(key, value)| {
                format!("{}:{}", serde_json::to_string(key).expect("a key"), canonical(value.get()))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(raw).expect("an array");
            let items: Vec<String> = list.iter().map(|item| canonical(item.get())).collect();
            format!("[{}]", items.join(","))
        }
        Some(b'"') => {
            let text: String = serde_json::from_str(raw).expect("a string");
            serde_json::to_string(&text).expect("a string")
        }
        Some(b'-' | b'0'..=b'9') if raw.contains(['.', 'e', 'E']) => {
            format!("{:?}", raw.parse::<f64>().expect("a float"))
        }
        _ => raw.to_owned(),
    }
}

/// Brings events into the form in which they come back, and gives the launches among them.
fn normalise(events: Vec<Event>) -> (Vec<Event>, Vec<Event>) {
    let mut out: Vec<Event> = Vec::new();
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for mut event in events {
        if event.get("args") == "{}" {
            event.fields.remove("args");
        }
        if !event.fields.contains_key("tid")
            && !matches!(event.get("ph"), "\"b\"" | "\"e\"" | "\"n\"")
        {
            event.fields.insert("tid".to_owned(), "0".to_owned());
        }
        let row = format!("{} {}", event.get("pid"), event.get("tid"));
        let id = ["pid", "cat", "id", "id2", "scope"].map(|key| event.get(key)).join(" ");
        let known = ["X", "B", "E", "b", "e", "n", "i", "I", "R", "C", "s", "t", "f", "M"];
        let phase = event.get("ph").trim_matches('"').to_owned();
        match phase.as_str() {
            "B" => {
                open.entry(row).or_default().push(out.len());
                out.push(event);
            }
            "E" => {
                let Some(at) = open.get_mut(&row).and_then(Vec::pop) else { continue };
                let time = |event: &Event| event.get("ts").parse::<i128>().expect("a time");
                let dur = time(&event) - time(&out[at]);
                out[at].fields.insert("ph".to_owned(), "\"X\"".to_owned());
                out[at].fields.insert("dur".to_owned(), dur.to_string());
                join_args(&mut out[at], &event);
            }
            "b" => {
                open.entry(id).or_default().push(out.len());
                out.push(event);
            }
            "e" => {
                let Some(at) = open.get_mut(&id).and_then(Vec::pop) else { continue };
                join_args(&mut out[at], &event);
                event.fields.remove("args");
                let name = out[at].get("name").to_owned();
                event.fields.insert("name".to_owned(), name);
                out.push(event);
            }
            "i" | "I" | "R" => {
                event.fields.insert("ph".to_owned(), "\"i\"".to_owned());
                event.fields.entry("s".to_owned()).or_insert("\"t\"".to_owned());
                out.push(event);
            }
            "s" | "t" | "f" => {
                if let Some(number) = whole_number(event.get("id")) {
                    event.fields.insert("id".to_owned(), number);
                }
                event.fields.remove("bp");
                if phase == "f" {
                    event.fields.insert("bp".to_owned(), "\"e\"".to_owned());
                }
                out.push(event);
            }
            "C" => {
                let args = event.get("args").replace(":\"", ":").replace("\",", ",");
                event.fields.insert("args".to_owned(), args.replace("\"}", "}"));
                out.push(event);
            }
            phase if known.contains(&phase) => out.push(event),
            _ => {}
        }
    }
    // A duration that is missing or negative comes back as a beginning.
    for event in &mut out {
        let missing = event.get("ph") == "\"X\"" && event.get("dur").parse().unwrap_or(-1i128) < 0;
        if missing {
            event.fields.remove("dur");
            event.fields.insert("ph".to_owned(), "\"B\"".to_owned());
        }
    }
    let launches = out.iter().filter(|event| event.is_launch()).cloned().collect();
    let flow = |event: &Event| ["cat", "name", "id"].map(|key| event.get(key)).join(" ");
    let is = |event: &Event, phases: &[&str]| phases.contains(&event.get("ph"));
    let starts: HashSet<String> = out.iter().filter(|e| is(e, &["\"s\""])).map(flow).collect();
    let ends: HashSet<String> =
        out.iter().filter(|e| is(e, &["\"t\"", "\"f\""])).map(flow).collect();
    out.retain(|event| {
        let arrow = is(event, &["\"s\"", "\"t\"", "\"f\""]) && !event.is_launch();
        !arrow || (starts.contains(&flow(event)) && ends.contains(&flow(event)))
    });
    (out, launches)
}

fn join_args(to: &mut Event, from: &Event) {
    let more = from.get("args").to_owned();
    if more.len() < 3 {
        return;
    }
    let first = to.get("args").to_owned();
    let joined = match first.as_str() {
        "" | "{}" => more,
        _ => canonical(&format!("{},{}", &first[..first.len() - 1], &more[1..])),
    };
    to.fields.insert("args".to_owned(), joined);
}
