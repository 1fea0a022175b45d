//! Slices that overlap, dealt out to lanes in which they nest.
//!
//! A Perfetto track holds slices that nest; of two that cross, one has to lie on another
//! track. Tracks of one name and parent are one row to viewers, so nothing looks torn
//! apart. A slice goes to the first lane in which it fits: most never leave the first.

use crate::trace::{Slice, SliceId, Slices};

/// Slices of one lane, in the order in which they begin; each comes after those around it.
pub type Lane = Vec<SliceId>;

/// trace_processor drops slices that lie deeper than 512.
const DEEPEST: usize = 500;

/// Deals out slices of one track, which are in the order of [`Slices::by_track`].
pub fn deal(slices: &Slices, ids: &[SliceId]) -> Vec<Lane> {
    let mut lanes: Vec<(Lane, Vec<i64>)> = Vec::new();
    for id in ids {
        let slice = slices.get(*id);
        let fitting = lanes
            .iter_mut()
            .find_map(|(lane, open)| fits(open, &slice).then_some(lane).map(|lane| (lane, open)));
        match fitting {
            Some((lane, open)) => {
                lane.push(*id);
                open.push(end(&slice));
            }
            None => lanes.push((vec![*id], vec![end(&slice)])),
        }
    }
    lanes.into_iter().map(|(lane, _)| lane).collect()
}

/// When a slice ends: never, if its end is not in the trace.
fn end(slice: &Slice) -> i64 {
    slice.end().map_or(i64::MAX, |end| end.0)
}

/// Whether a slice lies within what is open on a lane, after closing what has ended.
fn fits(open: &mut Vec<i64>, slice: &Slice) -> bool {
    while open.last().is_some_and(|end| *end <= slice.start.0) {
        open.pop();
    }
    open.len() < DEEPEST && open.last().is_none_or(|around| end(slice) <= *around)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Nanos, TrackId};

    fn dealt(given: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
        let mut slices = Slices::default();
        for (start, end) in given {
            let dur = if *end < 0 { -1 } else { end - start };
            slices.push(Slice::new(TrackId::at(0), Nanos(*start), Nanos(dur)));
        }
        let order = slices.by_track();
        let times = |id: &SliceId| {
            let slice = slices.get(*id);
            (slice.start.0, slice.end().map_or(-1, |end| end.0))
        };
        deal(&slices, &order).iter().map(|lane| lane.iter().map(times).collect()).collect()
    }

    #[test]
    fn what_nests_stays_together() {
        assert_eq!(dealt(&[(0, 9), (1, 3), (3, 9), (9, 9), (9, 12)]).len(), 1);
        assert_eq!(dealt(&[(0, -1), (1, 3), (4, -1)]).len(), 1);
    }

    #[test]
    fn what_crosses_gets_a_lane() {
        let lanes = dealt(&[(0, 10), (5, 15), (6, 8), (10, 12), (12, 20), (16, 18)]);
        assert_eq!(lanes, [vec![(0, 10), (6, 8), (10, 12), (12, 20), (16, 18)], vec![(5, 15)]]);
    }

    #[test]
    fn an_unfinished_slice_does_not_end_with_the_one_around_it() {
        assert_eq!(dealt(&[(0, 10), (5, -1)]), [vec![(0, 10)], vec![(5, -1)]]);
    }

    #[test]
    fn very_deep_slices_get_lanes_too() {
        let deep: Vec<_> = (0..1200).map(|n| (n, 5000 - n)).collect();
        assert!(dealt(&deep).iter().all(|lane| lane.len() <= DEEPEST));
    }
}
