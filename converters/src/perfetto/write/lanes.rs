//! Slices that overlap, dealt out to lanes in which they nest.
//!
//! A Perfetto track holds slices that nest; of two that cross, one has to lie on another
//! track. Tracks of one name and parent are one row to viewers, so nothing looks torn
//! apart. A slice goes to the first lane in which it fits: most never leave the first. However
//! many cross, that is found in as many steps as the number of lanes has binary digits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::trace::{SliceId, Slices, StrId};

/// Slices of one lane, in the order in which they begin; each comes after those around it.
pub type Lane = Vec<SliceId>;

/// trace_processor drops slices that lie deeper than 512.
const DEEPEST: usize = 500;

/// Lanes that are looked at one by one. Nearly all tracks have no more.
const FEW: usize = 4;

/// Lanes that a slice without an end tries.
const TRIES: usize = 16;

/// Deals out slices of one track, which are in the order of [`Slices::by_track`].
pub fn deal(slices: &Slices, ids: &[SliceId]) -> Vec<Lane> {
    // What has not ended lasts as long as anything else here: readers let it end where what is
    // around it does, if nothing comes behind that.
    let times = |id: &SliceId| slices.end(*id).unwrap_or(slices.start(*id)).0;
    let last = ids.iter().map(times).max().unwrap_or(0);
    let mut lanes = Lanes::default();
    for id in ids {
        let slice = slices.get(*id);
        lanes.close(slice.start.0);
        let open = Open {
            end: slice.end().map_or(last, |end| end.0),
            name: slice.name,
            ended: slice.dur.is_finished(),
        };
        let lane = lanes.first_for(&open).unwrap_or_else(|| lanes.add());
        lanes.lanes[lane].push(*id);
        lanes.open(lane, open);
    }
    lanes.lanes
}

/// A slice that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    end: i64,
    name: StrId,
    /// Whether its end is in the trace.
    ended: bool,
}

#[derive(Default)]
struct Lanes {
    lanes: Vec<Lane>,
    /// What is open on each.
    stacks: Vec<Vec<Open>>,
    /// When the innermost open slice of a lane beyond the first [`FEW`] ends.
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    room: Room,
}

impl Lanes {
    fn add(&mut self) -> usize {
        self.lanes.push(Lane::new());
        self.stacks.push(Vec::new());
        self.room.push();
        self.lanes.len() - 1
    }

    /// Takes off what has ended by `time`.
    fn close(&mut self, time: i64) {
        for lane in 0..self.stacks.len().min(FEW) {
            let stack = &mut self.stacks[lane];
            let before = stack.len();
            while stack.last().is_some_and(|open| open.end <= time) {
                stack.pop();
            }
            if stack.len() < before {
                self.update(lane);
            }
        }
        while let Some(Reverse((end, lane))) =
            self.ends.peek().copied().filter(|top| top.0.0 <= time)
        {
            self.ends.pop();
            let stack = &mut self.stacks[lane];
            // What was open around it may have ended with it.
            while stack.last().is_some_and(|open| open.end <= end) {
                stack.pop();
            }
            if let Some(open) = stack.last() {
                self.ends.push(Reverse((open.end, lane)));
            }
            self.update(lane);
        }
    }

    fn open(&mut self, lane: usize, open: Open) {
        self.stacks[lane].push(open);
        if lane >= FEW {
            self.ends.push(Reverse((open.end, lane)));
        }
        self.update(lane);
    }

    fn update(&mut self, lane: usize) {
        let stack = &self.stacks[lane];
        let room = match stack.last() {
            _ if stack.len() >= DEEPEST => i64::MIN,
            Some(open) => open.end,
            None => i64::MAX,
        };
        self.room.set(lane, room);
    }

    /// The first lane in which a slice lies within what is open.
    fn first_for(&self, slice: &Open) -> Option<usize> {
        let mut from = 0;
        for _ in 0..TRIES {
            let lane = self.room.first(from, slice.end)?;
            // Readers find an end by its name: within one of its own name, a slice without an end
            // would take that of the other.
            let mut around = self.stacks[lane].iter().filter(|open| open.ended);
            if slice.ended || !around.any(|open| open.name == slice.name) {
                return Some(lane);
            }
            from = lane + 1;
        }
        None
    }
}

/// How long there is room in each lane: a tree of which each node has the most of those below.
#[derive(Default)]
struct Room {
    most: Vec<i64>,
    lanes: usize,
    /// Leaves that there is memory for: a power of two.
    leaves: usize,
}

impl Room {
    fn push(&mut self) {
        if self.lanes == self.leaves {
            let old = std::mem::take(&mut self.most);
            let before = std::mem::replace(&mut self.leaves, (self.lanes * 2).max(1));
            self.most = vec![i64::MIN; self.leaves * 2];
            for lane in 0..before {
                self.set(lane, old[before + lane]);
            }
        }
        self.lanes += 1;
        self.set(self.lanes - 1, i64::MAX);
    }

    fn set(&mut self, lane: usize, room: i64) {
        let mut node = self.leaves + lane;
        self.most[node] = room;
        while node > 1 {
            node /= 2;
            self.most[node] = self.most[node * 2].max(self.most[node * 2 + 1]);
        }
    }

    /// The first lane from `from` on with at least this much room.
    fn first(&self, from: usize, room: i64) -> Option<usize> {
        if from >= self.lanes {
            return None;
        }
        let mut node = self.leaves + from;
        // Up to where a subtree to the right has room, and down to its first leaf that has.
        while self.most[node] < room {
            while node & 1 == 1 {
                node /= 2;
                if node <= 1 {
                    return None;
                }
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.most[node] < room {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Nanos, Slice, TrackId};

    fn dealt(given: &[(i64, i64)]) -> Vec<Vec<(i64, i64)>> {
        let mut slices = Slices::default();
        for (start, end) in given {
            let dur = if *end < 0 { -1 } else { end - start };
            // Those without an end have another name.
            let name = StrId(if *end < 0 { 2 } else { 1 });
            slices.push(Slice { name, ..Slice::new(TrackId::at(0), Nanos(*start), Nanos(dur)) });
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
    fn an_unfinished_slice_ends_with_the_one_around_it_only_at_the_end() {
        assert_eq!(dealt(&[(0, 10), (5, -1)]), [vec![(0, 10), (5, -1)]]);
        assert_eq!(dealt(&[(0, 10), (5, -1), (12, 14)]), [vec![(0, 10), (12, 14)], vec![(5, -1)]]);
    }

    #[test]
    fn very_deep_slices_get_lanes_too() {
        let deep: Vec<_> = (0..1200).map(|n| (n, 5000 - n)).collect();
        assert!(dealt(&deep).iter().all(|lane| lane.len() <= DEEPEST));
    }

    #[test]
    fn it_is_the_first_lane_that_a_plain_search_finds() {
        let mut seed = 7u64;
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            ((seed >> 33) % most) as i64
        };
        for _ in 0..200 {
            let mut given: Vec<(i64, i64)> = (0..60)
                .map(|_| {
                    let start = random(100);
                    (start, start + random(40))
                })
                .collect();
            given.sort_by_key(|(start, end)| (*start, Reverse(*end)));
            let mut plain: Vec<(Vec<_>, Vec<i64>)> = Vec::new();
            for slice in &given {
                let fitting = plain.iter_mut().find_map(|(lane, open)| {
                    while open.last().is_some_and(|end| *end <= slice.0) {
                        open.pop();
                    }
                    open.last().is_none_or(|end| slice.1 <= *end).then_some((lane, open))
                });
                match fitting {
                    Some((lane, open)) => {
                        lane.push(*slice);
                        open.push(slice.1);
                    }
                    None => plain.push((vec![*slice], vec![slice.1])),
                }
            }
            let plain: Vec<_> = plain.into_iter().map(|(lane, _)| lane).collect();
            assert_eq!(dealt(&given), plain);
        }
    }
}
