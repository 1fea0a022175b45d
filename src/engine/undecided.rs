//! Slices of which it is not known yet whether they cross what is around them.
//!
//! A slice inside those of other nesting stacks whose end has not come when a flush is due
//! (see [`super::nesting`]) is kept as it was recorded, while the thread goes on. When it ends
//! it is written on the thread's track; when something around it ends first, on a side track.
//! Its beginning comes late in the file then, which readers do not mind: they sort by time.
//! Only what has the same time must stay in order; it waits with it.
//!
//! What the file ends with (the last of a recording, of a dump, of a rotated file) is told as
//! far as it got: on the thread's track, under what is around it, without an end. Only a
//! process that is killed while no other process reads its queues leaves it out.

use kymograph_protos::record::{Kind, Record, Slot};

use super::Engine;
use super::context::Context;
use super::nesting::{self, Open, Pass, Place};
use super::record::Decoded;
use super::thread::{MAX_HELD, Thread};

/// Undecided slices of a thread; further ones go aside.
const MAX: usize = 1 << 10;

impl Thread {
    /// Whether a record may be written before the innermost undecided slice is: not if it
    /// has the same time, since it lies in it.
    #[cold]
    pub(super) fn may_follow(
        &mut self,
        head: &Record,
        kind: Kind,
        rest: &[Slot],
        pass: Pass,
        cx: &mut Context<'_>,
    ) -> bool {
        let lies_in_it =
            matches!(kind, Kind::Begin | Kind::Push | Kind::Scope | Kind::Instant | Kind::Note);
        if !lies_in_it || self.is_known_after(cx.time(head, head.time)) {
            return true;
        }
        let Some(stack) = self.stack.last().map(|open| open.stack) else { return true };
        let crosses = match nesting::crosses(stack, rest, cx.strings) {
            None if pass == Pass::Last => false,
            None if rest.len() > MAX_HELD => true,
            None => return false,
            Some(crosses) => crosses,
        };
        if let Some(mut open) = self.stack.pop() {
            if crosses {
                self.put_aside(open, cx);
            } else {
                self.decide(&mut open, self.stack.len(), cx);
                self.stack.push(open);
            }
        }
        true
    }

    /// Where a slice goes that would be undecided: a program that never ends what it begins
    /// must not cost memory.
    pub(super) fn undecided_place(&self) -> Place {
        if self.undecided < MAX { Place::Undecided } else { Place::Aside }
    }

    /// Whether what begins at `time` comes after the beginning of the innermost slice, or that
    /// is written.
    pub(super) fn is_known_after(&self, time: u64) -> bool {
        let time = time.max(self.last_time);
        self.stack.last().is_none_or(|open| open.written || open.begun.time < time)
    }

    /// A slice nests: it is written where it began, at `depth`.
    #[inline]
    pub(super) fn decide(&mut self, open: &mut Open, depth: usize, cx: &mut Context<'_>) {
        if !open.written {
            open.track = self.track_at(depth, cx);
            self.write_late(open, cx);
        }
    }

    /// An undecided slice crosses what is around it.
    pub(super) fn put_aside(&mut self, mut open: Open, cx: &mut Context<'_>) {
        open.track = self.side_track(open.stack, cx);
        self.write_late(&mut open, cx);
        let side = self.sides.entry(open.stack).or_default();
        let at = side.partition_point(|other| other.begun.time <= open.begun.time);
        side.insert(at, open);
    }

    #[cold]
    fn write_late(&mut self, open: &mut Open, cx: &mut Context<'_>) {
        let mut decoded = Decoded::saying(cx.process.correlation);
        self.begin_again(&open.begun, open.track, &mut decoded, cx);
        (open.written, self.undecided) = (true, self.undecided - 1);
        if !cx.restarts {
            open.begun.record = Box::default();
        }
    }

    /// Nothing more will come: what has not ended never will, and crosses nothing.
    pub(super) fn decide_all(&mut self, cx: &mut Context<'_>) {
        for depth in 0..self.stack.len() {
            if !self.stack[depth].written {
                let track = self.track_at(depth, cx);
                let mut open = self.stack.remove(depth);
                open.track = track;
                self.write_late(&mut open, cx);
                self.stack.insert(depth, open);
            }
        }
    }

    /// Writes what is undecided without deciding: for a file that ends.
    fn tell_undecided(&mut self, cx: &mut Context<'_>) {
        let mut decoded = Decoded::saying(cx.process.correlation);
        for depth in 0..self.stack.len() {
            if !self.stack[depth].written {
                let track = self.track_at(depth, cx);
                let begun = std::mem::take(&mut self.stack[depth].begun);
                self.begin_again(&begun, track, &mut decoded, cx);
                self.stack[depth].begun = begun;
            }
        }
    }
}

impl Engine {
    /// The packets with which a file ends while the recording goes on: slices that have begun
    /// and are not in it. Everything is said anew after them.
    pub(super) fn undecided(&mut self) -> Vec<u8> {
        let steps = self.process.ranges.running().any(|range| !range.written);
        if !steps && self.lanes.threads.iter().flatten().all(|thread| thread.undecided == 0) {
            return Vec::new();
        }
        let out = std::mem::take(&mut self.output.packets);
        self.expire();
        self.describe();
        self.context().tell_steps();
        for index in 0..self.lanes.threads.len() {
            if let Some(mut thread) = self.lanes.threads[index].take() {
                thread.tell_undecided(&mut self.context());
                self.lanes.threads[index] = Some(thread);
            }
        }
        self.expire();
        std::mem::replace(&mut self.output.packets, out)
    }
}
