//! Moments.

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

    /// Changes a moment.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    pub fn set(&mut self, id: InstantId, instant: Instant) {
        let row = id.index();
        self.times[row] = instant.time.0;
        self.tracks[row] = instant.track;
        self.names[row] = instant.name;
        self.categories[row] = instant.category;
        self.args[row] = instant.args;
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
        self.times.capacity() * 8 + self.tracks.capacity() * 16
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
