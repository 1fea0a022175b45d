//! Ranges: slices that may cross each other, start on one thread and end on another.
//!
//! The ranges of a track lie on **lanes**: tracks of the same name and parent, which
//! viewers show as one row. Threads are drained one after the other, so ranges arrive out
//! of order; a lane takes a range only when that begins after everything the lane ever
//! held has ended. So slices of a lane never overlap, whatever the order, and each range
//! keeps its own begin and end exactly.

use std::collections::HashMap;

use kymograph_protos::StrId;

use super::nesting::Begun;
use super::record::Decoded;

/// A range that has begun.
#[derive(Debug)]
pub struct Running {
    pub id: u64,
    pub site: StrId,
    pub bytes: Option<Box<[u8]>>,
    /// The uuid of its lane.
    pub lane: u64,
    pub begun: Begun,
    /// Whether its beginning was written: those of steps are only when they end.
    pub written: bool,
    group: usize,
    slot: usize,
}

/// An end whose beginning is still in another thread's queue.
#[derive(Debug)]
pub struct EarlyEnd {
    pub time: u64,
    /// The arguments that it brings.
    pub decoded: Decoded,
}

#[derive(Debug, Default)]
struct Lane {
    uuid: u64,
    running: bool,
    /// When its last range ended.
    until: u64,
}

/// Ends that may wait for their beginning.
const MAX_EARLY: usize = 1 << 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Ranges {
    groups: Vec<Vec<Lane>>,
    by_track: HashMap<u64, usize>,
    running: HashMap<u64, Running>,
    early: HashMap<u64, EarlyEnd>,
    given_up: u64,
}

impl Ranges {
    /// The ranges that have begun and not ended.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.running.values()
    }

    /// Their ids, in the order in which they began.
    pub fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = self.running.iter().map(|(id, it)| (it.begun.time, *id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The ids of the ranges that have begun, and are not to be written before they end.
    pub fn unwritten(&self) -> Vec<u64> {
        let unwritten = self.running.iter().filter(|(_, range)| !range.written);
        unwritten.map(|(id, _)| *id).collect()
    }

    /// Places a range that begins as `begun` says on the track `track`. Returns the uuid of its
    /// lane, which `lane_uuid` makes from the lane's number on the track.
    pub fn begin(
        &mut self,
        id: u64,
        track: u64,
        begun: Begun,
        (site, bytes): (StrId, Option<Box<[u8]>>),
        written: bool,
        lane_uuid: impl Fn(u64) -> u64,
    ) -> u64 {
        let next = self.groups.len();
        let group = *self.by_track.entry(track).or_insert(next);
        if group == next {
            self.groups.push(Vec::new());
        }
        let lanes = &mut self.groups[group];
        let free = lanes.iter().position(|lane| !lane.running && lane.until <= begun.time);
        let slot = free.unwrap_or(lanes.len());
        if free.is_none() {
            lanes.push(Lane { uuid: lane_uuid(slot as u64), running: false, until: 0 });
        }
        lanes[slot].running = true;
        let lane = lanes[slot].uuid;
        self.running.insert(id, Running { id, site, bytes, lane, begun, written, group, slot });
        lane
    }

    /// Ends a range. `None` if it has not begun: the end is kept until it does.
    pub fn end(&mut self, id: u64, time: u64, decoded: &Decoded) -> Option<Running> {
        let Some(running) = self.running.remove(&id) else {
            if self.early.len() < MAX_EARLY {
                self.early.insert(id, EarlyEnd { time, decoded: decoded.clone() });
            } else {
                self.given_up += 1;
            }
            return None;
        };
        let lane = &mut self.groups[running.group][running.slot];
        lane.running = false;
        lane.until = lane.until.max(time);
        Some(running)
    }

    /// The end of `id`, if it came before its beginning.
    pub fn take_early(&mut self, id: u64) -> Option<EarlyEnd> {
        self.early.remove(&id)
    }

    /// Ends that never met their beginning.
    pub fn unmatched(&self) -> u64 {
        self.early.len() as u64 + self.given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(ranges: &mut Ranges, id: u64, time: u64) -> u64 {
        let begun = Begun { time, ..Begun::default() };
        ranges.begin(id, 7, begun, (StrId(1), None), true, |n| 100 + n)
    }

    #[test]
    fn ranges_that_overlap_lie_on_different_lanes() {
        let mut ranges = Ranges::default();
        assert_eq!(lane(&mut ranges, 1, 10), 100);
        assert_eq!(lane(&mut ranges, 2, 20), 101);
        assert_eq!(ranges.end(1, 30, &Decoded::default()).unwrap().lane, 100);
        assert_eq!(lane(&mut ranges, 3, 30), 100, "a lane is used again as soon as it is free");
    }

    #[test]
    fn a_range_that_arrives_late_does_not_enter_a_lane_that_was_busy_then() {
        let mut ranges = Ranges::default();
        lane(&mut ranges, 1, 10);
        ranges.end(1, 20, &Decoded::default());
        assert_eq!(lane(&mut ranges, 2, 5), 101);
    }

    #[test]
    fn an_end_waits_for_its_beginning() {
        let mut ranges = Ranges::default();
        assert!(ranges.end(9, 50, &Decoded::default()).is_none());
        assert_eq!(ranges.unmatched(), 1);
        lane(&mut ranges, 9, 40);
        assert_eq!(ranges.take_early(9).unwrap().time, 50);
        assert!(ranges.end(9, 50, &Decoded::default()).is_some());
        assert_eq!(ranges.unmatched(), 0);
    }
}
