//! Events that are not complete in themselves, or are no slices: ends, async ones, moments,
//! counters, arrows.

use super::{Complaint, Reader};
use crate::chrome::FOREIGN;
use crate::chrome::args::{intern, text_of};
use crate::chrome::counters::{Row, counted};
use crate::chrome::event::Event;
use crate::chrome::flows::{Last, Pending};
use crate::chrome::pairs::{Key, Moment, What};
use crate::chrome::rows::Id;
use crate::json::{self, Element, Kind};
use crate::trace::{ArgsId, EventRef, Instant, Nanos, Phase, Position, Slice, StrId, Value};

impl Reader {
    pub(super) fn end(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (key, ids): (Key, (Id, Id)),
        time: i64,
    ) -> Complaint {
        let (category, _) = self.category(event);
        let name = intern(&mut self.trace, event.name());
        self.gather(element, event);
        // The slice has these of its beginning.
        let foreign = &self.trace.strings;
        self.entries.retain(|(key, _)| !foreign.get(*key).starts_with(FOREIGN));
        let args = self.trace.args.add(&self.entries);
        let bare = event.name().is_none() && event.cat().is_none();
        let position = Position { number: self.position, marks: u8::from(bare) };
        let what = What::End(args, position);
        let half = event.name().is_none() && event.cat().is_some();
        if (event.others || half) && !event.odd && !element.has_nul() {
            self.keep(element);
        }
        let (row, old) = (self.pairs.row(ids), event.ph == b'F');
        self.pairs.add(key, None, Moment { time, row, name, category, old, what });
        None
    }

    /// `b`, `e`, `n`, and `S` and `F`, as they were called once.
    pub(super) fn overlapping(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        time: i64,
    ) -> Complaint {
        let Some((key, id)) = self.async_key(element, event, pid) else {
            return Some("async event without an id");
        };
        if matches!(event.ph, b'e' | b'F') {
            return self.end(element, event, (key, (pid, tid)), time);
        }
        let (category, _) = self.category(event);
        let name = intern(&mut self.trace, event.name());
        self.gather(element, event);
        if event.id().is_some() {
            self.entries.push((self.names.id, id));
        }
        if tid != Id::None {
            let tid = match tid {
                Id::Int(n) => Value::I64(n),
                Id::Text(text) => Value::Str(text),
                Id::None => Value::Null,
            };
            let key = self.trace.strings.intern("chrome.tid");
            self.entries.push((key, tid));
        }
        self.phase(event.ph, if event.ph == b'n' { b'n' } else { b'b' });
        let args = self.trace.args.add(&self.entries);
        // Which of the tracks it is to lie on is known when it is paired.
        let track = self.rows.parent(&mut self.trace, pid);
        let what = if event.ph == b'n' {
            let instant = Instant { track, time: Nanos(time), name, category, args };
            let id = self.trace.instants.push(instant);
            self.trace.instants.set_position(id, Some(Position::new(self.position)));
            What::Instant(id)
        } else {
            let slice = Slice::new(track, Nanos(time), Nanos::UNFINISHED);
            let id = self.trace.slices.push(Slice { name, category, args, ..slice });
            self.trace.slices.set_position(id, Some(Position::new(self.position)));
            What::Begin(id)
        };
        let (row, old) = (self.pairs.row((pid, tid)), event.ph == b'S');
        self.pairs.add(key, Some(pid), Moment { time, row, name, category, old, what });
        None
    }

    /// What an async event is paired by, and its id: JSON. An id counts for all processes,
    /// unless it is said to be local.
    fn async_key(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        pid: Id,
    ) -> Option<(Key, Value)> {
        let root = element.root();
        let given = event.id().or_else(|| root.get("id2"))?;
        let value = text_of(&mut self.trace, given);
        let Value::Json(id) = value else { return None };
        let scope = intern(&mut self.trace, root.get("scope").and_then(json::Value::as_str));
        let (category, _) = self.category(event);
        let local = given.get("local").is_some();
        let process = if local { pid } else { Id::None };
        // `S` and `F` of a name are apart from those of others, and from `b` and `e`.
        let apart = matches!(event.ph, b'S' | b'F');
        let scope = if apart { intern(&mut self.trace, event.name()) } else { scope };
        Some((Key::Async(process, category, scope, id), value))
    }

    pub(super) fn instant(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        time: i64,
    ) -> Complaint {
        let (category, _) = self.category(event);
        let track = self.rows.track(&mut self.trace, pid, tid);
        let name = intern(&mut self.trace, event.name());
        self.gather(element, event);
        if let Some(dur) = event.dur() {
            let dur = text_of(&mut self.trace, dur);
            self.entries.push((self.trace.strings.intern("chrome.dur"), dur));
        }
        self.phase(event.ph, b'i');
        // The scope that the row suggests needs no saying; see the writer.
        let scope = event.scope().map_or("t", |scope| scope.raw());
        let natural = if matches!(pid, Id::Text(_)) { "g" } else { "t" };
        if scope == natural {
            match event.scope() {
                None => self.scopes.bare = true,
                Some(_) => self.scopes.stated = true,
            }
        } else {
            let scope = intern(&mut self.trace, event.scope());
            let scope = if scope == StrId::NONE { self.trace.strings.intern("t") } else { scope };
            self.entries.push((self.names.scope, Value::Str(scope)));
        }
        let args: Option<ArgsId> = self.trace.args.add(&self.entries);
        let time = Nanos(time);
        let id = self.trace.instants.push(Instant { track, time, name, category, args });
        self.trace.instants.set_position(id, Some(Position::new(self.position)));
        let event = EventRef::Instant(id);
        self.flows.last =
            Some(Last { pid, tid, start: time.0, event, correlation: 0, position: self.position });
        None
    }

    /// Notes a phase that is seldom used for what it says.
    fn phase(&mut self, phase: u8, usual: u8) {
        if phase != usual {
            let strings = &mut self.trace.strings;
            let phase = strings.intern(char::from(phase).encode_utf8(&mut [0; 4]));
            self.entries.push((strings.intern("chrome.ph"), Value::Str(phase)));
        }
    }

    pub(super) fn counter(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        time: i64,
    ) -> Complaint {
        let Some(args) = event.args() else {
            self.keep(element);
            return Some("counter without values, kept for JSON only");
        };
        let (cat, _) = self.category(event);
        let mut name = intern(&mut self.trace, event.name());
        let mut odd = event.others || args.kind() != Kind::Object;
        if let Some(id) = event.id() {
            // Counters of one name and several ids are several counters, called as
            // trace_processor calls them.
            let name_and_id = format!("{} id: {}", self.trace.strings.get(name), id.raw());
            name = self.trace.strings.intern(&name_and_id);
            odd = true;
        }
        let mut complaint = None;
        let position = Some(self.position);
        let Reader { trace, rows, values, counters, .. } = self;
        for (key, value) in args.fields() {
            match counted(value) {
                Some(number) => {
                    let key = values.key(trace, key);
                    let row = Row { pid, tid, cat, name };
                    counters.sample(trace, rows, row, key, (Nanos(time), number));
                    trace.counters.set_last_position(position);
                    odd |= value.kind() == Kind::String;
                }
                None => {
                    complaint = Some("value of a counter that is no number, kept for JSON only")
                }
            }
        }
        if (odd || complaint.is_some()) && !event.odd && !element.has_nul() {
            self.keep(element);
        }
        complaint
    }

    pub(super) fn flow(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        time: i64,
    ) -> Complaint {
        let Some(id) = event.id().and_then(|id| self.flow_id(id)) else {
            self.keep(element);
            return Some("arrow without an id, kept for JSON only");
        };
        let (category, _) = self.category(event);
        let mut name = intern(&mut self.trace, event.name());
        if category != name {
            // The hub has one name for a flow; Kineto's two are the same.
            let strings = &mut self.trace.strings;
            let both = format!("{}\t{}", strings.get(category), strings.get(name));
            name = strings.intern(&both);
        }
        let phase = match event.ph {
            b's' => Phase::Start,
            b't' => Phase::Step,
            _ => Phase::End,
        };
        let enclosing = phase != Phase::End || event.bind().is_some_and(|bind| bind.is("e"));
        let launch = event.cat().is_some_and(|cat| cat.is("ac2g"));
        let position = self.position;
        // What is written in another way than the writer's, or says more.
        let plain = event.id().is_some_and(|id| id.kind() == Kind::Int)
            && (phase == Phase::End) == event.bind().is_some()
            && (phase != Phase::End || enclosing)
            && event.args().is_none()
            && event.cat().is_some()
            && event.name().is_some()
            && event.tid().is_some();
        let odd = !plain || event.others || event.odd || element.has_nul();
        if odd && !event.odd && !element.has_nul() {
            self.keep(element);
        }
        let end = Pending { id, name, phase, enclosing, pid, tid, time, position, odd };
        self.flows.end(&mut self.trace, end, launch);
        None
    }

    /// Numbers, also in quotes and hexadecimal; other texts by their number in the hub.
    pub(super) fn flow_id(&mut self, id: json::Value<'_>) -> Option<u64> {
        if let Some(text) = id.as_str() {
            let text = text.raw();
            let number = match text.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            };
            let named = |id: StrId| 1 << 63 | u64::from(id.0);
            return Some(number.unwrap_or_else(|| named(self.trace.strings.intern(text))));
        }
        match json::number(id)? {
            json::Number::Int(n) => Some(n as u64),
            json::Number::Uint(n) => Some(n),
            _ => None,
        }
    }
}
