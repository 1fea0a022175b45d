//! Steps that we count, as PyTorch's own profiler has them: annotations on the thread that trains.
//!
//! A recording has them in a row of their own. They end where an optimizer says so, which is
//! inside of its own annotation; so the end of a step, and the beginning of the next, move to the
//! end of what began in the step and is open there. Slices of a thread nest in these files.

use crate::order::Order as _;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter::Peekable;

use crate::trace::{Nanos, ProcessId, Slice, SliceId, Trace, TrackId};

/// The category of our steps.
pub(super) const STEP: &str = "ProfilerStep";

/// Steps by their slices, as they are to be written.
pub(super) fn place(trace: &Trace) -> HashMap<SliceId, Slice> {
    let mut placed = HashMap::new();
    let Some(category) = trace.strings.find(STEP) else { return placed };
    let mut rows: HashMap<TrackId, Vec<SliceId>> = HashMap::new();
    for id in trace.slices.ids() {
        let slice = trace.slices.get(id);
        let thread = || trace.process_of(slice.track).and_then(|process| main(trace, process));
        if slice.category == category
            && slice.dur.is_finished()
            && trace.slices.position(id).is_none()
            && let Some(track) = thread()
        {
            rows.entry(track).or_default().push(id);
        }
    }
    for (track, mut steps) in rows {
        steps.order_by_key(|id| trace.slices.get(*id).start);
        let times = steps.iter().map(|id| trace.slices.get(*id));
        let times: Vec<_> = times.map(|step| (step.start.0, (step.start + step.dur).0)).collect();
        for (id, (start, end)) in steps.into_iter().zip(nest(&around(trace, track), &times)) {
            let dur = Nanos(end - start);
            let slice = trace.slices.get(id);
            placed.insert(id, Slice { track, start: Nanos(start), dur, ..slice });
        }
    }
    placed
}

/// The track of a process's main thread, else that of its first one.
fn main(trace: &Trace, process: ProcessId) -> Option<TrackId> {
    let pid = trace.processes[process].pid;
    let own = || trace.threads.iter().filter(|(_, thread)| thread.process == process);
    let main = own().find(|(_, thread)| thread.tid == pid).or_else(|| own().next());
    main.map(|(_, thread)| thread.track)
}

/// Beginnings and ends of the slices of a track, those around others first.
fn around(trace: &Trace, track: TrackId) -> Vec<(i64, i64)> {
    let slices = trace.slices.ids().map(|id| trace.slices.get(id));
    let on_it = slices.filter(|slice| slice.track == track && slice.dur.is_finished());
    let mut times: Vec<_> = on_it.map(|s| (s.start.0, (s.start + s.dur).0)).collect();
    times.sort_unstable_by_key(|(start, end)| (*start, Reverse(*end)));
    times
}

/// Steps that cross none of the slices. Both are in order.
fn nest(slices: &[(i64, i64)], steps: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut open: Vec<(i64, i64)> = Vec::new();
    let mut slices = slices.iter().copied().peekable();
    let mut last = i64::MIN;
    let mut nested = Vec::with_capacity(steps.len());
    for (start, end) in steps.iter().copied() {
        let start = start.max(last);
        go_on(&mut open, &mut slices, start);
        let begun = open.iter().find(|(_, until)| *until > start && *until <= end);
        let start = begun.map_or(start, |(_, until)| *until);
        let end = end.max(start);
        go_on(&mut open, &mut slices, end);
        let crossing = open.iter().find(|(begin, until)| *begin >= start && *until > end);
        let end = crossing.map_or(end, |(_, until)| *until);
        nested.push((start, end));
        last = end;
    }
    nested
}

/// Opens the slices that begin before a time. Some that have ended by then may be left.
fn go_on(
    open: &mut Vec<(i64, i64)>,
    slices: &mut Peekable<impl Iterator<Item = (i64, i64)>>,
    time: i64,
) {
    while let Some(slice) = slices.next_if(|(begin, _)| *begin < time) {
        open.retain(|(_, until)| *until > slice.0);
        open.push(slice);
    }
}

#[cfg(test)]
mod tests {
    use super::nest;

    #[test]
    fn steps_end_with_what_they_end_in() {
        // A range around all, and optimizers in which steps end.
        let slices = [(0, 1000), (10, 90), (80, 110), (85, 105), (120, 190), (180, 210)];
        let steps = [(5, 100), (100, 200), (200, 300)];
        assert_eq!(nest(&slices, &steps), [(5, 110), (110, 210), (210, 300)]);
        assert_eq!(nest(&slices, &steps[1..]), [(110, 210), (210, 300)]);
        assert_eq!(nest(&[], &steps), steps);
    }
}
