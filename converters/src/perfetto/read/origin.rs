//! What a converted trace says of the file that it was made from, and arrows that are events of
//! their own, as Chrome wrote them.

use hashbrown::HashMap;
use kymograph_protos::packet::source::{
    COUNTER, COUNTER_OF, FLOW, FLOW_ID, FLOW_NAME, FLOW_PHASE, FLOW_POSITION, FLOW_TIME, LEFTOVER,
    LEFTOVER_POSITION, LEFTOVER_TEXT, PID, POSITION, TID, unzigzag,
};

use super::Reader;
use super::facts::ORIGIN;
use super::sequence::intern_text;
use crate::perfetto::wire::Field;
use crate::trace::{
    EventRef, FlowPoint, Leftover, Nanos, Phase, Position, Span, Spans, StrId, Trace, TrackId,
    Value, join,
};

/// The fields of a packet that say so.
#[derive(Default)]
pub struct Origin<'a> {
    position: Option<u64>,
    flows: Vec<Field<'a>>,
    leftover: Option<Field<'a>>,
    pub pid: Option<i64>,
    pub tid: Option<i64>,
    pub counter: Option<&'a [u8]>,
    pub counter_of: u64,
}

impl<'a> Origin<'a> {
    #[inline]
    pub fn add(&mut self, number: u32, field: Field<'a>) {
        match number {
            POSITION => self.position = Some(field.uint()),
            FLOW => self.flows.push(field),
            LEFTOVER => self.leftover = Some(field),
            PID => self.pid = Some(unzigzag(field.uint())),
            TID => self.tid = Some(unzigzag(field.uint())),
            COUNTER => self.counter = Some(field.bytes()),
            COUNTER_OF => self.counter_of = field.uint(),
            _ => {}
        }
    }

    /// Whether the packet says which arrows its event has.
    pub fn has_flows(&self) -> bool {
        !self.flows.is_empty()
    }
}

/// An end of an arrow that binds to a slice by its time.
#[derive(Clone, Copy, Debug)]
pub struct ArrowEnd {
    track: TrackId,
    enclosing: bool,
    /// From when it is drawn to when it was.
    moved: Nanos,
    point: FlowPoint,
}

impl Reader {
    /// Takes note of where the event of a packet stood.
    #[inline]
    pub(super) fn stood(&mut self, origin: &Origin<'_>) {
        self.position = None;
        if let Some(said) = origin.position {
            self.last_position = self.last_position.wrapping_add(unzigzag(said >> 2));
            let number = u32::try_from(self.last_position).ok().filter(|number| *number != 0);
            self.position = number.map(|number| Position { number, marks: said as u8 & 3 });
        }
        if let Some(field) = origin.leftover {
            self.leftover(field);
        }
    }

    fn leftover(&mut self, field: Field<'_>) {
        let (mut position, mut text) = (0, None);
        for (number, field) in field.fields() {
            match number {
                LEFTOVER_POSITION => position = field.uint() as u32,
                LEFTOVER_TEXT => text = Some(field.bytes()),
                _ => {}
            }
        }
        let text = text.map(String::from_utf8_lossy).filter(|text| crate::json::is_valid(text));
        match text {
            Some(text) => {
                let text = self.trace.strings.intern(&text);
                self.trace.leftovers.push(Leftover { position, text });
            }
            None => self.damaged("a damaged event of another format"),
        }
    }

    /// The arrows that the packet of an event says besides.
    pub(super) fn besides(&mut self, origin: &Origin<'_>, event: EventRef, time: i64) {
        for flow in &origin.flows {
            let mut point = FlowPoint {
                id: 0,
                phase: Phase::Step,
                event,
                time: Nanos(time),
                name: StrId::NONE,
                position: 0,
            };
            for (number, field) in flow.fields() {
                match number {
                    FLOW_PHASE => {
                        point.phase = match field.uint() {
                            1 => Phase::Start,
                            3 => Phase::End,
                            _ => Phase::Step,
                        }
                    }
                    FLOW_ID => point.id = field.uint(),
                    FLOW_NAME => point.name = intern_text(&mut self.trace.strings, field.bytes()),
                    FLOW_TIME => point.time = point.time + Nanos(unzigzag(field.uint())),
                    FLOW_POSITION => {
                        let position = self.last_position.wrapping_add(unzigzag(field.uint()));
                        point.position = u32::try_from(position).unwrap_or(0);
                    }
                    _ => {}
                }
            }
            self.trace.flows.points.push(point);
        }
    }

    /// Takes an end of an arrow that is an event of its own.
    pub(super) fn arrow_end(
        &mut self,
        track: TrackId,
        (id, phase, enclosing): (u64, u8, bool),
        (category, name): (StrId, StrId),
        time: i64,
        origin: &Origin<'_>,
    ) {
        let (mut own, mut moved) = (id, 0);
        for (number, field) in origin.flows.iter().flat_map(|flow| flow.fields()) {
            match number {
                FLOW_ID => own = field.uint(),
                FLOW_TIME => moved = unzigzag(field.uint()),
                _ => {}
            }
        }
        let strings = &mut self.trace.strings;
        let name = match category == name {
            true => name,
            false => {
                let both = format!("{}\t{}", strings.get(category), strings.get(name));
                strings.intern(&both)
            }
        };
        let point = FlowPoint {
            id: own,
            phase: match phase {
                b's' => Phase::Start,
                b't' => Phase::Step,
                _ => Phase::End,
            },
            event: EventRef::Slice(crate::trace::SliceId::at(0)),
            time: Nanos(time),
            name,
            position: self.position.map_or(0, |position| position.number),
        };
        let enclosing = enclosing || phase != b'f';
        self.ends.push(ArrowEnd { track, enclosing, moved: Nanos(moved), point });
    }

    /// Finds the slices of arrows that are events of their own, now that all have ended.
    pub(super) fn bind(&mut self) {
        let ends = std::mem::take(&mut self.ends);
        let mut spans: HashMap<TrackId, Vec<Span>> = HashMap::new();
        for end in &ends {
            spans.entry(end.track).or_default();
        }
        if !spans.is_empty() {
            for id in self.trace.slices.ids() {
                let slice = self.trace.slices.get(id);
                if let Some(spans) = spans.get_mut(&slice.track) {
                    let end = slice.end().map_or(i64::MAX, |end| end.0);
                    spans.push((slice.start.0, end, EventRef::Slice(id)));
                }
            }
        }
        let spans: HashMap<TrackId, Spans> =
            spans.into_iter().map(|(track, spans)| (track, Spans::new(spans))).collect();
        let mut unbound = 0;
        for ArrowEnd { track, enclosing, moved, point } in ends {
            let bound = |spans: &Spans| spans.bound(point.time.0, enclosing);
            match spans.get(&track).and_then(bound) {
                Some(event) => {
                    let time = point.time + moved;
                    self.trace.flows.points.push(FlowPoint { event, time, ..point });
                }
                None => unbound += 1,
            }
        }
        if unbound > 0 {
            let what = "ends of arrows at no event".to_owned();
            let warning = crate::trace::Warning { what, count: unbound, offset: None };
            self.trace.facts.warnings.push(warning);
        }
        let joints = std::mem::take(&mut self.joints);
        join(&mut self.trace, joints, StrId::NONE);
    }
}

/// Moves times back that were moved so that none was before zero.
pub fn shift_back(trace: &mut Trace) {
    let Some(key) = trace.strings.find(ORIGIN) else { return };
    let Some(Value::I64(shift)) = trace.facts.get(key) else { return };
    trace.facts.metadata.retain(|(name, _)| *name != key);
    let Some(by) = shift.checked_neg().map(Nanos) else { return };
    trace.slices.shift(0..trace.slices.len(), by);
    trace.instants.shift(0..trace.instants.len(), by);
    trace.activities.shift(0..trace.activities.len(), by);
    trace.counters.shift(0..trace.counters.len(), by);
    for point in &mut trace.flows.points {
        point.time = point.time + by;
    }
    for reading in &mut trace.facts.readings {
        reading.trace = reading.trace + by;
    }
    for (_, process) in trace.processes.iter_mut() {
        process.started = process.started.map(|started| started + by);
    }
}
