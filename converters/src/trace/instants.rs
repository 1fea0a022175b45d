//! Moments.

use super::positions::{Position, Positions};
use super::{ArgsId, InstantId, Nanos, StrId, TrackId};

/// A moment on a track.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Instant {
    /// Where it lies: a thread's track, a process's, or any other.
    pub track: TrackId,
    /// When.
    pub time: Nanos,
    /// What it is called; may be none.
    pub name: StrId,
    /// Its category; may be none.
    pub category: StrId,
    /// Its arguments.
    pub args: Option<ArgsId>,
}

/// The table of moments: a vector per column.
#[derive(Clone, Debug, Default)]
pub struct Instants {
    times: Vec<i64>,
    tracks: Vec<TrackId>,
    names: Vec<StrId>,
    categories: Vec<StrId>,
    args: Vec<Option<ArgsId>>,
    positions: Positions,
}

impl Instants {
    /// Adds a moment.
    pub fn push(&mut self, instant: Instant) -> InstantId {
        self.times.push(instant.time.0);
        self.tracks.push(instant.track);
        self.names.push(instant.name);
        self.categories.push(instant.category);
        self.args.push(instant.args);
        InstantId::at(self.times.len() - 1)
    }

    /// The moment.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    pub fn get(&self, id: InstantId) -> Instant {
        let row = id.index();
        Instant {
            track: self.tracks[row],
            time: Nanos(self.times[row]),
            name: self.names[row],
            category: self.categories[row],
            args: self.args[row],
        }
    }

    /// Puts a moment on another track.
    pub(crate) fn set_track(&mut self, id: InstantId, track: TrackId) {
        self.tracks[id.index()] = track;
    }

    /// Where it stood in the file that it was read from; `None` if the file's order is not known.
    pub fn position(&self, id: InstantId) -> Option<Position> {
        self.positions.get(id.index())
    }

    /// Says where it stood.
    pub fn set_position(&mut self, id: InstantId, position: Option<Position>) {
        self.positions.set(id.index(), position);
    }

    /// The last position of any.
    pub(crate) fn last_position(&self) -> u32 {
        self.positions.last()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Moves the times of some moments, which are given by number.
    pub(crate) fn shift(&mut self, rows: std::ops::Range<usize>, by: Nanos) {
        for time in self.times.get_mut(rows).unwrap_or_default() {
            *time = (Nanos(*time) + by).0;
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.times.capacity() * 8 + self.tracks.capacity() * 16 + self.positions.bytes()
    }

    /// All moments, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Instant> + '_ {
        self.ids().map(|id| self.get(id))
    }

    /// The handles of all moments.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstantId> + use<> {
        (0..self.len()).map(InstantId::at)
    }
}
