//! Facts about the job, the clocks, and the file itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Nanos, StrId, Trace, Value};

/// The same moment on several clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockReading {
    /// The trace's clock: that of all times in the hub.
    pub trace: Nanos,
    /// `CLOCK_REALTIME`: since 1970.
    pub realtime: Option<Nanos>,
    /// `CLOCK_MONOTONIC`.
    pub monotonic: Option<Nanos>,
}

/// Something that was recorded and is not in the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// What and why, in a few words.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// Something about the file that a reader had to pass over or make up for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// What it was.
    pub what: String,
    /// How often.
    pub count: u64,
    /// Where it was first, in bytes from the beginning of the file (of the unpacked file,
    /// if it is packed).
    pub offset: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What is said about the job, by key. A key may repeat; the last one holds.
    pub metadata: Vec<(StrId, Value)>,
    /// Readings of clocks.
    pub readings: Vec<ClockReading>,
    /// What was lost, as the trace itself says.
    pub losses: Vec<Loss>,
    /// What the reader had to pass over.
    pub warnings: Vec<Warning>,
    /// What made the trace, if it says so.
    pub producer: StrId,
    /// How many packets or events there were of each kind, known and unknown.
    pub kinds: BTreeMap<Cow<'static, str>, u64>,
}

impl Facts {
    /// The value of a key.
    pub fn get(&self, key: StrId) -> Option<Value> {
        self.metadata.iter().rev().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }

    /// Notes something that was passed over at `offset`; counts it if it was noted before.
    pub fn warn(&mut self, what: impl AsRef<str>, offset: Option<u64>) {
        let what = what.as_ref();
        match self.warnings.iter_mut().find(|warning| warning.what == what) {
            Some(warning) => warning.count += 1,
            None => self.warnings.push(Warning { what: what.to_owned(), count: 1, offset }),
        }
    }

    /// How far `CLOCK_REALTIME` is ahead of the trace's clock, at the first reading that
    /// has both.
    pub fn realtime_offset(&self) -> Option<Nanos> {
        let both = |reading: &ClockReading| reading.realtime.map(|real| real - reading.trace);
        self.readings.iter().find_map(both)
    }
}

impl Trace {
    /// Whether our recording made the trace, or a part of it.
    pub(crate) fn is_own(&self) -> bool {
        self.strings.get(self.facts.producer).contains("Kymograph")
    }

    /// Whether the trace was read from JSON.
    pub fn was_json(&self) -> bool {
        let producer = self.strings.get(self.facts.producer);
        producer == "Kineto" || producer.ends_with("JSON")
    }
}
