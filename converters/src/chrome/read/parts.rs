//! Events that are not complete in themselves, or are no slices: ends, async ones, moments,
//! counters, arrows.

use super::{Complaint, Reader};
use crate::chrome::args::{intern, text_of};
use crate::chrome::counters::{Row, counted};
use crate::chrome::event::Event;
use crate::chrome::flows::{Last, Pending};
use crate::chrome::rows::{Id, Place, RowKind};
use crate::json::{self, Element};
use crate::trace::{ArgsId, EventRef, Instant, Nanos, Phase, Slice, SliceId, StrId, Value};

impl Reader {
    pub(super) fn end(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        slice: Option<SliceId>,
        end: i64,
    ) -> Complaint {
        let Some(id) = slice else { return Some("end without a beginning") };
        let mut slice = self.trace.slices.get(id);
        slice.dur = Nanos(end.saturating_sub(slice.start.0).max(0));
        self.gather(element, event);
        let more = self.trace.args.add(&self.entries);
        slice.args = self.trace.args.join(slice.args, more);
        self.trace.slices.set(id, slice);
        None
    }

    /// `b`, `e`, `n`, and `S` and `F`, as they were called once.
    pub(super) fn overlapping(
        &mut self,
        element: Element<'_>,
        event: &Event<'_>,
        pid: Id,
        tid: Id,
        start: i64,
    ) -> Complaint {
        let (category, _) = self.category(event);
        let name = intern(&mut self.trace, event.name);
        let root = element.root();
        let id = event.id.or_else(|| root.get("id2")).map(|id| text_of(&mut self.trace, id));
        let Some(Value::Json(id)) = id else { return Some("async event without an id") };
        let scope = intern(&mut self.trace, root.get("scope").and_then(json::Value::as_str));
        let key = (pid, category, scope, id);
        if matches!(event.ph, b'e' | b'F') {
            let slice = self.open.end_async(&key);
            return self.end(element, event, slice, start);
        }
        let track = match self.open.overlapping.get(&key) {
            Some((track, _)) => *track,
            None => {
                let kind = RowKind::Async(category, name);
                match self.rows.place(&mut self.trace, kind, pid, Id::None) {
                    Place::Track(track) => track,
                    Place::Queue(_) => return None,
                }
            }
        };
        self.gather(element, event);
        if event.id.is_some() {
            self.entries.push((self.names.id, Value::Json(id)));
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
        let args = self.trace.args.add(&self.entries);
        if event.ph == b'n' {
            let instant = Instant { track, time: Nanos(start), name, category, args };
            self.trace.instants.push(instant);
        } else {
            let slice = Slice::new(track, Nanos(start), Nanos::UNFINISHED);
            let slice = self.trace.slices.push(Slice { name, category, args, ..slice });
            self.open.begin_async(key, track, slice);
        }
        None
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
        let name = intern(&mut self.trace, event.name);
        self.gather(element, event);
        // The scope that the row suggests needs no saying; see the writer.
        let scope = event.scope.map_or("t", |scope| scope.raw());
        let natural = if matches!(pid, Id::Text(_)) { "g" } else { "t" };
        if scope != natural {
            let scope = intern(&mut self.trace, event.scope);
            let scope = if scope == StrId::NONE { self.trace.strings.intern("t") } else { scope };
            self.entries.push((self.names.scope, Value::Str(scope)));
        }
        let args: Option<ArgsId> = self.trace.args.add(&self.entries);
        let time = Nanos(time);
        let id = self.trace.instants.push(Instant { track, time, name, category, args });
        let event = EventRef::Instant(id);
        self.flows.last = Some(Last { pid, tid, start: time.0, event, correlation: 0 });
        None
    }

    pub(super) fn counter(
        &mut self,
        event: &Event<'_>,
        (pid, tid): (Id, Id),
        time: i64,
    ) -> Complaint {
        let Some(args) = event.args else { return Some("counter without values") };
        let (cat, _) = self.category(event);
        let mut name = intern(&mut self.trace, event.name);
        if let Some(id) = event.id {
            // Counters of one name and several ids are several counters.
            let name_and_id = format!("{}[{}]", self.trace.strings.get(name), id.raw());
            name = self.trace.strings.intern(&name_and_id);
        }
        let mut complaint = None;
        let Reader { trace, rows, values, counters, .. } = self;
        for (key, value) in args.fields() {
            match counted(value) {
                Some(number) => {
                    let key = values.key(trace, key);
                    let row = Row { pid, tid, cat, name };
                    counters.sample(trace, rows, row, key, (Nanos(time), number));
                }
                None => complaint = Some("value of a counter that is no number"),
            }
        }
        complaint
    }

    pub(super) fn flow(&mut self, event: &Event<'_>, (pid, tid): (Id, Id), time: i64) -> Complaint {
        let Some(id) = event.id.and_then(|id| self.flow_id(id)) else {
            return Some("arrow without an id");
        };
        let (category, _) = self.category(event);
        let mut name = intern(&mut self.trace, event.name);
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
        let enclosing = phase != Phase::End || event.bind.is_some_and(|bind| bind.is("e"));
        let launch = event.cat.is_some_and(|cat| cat.is("ac2g"));
        let end = Pending { id, name, phase, enclosing, pid, tid, time };
        self.flows.end(&mut self.trace, end, launch);
        None
    }

    /// Numbers, also in quotes and hexadecimal; other texts by their number in the hub.
    fn flow_id(&mut self, id: json::Value<'_>) -> Option<u64> {
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
