//! Slices of the host.

use super::positions::{Position, Positions};
use super::{ArgsId, Nanos, SliceId, StrId, TrackId};

/// Something on a track that has a beginning and, mostly, an end. Slices of one track may
/// lie in any order and may overlap; writers make them nest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slice {
    /// Where it lies.
    pub track: TrackId,
    /// When it begins.
    pub start: Nanos,
    /// How long it takes; [`Nanos::UNFINISHED`] when its end is not in the trace.
    pub dur: Nanos,
    /// What it is called; may be none.
    pub name: StrId,
    /// Its category; several are joined by commas. May be none.
    pub category: StrId,
    /// Its arguments.
    pub args: Option<ArgsId>,
}

impl Slice {
    /// A slice without name, category and arguments.
    pub fn new(track: TrackId, start: Nanos, dur: Nanos) -> Slice {
        Slice { track, start, dur, name: StrId::NONE, category: StrId::NONE, args: None }
    }

    /// When it ends; `None` when that is not in the trace.
    pub fn end(&self) -> Option<Nanos> {
        self.dur.is_finished().then(|| self.start + self.dur)
    }
}

/// The table of slices: a vector per column.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    starts: Vec<i64>,
    durs: Vec<i64>,
    tracks: Vec<TrackId>,
    names: Vec<StrId>,
    categories: Vec<StrId>,
    args: Vec<Option<ArgsId>>,
    positions: Positions,
    end_positions: Positions,
}

impl Slices {
    /// Adds a slice.
    pub fn push(&mut self, slice: Slice) -> SliceId {
        self.starts.push(slice.start.0);
        self.durs.push(slice.dur.0);
        self.tracks.push(slice.track);
        self.names.push(slice.name);
        self.categories.push(slice.category);
        self.args.push(slice.args);
        SliceId::at(self.starts.len() - 1)
    }

    /// The slice.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    #[inline]
    pub fn get(&self, id: SliceId) -> Slice {
        let row = id.index();
        Slice {
            track: self.tracks[row],
            start: Nanos(self.starts[row]),
            dur: Nanos(self.durs[row]),
            name: self.names[row],
            category: self.categories[row],
            args: self.args[row],
        }
    }

    /// When the slice begins.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    #[inline]
    pub fn start(&self, id: SliceId) -> Nanos {
        Nanos(self.starts[id.index()])
    }

    /// When it ends; `None` when that is not in the trace.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    #[inline]
    pub fn end(&self, id: SliceId) -> Option<Nanos> {
        let dur = Nanos(self.durs[id.index()]);
        dur.is_finished().then(|| self.start(id) + dur)
    }

    /// Changes a slice.
    ///
    /// # Panics
    ///
    /// When it is not in this table.
    pub fn set(&mut self, id: SliceId, slice: Slice) {
        let row = id.index();
        self.tracks[row] = slice.track;
        self.starts[row] = slice.start.0;
        self.durs[row] = slice.dur.0;
        self.names[row] = slice.name;
        self.categories[row] = slice.category;
        self.args[row] = slice.args;
    }

    /// Says how long a slice took.
    pub fn set_dur(&mut self, id: SliceId, dur: Nanos) {
        self.durs[id.index()] = dur.0;
    }

    /// Where the slice stood in the file that it was read from, or its beginning, if its end is
    /// an event of its own: see [`Slices::end_position`]. Events count from 1. `None` if the
    /// order of the file is not known.
    pub fn position(&self, id: SliceId) -> Option<Position> {
        self.positions.get(id.index())
    }

    /// Says where the slice stood.
    pub fn set_position(&mut self, id: SliceId, position: Option<Position>) {
        self.positions.set(id.index(), position);
    }

    /// Where its end stood, if that was an event of its own: see [`Position::BARE`].
    pub fn end_position(&self, id: SliceId) -> Option<Position> {
        self.end_positions.get(id.index())
    }

    /// Says where its end stood.
    pub fn set_end_position(&mut self, id: SliceId, position: Option<Position>) {
        self.end_positions.set(id.index(), position);
    }

    /// The last position of any.
    pub(crate) fn last_position(&self) -> u32 {
        self.positions.last().max(self.end_positions.last())
    }

    /// How many slices there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no slices.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// All slices, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Slice> + '_ {
        self.ids().map(|id| self.get(id))
    }

    /// The handles of all slices.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = SliceId> + use<> {
        (0..self.len()).map(SliceId::at)
    }

    /// The handles of all slices, track by track and on each in the order of time; of
    /// those that begin together, the longest first, then the order in which they came. A
    /// slice comes after those around it.
    pub fn by_track(&self) -> Vec<SliceId> {
        // By track first, in the order of the rows: that of time, mostly, which sorting a track
        // then finds in one pass.
        let most = self.tracks.iter().map(|track| track.index() + 1).max().unwrap_or(0);
        let mut ends = vec![0u32; most + 1];
        for track in &self.tracks {
            ends[track.index() + 1] += 1;
        }
        for track in 0..most {
            ends[track + 1] += ends[track];
        }
        let mut order = vec![SliceId::at(0); self.len()];
        for (row, track) in self.tracks.iter().enumerate() {
            let place = &mut ends[track.index()];
            order[*place as usize] = SliceId::at(row);
            *place += 1;
        }
        // Unfinished slices last to the end of the trace.
        let length = |row: usize| if self.durs[row] < 0 { i64::MAX } else { self.durs[row] };
        let same = |a: &SliceId, b: &SliceId| self.tracks[a.index()] == self.tracks[b.index()];
        for track in order.chunk_by_mut(same) {
            track
                .sort_by_key(|id| (self.starts[id.index()], std::cmp::Reverse(length(id.index()))));
        }
        order
    }

    /// When each slice begins, in nanoseconds: a column, row by row.
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// How long each takes, in nanoseconds; negative when its end is not in the trace.
    pub fn durs(&self) -> &[i64] {
        &self.durs
    }

    /// Where each lies.
    pub fn tracks(&self) -> &[TrackId] {
        &self.tracks
    }

    /// What each is called.
    pub fn names(&self) -> &[StrId] {
        &self.names
    }

    /// The category of each.
    pub fn categories(&self) -> &[StrId] {
        &self.categories
    }

    /// The arguments of each.
    pub fn args(&self) -> &[Option<ArgsId>] {
        &self.args
    }

    /// Moves the times of some slices, which are given by number.
    pub(crate) fn shift(&mut self, rows: std::ops::Range<usize>, by: Nanos) {
        for time in self.starts.get_mut(rows).unwrap_or_default() {
            *time = (Nanos(*time) + by).0;
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        let positions = self.positions.bytes() + self.end_positions.bytes();
        self.starts.capacity() * 16 + self.tracks.capacity() * 16 + positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_takes_32_bytes() {
        let mut slices = Slices::default();
        for n in 0..1024 {
            slices.push(Slice::new(TrackId::at(0), Nanos(n), Nanos(1)));
        }
        assert_eq!(slices.bytes(), 1024 * 32);
    }

    #[test]
    fn by_track_puts_a_slice_after_those_around_it() {
        let mut slices = Slices::default();
        let mut push = |track, start, dur| {
            slices.push(Slice::new(TrackId::at(track), Nanos(start), Nanos(dur))).index()
        };
        let given = [push(1, 5, 2), push(0, 7, 1), push(1, 5, 9), push(1, 5, -1), push(1, 0, 100)];
        assert_eq!(given, [0, 1, 2, 3, 4]);
        let order: Vec<usize> = slices.by_track().iter().map(|id| id.index()).collect();
        assert_eq!(order, [1, 4, 3, 2, 0]);
    }
}
