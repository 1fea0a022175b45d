//! Where events stood in the file that a trace was read from.

use super::Trace;

/// Where an event stood, and what only JSON says of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Position {
    /// Events of the file count from 1.
    pub number: u32,
    /// Two bits, whose meaning is that of the table.
    pub marks: u8,
}

impl Position {
    /// An event that began an arrow of its own correlation number: the next event of the file.
    pub const ARROW_BEGINS: u8 = 1;
    /// One that ended such an arrow, likewise.
    pub const ARROW_ENDS: u8 = 2;
    /// The end of a slice that did not repeat the name and the category.
    pub const BARE: u8 = 1;

    /// The position of an event without marks.
    pub fn new(number: u32) -> Position {
        Position { number, marks: 0 }
    }
}

/// A column of positions. Takes no memory until a reader that knows them sets one.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions(Vec<u32>);

/// Behind that all positions are one.
const MOST: u32 = u32::MAX >> 2;

impl Positions {
    /// The position of a row; `None` if the trace's format has none, or the row is not an event
    /// of the file.
    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<Position> {
        let packed = self.0.get(row).copied().filter(|packed| *packed != 0)?;
        Some(Position { number: packed >> 2, marks: packed as u8 & 3 })
    }

    #[inline]
    pub(super) fn set(&mut self, row: usize, position: Option<Position>) {
        let packed = position.map_or(0, |position| {
            position.number.clamp(1, MOST) << 2 | u32::from(position.marks & 3)
        });
        if row == self.0.len() {
            self.0.push(packed);
        } else if row < self.0.len() || packed != 0 {
            if self.0.len() <= row {
                self.0.resize(row + 1, 0);
            }
            self.0[row] = packed;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }

    /// The last position that is set.
    pub(super) fn last(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0) >> 2
    }
}

impl Trace {
    /// The last position of any event.
    pub(crate) fn last_position(&self) -> u32 {
        let points = self.flows.points.iter().map(|point| point.position);
        let leftovers = self.leftovers.iter().map(|leftover| leftover.position);
        let tables = [
            self.slices.last_position(),
            self.instants.last_position(),
            self.activities.last_position(),
            self.counters.last_position(),
        ];
        points.chain(leftovers).chain(tables).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_position_cost_nothing() {
        let mut positions = Positions::default();
        positions.set(7, None);
        assert_eq!((positions.get(7), positions.bytes()), (None, 0));
        let marked = Some(Position { number: 9, marks: Position::ARROW_ENDS });
        positions.set(2, marked);
        positions.set(3, Some(Position::new(4)));
        positions.set(3, None);
        assert_eq!([1, 2, 3, 4].map(|row| positions.get(row)), [None, marked, None, None]);
        assert_eq!(positions.last(), 9);
        positions.set(0, Some(Position::new(u32::MAX)));
        assert_eq!(positions.get(0), Some(Position::new(MOST)), "no overflow");
    }
}
