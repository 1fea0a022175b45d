//! Beginnings and ends in pairs: `B` and `E`, `b` and `e`, `S` and `F`.
//!
//! Chrome writes what each thread has gathered, one thread after the other, so an end may stand
//! before its beginning. The events of a row are therefore kept until the file has been read, and
//! then paired in the order of time, those of one time in the order of the file. As in
//! trace_processor, an end closes the innermost open slice whose name and category are the end's,
//! where the end has them.
//!
//! Async slices of different ids overlap as they like. What belongs together, an outermost slice
//! and all that lies in it, gets a lane: a track that is free again when the outermost slice has
//! ended.

use crate::order::Order as _;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

use super::line::write_text;
use super::rows::{Id, Place, RowKind, Rows};
use crate::json::write_micros;
use crate::trace::{
    ArgsId, InstantId, Leftover, Nanos, Position, SliceId, StrId, Trace, Track, TrackId, Value,
};

/// What pairs events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Key {
    /// The thread.
    Sync(Id, Id),
    /// Process, if the id counts only there; category, scope and id.
    Async(Id, StrId, StrId, StrId),
}

/// An event of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) time: i64,
    /// Its `pid` and `tid`: see [`Pairs::row`].
    pub(super) row: u32,
    pub(super) name: StrId,
    pub(super) category: StrId,
    /// `S` or `F`, as `b` and `e` were called once.
    pub(super) old: bool,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Begin(SliceId),
    End(Option<ArgsId>, Position),
    Instant(InstantId),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    rows: Vec<Row>,
    numbers: HashMap<Key, u32>,
    last: Option<(Key, u32)>,
    /// `pid` and `tid` of events.
    ids: Vec<(Id, Id)>,
    id_numbers: HashMap<(Id, Id), u32>,
}

#[derive(Debug)]
struct Row {
    /// The process that async slices lie under.
    process: Option<Id>,
    moments: Vec<Moment>,
}

/// How many open slices an end looks at: trace_processor's stack is no deeper.
const DEEPEST: usize = 512;

impl Pairs {
    /// The number of a `pid` and a `tid`.
    pub(super) fn row(&mut self, ids: (Id, Id)) -> u32 {
        if let Some(last) = self.ids.len().checked_sub(1)
            && self.ids[last] == ids
        {
            return last as u32;
        }
        *self.id_numbers.entry(ids).or_insert_with(|| {
            self.ids.push(ids);
            self.ids.len() as u32 - 1
        })
    }

    pub(super) fn add(&mut self, key: Key, process: Option<Id>, moment: Moment) {
        let number = match self.last.filter(|(last, _)| *last == key) {
            Some((_, number)) => number,
            None => *self.numbers.entry(key).or_insert_with(|| {
                self.rows.push(Row { process, moments: Vec::new() });
                self.rows.len() as u32 - 1
            }),
        };
        self.last = Some((key, number));
        let row = &mut self.rows[number as usize];
        row.process = row.process.or(process);
        row.moments.push(moment);
    }

    /// Pairs everything. Says how many ends had no beginning.
    pub(super) fn finish(self, trace: &mut Trace, rows: &mut Rows) -> u64 {
        let mut unmatched = 0;
        let mut groups: Vec<Group> = Vec::new();
        let mut strays: Vec<(usize, Moment)> = Vec::new();
        for (number, mut row) in self.rows.into_iter().enumerate() {
            if !row.moments.is_sorted_by_key(|moment| moment.time) {
                row.moments.sort_by_key(|moment| moment.time);
            }
            let mut stack = Stack { trace, open: Vec::new(), ended: Vec::new(), group: None };
            for moment in &row.moments {
                // On a thread a slice may end after the one around it; an id begins anew.
                if row.process.is_some() {
                    stack.close(moment.time, &mut groups);
                }
                match moment.what {
                    What::Begin(slice) => {
                        if let Some(process) = row.process {
                            stack.join(&mut groups, process, moment, Ok(slice));
                        }
                        stack.open.push(Open { slice, moment: *moment, ended: false });
                    }
                    What::End(args, position) => {
                        let begun = stack.end(moment, args, position, &mut groups);
                        unmatched += u64::from(begun.is_none());
                        if begun != Some(moment.row) {
                            strays.push((number, *moment));
                        }
                    }
                    What::Instant(instant) => {
                        if let Some(process) = row.process {
                            stack.join(&mut groups, process, moment, Err(instant));
                            stack.leave(&mut groups, moment.time);
                        }
                    }
                }
            }
        }
        deal(groups, trace, rows);
        let keys: HashMap<u32, Key> = match strays.is_empty() {
            true => HashMap::new(),
            false => self.numbers.into_iter().map(|(key, number)| (number, key)).collect(),
        };
        for (number, moment) in strays {
            if let Some(key) = keys.get(&(number as u32)) {
                keep(trace, *key, self.ids[moment.row as usize], &moment);
            }
        }
        trace.leftovers.order_by_key(|leftover| leftover.position);
        trace.leftovers.dedup_by_key(|leftover| leftover.position);
        unmatched
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    slice: SliceId,
    moment: Moment,
    /// Whether it has, but not all that lies in it.
    ended: bool,
}

/// The open slices of a row.
struct Stack<'a> {
    trace: &'a mut Trace,
    open: Vec<Open>,
    /// Those of them that have ended, by their place, and when.
    ended: Vec<(usize, i64)>,
    group: Option<usize>,
}

impl Stack<'_> {
    /// Gives up what is open in slices that ended before `time`.
    fn close(&mut self, time: i64, groups: &mut [Group]) {
        let over = self.ended.iter().filter(|(_, end)| *end < time).map(|(place, _)| *place);
        if let Some(first) = over.min() {
            self.open.truncate(first);
            self.ended.retain(|(place, _)| *place < first);
            self.leave(groups, time);
        }
    }

    /// Ends a slice; says on which row it began. None: there is no such slice.
    fn end(
        &mut self,
        moment: &Moment,
        args: Option<ArgsId>,
        position: Position,
        groups: &mut [Group],
    ) -> Option<u32> {
        let fits = |open: &Open| {
            !open.ended
                && (moment.name.is_none() || open.moment.name == moment.name)
                && (moment.category.is_none() || open.moment.category == moment.category)
        };
        let above = self.open.iter().rev().take(DEEPEST).position(fits)?;
        let at = self.open.len() - 1 - above;
        let Open { slice: id, moment: Moment { row, .. }, .. } = self.open[at];
        let mut slice = self.trace.slices.get(id);
        slice.dur = Nanos(moment.time.saturating_sub(slice.start.0).max(0));
        slice.args = self.trace.args.join(slice.args, args);
        self.trace.slices.set(id, slice);
        self.trace.slices.set_end_position(id, Some(position));
        self.open[at].ended = true;
        if above == 0 {
            while self.open.last().is_some_and(|open| open.ended) {
                self.open.pop();
            }
            self.ended.retain(|(place, _)| *place < self.open.len());
        } else {
            self.ended.push((at, moment.time));
        }
        self.leave(groups, moment.time);
        Some(row)
    }

    /// Puts an event into the group that is open, or a new one.
    fn join(
        &mut self,
        groups: &mut Vec<Group>,
        process: Id,
        moment: &Moment,
        member: Result<SliceId, InstantId>,
    ) {
        let group = *self.group.get_or_insert_with(|| {
            let Moment { time, name, category, .. } = *moment;
            let lane = (process, category, name);
            groups.push(Group { lane, start: time, end: None, members: Vec::new() });
            groups.len() - 1
        });
        groups[group].members.push(member);
    }

    /// Ends the group when nothing is open any more.
    fn leave(&mut self, groups: &mut [Group], time: i64) {
        if let Some(group) = self.group.filter(|_| self.open.is_empty()) {
            groups[group].end = Some(time);
            self.group = None;
        }
    }
}

/// Keeps an end for a conversion back to JSON: one without a beginning, or on another row. What
/// the slice of the latter has of it, its arguments, it has.
fn keep(trace: &mut Trace, key: Key, (pid, tid): (Id, Id), end: &Moment) {
    let What::End(args, position) = end.what else { return };
    let mut text = String::from("{");
    match key {
        Key::Sync(..) => text += "\"ph\": \"E\"",
        Key::Async(_, _, scope, id) => {
            let id = trace.strings.get(id);
            let name = if id.starts_with('{') { "id2" } else { "id" };
            let old = end.old;
            text += &format!("\"ph\": \"{}\", \"{name}\": {id}", if old { 'F' } else { 'e' });
            if !old && !scope.is_none() {
                text += &format!(", \"scope\": {}", write_text(trace, Value::Str(scope)));
            }
        }
    }
    for (name, id) in [("name", end.name), ("cat", end.category)] {
        if !id.is_none() {
            text += &format!(", \"{name}\": {}", write_text(trace, Value::Str(id)));
        }
    }
    for (name, id) in [("pid", pid), ("tid", tid)] {
        match id {
            Id::Int(n) => text += &format!(", \"{name}\": {n}"),
            Id::Text(id) => text += &format!(", \"{name}\": {}", write_text(trace, Value::Str(id))),
            Id::None => {}
        }
    }
    let mut time = Vec::new();
    write_micros(&mut time, end.time);
    text += &format!(", \"ts\": {}", String::from_utf8_lossy(&time));
    let entries: Vec<(StrId, Value)> = trace.args.entries(args).collect();
    if !entries.is_empty() {
        let args = trace.args.dict(&entries);
        text += &format!(", \"args\": {}", write_text(trace, args));
    }
    text += "}";
    let text = trace.strings.intern(&text);
    trace.leftovers.push(Leftover { position: position.number, text });
}

/// Async events that lie in each other.
#[derive(Debug)]
struct Group {
    /// Process, category and name of the outermost: such groups share lanes.
    lane: (Id, StrId, StrId),
    start: i64,
    /// None: it never ended.
    end: Option<i64>,
    members: Vec<Result<SliceId, InstantId>>,
}

/// The lanes of one kind of group.
#[derive(Default)]
struct Lanes {
    tracks: Vec<TrackId>,
    busy: BinaryHeap<Reverse<(i64, usize)>>,
    free: BinaryHeap<Reverse<usize>>,
}

/// Gives each group the first lane that is free.
fn deal(mut groups: Vec<Group>, trace: &mut Trace, rows: &mut Rows) {
    groups.order_by_key(|group| group.start);
    let mut kinds: HashMap<(Id, StrId, StrId), Lanes> = HashMap::new();
    for group in groups {
        let lanes = kinds.entry(group.lane).or_default();
        while let Some(Reverse((_, lane))) = lanes.busy.pop_if_over(group.start) {
            lanes.free.push(Reverse(lane));
        }
        let lane = match lanes.free.pop() {
            Some(Reverse(lane)) => lane,
            None => {
                let track = new_lane(trace, rows, group.lane, lanes.tracks.first().copied());
                lanes.tracks.push(track);
                lanes.tracks.len() - 1
            }
        };
        if let Some(end) = group.end {
            lanes.busy.push(Reverse((end, lane)));
        }
        let track = lanes.tracks[lane];
        for member in group.members {
            match member {
                Ok(slice) => {
                    let row = trace.slices.get(slice);
                    trace.slices.set(slice, crate::trace::Slice { track, ..row });
                }
                Err(instant) => trace.instants.set_track(instant, track),
            }
        }
    }
}

trait PopIfOver {
    fn pop_if_over(&mut self, time: i64) -> Option<Reverse<(i64, usize)>>;
}

impl PopIfOver for BinaryHeap<Reverse<(i64, usize)>> {
    /// The lane whose group ended first, if it has by `time`.
    fn pop_if_over(&mut self, time: i64) -> Option<Reverse<(i64, usize)>> {
        self.peek().is_some_and(|Reverse((end, _))| *end <= time).then(|| self.pop())?
    }
}

fn new_lane(
    trace: &mut Trace,
    rows: &mut Rows,
    (process, category, name): (Id, StrId, StrId),
    first: Option<TrackId>,
) -> TrackId {
    match first {
        Some(first) => {
            let Track { parent, name, description, .. } = trace.tracks[first];
            trace.tracks.push(Track { description, ..Track::new(parent, name) })
        }
        None => match rows.place(trace, RowKind::Async(category, name), process, Id::None) {
            Place::Track(track) => track,
            // Rows of async events are tracks: see `Rows::make`.
            Place::Queue(_) => rows.track(trace, process, Id::None),
        },
    }
}
