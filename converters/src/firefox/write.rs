//! The writer: the processed format, a marker for each event.

use std::io::{self, Write};

use hashbrown::HashMap;

use crate::chrome::write_text;
use crate::json::write_string;
use crate::numbered::Numbered;
use crate::trace::{ArgsId, Nanos, StrId, Trace, TrackId, TrackKind, Value, Warning};

/// The version of the format that is written. The viewer brings it up to date.
const VERSION: u32 = 48;

/// Writes a trace. Gives back what the format has no place for.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(trace: &Trace, out: &mut impl Write) -> io::Result<Vec<Warning>> {
    let (rows, last) = rows(trace);
    let origin = trace.facts.realtime_offset().unwrap_or(Nanos(0));
    let first = rows.iter().flat_map(|row| &row.events).map(|event| event.start).min();
    let first = first.unwrap_or(0);
    let start = millis(first.saturating_add(origin.0));
    write!(
        out,
        "{{\"meta\":{{\"interval\":1,\"startTime\":{start},\"processType\":0,\"product\":\"kymo\",\
         \"stackwalk\":0,\"debug\":false,\"version\":27,\"preprocessedProfileVersion\":{VERSION},\
         \"symbolicated\":true,\"categories\":[{{\"name\":\"Other\",\"color\":\"grey\",\
         \"subcategories\":[\"Other\"]}}],\"markerSchema\":[{SCHEMA}]}},\"libs\":[],\"pages\":[],\
         \"threads\":["
    )?;
    let empty = vec![Row::new("trace".to_owned(), "trace".to_owned(), 1, 1)];
    let rows = if rows.is_empty() { empty } else { rows };
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        row.write(trace, out, first, last)?;
    }
    out.write_all(b"]}\n")?;
    let arrows = trace.flows.points.len() + trace.flows.links.len();
    let all = [
        ("value of a counter, which is not written to Firefox profiles", trace.counters.len()),
        ("end of an arrow, for which Firefox profiles have no place", arrows),
    ];
    let some = all.into_iter().filter(|(_, count)| *count > 0);
    let warning = |(what, count): (&str, usize)| Warning {
        what: what.to_owned(),
        count: count as u64,
        offset: None,
    };
    Ok(some.map(warning).collect())
}

/// How markers are shown.
const SCHEMA: &str = r#"{"name":"event","display":["marker-chart","marker-table","timeline-overview"],"tooltipLabel":"{marker.name}","tableLabel":"{marker.data.args}","chartLabel":"{marker.name}","data":[{"key":"category","label":"Category","format":"string"},{"key":"args","label":"Arguments","format":"string","searchable":true}]}"#;

/// Milliseconds with six decimals.
fn millis(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:06}", nanos / 1_000_000, nanos % 1_000_000)
}

/// An event as a marker.
struct Event {
    start: i64,
    /// None for moments.
    end: Option<i64>,
    name: StrId,
    category: StrId,
    args: Option<ArgsId>,
}

/// A thread of the profile.
struct Row {
    process: String,
    name: String,
    pid: i64,
    tid: i64,
    events: Vec<Event>,
}

impl Row {
    fn new(process: String, name: String, pid: i64, tid: i64) -> Row {
        Row { process, name, pid, tid, events: Vec::new() }
    }

    fn write(&self, trace: &Trace, out: &mut impl Write, first: i64, last: i64) -> io::Result<()> {
        let mut text = b"{\"name\":".to_vec();
        write_string(&mut text, &self.name);
        text.extend_from_slice(b",\"processName\":");
        write_string(&mut text, &self.process);
        let (pid, tid, count) = (self.pid, self.tid, self.events.len());
        let end = millis(last.saturating_sub(first));
        let main = pid == tid;
        write!(
            text,
            ",\"processType\":\"default\",\"isMainThread\":{main},\"pid\":\"{pid}\",\"tid\":{tid},\
             \"processStartupTime\":0,\"processShutdownTime\":{end},\"registerTime\":0,\
             \"unregisterTime\":{end},\"pausedRanges\":[],\"showMarkersInTimeline\":true,{TABLES}\
             \"markers\":{{\"length\":{count},\"category\":[{}],",
            vec!["0"; count].join(",")
        )?;
        let mut names = Numbered::default();
        let start = |event: &Event| millis(event.start.saturating_sub(first));
        let end = |event: &Event| match event.end {
            Some(end) => millis(end.saturating_sub(first)),
            None => "null".to_owned(),
        };
        let mut list = |key: &str, cell: &mut dyn FnMut(&Event) -> String| {
            text.extend_from_slice(format!("\"{key}\":[").as_bytes());
            for (number, event) in self.events.iter().enumerate() {
                if number > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(cell(event).as_bytes());
            }
            text.extend_from_slice(b"],");
        };
        list("name", &mut |event| names.number(event.name).to_string());
        list("startTime", &mut |event| start(event));
        list("endTime", &mut |event| end(event));
        list("phase", &mut |event| u8::from(event.end.is_some()).to_string());
        list("data", &mut |event| data(trace, event));
        text.pop();
        text.extend_from_slice(b"},\"stringArray\":[");
        for (number, name) in names.all.iter().enumerate() {
            if number > 0 {
                text.push(b',');
            }
            write_string(&mut text, trace.strings.get(*name));
        }
        text.extend_from_slice(b"]}");
        out.write_all(&text)
    }
}

/// Tables of samples, of which there are none.
const TABLES: &str = r#""samples":{"length":0,"stack":[],"time":[],"weight":null,"weightType":"samples"},"stackTable":{"length":0,"frame":[],"category":[],"subcategory":[],"prefix":[]},"frameTable":{"length":0,"address":[],"inlineDepth":[],"category":[],"subcategory":[],"func":[],"nativeSymbol":[],"innerWindowID":[],"line":[],"column":[]},"funcTable":{"length":0,"isJS":[],"relevantForJS":[],"name":[],"resource":[],"fileName":[],"lineNumber":[],"columnNumber":[]},"resourceTable":{"length":0,"lib":[],"name":[],"host":[],"type":[]},"nativeSymbols":{"length":0,"libIndex":[],"address":[],"name":[],"functionSize":[]},"#;

/// What a marker says of its event.
fn data(trace: &Trace, event: &Event) -> String {
    let mut text = b"{\"type\":\"event\"".to_vec();
    if event.category != StrId::NONE {
        text.extend_from_slice(b",\"category\":");
        write_string(&mut text, trace.strings.get(event.category));
    }
    if event.args.is_some() {
        let entry = |(name, value): (StrId, Value)| {
            let value = match value {
                Value::Str(text) => trace.strings.get(text).to_owned(),
                value => write_text(trace, value),
            };
            format!("{}: {value}", trace.strings.get(name))
        };
        let entries: Vec<String> = trace.args.entries(event.args).map(entry).collect();
        text.extend_from_slice(b",\"args\":");
        write_string(&mut text, &entries.join(", "));
    }
    text.push(b'}');
    String::from_utf8_lossy(&text).into_owned()
}

/// The events of each row, and when the last one ends.
fn rows(trace: &Trace) -> (Vec<Row>, i64) {
    let (start, end) = trace.time_span().unwrap_or_default();
    let mut rows: Vec<Row> = Vec::new();
    let mut tracks: HashMap<TrackId, usize> = HashMap::new();
    let mut on_track = |rows: &mut Vec<Row>, track: TrackId| {
        *tracks.entry(track).or_insert_with(|| {
            rows.push(row(trace, track, rows.len()));
            rows.len() - 1
        })
    };
    for slice in trace.slices.iter() {
        let row = on_track(&mut rows, slice.track);
        let until = slice.end().unwrap_or(end.max(slice.start));
        let (name, category, args) = (slice.name, slice.category, slice.args);
        let (start, end) = (slice.start.0, Some(until.0));
        rows[row].events.push(Event { start, end, name, category, args });
    }
    for moment in trace.instants.iter() {
        let row = on_track(&mut rows, moment.track);
        let (name, category, args) = (moment.name, moment.category, moment.args);
        rows[row].events.push(Event { start: moment.time.0, end: None, name, category, args });
    }
    let mut queues = HashMap::new();
    for activity in trace.activities.iter() {
        let row = *queues.entry(activity.queue).or_insert_with(|| {
            let queue = &trace.queues[activity.queue];
            let device = trace.devices[queue.device].number;
            let name = trace.strings.get(queue.name).to_owned();
            let number = rows.len() as i64;
            // Devices have no process; they are told apart by numbers of their own.
            rows.push(Row::new(format!("device {device}"), name, -1 - device, number));
            rows.len() - 1
        });
        let category = activity.stage.map_or(StrId::NONE, |stage| trace.stages[stage].name);
        let (start, end) = (activity.start.0, Some(activity.end().0));
        let (name, args) = (activity.name, activity.args);
        rows[row].events.push(Event { start, end, name, category, args });
    }
    (rows, end.max(start).0)
}

fn row(trace: &Trace, track: TrackId, number: usize) -> Row {
    let name = |id: StrId| trace.strings.get(id).to_owned();
    let process = trace.process_of(track).map(|id| &trace.processes[id]);
    let (process, pid) = process.map_or(("trace".to_owned(), 0), |p| (name(p.name), p.pid));
    let (own, tid) = match trace.tracks[track].kind {
        TrackKind::Thread(id) => (name(trace.threads[id].name), trace.threads[id].tid),
        TrackKind::Process(_) => (process.clone(), pid),
        // A row that is no thread has a number of its own.
        _ => (name(trace.tracks[track].name), 1_000_000_000 + number as i64),
    };
    let shown = if own.is_empty() { format!("thread {tid}") } else { own };
    Row::new(process, shown, pid, tid)
}
