//! What crosses the edges of the window.
//!
//! | began | ended | in the trace |
//! |---|---|---|
//! | before the window opened | before | – |
//! | before | in it, or later, or not at all | with its own times, and `straddles` = `start` |
//! | in it | in it | as ever |
//! | in it | later | with its own times, and `straddles` = `end` |
//! | in it | not before the engine was done | as a slice that did not end |
//! | after it closed | | – |
//!
//! So slices that have begun are kept while the window is not open, as records, and written
//! when their thread records something in it. Ranges may end on another thread than they
//! began on, and threads are drained one after the other: those that have begun early are
//! written when they end, or with the last of the trace.

pub(super) mod crossing;

use kymograph_protos::packet::Sequence;
use kymograph_protos::record::{Kind, NANOS, Record, Slot, StrId};

use super::context::Context;
use super::nesting::{self, Place};
use super::record::{Decoded, stack_of};
use super::thread::Thread;
use super::window::Side;
use crossing::mark;

/// Slices or ranges that are remembered at most; a program that never ends what it begins
/// must not cost memory.
const MAX: usize = 1 << 14;

fn is_event(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Lost
            | Kind::Track
            | Kind::ThreadName
            | Kind::ProcessName
            | Kind::Queue
            | Kind::Gpu
            | Kind::Fact
    )
}

impl Context<'_> {
    /// Whether a record lies in the window, as far as can be seen at a glance.
    #[inline]
    pub fn is_inside(&self, head: &Record) -> bool {
        if head.tag & NANOS != 0 {
            self.bounds.is_all()
        } else {
            head.time >= self.started
                && head.time >= self.bounds.opens
                && head.time < self.bounds.closes
        }
    }

    /// Whether a scope that began in the window ended after it.
    #[inline]
    pub fn outlasts(&self, head: &Record) -> bool {
        head.tag & NANOS == 0 && head.time >= self.bounds.opens && head.other >= self.bounds.closes
    }

    /// Whether a slice of the trace began before the window opened.
    pub fn began_early(&self, head: &Record) -> bool {
        head.tag & NANOS == 0 && head.time < self.bounds.opens
    }

    /// Device work and the like, whose times are in nanoseconds.
    fn device_reaches_in(&self, head: &Record, kind: Kind, decoded: &mut Decoded) -> bool {
        let lasts = matches!(kind, Kind::Device | Kind::Scope);
        let end = if lasts { head.other } else { head.time };
        // What devices did is known late: perhaps when the next window is the current one.
        let (opens, closes) = match self.bounds.captures {
            true => match self.window.captured_around(head.time, end) {
                Some(edges) => edges,
                None => return false,
            },
            false => self.bounds.nanos(self.converter),
        };
        let paused = self.bounds.paused && self.window.is_paused_at(head.time);
        if head.time >= closes || end < opens || paused {
            return false;
        }
        if head.time < opens {
            mark(decoded, &self.origin.texts, Side::Opens);
        } else if end >= closes {
            mark(decoded, &self.origin.texts, Side::Closes);
        }
        true
    }

    fn early_range(&mut self, kind: Kind, id: u64, slots: &[Slot]) {
        let edges = &mut self.process.edges;
        if kind == Kind::RangeEnd {
            if edges.early.remove(&id).is_none() && edges.ended.len() < MAX {
                edges.ended.insert(id);
            }
        } else if !edges.ended.remove(&id) && edges.early.len() < MAX {
            edges.early.insert(id, slots.into());
        }
    }

    /// Whether the range began before the window opened.
    fn is_early_range(&self, id: u64) -> bool {
        self.process.edges.early.contains_key(&id)
    }

    /// Whether the range's record belongs to the trace all the same.
    fn late_range(&mut self, kind: Kind, id: u64) -> bool {
        if kind == Kind::RangeEnd {
            return !self.process.edges.late.remove(&id);
        }
        self.process.edges.late.insert(id);
        // Its end came first, from another thread.
        self.process.forget_early_end(id);
        false
    }

    /// A range ends: writes its beginning if that waits.
    pub fn open_early_range(&mut self, id: u64, sequence: &mut Sequence) {
        if let Some(slots) = self.process.edges.early.remove(&id) {
            let mut decoded = Decoded::default();
            let (head, _) = decoded.read(&slots, self.strings);
            mark(&mut decoded, &self.origin.texts, Side::Opens);
            self.range_begin(&head, &decoded, &slots, sequence);
        }
    }

    /// With the last of the trace: the ranges that began early and have not ended. No
    /// thread need have written anything: they are the process's to write.
    pub fn open_early_ranges(&mut self) {
        if !self.bounds.is_open() {
            return;
        }
        let mut ids: Vec<u64> = self.process.edges.early.keys().copied().collect();
        ids.sort_unstable();
        // Apart from the rest, so that it can be borrowed along with it.
        let mut sequence = std::mem::replace(&mut self.process.sequence, Sequence::new(0));
        for id in ids {
            self.open_early_range(id, &mut sequence);
        }
        self.process.sequence = sequence;
    }
}

impl Thread {
    /// Whether a record that does not lie in the window belongs to the trace all the same.
    #[cold]
    pub(super) fn reaches_in(
        &mut self,
        head: &Record,
        kind: Option<Kind>,
        decoded: &mut Decoded,
        slots: &[Slot],
        cx: &mut Context<'_>,
    ) -> bool {
        let Some(kind) = kind else {
            return head.time >= cx.started;
        };
        if !is_event(kind) {
            return true;
        }
        if head.tag & NANOS != 0 {
            return cx.device_reaches_in(head, kind, decoded);
        }
        if head.time < cx.started {
            self.forget_peeked();
            return false;
        }
        if head.time < cx.bounds.opens {
            self.before(head, kind, decoded, slots, cx)
        } else {
            self.after(head, kind, decoded, cx)
        }
    }

    fn before(
        &mut self,
        head: &Record,
        kind: Kind,
        decoded: &mut Decoded,
        slots: &[Slot],
        cx: &mut Context<'_>,
    ) -> bool {
        match kind {
            Kind::Scope if head.other >= cx.bounds.opens => {
                self.open_early(cx);
                mark(decoded, &cx.origin.texts, Side::Opens);
                return true;
            }
            Kind::Begin | Kind::Push if self.edges.early.len() < MAX => {
                self.edges.early.push((stack_of(head, cx.strings), slots.into()));
            }
            Kind::End | Kind::Pop => {
                let stack = if kind == Kind::End { StrId::NONE } else { head.site };
                let at = self.edges.early.iter().rposition(|(other, _)| *other == stack);
                match at {
                    Some(at) => _ = self.edges.early.remove(at),
                    // It began in a window that is closed.
                    None if cx.bounds.reopens => {
                        mark(decoded, &cx.origin.texts, Side::Closes);
                        return true;
                    }
                    None => {}
                }
            }
            Kind::RangeEnd if cx.bounds.reopens && !cx.is_early_range(head.other) => {
                mark(decoded, &cx.origin.texts, Side::Closes);
                return true;
            }
            Kind::RangeBegin | Kind::RangeEnd => {
                if cx.bounds.reopens {
                    // Its end came first, from another thread.
                    cx.process.forget_early_end(head.other);
                }
                cx.early_range(kind, head.other, slots);
            }
            _ => {}
        }
        false
    }

    fn after(
        &mut self,
        head: &Record,
        kind: Kind,
        decoded: &mut Decoded,
        cx: &mut Context<'_>,
    ) -> bool {
        let stays = match kind {
            Kind::Begin | Kind::Push => {
                self.edges.late.push(stack_of(head, cx.strings));
                false
            }
            Kind::End | Kind::Pop => {
                let stack = if kind == Kind::End { StrId::NONE } else { head.site };
                let at = self.edges.late.iter().rposition(|other| *other == stack);
                at.map(|at| self.edges.late.remove(at)).is_none()
            }
            Kind::RangeBegin | Kind::RangeEnd => cx.late_range(kind, head.other),
            _ => false,
        };
        if stays {
            self.open_early(cx);
            mark(decoded, &cx.origin.texts, Side::Closes);
        }
        stays
    }

    /// Writes the beginnings of slices that began before the window opened: something of
    /// the thread is about to be written that lies in it.
    #[cold]
    pub(super) fn open_early(&mut self, cx: &mut Context<'_>) {
        if !cx.bounds.is_open() {
            return;
        }
        let mut decoded = Decoded::default();
        for (stack, slots) in std::mem::take(&mut self.edges.early) {
            let (head, _) = decoded.read(&slots, cx.strings);
            mark(&mut decoded, &cx.origin.texts, Side::Opens);
            let place = match nesting::is_mixed(self.open(), stack) {
                false => Place::Thread,
                true if self.is_known_after(cx.time(&head, head.time)) => self.undecided_place(),
                true => Place::Aside,
            };
            self.begin(stack, place, &head, &decoded, &slots, cx);
        }
    }
}
