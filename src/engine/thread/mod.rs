//! One recording thread: turns its records into packets of its sequence.
//!
//! Slices on a thread's track must nest. Scopes do, and so do the ranges of one NVTX or
//! ITT domain; ranges of two domains on one thread may cross. See [`super::nesting`] for
//! which of them get a track of their own, and [`rows`] for the tracks' names.

use std::collections::HashMap;

use kymograph_protos::packet::{Event, EventType, Name, Sequence};
use kymograph_protos::record::{Kind, OPERATOR, Record, Slot, StrId};

use super::context::Context;
use super::edges::crossing::{self, Edges};
use super::nesting::{self, Open, Pass, Place};
use super::record::{Decoded, category, record_len, stack_of};
use super::spans::computes_gradients;
use super::window::Side;
use crate::queue::Reader;

mod rows;

/// Slots held back at most while an end is awaited.
pub(super) const MAX_HELD: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub struct Thread {
    pub reader: Reader,
    pub sequence: Sequence,
    pub tid: u32,
    /// Events written, and how many there were at the last [`Thread::has_recorded`].
    pub events: u64,
    asked: u64,
    /// Whether it told of what devices did.
    pub devices: bool,
    uuid: u64,
    name: Vec<u8>,
    /// Whether the program gave the name.
    named: bool,
    /// What the program called it, apart from what it recorded, when it recorded first.
    pub given: Option<Vec<u8>>,
    described: bool,
    /// Slices open on the thread's own track, and those that are undecided: how many, below.
    pub(super) stack: Vec<Open>,
    pub(super) undecided: usize,
    /// Slices open on side tracks, by nesting stack.
    pub(super) sides: HashMap<StrId, Vec<Open>>,
    /// Side tracks that were described.
    siblings: Vec<u64>,
    /// Records waiting for an end to be known.
    held: Vec<Slot>,
    pub(super) last_time: u64,
    /// The nesting stack of the open leaf whose beginning was written, and comes once more.
    peeked: Option<StrId>,
    /// Losses that `Lost` records told of.
    told: u64,
    /// Its number among those whose ranges devices show; 0 until it has one.
    pub line: u32,
    /// What crosses the edges of the window.
    pub edges: Edges,
    decoded: Decoded,
}

impl Thread {
    /// `correlation`: what calls that launched device work say its number by.
    pub fn new(
        reader: Reader,
        sequence: u32,
        uuid: u64,
        name: Vec<u8>,
        correlation: StrId,
    ) -> Thread {
        Thread {
            tid: reader.tid(),
            events: 0,
            asked: 0,
            devices: false,
            reader,
            sequence: Sequence::new(sequence),
            uuid,
            name,
            named: false,
            given: None,
            described: false,
            stack: Vec::new(),
            undecided: 0,
            sides: HashMap::new(),
            siblings: Vec::new(),
            held: Vec::new(),
            last_time: 0,
            peeked: None,
            told: 0,
            line: 0,
            edges: Edges::default(),
            decoded: Decoded::saying(correlation),
        }
    }

    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many of `dropped` losses no `Lost` record told of.
    pub fn untold(&self, dropped: u64) -> u64 {
        dropped.saturating_sub(self.told)
    }

    /// Turns `fresh`, the slots just drained, into packets.
    pub fn process(&mut self, fresh: &[Slot], pass: Pass, cx: &mut Context<'_>) {
        if self.held.is_empty() {
            let used = self.process_slots(fresh, pass, cx);
            self.held.extend_from_slice(&fresh[used..]);
        } else if !fresh.is_empty() || pass != Pass::Normal {
            let mut slots = std::mem::take(&mut self.held);
            slots.extend_from_slice(fresh);
            let full = slots.len() > MAX_HELD && pass == Pass::Normal;
            let used = self.process_slots(&slots, if full { Pass::Flush } else { pass }, cx);
            slots.drain(..used);
            self.held = slots;
        }
    }

    /// Writes the slice that is open and not yet drained, so that it is in the file even
    /// if the process dies inside it.
    pub fn process_leaf(&mut self, leaf: &mut Vec<Slot>, pass: Pass, cx: &mut Context<'_>) {
        leaf.clear();
        // Whether it lies in a window is not known before it is published.
        let known = pass == Pass::Last || !cx.bounds.captures;
        if known
            && self.peeked.is_none()
            && self.held.is_empty()
            && self.reader.peek_leaf(&cx.origin.pool, leaf)
        {
            let head: Record = bytemuck::cast(leaf[0]);
            cx.origin.learn_names();
            cx.look();
            if !cx.is_inside(&head) {
                // It will be drained some day; at the end it may reach into the window.
                if pass == Pass::Last {
                    self.process_slots(leaf, pass, cx);
                }
            } else if self.process_slots(leaf, pass, cx) > 0 {
                self.peeked = Some(stack_of(&head, cx.strings));
            }
        }
    }

    /// Returns how many slots were used up.
    fn process_slots(&mut self, slots: &[Slot], pass: Pass, cx: &mut Context<'_>) -> usize {
        let mut decoded = std::mem::take(&mut self.decoded);
        let events = cx.totals.events;
        let mut at = 0;
        while let Some(len) = record_len(&slots[at..]) {
            let rest = &slots[at..];
            let (head, kind) = decoded.read(rest, cx.strings);
            if cx.restarts {
                decoded.leave_flows_open();
            }
            if self.edges.wait() && cx.is_inside(&head) {
                self.open_early(cx);
            }
            match kind {
                _ if !cx.is_inside(&head)
                    && !self.reaches_in(&head, kind, &mut decoded, &rest[..len], cx) => {}
                None => cx.totals.unknown += 1,
                Some(kind) => {
                    if kind == Kind::Scope && cx.outlasts(&head) {
                        crossing::mark(&mut decoded, &cx.origin.texts, Side::Closes);
                    }
                    if !self.record(&head, kind, &decoded, rest, pass, cx) {
                        break;
                    }
                }
            }
            at += len;
        }
        self.decoded = decoded;
        self.events += cx.totals.events - events;
        at
    }

    /// Writes one record. Returns false if it has to wait for what comes after it.
    fn record(
        &mut self,
        head: &Record,
        kind: Kind,
        decoded: &Decoded,
        rest: &[Slot],
        pass: Pass,
        cx: &mut Context<'_>,
    ) -> bool {
        // The one that was peeked is the innermost itself.
        let follows = self.undecided > 0 && self.peeked.is_none();
        if follows && !self.may_follow(head, kind, rest, pass, cx) {
            return false;
        }
        match kind {
            Kind::Scope => match self.peeked.take() {
                // Its arguments and arrows were written with its beginning.
                Some(stack) => self.end(stack, head.other, &Decoded::default(), cx),
                None => self.scope(head, decoded, cx),
            },
            // Written when it was peeked.
            Kind::Begin | Kind::Push if self.peeked.take().is_some() => {}
            Kind::Begin | Kind::Push => {
                let stack = stack_of(head, cx.strings);
                let pass = (pass, cx.is_recent(head));
                let place = match self.sides.get(&stack) {
                    Some(side) if !side.is_empty() => Some(Place::Aside),
                    _ => nesting::place(&self.stack, stack, rest, pass, cx.strings),
                };
                match place {
                    None => return false,
                    Some(Place::Undecided) => {
                        self.begin(stack, self.undecided_place(), head, decoded, rest, cx);
                    }
                    Some(place) => self.begin(stack, place, head, decoded, rest, cx),
                }
            }
            Kind::End => self.end(StrId::NONE, head.time, decoded, cx),
            Kind::Pop => self.end(head.site, head.time, decoded, cx),
            Kind::Instant | Kind::Note if decoded.track == 0 => {
                cx.totals.events += 1;
                if kind == Kind::Note {
                    cx.process.note(decoded.text(head.site, cx.strings));
                }
                let time = cx.time(head, head.time);
                self.emit(EventType::Instant, time, 0, head, decoded, cx);
            }
            Kind::ThreadName if head.arg == 0 || head.arg == u64::from(self.tid) => {
                self.rename(decoded.text(head.site, cx.strings));
                self.ready(cx);
            }
            Kind::Lost => self.lost(head.arg, cx),
            _ => {
                self.devices |= kind == Kind::Device;
                self.ready(cx);
                cx.shared_record(head, kind, decoded, rest, &mut self.sequence);
            }
        }
        true
    }

    /// A slice that began and ended with nothing in between.
    fn scope(&mut self, head: &Record, decoded: &Decoded, cx: &mut Context<'_>) {
        cx.totals.events += 1;
        let begin = self.in_order(cx.time(head, head.time), cx);
        let end = self.in_order(cx.time(head, head.other), cx);
        let track = match self.sides.get(&category(head, cx.strings)).and_then(|s| s.last()) {
            Some(parent) => parent.track,
            None => self.track_at(self.stack.len(), cx),
        };
        self.emit(EventType::Begin, begin, track, head, decoded, cx);
        self.launched(decoded, begin, cx);
        let event =
            Event { track, name: decoded.name(head.site), ..Event::new(EventType::End, end) };
        self.sequence.event(cx.out, cx.strings, &event);
        cx.took(event.name, end - begin);
    }

    /// Slices open on the thread's own track.
    pub fn open(&self) -> &[Open] {
        &self.stack
    }

    /// When it recorded last, as far as is known.
    pub fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Whether it wrote anything since this was last asked.
    pub fn has_recorded(&mut self) -> bool {
        std::mem::replace(&mut self.asked, self.events) != self.events
    }

    /// The process is gone: what is open ends at this time.
    #[cold]
    pub fn close(&mut self, at: u64, decoded: &Decoded, cx: &mut Context<'_>) {
        let time = at.max(self.last_time);
        let mut sides: Vec<_> = self.sides.drain().collect();
        sides.sort_unstable_by_key(|(stack, _)| stack.0);
        let aside = sides.into_iter().flat_map(|(_, open)| open.into_iter().rev());
        let open: Vec<Open> = aside.chain(self.stack.drain(..).rev()).collect();
        open.iter().for_each(|open| self.emit_end(open, time, decoded, cx));
    }

    /// The leaf that was peeked at is none of this recording's.
    pub fn forget_peeked(&mut self) {
        self.peeked = None;
    }

    /// A slice begins.
    pub fn begin(
        &mut self,
        stack: StrId,
        place: Place,
        head: &Record,
        decoded: &Decoded,
        record: &[Slot],
        cx: &mut Context<'_>,
    ) {
        cx.totals.events += 1;
        let time = self.in_order(cx.time(head, head.time), cx);
        let track = match place {
            Place::Thread => self.track_at(self.stack.len(), cx),
            Place::Aside => self.side_track(stack, cx),
            Place::Undecided => 0,
        };
        let written = place != Place::Undecided;
        let mut begun = cx.begun(time, head, record);
        if written {
            self.emit(EventType::Begin, time, track, head, decoded, cx);
        } else {
            self.undecided += 1;
            begun.record = record[..1 + head.tail as usize].into();
        }
        let bytes = match decoded.name(head.site) {
            Name::Bytes(bytes) => Some(bytes.into()),
            Name::Id(_) => None,
        };
        let mut span = None;
        // A call that launches is no range, though one that is under way begins like one.
        if head.tag & OPERATOR == 0 && decoded.launched.is_empty() {
            cx.process.steps.range(decoded.text(head.site, cx.strings));
            let side = if place == Place::Thread { StrId::NONE } else { stack };
            let spans = &mut cx.process.spans;
            let at = (time, self.tid == cx.process.pid);
            span = spans.begin(&mut self.line, head.site, bytes.clone(), side, at).then_some(side);
            spans.named(self.line, &self.name);
        }
        self.launched(decoded, time, cx);
        let slices = match place {
            Place::Aside => self.sides.entry(stack).or_default(),
            _ => &mut self.stack,
        };
        let uniform = slices.last().is_none_or(|top| top.uniform && top.stack == stack);
        let (site, watched) = (head.site, false);
        slices.push(Open { site, bytes, stack, track, uniform, written, span, watched, begun });
    }

    /// Device work was asked for inside the ranges that are open.
    #[inline]
    fn launched(&self, decoded: &Decoded, time: u64, cx: &mut Context<'_>) {
        for launch in &decoded.launched {
            let at = (time, computes_gradients(&self.name));
            cx.process.spans.launch(self.line, *launch, at, cx.clocks.boottime);
        }
    }

    /// The innermost slice of `stack` ends.
    fn end(&mut self, stack: StrId, ticks: u64, decoded: &Decoded, cx: &mut Context<'_>) {
        let time = self.in_order(cx.nanos(ticks), cx);
        if let Some(open) = self.sides.get_mut(&stack).and_then(Vec::pop) {
            return self.emit_end(&open, time, decoded, cx);
        }
        let Some(at) = self.stack.iter().rposition(|open| open.stack == stack) else {
            cx.totals.unmatched_ends += 1;
            return;
        };
        let mut ended = self.stack.split_off(at).into_iter();
        let target = ended.next();
        // Of slices inside it that have not ended, those that are undecided turn out to cross
        // it. Others end with it; their own ends will find none.
        let (misnested, crossing): (Vec<_>, Vec<_>) = ended.partition(|open| open.written);
        crossing.into_iter().for_each(|open| self.put_aside(open, cx));
        for open in misnested.into_iter().rev() {
            cx.totals.misnested += 1;
            self.emit_end(&open, time, &Decoded::default(), cx);
        }
        if let Some(mut open) = target {
            self.decide(&mut open, at, cx);
            self.emit_end(&open, time, decoded, cx);
        }
    }

    fn emit_end(&mut self, open: &Open, time: u64, decoded: &Decoded, cx: &mut Context<'_>) {
        let name = open.bytes.as_deref().map_or(Name::Id(open.site), Name::Bytes);
        if let Some(side) = open.span {
            cx.process.spans.end(self.line, side, time);
        }
        self.ready(cx);
        decoded.with_args(|args| {
            let event = Event {
                track: open.track,
                name,
                args,
                flows: &decoded.flows,
                flow_ends: &decoded.flow_ends,
                ..Event::new(EventType::End, time)
            };
            self.sequence.event(cx.out, cx.strings, &event);
        });
        if !open.watched {
            cx.took(name, time.saturating_sub(open.begun.time));
        }
    }

    fn emit(
        &mut self,
        ty: EventType,
        time: u64,
        track: u64,
        head: &Record,
        decoded: &Decoded,
        cx: &mut Context<'_>,
    ) {
        self.ready(cx);
        let category = category(head, cx.strings);
        let gpu = cx.process.devices.correlation(decoded);
        decoded.with_args(|args| {
            let event = Event {
                track,
                category,
                name: decoded.name(head.site),
                args,
                flows: &decoded.flows,
                flow_ends: &decoded.flow_ends,
                gpu,
                ..Event::new(ty, time)
            };
            self.sequence.event(cx.out, cx.strings, &event);
        });
    }

    /// Says that `lost` events of this thread are missing at this point.
    pub fn lost(&mut self, lost: u64, cx: &mut Context<'_>) {
        self.told += lost;
        self.sequence.restart(cx.out, self.uuid, &cx.stated, cx.clocks.boottime, true);
        let name = format!("{lost} records lost");
        let time = self.last_time.max(cx.converter.nanos(cx.started));
        self.ready(cx);
        let name = Name::Bytes(name.as_bytes());
        self.sequence.event(
            cx.out,
            cx.strings,
            &Event { name, ..Event::new(EventType::Instant, time) },
        );
    }

    /// The processor may read its counter a little early for one of two neighbouring
    /// records: on one thread, time does not run backwards.
    fn in_order(&mut self, time: u64, cx: &mut Context<'_>) -> u64 {
        if time < self.last_time {
            cx.totals.clamped += 1;
        } else {
            self.last_time = time;
        }
        self.last_time
    }

    /// Tells the watch of slices that take too long already.
    pub fn watch(&mut self, now: u64, cx: &mut Context<'_>) {
        let sides = self.sides.values_mut().flatten();
        for open in self.stack.iter_mut().chain(sides).filter(|open| !open.watched) {
            let name = open.bytes.as_deref().map_or(Name::Id(open.site), Name::Bytes);
            open.watched = cx.took(name, now.saturating_sub(open.begun.time));
        }
    }
}
