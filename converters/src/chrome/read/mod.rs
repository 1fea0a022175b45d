//! The reader: events of JSON into the hub.

mod finish;
mod intake;
mod parts;
mod work;

use std::io::Read;

use super::FOREIGN;
use super::args::{Values, intern, text_of};
use super::counters::CounterRows;
use super::event::{Event, Members, time};
use super::flows::{Call, FlowRows, Last};
use super::metadata::MetaRows;
use super::pairs::{Key, Moment, Pairs, What};
use super::quotes::Quotes;
use super::rows::{Id, Place, RowKind, Rows};
use crate::json::{self, Document, Element, Error, Kind, Limits, RepairKind};
use crate::trace::{
    Api, Class, ContextId, Dim3, EventRef, Joint, Kernel, KernelId, Launch, LaunchId, Leftover,
    ListId, Nanos, Position, Slice, SliceId, StageId, StrId, Trace, Value, Work, class,
};
use intake::Intake;

/// Reads a trace in Chrome's or Kineto's JSON, not compressed.
///
/// Damage is repaired or passed over where possible, and said in
/// [`crate::trace::Facts::warnings`].
///
/// # Errors
/// When the input is no trace, exceeds a limit or cannot be read.
pub fn read(input: impl Read, limits: &Limits) -> Result<Trace, Error> {
    read_document(Document::new(input, *limits))
}

/// Reads events that stand one after the other, a line each (NDJSON), likewise.
///
/// # Errors
/// As [`read`].
pub fn read_lines(input: impl Read, limits: &Limits) -> Result<Trace, Error> {
    read_document(Document::of_lines(input, *limits))
}

fn read_document(mut document: Document<impl Read>) -> Result<Trace, Error> {
    let Intake { mut reader, members } = intake::of(&mut document)?;
    for kind in RepairKind::ALL {
        let count = document.repairs().count(kind);
        if count > 0 {
            let first = document.repairs().first().iter().find(|repair| repair.kind == kind);
            let warnings = &mut reader.trace.facts.warnings;
            let (what, offset) = (kind.phrase().to_owned(), first.map(|repair| repair.offset));
            warnings.push(crate::trace::Warning { what, count, offset });
        }
    }
    let events: u64 = reader.phases[1..].iter().sum();
    if events == 0 {
        let whole = document.repairs().total() == 0;
        if reader.position > 0 {
            return Err(Error::NotATrace(format!(
                "a JSON list of {} entries, none of which is an event (an object with a `ph`)",
                reader.position
            )));
        } else if !document.has_list() {
            return Err(Error::NotATrace(not_events(&members, whole)));
        }
        reader.trace.facts.warn("the trace has no events", None);
    }
    Ok(reader.finish())
}

fn not_events(members: &[String], whole: bool) -> String {
    let names: Vec<String> = members.iter().map(|name| format!("`{name}`")).collect();
    match (members.iter().any(|name| name == "traceEvents"), names.is_empty()) {
        (true, _) => "a JSON object whose `traceEvents` is not a list of events".to_owned(),
        (_, true) if whole => "an empty JSON object".to_owned(),
        (_, true) => "a JSON object that cannot be read".to_owned(),
        _ => format!("a JSON object without `traceEvents`; it has {}", names.join(", ")),
    }
}

/// Names that are looked for in every event.
struct Names {
    correlation: StrId,
    context: StrId,
    grid: StrId,
    block: StrId,
    registers: StrId,
    shared: StrId,
    id: StrId,
    scope: StrId,
    args: StrId,
}

struct Reader {
    trace: Trace,
    rows: Rows,
    values: Values,
    members: Members,
    pairs: Pairs,
    /// Where the event at hand stands in the file.
    position: u32,
    quotes: Quotes,
    scopes: Scopes,
    times: Times,
    durations: Times,
    counters: CounterRows,
    flows: FlowRows,
    metadata: MetaRows,
    names: Names,
    /// Categories that came before, with their class: there are few.
    classes: Vec<(Box<str>, StrId, Class)>,
    stages: Vec<(StrId, Work, StageId)>,
    kernels: hashbrown::HashMap<Kernel, KernelId>,
    launches: hashbrown::HashMap<Launch, LaunchId>,
    contexts: Vec<((Id, u64), ContextId)>,
    /// Lists that are sizes of kernels.
    sizes: Vec<(ListId, Dim3)>,
    api: Api,
    phases: [u64; 128],
    entries: Vec<(StrId, Value)>,
}

/// How times are written.
#[derive(Clone, Copy, Default)]
struct Times {
    /// Some as integers.
    integers: bool,
    /// Whole microseconds as floats, which have a fraction.
    floats: bool,
}

impl Times {
    fn are_whole(self) -> bool {
        self.integers && !self.floats
    }

    #[inline]
    fn note(&mut self, value: Option<json::Value<'_>>, nanos: i64) {
        match value.map(json::Value::kind) {
            Some(Kind::Int) => self.integers = true,
            Some(Kind::Float) if nanos % 1000 == 0 => self.floats = true,
            _ => {}
        }
    }
}

/// How moments state the scope that their row suggests.
#[derive(Clone, Copy, Default)]
struct Scopes {
    /// Some do not.
    bare: bool,
    /// Some do.
    stated: bool,
}

/// A description of what could not be taken in.
type Complaint = Option<&'static str>;

impl Reader {
    fn new() -> Reader {
        let mut trace = Trace::default();
        let mut name = |text: &str| trace.strings.intern(text);
        let names = Names {
            correlation: name("correlation"),
            context: name("context"),
            grid: name("grid"),
            block: name("block"),
            registers: name("registers per thread"),
            shared: name("shared memory"),
            id: name("chrome.id"),
            scope: name("chrome.s"),
            args: name("chrome.args"),
        };
        Reader {
            trace,
            rows: Rows::default(),
            values: Values::default(),
            members: Members::default(),
            pairs: Pairs::default(),
            position: 0,
            quotes: Quotes::default(),
            scopes: Scopes::default(),
            times: Times::default(),
            durations: Times::default(),
            counters: CounterRows::default(),
            flows: FlowRows::default(),
            metadata: MetaRows::default(),
            names,
            classes: Vec::new(),
            stages: Vec::new(),
            kernels: hashbrown::HashMap::default(),
            launches: hashbrown::HashMap::default(),
            contexts: Vec::new(),
            sizes: Vec::new(),
            api: Api::Unknown,
            phases: [0; 128],
            entries: Vec::new(),
        }
    }

    fn event(&mut self, element: Element<'_>) -> Complaint {
        self.position = self.position.saturating_add(1);
        let mut event = Event::new(element);
        if !event.pick(&mut self.members) {
            self.keep(element);
            return Some("event that is no object");
        }
        self.phases[usize::from(event.ph & 127)] += 1;
        if event.ph == b'M' {
            return self.meta(element, &event);
        }
        if !matches!(event.ph, b'X' | b'B' | b'E' | b'i' | b'I' | b'R' | b'C')
            && !matches!(event.ph, b's' | b't' | b'f' | b'b' | b'e' | b'n' | b'S' | b'F')
        {
            self.keep(element);
            return Some(match event.ph {
                0 => "event without a phase, kept for JSON only",
                b'P' => "sample, kept for JSON only",
                b'O' | b'N' | b'D' => "object, kept for JSON only",
                b'T' | b'p' => "step of an async event, kept for JSON only",
                _ => "event of a phase that is not known, kept for JSON only",
            });
        }
        let Some(start) = time(event.ts()) else {
            self.keep(element);
            return Some("event without a time, kept for JSON only");
        };
        self.times.note(event.ts(), start);
        if event.odd || element.has_nul() {
            self.keep(element);
        }
        let mut pid = Id::new(&mut self.trace, event.pid());
        let mut tid = Id::new(&mut self.trace, event.tid());
        let text = event.tid().is_some_and(|tid| tid.kind() == Kind::String);
        let device = text && matches!(self.category(&event).1, Class::Work(_));
        self.quotes.note(event.ph, event.tid(), tid, device);
        // A missing id is 0, as viewers have it. Threads are told apart from their process,
        // but what happens on a device is on one of its streams.
        if pid == Id::None {
            pid = Id::Int(0);
        }
        if tid == Id::None && !matches!(self.category(&event).1, Class::Host | Class::Call) {
            tid = Id::Int(0);
        }
        match event.ph {
            b'X' => self.complete(element, &event, (pid, tid), start),
            b'B' => {
                let category = self.category(&event);
                let times = (start, Nanos::UNFINISHED);
                let id = self.slice(element, &event, (pid, tid), times, category);
                let Slice { name, category, .. } = self.trace.slices.get(id);
                let row = self.pairs.row((pid, tid));
                let (old, what) = (false, What::Begin(id));
                let moment = Moment { time: start, row, name, category, old, what };
                self.pairs.add(Key::Sync(pid, tid), None, moment);
                None
            }
            b'E' => self.end(element, &event, (Key::Sync(pid, tid), (pid, tid)), start),
            b'b' | b'e' | b'n' | b'S' | b'F' => {
                self.overlapping(element, &event, (pid, tid), start)
            }
            b'C' => self.counter(element, &event, (pid, tid), start),
            b's' | b't' | b'f' => self.flow(element, &event, (pid, tid), start),
            _ => self.instant(element, &event, (pid, tid), start),
        }
    }

    /// Keeps an event for a conversion back to JSON: the hub cannot hold all of it.
    #[cold]
    fn keep(&mut self, element: Element<'_>) {
        if let Value::Json(text) = text_of(&mut self.trace, element.root()) {
            self.trace.leftovers.push(Leftover { position: self.position, text });
        }
    }

    fn meta(&mut self, element: Element<'_>, event: &Event<'_>) -> Complaint {
        let pid = Id::new(&mut self.trace, event.pid());
        let tid = Id::new(&mut self.trace, event.tid());
        let name = event.name().map(|name| name.text()).unwrap_or_default();
        let about = (&*name, event.args());
        let when = (time(event.ts()), self.position);
        self.metadata.add(&mut self.trace, element, (pid, tid), when, about);
        None
    }

    fn complete(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        start: i64,
    ) -> Complaint {
        let dur = time(event.dur()).filter(|dur| *dur >= 0);
        self.durations.note(event.dur(), dur.unwrap_or(1));
        let length = Nanos(dur.unwrap_or(Nanos::UNFINISHED.0));
        if dur.is_none() {
            self.keep(element);
        }
        let (category, class) = self.category(event);
        let numbered = matches!((pid, tid), (Id::Int(_), Id::Int(_)));
        match class {
            Class::Work(work) if numbered && dur.is_some() => {
                self.activity(element, event, (pid, tid), (start, length), (category, work));
            }
            _ => {
                self.slice(element, event, (pid, tid), (start, length), (category, class));
            }
        }
        dur.is_none().then_some("duration that is missing or negative")
    }

    /// A slice on the track that its class says.
    fn slice(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        (start, dur): (i64, Nanos),
        (category, class): (StrId, Class),
    ) -> SliceId {
        let numbered = matches!((pid, tid), (Id::Int(_), Id::Int(_)));
        let kind = match class {
            Class::Notes if numbered => RowKind::Notes,
            Class::Sync if numbered => RowKind::Sync,
            Class::Overhead if pid == Id::Int(-1) => RowKind::Overhead,
            _ => RowKind::Host,
        };
        let trace = &mut self.trace;
        let track = match self.rows.place(trace, kind, pid, tid) {
            Place::Track(track) => track,
            Place::Queue(_) => self.rows.track(trace, pid, tid),
        };
        let name = intern(trace, event.name());
        let correlation = self.gather(element, event);
        let args = self.trace.args.add(&self.entries);
        let slice = Slice { name, category, args, ..Slice::new(track, Nanos(start), dur) };
        let slice = self.trace.slices.push(slice);
        self.trace.slices.set_position(slice, Some(Position::new(self.position)));
        match class {
            Class::Call if correlation != 0 => {
                let name = self.trace.strings.get(name);
                let api = match name.get(..3) {
                    Some("hip") => Api::Hip,
                    Some(start) if start.starts_with("cu") => Api::Cuda,
                    _ => Api::Unknown,
                };
                if self.api == Api::Unknown {
                    self.api = api;
                }
                let driver = self.trace.strings.get(category).ends_with("driver");
                self.flows.calls.push(Call { slice, correlation, api, driver });
            }
            Class::Sync if correlation != 0 => self.flows.waits.push((slice, correlation, start)),
            _ => {}
        }
        let (reference, position) = (EventRef::Slice(slice), self.position);
        if event.others {
            self.joint(element, reference, start);
        }
        self.flows.last = Some(Last { pid, tid, start, event: reference, correlation, position });
        slice
    }

    /// Takes note of a `bind_id`, from which or to which arrows go.
    fn joint(&mut self, element: Element<'_>, event: EventRef, time: i64) {
        let root = element.root();
        let says = |key| match root.get(key).map(|value| (value.kind(), value.raw())) {
            Some((Kind::True, _)) | Some((Kind::String, "true")) => true,
            Some((Kind::Int, number)) => number != "0",
            _ => false,
        };
        let (into, out) = (says("flow_in"), says("flow_out"));
        if !into && !out {
            return;
        }
        if let Some(id) = root.get("bind_id").and_then(|id| self.flow_id(id)) {
            self.flows.joints.push(Joint { id, time, event, into, out });
        }
    }

    /// Fills `entries` with the arguments, and gives the correlation number among them.
    fn gather(&mut self, element: Element<'_>, event: &Event<'_>) -> u64 {
        self.entries.clear();
        let mut correlation = 0;
        if let Some(args) = event.args() {
            if args.kind() != Kind::Object && args.kind() != Kind::Null {
                let value = self.values.value(&mut self.trace, args);
                self.entries.push((self.names.args, value));
            }
            for (number, place) in args.places() {
                let value = element.at(place);
                let key = self.values.numbered(&mut self.trace, number, value);
                self.values.add(&mut self.trace, key, value, &mut self.entries);
                if key == self.names.correlation {
                    correlation = match self.entries.last() {
                        Some((_, Value::I64(n))) => u64::try_from(*n).unwrap_or(0),
                        Some((_, Value::U64(n))) => *n,
                        _ => 0,
                    };
                }
            }
        }
        // What the event at hand makes of its id is its own affair; slices and moments keep it.
        if let Some(id) =
            event.id().filter(|_| matches!(event.ph, b'X' | b'B' | b'i' | b'I' | b'R'))
        {
            let id = text_of(&mut self.trace, id);
            self.entries.push((self.names.id, id));
        }
        if event.others {
            for (key, value) in Event::others(element) {
                let key = self.trace.strings.intern(&format!("{FOREIGN}{}", key.text()));
                let value = self.values.value(&mut self.trace, value);
                self.entries.push((key, value));
            }
        }
        correlation
    }

    fn category(&mut self, event: &Event<'_>) -> (StrId, Class) {
        let Some(cat) = event.cat() else { return (StrId::NONE, Class::Host) };
        if let Some((_, id, class)) = self.classes.iter().find(|(text, ..)| **text == *cat.raw()) {
            return (*id, *class);
        }
        let id = intern(&mut self.trace, Some(cat));
        let class = class(&cat.text());
        // Few categories are looked through faster than they are hashed; many are not kept.
        if self.classes.len() < 64 && !cat.escaped() {
            self.classes.push((cat.raw().into(), id, class));
        }
        (id, class)
    }
}
