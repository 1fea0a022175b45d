//! The order of events: that of the file which the trace was read from, where it is known.

use crate::trace::{Position, Trace};

/// What an item is. Of items at one place the first kind comes first: what was kept as it was
/// stands for all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ItemKind {
    Leftover,
    Slice,
    End,
    Instant,
    Activity,
    Arrow,
    Counter,
    Metadata,
}

/// An item: its position, and which one it is.
type Item = (u32, ItemKind, u32);

/// Behind all that has a position.
const NOWHERE: u32 = u32::MAX;

/// All that is to be written.
pub(super) struct Order {
    items: Vec<Item>,
}

impl Order {
    /// Slices, moments, activities, leftovers.
    pub(super) fn new(trace: &Trace) -> Order {
        let most = trace.slices.len() + trace.activities.len() + trace.instants.len();
        let mut order = Order { items: Vec::with_capacity(most) };
        for id in trace.slices.ids() {
            order.push(ItemKind::Slice, id.index(), trace.slices.position(id));
            if let Some(end) = trace.slices.end_position(id) {
                order.push(ItemKind::End, id.index(), Some(end));
            }
        }
        for id in trace.instants.ids() {
            order.push(ItemKind::Instant, id.index(), trace.instants.position(id));
        }
        for id in trace.activities.ids() {
            order.push(ItemKind::Activity, id.index(), trace.activities.position(id));
        }
        for (row, leftover) in trace.leftovers.iter().enumerate() {
            order.push(ItemKind::Leftover, row, Some(Position::new(leftover.position)));
        }
        order
    }

    fn push(&mut self, kind: ItemKind, row: usize, position: Option<Position>) {
        let number = position.map_or(NOWHERE, |position| position.number);
        self.items.push((number, kind, row as u32));
    }

    /// Items of one kind, by their positions.
    pub(super) fn extend(&mut self, kind: ItemKind, positions: impl Iterator<Item = u32>) {
        self.list(kind, positions.enumerate().map(|(row, position)| (position, row)));
    }

    /// Items of one kind: positions and rows.
    pub(super) fn list(&mut self, kind: ItemKind, items: impl Iterator<Item = (u32, usize)>) {
        self.items.extend(items.map(|(position, row)| (position, kind, row as u32)));
    }

    pub(super) fn into_items(mut self) -> Items {
        if self.items.iter().any(|(position, ..)| *position != NOWHERE) {
            self.items.sort_unstable();
        }
        Items { items: self.items.into_iter(), kept: 0 }
    }
}

/// An item to be written.
pub(super) struct Placed {
    pub(super) kind: ItemKind,
    pub(super) row: usize,
    /// It has been written as it was.
    pub(super) kept: bool,
}

pub(super) struct Items {
    items: std::vec::IntoIter<Item>,
    /// The position of the leftover that came last.
    kept: u32,
}

impl Iterator for Items {
    type Item = Placed;

    fn next(&mut self) -> Option<Placed> {
        let (position, kind, row) = self.items.next()?;
        if kind == ItemKind::Leftover {
            self.kept = position;
        }
        Some(Placed { kind, row: row as usize, kept: position == self.kept })
    }
}
