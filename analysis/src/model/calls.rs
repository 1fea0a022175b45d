//! The call tree of each thread.

use kymograph_converters::order::Order as _;

use hashbrown::HashMap;

use super::{Events, Model, NONE, Reading};

/// A thread, and its part of [`Calls::order`].
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its process.
    pub pid: i64,
    /// Its number.
    pub tid: i64,
    /// Its events, callers before what they call.
    pub rows: std::ops::Range<usize>,
    /// The first of its events in the trace, device events under its number included.
    pub first: u32,
}

/// Who called whom, by what lies within what on a thread.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The caller of each event; [`NONE`] for those without one, and for device work.
    pub parents: Vec<u32>,
    /// The events of the host, thread by thread, callers before what they call.
    pub order: Vec<u32>,
    /// The threads, by process and number.
    pub threads: Vec<Thread>,
}

impl Calls {
    pub(super) fn of(model: &Model<'_>) -> Calls {
        let events = &model.events;
        let mut calls = Calls { parents: vec![NONE; events.len()], ..Calls::default() };
        for ((pid, tid), mut rows) in threads(model) {
            let Some(first) = rows.first().copied() else { continue };
            rows.retain(|row| !events.on_device(*row));
            sort(events, &mut rows);
            match model.reading {
                Reading::Exact => nest(events, &rows, &mut calls.parents),
                Reading::Hta(_) => nest_by_count(events, &rows, &mut calls.parents),
            }
            let before = calls.order.len();
            calls.order.extend(rows);
            calls.threads.push(Thread { pid, tid, rows: before..calls.order.len(), first });
        }
        calls
    }

    /// The caller of an event.
    pub fn parent(&self, row: u32) -> Option<u32> {
        self.parents.get(row as usize).copied().filter(|parent| *parent != NONE)
    }

    /// The callers of an event, from the innermost outwards.
    pub fn callers(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.parent(row), |row| self.parent(*row))
    }
}

/// The events of each thread, those of the lowest process and thread first.
fn threads(model: &Model<'_>) -> Vec<((i64, i64), Vec<u32>)> {
    let events = &model.events;
    let mut all: HashMap<(i64, i64), Vec<u32>> = HashMap::new();
    for row in 0..events.len() as u32 {
        let lane = events.lane(row);
        if lane.thread || model.reading.hta().is_some() {
            all.entry((lane.pid, lane.tid)).or_default().push(row);
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    if model.reading.hta().is_some() {
        all.retain(|((pid, tid), rows)| {
            let on_streams = rows.iter().all(|row| events.streams[*row as usize] > 0);
            !on_streams && *pid != 0 && *tid != 0
        });
    }
    all.sort_unstable_by_key(|(id, _)| *id);
    all
}

/// In the order in which they begin, the longest first; what takes no time after what does.
fn sort(events: &Events, rows: &mut [u32]) {
    rows.order_by_numbers(|row| {
        let at = *row as usize;
        let dur = events.durs[at];
        [events.starts[at], (dur == 0).into(), !dur, events.positions[at].into()]
    });
}

/// The innermost of some events of a thread that are in the order of [`sort`] around each of
/// them; what ends where another begins counts as around it. For searches.
pub(crate) fn chains(events: &Events, rows: &[u32]) -> Vec<usize> {
    let mut open: Vec<usize> = Vec::new();
    let mut outer = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        let start = events.starts[*row as usize];
        while open.last().is_some_and(|top| events.end(rows[*top]) < start) {
            open.pop();
        }
        outer.push(open.last().copied().unwrap_or(usize::MAX));
        open.push(place);
    }
    outer
}

/// The innermost event around each. Where two cross, the later one counts as called by the
/// earlier one.
fn nest(events: &Events, rows: &[u32], parents: &mut [u32]) {
    let mut open: Vec<u32> = Vec::new();
    for row in rows {
        let start = events.starts[*row as usize];
        while open.last().is_some_and(|top| events.end(*top) <= start) {
            open.pop();
        }
        parents[*row as usize] = open.last().copied().unwrap_or(NONE);
        if events.durs[*row as usize] > 0 {
            open.push(*row);
        }
    }
}

/// Likewise, as HTA does it: each end closes what was opened last, whose end it may not be.
/// What takes no time may lie at the end of something, and in something else that takes none.
pub(crate) fn nest_by_count(events: &Events, rows: &[u32], parents: &mut [u32]) {
    let mut ends: Vec<(i64, bool)> =
        rows.iter().map(|row| (events.end(*row), events.durs[*row as usize] == 0)).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut open: Vec<u32> = Vec::new();
    for row in rows {
        let (start, empty) = (events.starts[*row as usize], events.durs[*row as usize] == 0);
        let ended =
            |(end, of_empty): &(i64, bool)| *end < start || *end == start && !empty && !of_empty;
        while ends.next_if(ended).is_some() {
            open.pop();
        }
        parents[*row as usize] = open.last().copied().unwrap_or(NONE);
        open.push(*row);
    }
}
