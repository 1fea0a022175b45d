//! Track events.

use kymograph_protos::fields::{
    gpu_correlation, log_message, track_event, track_event::legacy_event,
};

use super::nesting::{End, Extra, awaited};
use super::origin::Origin;
use super::sequence::{intern_text, source_location};
use super::{Reader, launch};
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{
    Api, ArgsId, EventRef, FlowPoint, Instant, Joint, LaunchKind, LaunchLink, Nanos, Number, Phase,
    Slice, StrId, Track, TrackId, Value,
};

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// What an event says.
#[derive(Default)]
struct Event<'a> {
    ty: u64,
    track: Option<u64>,
    name: StrId,
    category: StrId,
    counter: Option<Number>,
    extra_tracks: Vec<u64>,
    extra_values: Vec<Number>,
    extra_double_tracks: Vec<u64>,
    extra_doubles: Vec<Number>,
    legacy: Option<Field<'a>>,
    api: Api,
    /// An argument's names were not in the tables, or it lay too deep.
    missing: u64,
    too_deep: u64,
}

/// `TrackEvent.LegacyEvent`, as far as it is understood.
#[derive(Default)]
struct Legacy {
    phase: u8,
    duration: Option<i64>,
    id: Option<u64>,
    scope: StrId,
    of_process: bool,
    pid: Option<i64>,
    tid: Option<i64>,
    bind: Option<u64>,
    /// Into it, out of it, or both.
    direction: u64,
    enclosing: bool,
}

impl Reader {
    /// A `TrackEvent` on the sequence in row `row`, at `time`.
    pub(super) fn track_event(
        &mut self,
        (row, machine): (usize, u32),
        time: i64,
        bytes: &[u8],
        origin: &Origin<'_>,
    ) {
        let (points, links) = (self.trace.flows.points.len(), self.trace.flows.links.len());
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        self.args_in_progress = entries;
        let event = self.parse(row, time, bytes);
        let mut entries = std::mem::take(&mut self.args_in_progress);
        let submits = |link: &LaunchLink| link.kind == LaunchKind::Submit;
        if self.trace.flows.links[links..].iter().any(submits) {
            launch::of_call(&mut entries, &self.trace.strings, self.maker);
        }
        let args = self.trace.args.add(&entries);
        entries.clear();
        self.entries = entries;
        self.oddities.missing_iids += event.missing;
        self.oddities.too_deep += event.too_deep;
        for link in &mut self.trace.flows.links[links..] {
            link.api = event.api;
        }
        self.extra_counters(row, time, &event);
        let legacy = event.legacy.map(|field| self.legacy(field));
        let (ty, dur) = match (&legacy, event.ty) {
            (Some(legacy), 0) => legacy.kind(),
            (_, ty) => (ty, None),
        };
        let Some(track) = self.place(row, machine, &event, legacy.as_ref()) else {
            self.trace.flows.points.truncate(points);
            self.trace.flows.links.truncate(links);
            return;
        };
        if let Some(legacy @ Legacy { phase: b's' | b't' | b'f', id: Some(id), .. }) = &legacy
            && event.ty == 0
        {
            let names = (event.category, event.name);
            self.arrow_end(track, (*id, legacy.phase, legacy.enclosing), names, time, origin);
            return;
        }
        if origin.has_flows() {
            // It says them in full.
            self.trace.flows.points.truncate(points);
        }
        match ty {
            BEGIN => {
                self.tracks.used(track, event.name);
                let slice = Slice {
                    track,
                    start: Nanos(time),
                    dur: dur.map_or(Nanos::UNFINISHED, Nanos),
                    name: event.name,
                    category: event.category,
                    args,
                };
                let id = self.trace.slices.push(slice);
                self.trace.slices.set_position(id, self.position);
                self.nesting.begin(&mut self.trace, id);
                self.attach(points, links, EventRef::Slice(id));
                self.besides(origin, EventRef::Slice(id), time);
                self.joint(legacy.as_ref(), EventRef::Slice(id), time);
            }
            END => {
                let end = End { track, time, name: event.name, category: event.category };
                let extra = self.extra(args, points, links);
                self.nesting.end(&mut self.trace, &end, extra);
            }
            INSTANT => {
                self.tracks.used(track, event.name);
                let (name, category) = (event.name, event.category);
                let instant = Instant { track, time: Nanos(time), name, category, args };
                let id = self.trace.instants.push(instant);
                self.trace.instants.set_position(id, self.position);
                self.nesting.moment(&mut self.trace, track, time);
                self.attach(points, links, EventRef::Instant(id));
                self.besides(origin, EventRef::Instant(id), time);
            }
            COUNTER => {
                // An arrow has no place at a counter; trace_processor has none there either.
                self.trace.flows.points.truncate(points);
                self.trace.flows.links.truncate(links);
                match (event.counter, event.track.unwrap_or(self.sequences[row].track)) {
                    (None, _) | (_, 0) => self.odd("a counter event without value or track"),
                    (Some(value), uuid) => {
                        let totals = &mut self.sequences[row].totals;
                        self.tracks.sample(&mut self.trace, totals, uuid, time, value);
                        let position = self.position.map(|position| position.number);
                        self.trace.counters.set_last_position(position);
                    }
                }
            }
            ty => {
                let phase = legacy.map_or(0, |legacy| legacy.phase);
                match ty {
                    0 if phase.is_ascii_graphic() => {
                        self.odd(&format!("a track event of phase {}", char::from(phase)));
                    }
                    ty => self.odd(&format!("a track event of type {ty}")),
                }
                self.trace.flows.points.truncate(points);
                self.trace.flows.links.truncate(links);
            }
        }
    }

    fn parse<'a>(&mut self, row: usize, time: i64, bytes: &'a [u8]) -> Event<'a> {
        let mut event = Event::default();
        let mut categories = 0;
        for (number, field) in Fields::new(bytes) {
            let tables = &self.sequences[row].tables;
            match number {
                track_event::TYPE => event.ty = field.uint(),
                track_event::TRACK_UUID => event.track = Some(field.uint()),
                track_event::NAME_IID => {
                    event.name = known(tables.names.get(field.uint()), &mut event.missing)
                }
                track_event::NAME => {
                    event.name = intern_text(&mut self.trace.strings, field.bytes())
                }
                track_event::CATEGORY_IIDS | track_event::CATEGORIES => {
                    if number == track_event::CATEGORIES {
                        let id = intern_text(&mut self.trace.strings, field.bytes());
                        self.add_category(&mut event.category, &mut categories, id);
                    } else {
                        for iid in field.numbers() {
                            let tables = &self.sequences[row].tables;
                            let id = known(tables.categories.get(iid), &mut event.missing);
                            self.add_category(&mut event.category, &mut categories, id);
                        }
                    }
                }
                track_event::COUNTER_VALUE => event.counter = Some(Number::I64(field.int())),
                track_event::DOUBLE_COUNTER_VALUE => {
                    event.counter = Some(Number::F64(field.double()))
                }
                track_event::EXTRA_COUNTER_TRACK_UUIDS => {
                    event.extra_tracks.extend(field.numbers())
                }
                track_event::EXTRA_COUNTER_VALUES => {
                    event.extra_values.extend(field.numbers().map(|n| Number::I64(n as i64)));
                }
                track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => {
                    event.extra_double_tracks.extend(field.numbers())
                }
                track_event::EXTRA_DOUBLE_COUNTER_VALUES => {
                    let doubles = field.fixed64s().map(|n| Number::F64(f64::from_bits(n)));
                    event.extra_doubles.extend(doubles);
                }
                track_event::FLOW_IDS_OLD => {
                    field.numbers().for_each(|id| self.point(id, Phase::Step, time))
                }
                track_event::FLOW_IDS => {
                    field.fixed64s().for_each(|id| self.point(id, Phase::Step, time))
                }
                track_event::TERMINATING_FLOW_IDS_OLD => {
                    field.numbers().for_each(|id| self.point(id, Phase::End, time))
                }
                track_event::TERMINATING_FLOW_IDS => {
                    field.fixed64s().for_each(|id| self.point(id, Phase::End, time))
                }
                track_event::LEGACY_EVENT => event.legacy = Some(field),
                track_event::GPU_CORRELATION => self.links(field),
                track_event::GPU_API => event.api = Api::from_number(field.uint()),
                0 => self.damaged("a damaged track event"),
                _ => self.argument(row, number, field, &mut event),
            }
        }
        event
    }

    /// What becomes an argument of the event.
    fn argument(&mut self, row: usize, number: u32, field: Field<'_>, event: &mut Event<'_>) {
        let sequence = &mut self.sequences[row];
        let trace = &mut self.trace;
        let (missing, too_deep) = (&mut event.missing, &mut event.too_deep);
        let mut into = sequence.into(&mut trace.args, &mut trace.strings, missing, too_deep);
        let entry = match number {
            track_event::DEBUG_ANNOTATIONS => into.argument(field),
            track_event::SOURCE_LOCATION => {
                let (_, source) = source_location(field, into.strings);
                into.source(source)
            }
            track_event::SOURCE_LOCATION_IID => match into.tables.sources.get(field.uint()) {
                Some(source) => into.source(*source),
                None => {
                    *into.missing += 1;
                    return;
                }
            },
            track_event::CORRELATION_ID => {
                (into.strings.intern("correlation_id"), Value::U64(field.uint()))
            }
            track_event::CORRELATION_ID_STR | track_event::CORRELATION_ID_STR_IID => {
                let id = match number {
                    track_event::CORRELATION_ID_STR => intern_text(into.strings, field.bytes()),
                    _ => known(into.tables.correlations.get(field.uint()), into.missing),
                };
                (into.strings.intern("correlation_id"), Value::Str(id))
            }
            track_event::CALLSTACK => into.inline_callstack(field),
            track_event::CALLSTACK_IID => into.callstack(field.uint()),
            track_event::CALLSTACK_WEIGHT => {
                (into.strings.intern("callstack_weight"), Value::F64(field.double()))
            }
            track_event::LOG_MESSAGE => {
                let message = field
                    .fields()
                    .find(|(n, _)| *n == log_message::BODY_IID)
                    .map_or(0, |(_, f)| f.uint());
                let body = known(into.tables.log_bodies.get(message), into.missing);
                (into.strings.intern("log_message"), Value::Str(body))
            }
            number => {
                self.odd(&format!("field {number} of a track event"));
                return;
            }
        };
        self.args_in_progress.push(entry);
    }

    fn add_category(&mut self, all: &mut StrId, count: &mut usize, id: StrId) {
        *count += 1;
        *all = match *count {
            1 => id,
            _ => {
                let strings = &mut self.trace.strings;
                let both = format!("{},{}", strings.get(*all), strings.get(id));
                strings.intern(&both)
            }
        };
    }

    fn point(&mut self, id: u64, phase: Phase, time: i64) {
        let (event, time, name) = (awaited(), Nanos(time), StrId::NONE);
        let point = FlowPoint { id, phase, event, time, name, position: 0 };
        self.trace.flows.points.push(point);
    }

    /// `GpuCorrelation`.
    fn links(&mut self, field: Field<'_>) {
        for (number, field) in field.fields() {
            let kind = match number {
                gpu_correlation::RENDER_STAGE_SUBMISSION_EVENT_IDS => LaunchKind::Submit,
                gpu_correlation::RENDER_STAGE_WAIT_EVENT_IDS => LaunchKind::Wait,
                _ => continue,
            };
            let event = awaited();
            self.trace.flows.links.extend(field.numbers().map(|correlation| LaunchLink {
                event,
                correlation,
                kind,
                api: Api::Unknown,
            }));
        }
    }

    /// Says which event the flows and links from there on belong to.
    fn attach(&mut self, points: usize, links: usize, event: EventRef) {
        self.trace.flows.points[points..].iter_mut().for_each(|point| point.event = event);
        self.trace.flows.links[links..].iter_mut().for_each(|link| link.event = event);
    }

    fn extra(&self, args: Option<ArgsId>, points: usize, links: usize) -> Extra {
        let flows = &self.trace.flows;
        let extra = Extra::new(args, points..flows.points.len(), links..flows.links.len());
        extra.at(self.position)
    }

    fn extra_counters(&mut self, row: usize, time: i64, event: &Event<'_>) {
        if event.extra_values.is_empty() && event.extra_doubles.is_empty() {
            return;
        }
        let sequence = &mut self.sequences[row];
        let either = |own: &Vec<u64>, default: &Vec<u64>| {
            if own.is_empty() { default.clone() } else { own.clone() }
        };
        let whole = either(&event.extra_tracks, &sequence.extra_counters);
        let doubles = either(&event.extra_double_tracks, &sequence.extra_doubles);
        let values = whole
            .into_iter()
            .zip(&event.extra_values)
            .chain(doubles.into_iter().zip(&event.extra_doubles));
        for (uuid, value) in values {
            self.tracks.sample(&mut self.trace, &mut sequence.totals, uuid, time, *value);
        }
    }

    /// Takes note of a `bind_id`.
    fn joint(&mut self, legacy: Option<&Legacy>, event: EventRef, time: i64) {
        if let Some(Legacy { bind: Some(id), direction, .. }) = legacy {
            let (into, out) = (direction & 1 != 0, direction & 2 != 0);
            self.joints.push(Joint { id: *id, time, event, into, out });
        }
    }

    /// The track that an event lies on.
    fn place(
        &mut self,
        row: usize,
        machine: u32,
        event: &Event<'_>,
        legacy: Option<&Legacy>,
    ) -> Option<TrackId> {
        let sequence = &self.sequences[row];
        let uuid = event.track.unwrap_or(sequence.track);
        let thread = match legacy {
            Some(Legacy { pid: Some(pid), tid: Some(tid), .. }) => Some((*pid, *tid)),
            _ => sequence.thread,
        };
        let trace = &mut self.trace;
        let mut track = match thread {
            Some((pid, tid)) if uuid == 0 => {
                let thread = self.tracks.thread(trace, machine, pid, tid);
                trace.threads[thread].track
            }
            _ => self.tracks.get(trace, uuid),
        };
        let Some(legacy) = legacy.filter(|_| event.ty == 0) else {
            return Some(track);
        };
        let process = trace.process_of(track).map(|process| trace.processes[process].track);
        if legacy.of_process
            && let Some(process) = process
        {
            track = process;
        }
        if matches!(legacy.phase, b'b' | b'e' | b'n') {
            let scope = if legacy.scope.is_none() { event.category } else { legacy.scope };
            let key = (process, legacy.id?, scope);
            track = *self
                .tracks
                .legacy
                .entry(key)
                .or_insert_with(|| trace.tracks.push(Track::new(process, event.name)));
        }
        Some(track)
    }

    fn legacy(&mut self, field: Field<'_>) -> Legacy {
        let mut legacy = Legacy::default();
        for (number, field) in field.fields() {
            match number {
                legacy_event::PHASE => legacy.phase = field.uint() as u8,
                legacy_event::DURATION_US => {
                    legacy.duration = Some(field.int().saturating_mul(1000))
                }
                legacy_event::UNSCOPED_ID | legacy_event::LOCAL_ID | legacy_event::GLOBAL_ID => {
                    legacy.id = Some(field.uint())
                }
                legacy_event::ID_SCOPE => {
                    legacy.scope = intern_text(&mut self.trace.strings, field.bytes())
                }
                legacy_event::BIND_ID => legacy.bind = Some(field.uint()),
                legacy_event::BIND_TO_ENCLOSING => legacy.enclosing = field.uint() != 0,
                legacy_event::FLOW_DIRECTION => legacy.direction = field.uint(),
                legacy_event::INSTANT_EVENT_SCOPE => legacy.of_process = field.uint() == 2,
                legacy_event::PID_OVERRIDE => legacy.pid = Some(i64::from(field.int() as i32)),
                legacy_event::TID_OVERRIDE => legacy.tid = Some(i64::from(field.int() as i32)),
                _ => {}
            }
        }
        legacy
    }
}

impl Legacy {
    /// The type of event that a phase amounts to, and the duration of a complete one.
    fn kind(&self) -> (u64, Option<i64>) {
        match self.phase {
            b'B' | b'b' => (BEGIN, None),
            b'E' | b'e' => (END, None),
            b'X' => (BEGIN, self.duration),
            b'I' | b'i' | b'R' | b'n' => (INSTANT, None),
            _ => (0, None),
        }
    }
}

fn known(id: Option<&StrId>, missing: &mut u64) -> StrId {
    id.copied().unwrap_or_else(|| {
        *missing += 1;
        StrId::NONE
    })
}
