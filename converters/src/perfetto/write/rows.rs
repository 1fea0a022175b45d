//! The events of the host, track by track.

use hashbrown::{HashMap, HashSet};

use super::flows::{Arrows, Drawn, drawn_time};
use super::lanes::{self, Lane};
use super::memory::is_of_memory;
use crate::chrome::FOREIGN;
use crate::trace::{
    EventRef, FlowPoint, InstantId, SliceId, Span, Spans, Trace, TrackId, TrackKind,
};

/// What lies on a track.
pub struct TrackRow {
    pub track: TrackId,
    /// At least one; the first is the track itself.
    pub lanes: Vec<Lane>,
    pub instants: Vec<InstantId>,
    /// Ends of arrows that are drawn as events of their own, in the order of time.
    pub flows: Vec<u32>,
}

/// Deals out all events of the host.
pub fn rows(trace: &Trace) -> Vec<TrackRow> {
    let slices = trace.slices.by_track();
    let mut instants: Vec<InstantId> = trace.instants.ids().collect();
    // These have rows of their own.
    instants.retain(|id| !is_of_memory(trace, &trace.instants.get(*id)));
    instants.sort_by_key(|id| {
        let instant = trace.instants.get(*id);
        (instant.track, instant.time)
    });
    let (mut slices, mut instants) = (slices.as_slice(), instants.as_slice());
    let mut rows = Vec::new();
    while let Some(track) = next_track(trace, slices, instants) {
        let is_here = |id: &SliceId| trace.slices.get(*id).track == track;
        let (here, others) = slices.split_at(slices.partition_point(is_here));
        slices = others;
        let is_here = |id: &InstantId| trace.instants.get(*id).track == track;
        let (moments, others) = instants.split_at(instants.partition_point(is_here));
        instants = others;
        let mut lanes = lanes::deal(&trace.slices, here);
        if lanes.is_empty() {
            lanes.push(Lane::new());
        }
        rows.push(TrackRow { track, lanes, instants: moments.to_vec(), flows: Vec::new() });
    }
    rows
}

/// The track that comes next, of two lists that are in the order of tracks.
fn next_track(trace: &Trace, slices: &[SliceId], instants: &[InstantId]) -> Option<TrackId> {
    let slice = slices.first().map(|id| trace.slices.get(*id).track);
    let instant = instants.first().map(|id| trace.instants.get(*id).track);
    slice.into_iter().chain(instant).min()
}

/// The arrows of a trace. Those that can be are drawn as events of their own, and put to the
/// tracks on which they lie.
pub fn arrows(trace: &Trace, rows: &mut [TrackRow]) -> (Arrows, Drawn) {
    if trace.flows.points.iter().all(|point| point.position == 0) {
        return Arrows::new(trace, |_| false);
    }
    let threads = Threads::new(trace, rows);
    let (arrows, drawn) = Arrows::new(trace, |point| threads.bind(trace, point));
    let numbers: HashMap<TrackId, usize> =
        rows.iter().enumerate().map(|(number, row)| (row.track, number)).collect();
    for row in drawn.keys() {
        let point = &trace.flows.points[*row as usize];
        if let EventRef::Slice(id) = point.event
            && let Some(number) = numbers.get(&trace.slices.tracks()[id.index()])
        {
            rows[*number].flows.push(*row);
        }
    }
    for track in rows {
        // Of several at one time those of the outer slices come first.
        track.flows.sort_unstable_by_key(|row| {
            let point = &trace.flows.points[*row as usize];
            let place = match point.event {
                EventRef::Slice(id) => {
                    let dur = trace.slices.durs()[id.index()];
                    Some((trace.slices.start(id), std::cmp::Reverse(dur)))
                }
                _ => None,
            };
            (drawn_time(trace, point), place, point.position)
        });
    }
    (arrows, drawn)
}

/// The slices of threads that arrows have ends at: readers bind arrows on these only.
struct Threads {
    spans: HashMap<TrackId, Spans>,
    /// Slices on other lanes than the first.
    moved: HashSet<SliceId>,
}

impl Threads {
    fn new(trace: &Trace, rows: &[TrackRow]) -> Threads {
        let mut wanted: HashSet<TrackId> = HashSet::new();
        for point in &trace.flows.points {
            if let EventRef::Slice(id) = point.event {
                wanted.insert(trace.slices.tracks()[id.index()]);
            }
        }
        let is_thread = |track: TrackId| matches!(trace.tracks[track].kind, TrackKind::Thread(_));
        wanted.retain(|track| is_thread(*track));
        let (mut spans, mut moved) = (HashMap::new(), HashSet::new());
        for row in rows.iter().filter(|row| wanted.contains(&row.track)) {
            let first = row.lanes.first().into_iter().flatten().map(|id| {
                let end = trace.slices.end(*id).map_or(i64::MAX, |end| end.0);
                (trace.slices.start(*id).0, end, EventRef::Slice(*id))
            });
            spans.insert(row.track, Spans::new(first.collect::<Vec<Span>>()));
            moved.extend(row.lanes.iter().skip(1).flatten());
        }
        Threads { spans, moved }
    }

    /// Whether an end of an arrow would bind to its slice by its time alone.
    fn bind(&self, trace: &Trace, point: &FlowPoint) -> bool {
        let EventRef::Slice(id) = point.event else { return false };
        let name = trace.strings.get(point.name);
        let time = drawn_time(trace, point);
        if name.is_empty() || name.starts_with(FOREIGN) || self.moved.contains(&id) {
            return false;
        }
        let Some(spans) = self.spans.get(&trace.slices.tracks()[id.index()]) else { return false };
        let innermost = spans.bound(time.0, true);
        // What begins at that very time comes after it.
        let begins = |event| match event {
            EventRef::Slice(id) => trace.slices.start(id) == time,
            _ => false,
        };
        innermost == Some(point.event) || innermost.is_some_and(begins)
    }
}
