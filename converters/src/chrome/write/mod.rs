//! The writer: the hub as JSON, an event a line.

mod work;

use std::collections::HashSet;
use std::io::{self, Write};

use super::arrows::{Arrows, End};
use super::line::Line;
use super::metadata::Generated;
use super::places::{Places, Row};
use super::{LAUNCH_ARROWS, METADATA_EVENTS, METADATA_TIME, samples};
use crate::json::{self, Document, Item, Limits, write_micros, write_string, write_uint};
use crate::kineto;
use crate::trace::{EventRef, Instant, InstantId, Phase, Slice, SliceId, StrId, Trace, Value};

/// For whom a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// Viewers: events, and what says how to show them.
    Chrome,
    /// Readers of Kineto's files: its members around the events, its events around ours.
    Kineto,
}

/// Writes a trace in Chrome's JSON, for viewers. `ts` and `dur` are microseconds with three
/// decimals, of the hub's clock.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<()> {
    write_in(trace, out, Style::Chrome)
}

pub(crate) fn write_in(trace: &Trace, out: impl Write, style: Style) -> io::Result<()> {
    let members = kineto::members(trace, style);
    let mut writer = Writer {
        line: Line::new(trace, members.shift),
        places: Places::new(trace),
        arrows: Arrows::new(trace),
        out: Output { to: out, text: Vec::with_capacity(FLUSH * 2), first: true },
        names: Names::new(trace),
        foreign_producer: members.json,
        launch_arrows: match fact(trace, LAUNCH_ARROWS) {
            Some(Value::Str(name)) => trace.strings.get(name),
            _ => "ac2g",
        },
        own: kineto::is_own(trace).then(|| kineto::Names::new(trace)),
    };
    writer.out.text.extend_from_slice(members.before.as_bytes());
    for id in trace.slices.ids() {
        writer.slice(id)?;
    }
    for id in trace.instants.ids() {
        writer.instant(id)?;
    }
    for id in trace.activities.ids() {
        writer.activity(id)?;
    }
    let Output { to, text, first } = &mut writer.out;
    samples::write(trace, (members.shift, members.json), |line| {
        separate(text, first);
        text.extend_from_slice(line);
        flush(to, text)
    })?;
    writer.metadata()?;
    for line in &members.events {
        writer.out.begin();
        writer.out.text.extend_from_slice(line.as_bytes());
    }
    writer.out.text.extend_from_slice(members.after.as_bytes());
    writer.out.to.write_all(&writer.out.text)?;
    writer.out.to.flush()
}

/// Bytes that are gathered before they are written.
const FLUSH: usize = 128 << 10;

struct Output<W> {
    to: W,
    text: Vec<u8>,
    first: bool,
}

impl<W: Write> Output<W> {
    /// Begins a line. Every line but the last ends with a comma.
    #[inline]
    fn begin(&mut self) {
        separate(&mut self.text, &mut self.first);
    }

    #[inline]
    fn end(&mut self) -> io::Result<()> {
        self.text.push(b'}');
        flush(&mut self.to, &mut self.text)
    }
}

#[inline]
fn separate(text: &mut Vec<u8>, first: &mut bool) {
    text.extend_from_slice(if *first { b"\n" } else { b",\n" });
    *first = false;
}

#[inline]
fn flush(to: &mut impl Write, text: &mut Vec<u8>) -> io::Result<()> {
    if text.len() >= FLUSH {
        to.write_all(text)?;
        text.clear();
    }
    Ok(())
}

/// Names that activities are put together with.
struct Names {
    device: Option<StrId>,
    stream: Option<StrId>,
    correlation: Option<StrId>,
    blocks_per_sm: Option<StrId>,
    occupancy: Option<StrId>,
}

impl Names {
    fn new(trace: &Trace) -> Names {
        let find = |name| trace.strings.find(name);
        Names {
            device: find("device"),
            stream: find("stream"),
            correlation: find("correlation"),
            blocks_per_sm: find("blocks per SM"),
            occupancy: find("est. achieved occupancy %"),
        }
    }
}

struct Writer<'a, W> {
    line: Line<'a>,
    places: Places,
    arrows: Arrows,
    out: Output<W>,
    names: Names,
    /// The trace was JSON, which says everything in arguments.
    foreign_producer: bool,
    /// What arrows to devices are called.
    launch_arrows: &'a str,
    /// The trace is our recording, of which Kineto's readers expect more arguments.
    own: Option<kineto::Names>,
}

impl<W: Write> Writer<'_, W> {
    fn slice(&mut self, id: SliceId) -> io::Result<()> {
        let slice = self.line.trace.slices.get(id);
        let event = EventRef::Slice(id);
        let ids = match self.places.track(slice.track) {
            Row::Plain { ids, .. } => ids,
            Row::Async(pid) => {
                let ids = pid.clone();
                self.overlapping(id, slice, &ids)?;
                return self.arrows(event, &ids, slice.start.0);
            }
        };
        self.out.begin();
        let out = &mut self.out.text;
        let ph = if slice.dur.is_finished() { b'X' } else { b'B' };
        let cat = self.line.trace.strings.get(slice.category);
        self.line.head(out, ph, cat, None, slice.name);
        out.extend_from_slice(ids.as_bytes());
        self.line.time(out, slice.start.0);
        if slice.dur.is_finished() {
            out.extend_from_slice(b", \"dur\": ");
            write_micros(out, slice.dur.0);
        }
        self.line.members(out, slice.args, &[]);
        let launched = self.own.as_ref().and_then(|_| self.arrows.launched_at(event));
        self.line.args(out, slice.args, self.names.correlation, launched);
        self.out.end()?;
        if self.arrows.is_next(event) {
            let ids = ids.clone();
            self.arrows(event, &ids, slice.start.0)?;
        }
        Ok(())
    }

    /// A slice that others may overlap: a beginning and an end that an id joins.
    fn overlapping(&mut self, id: SliceId, slice: Slice, pid: &str) -> io::Result<()> {
        let moments = [(b'b', Some(slice.start)), (b'e', slice.end())];
        for (ph, time) in moments {
            let Some(time) = time else { continue };
            self.async_head(ph, slice.category, slice.name, id.index() as u64 + 1, slice.args);
            let out = &mut self.out.text;
            out.extend_from_slice(pid.as_bytes());
            self.line.time(out, time.0);
            let except: &[&str] = if ph == b'b' { &["id", "args"] } else { &["id", "args", "s"] };
            self.line.members(out, slice.args, except);
            if ph == b'b' {
                self.line.members_only(out, slice.args, "args");
                self.line.args(out, slice.args, None, None);
            }
            self.out.end()?;
        }
        Ok(())
    }

    fn async_head(
        &mut self,
        ph: u8,
        cat: StrId,
        name: StrId,
        id: u64,
        args: Option<crate::trace::ArgsId>,
    ) {
        self.out.begin();
        let out = &mut self.out.text;
        self.line.head(out, ph, self.line.trace.strings.get(cat), None, name);
        if self.line.find_foreign(args, "id2").is_some() {
            return;
        }
        out.extend_from_slice(b"\"id\": ");
        match self.line.find_foreign(args, "id") {
            Some(id) => self.line.value(out, id),
            None => write_uint(out, id),
        }
        out.extend_from_slice(b", ");
    }

    fn instant(&mut self, id: InstantId) -> io::Result<()> {
        let instant: Instant = self.line.trace.instants.get(id);
        let cat = self.line.trace.strings.get(instant.category);
        let ids = match self.places.track(instant.track).clone() {
            Row::Plain { ids, scope } => {
                self.out.begin();
                let given = match self.line.find_foreign(instant.args, "s") {
                    Some(Value::Str(text)) => self.line.trace.strings.get(text).chars().next(),
                    _ => None,
                };
                let given = given.filter(char::is_ascii_alphanumeric);
                let out = &mut self.out.text;
                self.line.head(out, b'i', cat, Some(given.unwrap_or(scope)), instant.name);
                ids
            }
            Row::Async(pid) => {
                let number = id.index() as u64 + 1;
                self.async_head(b'n', instant.category, instant.name, number, instant.args);
                pid
            }
        };
        let out = &mut self.out.text;
        out.extend_from_slice(ids.as_bytes());
        self.line.time(out, instant.time.0);
        self.line.members(out, instant.args, &["s", "id"]);
        self.line.args(out, instant.args, None, None);
        self.out.end()?;
        self.arrows(EventRef::Instant(id), &ids, instant.time.0)
    }

    /// Writes the ends of arrows at an event.
    fn arrows(&mut self, event: EventRef, ids: &str, start: i64) -> io::Result<()> {
        while let Some(end) = self.arrows.next_at(event) {
            self.arrow(end, ids, start)?;
        }
        Ok(())
    }

    fn arrow(&mut self, end: End, ids: &str, start: i64) -> io::Result<()> {
        self.out.begin();
        let out = &mut self.out.text;
        let ph = match end.phase {
            Phase::Start => b's',
            Phase::Step => b't',
            Phase::End => b'f',
        };
        out.extend_from_slice(b"{\"ph\": \"");
        out.push(ph);
        out.extend_from_slice(b"\", \"id\": ");
        write_uint(out, end.id);
        out.extend_from_slice(b", ");
        out.extend_from_slice(ids.as_bytes());
        if !ids.contains("\"tid\"") {
            out.extend_from_slice(b", \"tid\": 0");
        }
        self.line.time(out, end.time.map_or(start, |time| time.0));
        let name = match end.name {
            None => self.launch_arrows,
            Some(StrId::NONE) => "fwdbwd",
            Some(name) => self.line.trace.strings.get(name),
        };
        let (cat, name) = name.split_once('\t').unwrap_or((name, name));
        out.extend_from_slice(b", \"cat\": ");
        write_string(out, cat);
        out.extend_from_slice(b", \"name\": ");
        write_string(out, name);
        if end.phase == Phase::End {
            out.extend_from_slice(b", \"bp\": \"e\"");
        }
        self.out.end()
    }

    fn metadata(&mut self) -> io::Result<()> {
        let trace = self.line.trace;
        let mut given = HashSet::new();
        if let Some(Value::Json(list)) = fact(trace, METADATA_EVENTS) {
            let list = trace.strings.get(list).as_bytes();
            let mut list = Document::new(list, Limits::default());
            while let Ok(Some(Item::Event(event))) = list.next_item() {
                given.extend(identity(event.root()));
                self.out.begin();
                json::write_value(&mut self.out.text, event.root());
            }
        }
        let time = match fact(trace, METADATA_TIME) {
            Some(Value::I64(time)) => Some(time),
            // Whoever wrote none reads files without.
            _ if self.foreign_producer => None,
            _ => Some(first_time(trace)),
        };
        for entry in Generated::new(trace).entries {
            if given.contains(&(entry.name.clone(), entry.pid.clone(), entry.tid.clone())) {
                continue;
            }
            self.out.begin();
            let out = &mut self.out.text;
            out.extend_from_slice(b"{\"ph\": \"M\", \"name\": ");
            write_string(out, &entry.name);
            if let Some(time) = time {
                self.line.time(out, time);
            }
            let ids = format!(", \"pid\": {}, \"tid\": {}, \"args\": ", entry.pid, entry.tid);
            out.extend_from_slice(ids.as_bytes());
            out.extend_from_slice(entry.args.as_bytes());
            self.out.end()?;
        }
        Ok(())
    }
}

fn fact(trace: &Trace, key: &str) -> Option<Value> {
    trace.strings.find(key).and_then(|key| trace.facts.get(key))
}

/// What a metadata event is about: its name, `pid` and `tid`, as JSON.
fn identity(event: json::Value<'_>) -> Option<(String, String, String)> {
    let id = |key| match event.get(key) {
        Some(value) => {
            let mut out = Vec::new();
            json::write_value(&mut out, value);
            String::from_utf8_lossy(&out).into_owned()
        }
        None => "0".to_owned(),
    };
    let name = event.get("name").and_then(json::Value::as_str)?.text().into_owned();
    Some((name, id("pid"), id("tid")))
}

/// When the first event of a trace begins; 0 in an empty one.
pub(crate) fn first_time(trace: &Trace) -> i64 {
    let slices = trace.slices.iter().map(|slice| slice.start.0);
    let activities = trace.activities.iter().map(|activity| activity.start.0);
    let instants = trace.instants.iter().map(|instant| instant.time.0);
    slices.chain(activities).chain(instants).min().unwrap_or(0)
}
