//! What one thread did, in order, until the work of its launches is known.

use std::collections::VecDeque;

use kymograph_protos::StrId;
use kymograph_protos::packet::Name;

use super::whole::{Whole, Wholes};
use super::{Edge, Told};

/// What one thread did. No thread's: one without a serial number.
#[derive(Debug, Default)]
pub struct Line {
    /// Tells its tracks from those of a line that had its number before.
    pub serial: u32,
    /// In the order of time.
    pub steps: VecDeque<(u64, Step)>,
    /// When the thread's own last step was, and the last end that was gone over.
    pub latest: u64,
    pub closed: u64,
    /// Whether it is the main thread's, and whether one's that computes gradients for others.
    pub main: bool,
    pub gradients: bool,
    /// When another thread launched something for it last.
    pub adopted: u64,
    /// The queues that its launches ran on, and when the last one was, as far as it was gone over.
    pub used: Vec<(u32, u64)>,
    /// Ranges that are open after the last step, and after those that were gone over.
    pub depth: usize,
    pub open: Vec<Range>,
    pub tracks: Vec<Track>,
    /// The latest launch that was heard of.
    pub heard: u64,
    pub ended: bool,
}

#[derive(Debug)]
pub enum Step {
    Begin(Range),
    /// The correlation id.
    Launch(u64),
    /// The innermost range of this side ends.
    End(StrId),
}

/// A range, and the queues that worked for it: since when and until when.
#[derive(Debug)]
pub struct Range {
    /// When it began on its thread.
    pub begun: u64,
    pub site: StrId,
    pub bytes: Option<Box<[u8]>>,
    /// The nesting stack of ranges that cross others, which are apart from those.
    pub side: StrId,
    pub queues: Vec<(u32, u64, u64)>,
}

#[derive(Debug)]
pub struct Track {
    pub queue: u32,
    pub side: StrId,
    /// Where it has come to.
    pub time: u64,
    pub described: bool,
}

/// What became of a launch: when which queue worked for it.
#[derive(Clone, Debug, Default)]
pub struct Work {
    pub first: Option<(u32, u64, u64)>,
    /// On further queues: of graphs.
    pub more: Vec<(u32, u64, u64)>,
}

impl Work {
    pub fn add(&mut self, (queue, start, end): (u32, u64, u64)) {
        let Some(first) = &mut self.first else {
            self.first = Some((queue, start, end));
            return;
        };
        match std::iter::once(first).chain(&mut self.more).find(|(q, ..)| *q == queue) {
            Some((_, from, to)) => (*from, *to) = (start.min(*from), end.max(*to)),
            None => self.more.push((queue, start, end)),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.first.iter().chain(&self.more).copied()
    }
}

impl Line {
    /// Whether other threads may have launched something for this one. `most`: steps that may wait,
    /// if some thread computes gradients.
    pub fn expects(&self, most: Option<usize>) -> bool {
        !self.gradients && most.is_some_and(|most| self.steps.len() < most)
    }

    /// Whether other threads launch something for this one, as far as is known.
    pub fn others_work(&self) -> bool {
        self.main || self.adopted > 0
    }

    /// The time of a step of the thread itself: there time does not run backwards.
    pub fn own(&mut self, time: u64) -> u64 {
        self.latest = self.latest.max(time);
        self.latest
    }

    /// A step takes its place: launches of other threads may be there that came later.
    pub fn put(&mut self, time: u64, step: Step) {
        let place = match self.steps.back() {
            Some((last, _)) if *last > time => self.steps.partition_point(|(at, _)| *at <= time),
            _ => self.steps.len(),
        };
        self.steps.insert(place, (time, step));
    }

    /// A queue worked for a launch at `time`, and so for the ranges that were open then.
    /// Returns how many beginnings were moved.
    pub fn worked(
        &mut self,
        time: u64,
        (queue, start, end): (u32, u64, u64),
        write: &mut impl FnMut(Told<'_>),
    ) -> u64 {
        let mut moved = 0;
        for range in self.open.iter_mut().filter(|range| range.begun <= time) {
            match range.queues.iter_mut().find(|(q, ..)| *q == queue) {
                Some((.., until)) => *until = end.max(*until),
                None => {
                    let (track, is_new_track) = track(&mut self.tracks, queue, range.side);
                    moved += u64::from(start < track.time);
                    track.time = start.max(track.time);
                    range.queues.push((queue, track.time, end.max(track.time)));
                    write(Told::Edge(range.edge(true, self.serial, track, is_new_track)));
                }
            }
        }
        moved
    }

    /// The innermost range (of a side) ends: on every queue after those inside of it.
    pub fn close(
        &mut self,
        side: Option<StrId>,
        (closed, ended): (u64, &mut Wholes),
        write: &mut impl FnMut(Told<'_>),
    ) {
        let is_meant = |range: &Range| side.is_none_or(|side| side == range.side);
        let Some(at) = self.open.iter().rposition(is_meant) else { return };
        let range = self.open.remove(at);
        for &(queue, since, until) in &range.queues {
            let (track, is_new_track) = track(&mut self.tracks, queue, range.side);
            track.time = track.time.max(until);
            write(Told::Edge(range.edge(false, self.serial, track, is_new_track)));
            let (until, site, bytes) = (track.time, range.site, range.bytes.clone());
            ended.push(Whole { queue, since, until, closed, site, bytes });
        }
    }
}

impl Range {
    pub fn edge(&self, begins: bool, line: u32, track: &Track, is_new_track: bool) -> Edge<'_> {
        let name = self.bytes.as_deref().map_or(Name::Id(self.site), Name::Bytes);
        let Track { queue, side, time, .. } = *track;
        Edge { begins, time, queue, line, side, is_new_track, name }
    }
}

/// The track of a queue, and whether it is new to those who read.
pub fn track(tracks: &mut Vec<Track>, queue: u32, side: StrId) -> (&mut Track, bool) {
    let known = tracks.iter().position(|t| t.queue == queue && t.side == side);
    let at = known.unwrap_or(tracks.len());
    if known.is_none() {
        tracks.push(Track { queue, side, time: 0, described: false });
    }
    let is_new = !std::mem::replace(&mut tracks[at].described, true);
    (&mut tracks[at], is_new)
}
