//! Slices that belong to no queue and no thread: overheads, waits, calls by another clock.

use kymograph_protos::record::NANOS;
use kymograph_protos::{Extra, Kind, Record, Recorder, StrId};

/// Ids of ranges and tracks of one source: its letters are their upper bits, since other
/// sources number theirs too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) const fn of(letters: [u8; 2]) -> Ids {
        Ids((letters[0] as u64) << 56 | (letters[1] as u64) << 48)
    }

    pub(crate) const fn id(self, number: u64) -> u64 {
        self.0 | number
    }
}

/// The ranges of one decoder.
pub(crate) struct Ranges {
    recorder: &'static dyn Recorder,
    ids: Ids,
    count: u64,
}

impl Ranges {
    pub(crate) fn new(recorder: &'static dyn Recorder, ids: Ids) -> Ranges {
        Ranges { recorder, ids, count: 0 }
    }

    /// A slice from and to nanoseconds of `CLOCK_BOOTTIME`. Its track is among the arguments,
    /// or is called like its category.
    pub(crate) fn push(&mut self, site: StrId, (start, end): (u64, u64), args: &[Extra]) {
        self.count += 1;
        let range = Record { other: self.ids.id(self.count), tag: NANOS, ..Record::default() };
        let head = Record { time: start, site, kind: Kind::RangeBegin as u8, ..range };
        // Without its beginning the end would be one too many.
        if self.recorder.push(head, args) {
            let end = Record { time: end, kind: Kind::RangeEnd as u8, ..range };
            self.recorder.push(end, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_their_letters() {
        assert_eq!(Ids::of(*b"CU").id(7), 0x4355_0000_0000_0007);
    }
}
