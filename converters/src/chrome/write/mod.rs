//! The writer: the hub as JSON, an event a line.

mod host;
mod metadata;
mod order;
mod work;

use std::io::{self, Write};

use super::LAUNCH_ARROWS;
use super::arrows::{Arrows, End};
use super::line::{Line, write_text};
use super::operators::Operators;
use super::own;
use super::places::{Places, Row};
use super::samples::Events;
use crate::json::{write_string, write_uint};
use crate::trace::{
    ActivityId, EventRef, InstantId, Phase, Position, SliceId, StrId, Trace, Value,
};
use order::{ItemKind, Order, Placed};

/// What stands around the events of a file, and from when its times count: that is what the
/// dialects of the format differ in.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) before: String,
    pub(crate) after: String,
    /// Events to end the file with.
    pub(crate) events: Vec<String>,
    /// What is to be added to the hub's times.
    pub(crate) shift: i64,
    /// Whether steps that we count are annotations of the program.
    pub(crate) steps: bool,
}

/// Writes a trace in Chrome's JSON, for viewers. `ts` and `dur` are microseconds with three
/// decimals, of the hub's clock.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<()> {
    let unit = fact(trace, "displayTimeUnit");
    let unit = unit.map_or("\"ms\"".to_owned(), |unit| write_text(trace, unit));
    let before = format!("{{\n\"displayTimeUnit\": {unit},\n\"traceEvents\": [");
    write_in(trace, out, &Frame { before, after: "\n]}\n".to_owned(), ..Frame::default() })
}

/// Writes a trace with a dialect's frame around its events.
pub(crate) fn write_in(trace: &Trace, out: impl Write, frame: &Frame) -> io::Result<()> {
    let mut writer = Writer {
        line: Line::new(trace, frame.shift),
        places: Places::new(trace),
        arrows: Arrows::new(trace),
        out: Output { to: out, text: Vec::with_capacity(FLUSH * 2), first: true },
        names: Names::new(trace),
        foreign_producer: trace.was_json(),
        launch_arrows: match fact(trace, LAUNCH_ARROWS) {
            Some(Value::Str(name)) => trace.strings.get(name),
            _ => "ac2g",
        },
        own: trace.is_own().then(|| own::Names::new(trace)),
        operators: Operators::new(trace, frame.steps),
    };
    writer.out.text.extend_from_slice(frame.before.as_bytes());
    let counters = Events::new(trace, trace.was_json());
    let metadata = writer.metadata();
    writer.events(&counters, &metadata)?;
    for line in &frame.events {
        writer.out.begin();
        writer.out.text.extend_from_slice(line.as_bytes());
    }
    writer.out.text.extend_from_slice(frame.after.as_bytes());
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
    own: Option<own::Names>,
    /// Operators of PyTorch in it.
    operators: Option<Operators>,
}

impl<W: Write> Writer<'_, W> {
    /// Writes all events, in the order of the file that the trace was read from if it is known.
    fn events(&mut self, counters: &Events, metadata: &[metadata::Line]) -> io::Result<()> {
        let trace = self.line.trace;
        let ranges = counters.ranges();
        let mut order = Order::new(trace);
        order.extend(ItemKind::Counter, ranges.iter().map(|(position, _)| *position));
        order.extend(ItemKind::Metadata, metadata.iter().map(|line| line.position));
        order.list(ItemKind::Arrow, self.arrows.apart());
        for Placed { kind, row, kept } in order.into_items() {
            match kind {
                ItemKind::Leftover => {
                    self.out.begin();
                    let text = trace.strings.get(trace.leftovers[row].text);
                    self.out.text.extend_from_slice(text.as_bytes());
                    flush(&mut self.out.to, &mut self.out.text)?;
                }
                ItemKind::Slice => self.slice(SliceId::at(row), kept)?,
                ItemKind::End if kept => {}
                ItemKind::End => self.end(SliceId::at(row))?,
                ItemKind::Instant => self.instant(InstantId::at(row), kept)?,
                ItemKind::Activity => self.activity(ActivityId::at(row), kept)?,
                ItemKind::Arrow if kept => {}
                ItemKind::Arrow => {
                    let end = self.arrows.end(row);
                    let (ids, start) = self.whereabouts(end.event);
                    self.arrow(end, &ids, start)?;
                }
                ItemKind::Counter if kept => {}
                ItemKind::Counter => {
                    self.out.begin();
                    counters.write(&mut self.out.text, &self.line, ranges[row].1.clone());
                    self.out.end()?;
                }
                ItemKind::Metadata => {
                    self.out.begin();
                    self.out.text.extend_from_slice(&metadata[row].text);
                    self.out.end()?;
                }
            }
        }
        Ok(())
    }

    /// The row of an event, as in the file, and when it begins.
    fn whereabouts(&self, event: EventRef) -> (String, i64) {
        let trace = self.line.trace;
        let track = |track| match self.places.track(track) {
            Row::Plain { ids, .. } | Row::Async(ids) => ids.clone(),
        };
        match event {
            EventRef::Slice(id) => {
                let slice = trace.slices.get(id);
                (track(slice.track), slice.start.0)
            }
            EventRef::Instant(id) => {
                let instant = trace.instants.get(id);
                (track(instant.track), instant.time.0)
            }
            EventRef::Activity(id) => {
                let activity = trace.activities.get(id);
                (self.places.queue(activity.queue).to_owned(), activity.start.0)
            }
        }
    }

    /// Writes the ends of arrows that stood behind an event: those of its own `correlation`
    /// number first.
    fn arrows(
        &mut self,
        event: EventRef,
        position: Option<Position>,
        correlation: u64,
        (ids, start): (&str, i64),
    ) -> io::Result<()> {
        let marks = position.map_or(0, |position| position.marks);
        let own = [(Position::ARROW_BEGINS, Phase::Start), (Position::ARROW_ENDS, Phase::End)];
        for (_, phase) in own.into_iter().filter(|(mark, _)| marks & mark != 0) {
            let id = self.arrows.number(correlation);
            let end = End { event, phase, id, name: None, time: None, position: 0 };
            self.arrow(end, ids, start)?;
        }
        for number in 0..self.arrows.at(event).len() {
            let end = self.arrows.at(event)[number];
            if end.position == 0 {
                self.arrow(end, ids, start)?;
            }
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
        let device = matches!(end.event, EventRef::Activity(_));
        self.line.quotes.write(out, ph, ids, device);
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
}

fn fact(trace: &Trace, key: &str) -> Option<Value> {
    trace.strings.find(key).and_then(|key| trace.facts.get(key))
}

/// When the first event of a trace begins; 0 in an empty one.
pub(crate) fn first_time(trace: &Trace) -> i64 {
    let slices = trace.slices.iter().map(|slice| slice.start.0);
    let activities = trace.activities.iter().map(|activity| activity.start.0);
    let instants = trace.instants.iter().map(|instant| instant.time.0);
    slices.chain(activities).chain(instants).min().unwrap_or(0)
}
