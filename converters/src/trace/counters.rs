//! Counters.

use super::positions::{Position, Positions};
use super::{DeviceId, Nanos, SeriesId, StrId, Table, TrackId, Unit};

/// What a counter counts, and where it belongs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Series {
    /// Where it belongs.
    pub kind: SeriesKind,
    /// What it is called. For [`SeriesKind::Track`], the name of the track.
    pub name: StrId,
    /// A text that explains it; may be none.
    pub description: StrId,
    /// Its unit.
    pub unit: Unit,
}

/// Where a counter belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// To a track of the host, of [`super::TrackKind::Counter`].
    Track(TrackId),
    /// To a device: utilisation, temperature…
    Device {
        /// The device.
        device: DeviceId,
        /// Perfetto's numbers of the groups it is shown in, as bits: 5 memory, 6 compute…
        groups: u32,
        /// Whether a value describes the time after it, and not the time before it.
        forwards: bool,
    },
    /// The memory of a device that a process has allocated; 0: all of them together.
    DeviceMemory {
        /// The device.
        device: DeviceId,
        /// The kernel's id of the process.
        pid: i64,
    },
    /// The clock rate of a device, in kHz.
    DeviceFrequency {
        /// The device.
        device: DeviceId,
    },
}

/// A number that knows whether it was whole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An integer.
    I64(i64),
    /// Floating point.
    F64(f64),
}

impl Number {
    /// As floating point, perhaps rounded.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::I64(n) => n as f64,
            Number::F64(x) => x,
        }
    }
}

/// The value of a counter from a moment on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The counter.
    pub series: SeriesId,
    /// The moment.
    pub time: Nanos,
    /// The value.
    pub value: Number,
}

/// All counters and their samples.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The counters.
    pub series: Table<SeriesId, Series>,
    times: Vec<i64>,
    bits: Vec<u64>,
    /// The series' row, doubled, plus 1 for floating point.
    of: Vec<u32>,
    positions: Positions,
}

impl Counters {
    /// Adds a sample.
    pub fn push(&mut self, sample: Sample) {
        let (bits, float) = match sample.value {
            Number::I64(n) => (n as u64, 0),
            Number::F64(x) => (x.to_bits(), 1),
        };
        self.times.push(sample.time.0);
        self.bits.push(bits);
        self.of.push((sample.series.index() as u32) << 1 | float);
    }

    /// Removes the samples of these counters.
    pub(crate) fn forget(&mut self, series: &[SeriesId]) {
        let kept: Vec<(Sample, Option<u32>)> = self
            .iter()
            .enumerate()
            .filter(|(_, sample)| !series.contains(&sample.series))
            .map(|(row, sample)| (sample, self.position(row)))
            .collect();
        self.times.clear();
        self.bits.clear();
        self.of.clear();
        self.positions = Positions::default();
        for (sample, position) in kept {
            self.push(sample);
            self.set_last_position(position);
        }
    }

    /// Where the event of a sample, which is given by its number, stood in the file that it was
    /// read from. Samples of one event have the same position.
    pub fn position(&self, row: usize) -> Option<u32> {
        self.positions.get(row).map(|position| position.number)
    }

    /// Says where the event of the sample stood that was added last.
    pub fn set_last_position(&mut self, position: Option<u32>) {
        if let Some(row) = self.times.len().checked_sub(1) {
            self.positions.set(row, position.map(Position::new));
        }
    }

    /// The last position of any.
    pub(crate) fn last_position(&self) -> u32 {
        self.positions.last()
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Moves the times of some samples, which are given by number.
    pub(crate) fn shift(&mut self, rows: std::ops::Range<usize>, by: Nanos) {
        for time in self.times.get_mut(rows).unwrap_or_default() {
            *time = (Nanos(*time) + by).0;
        }
    }

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.times.capacity() * 16 + self.of.capacity() * 4 + self.positions.bytes()
    }

    /// All samples, in the order in which they were added.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Sample> + '_ {
        (0..self.len()).map(|row| Sample {
            series: SeriesId::at((self.of[row] >> 1) as usize),
            time: Nanos(self.times[row]),
            value: match self.of[row] & 1 {
                0 => Number::I64(self.bits[row] as i64),
                _ => Number::F64(f64::from_bits(self.bits[row])),
            },
        })
    }
}
