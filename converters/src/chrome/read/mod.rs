//! The reader: events of JSON into the hub.

mod finish;
mod parts;
mod work;

use std::io::Read;

use super::args::{Values, intern};
use super::counters::CounterRows;
use super::event::{Event, time};
use super::flows::{Call, FlowRows, Last};
use super::metadata::MetaRows;
use super::open::Open;
use super::rows::{Id, Place, RowKind, Rows};
use super::{FOREIGN, members};
use crate::json::{Document, Element, Error, Item, Kind, Limits, RepairKind};
use crate::kineto::{self, Class, Work};
use crate::trace::{
    Api, ContextId, EventRef, Kernel, KernelId, Launch, LaunchId, Nanos, Slice, SliceId, StageId,
    StrId, Trace, Value,
};

/// Reads a trace in Chrome's or Kineto's JSON, not compressed.
///
/// Damage is repaired or passed over where possible, and said in
/// [`crate::trace::Facts::warnings`].
///
/// # Errors
/// When the input is no trace, exceeds a limit or cannot be read.
pub fn read(input: impl Read, limits: &Limits) -> Result<Trace, Error> {
    let mut document = Document::new(input, *limits);
    let mut reader = Reader::new();
    while let Some(item) = document.next_item()? {
        match item {
            Item::Event(element) => {
                if let Some(what) = reader.event(element) {
                    reader.trace.facts.warn(what, Some(document.offset()));
                }
            }
            Item::Member(key, element) => {
                let Reader { trace, rows, values, .. } = &mut reader;
                members::member(trace, rows, values, key, element);
            }
        }
    }
    for kind in RepairKind::ALL {
        let count = document.repairs().count(kind);
        if count > 0 {
            let first = document.repairs().first().iter().find(|repair| repair.kind == kind);
            let warnings = &mut reader.trace.facts.warnings;
            let (what, offset) = (kind.phrase().to_owned(), first.map(|repair| repair.offset));
            warnings.push(crate::trace::Warning { what, count, offset });
        }
    }
    Ok(reader.finish())
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
    open: Open,
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
    api: Api,
    phases: [u64; 128],
    entries: Vec<(StrId, Value)>,
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
            open: Open::default(),
            counters: CounterRows::default(),
            flows: FlowRows::default(),
            metadata: MetaRows::default(),
            names,
            classes: Vec::new(),
            stages: Vec::new(),
            kernels: hashbrown::HashMap::default(),
            launches: hashbrown::HashMap::default(),
            contexts: Vec::new(),
            api: Api::Unknown,
            phases: [0; 128],
            entries: Vec::new(),
        }
    }

    fn event(&mut self, element: Element<'_>) -> Complaint {
        let Some(event) = Event::new(element) else { return Some("event that is no object") };
        self.phases[usize::from(event.ph & 127)] += 1;
        if event.ph == b'M' {
            return self.meta(element, &event);
        }
        if !matches!(event.ph, b'X' | b'B' | b'E' | b'i' | b'I' | b'R' | b'C')
            && !matches!(event.ph, b's' | b't' | b'f' | b'b' | b'e' | b'n' | b'S' | b'F')
        {
            return Some(match event.ph {
                0 => "event without a phase",
                b'P' => "sample, not kept",
                _ => "event of a phase that is not known",
            });
        }
        let mut pid = Id::new(&mut self.trace, event.pid);
        let mut tid = Id::new(&mut self.trace, event.tid);
        // A missing id is 0, as viewers have it. Threads are told apart from their process,
        // but what happens on a device is on one of its streams.
        if pid == Id::None {
            pid = Id::Int(0);
        }
        if tid == Id::None && !matches!(self.category(&event).1, Class::Host | Class::Call) {
            tid = Id::Int(0);
        }
        let Some(start) = time(event.ts) else { return Some("event without a time") };
        match event.ph {
            b'X' => self.complete(element, &event, (pid, tid), start),
            b'B' => {
                let slice = self.slice(element, &event, (pid, tid), start, Nanos::UNFINISHED);
                self.open.begin(self.trace.slices.get(slice).track, slice);
                None
            }
            b'E' => {
                let track = self.rows.track(&mut self.trace, pid, tid);
                let slice = self.open.end(track);
                self.end(element, &event, slice, start)
            }
            b'b' | b'e' | b'n' | b'S' | b'F' => self.overlapping(element, &event, pid, tid, start),
            b'C' => self.counter(&event, (pid, tid), start),
            b's' | b't' | b'f' => self.flow(&event, (pid, tid), start),
            _ => self.instant(element, &event, (pid, tid), start),
        }
    }

    fn meta(&mut self, element: Element<'_>, event: &Event<'_>) -> Complaint {
        let pid = Id::new(&mut self.trace, event.pid);
        let tid = Id::new(&mut self.trace, event.tid);
        let name = event.name.map(|name| name.text()).unwrap_or_default();
        let about = (&*name, event.args);
        self.metadata.add(&mut self.trace, element, (pid, tid), time(event.ts), about);
        None
    }

    fn complete(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        start: i64,
    ) -> Complaint {
        let dur = time(event.dur).filter(|dur| *dur >= 0);
        let length = Nanos(dur.unwrap_or(Nanos::UNFINISHED.0));
        let (category, class) = self.category(event);
        let numbered = matches!((pid, tid), (Id::Int(_), Id::Int(_)));
        match class {
            Class::Work(work) if numbered && dur.is_some() => {
                self.activity(element, event, (pid, tid), (start, length), (category, work));
            }
            _ => {
                self.slice(element, event, (pid, tid), start, length);
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
        start: i64,
        dur: Nanos,
    ) -> SliceId {
        let (category, class) = self.category(event);
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
        let name = intern(trace, event.name);
        let correlation = self.gather(element, event);
        let args = self.trace.args.add(&self.entries);
        let slice = Slice { name, category, args, ..Slice::new(track, Nanos(start), dur) };
        let slice = self.trace.slices.push(slice);
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
        let event = EventRef::Slice(slice);
        self.flows.last = Some(Last { pid, tid, start, event, correlation });
        slice
    }

    /// Fills `entries` with the arguments, and gives the correlation number among them.
    fn gather(&mut self, element: Element<'_>, event: &Event<'_>) -> u64 {
        self.entries.clear();
        let mut correlation = 0;
        if let Some(args) = event.args {
            if args.kind() != Kind::Object && args.kind() != Kind::Null {
                let value = self.values.value(&mut self.trace, args);
                self.entries.push((self.names.args, value));
            }
            for (key, value) in args.fields() {
                let key = self.values.key(&mut self.trace, key);
                let value = self.values.value(&mut self.trace, value);
                if key == self.names.correlation {
                    correlation = match value {
                        Value::I64(n) => u64::try_from(n).unwrap_or(0),
                        Value::U64(n) => n,
                        _ => 0,
                    };
                }
                self.entries.push((key, value));
            }
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
        let Some(cat) = event.cat else { return (StrId::NONE, Class::Host) };
        if let Some((_, id, class)) = self.classes.iter().find(|(text, ..)| **text == *cat.raw()) {
            return (*id, *class);
        }
        let id = intern(&mut self.trace, Some(cat));
        let class = kineto::class(&cat.text());
        // Few categories are looked through faster than they are hashed; many are not kept.
        if self.classes.len() < 64 && !cat.escaped() {
            self.classes.push((cat.raw().into(), id, class));
        }
        (id, class)
    }
}
