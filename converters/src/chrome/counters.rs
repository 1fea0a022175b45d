//! Counters: `C`, a sample for each argument.

use hashbrown::HashMap;

use super::ROW;
use super::rows::{Id, Rows};
use crate::json;
use crate::trace::{
    Nanos, Number, Sample, Series, SeriesId, SeriesKind, StrId, Trace, Track, TrackId, TrackKind,
    Unit,
};

/// A counter: row, category, name of the event, name of the argument.
type Key = (Id, Id, StrId, StrId, StrId);

#[derive(Debug, Default)]
pub(super) struct CounterRows {
    series: HashMap<Key, SeriesId>,
    /// The track of an event's name, under which its arguments have theirs.
    groups: HashMap<(Id, Id, StrId, StrId), TrackId>,
}

/// Where the event of a counter belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) pid: Id,
    pub(super) tid: Id,
    pub(super) cat: StrId,
    pub(super) name: StrId,
}

impl CounterRows {
    /// Adds the sample of one argument.
    pub(super) fn sample(
        &mut self,
        trace: &mut Trace,
        rows: &mut Rows,
        row: Row,
        key: StrId,
        (time, value): (Nanos, Number),
    ) {
        let whole = (row.pid, row.tid, row.cat, row.name, key);
        let series = match self.series.get(&whole) {
            Some(&series) => series,
            None => {
                let series = self.make(trace, rows, row, key);
                self.series.insert(whole, series);
                series
            }
        };
        trace.counters.push(Sample { series, time, value });
    }

    fn make(&mut self, trace: &mut Trace, rows: &mut Rows, row: Row, key: StrId) -> SeriesId {
        if let Some(device) = device_of(trace, row, key) {
            let device = rows.device(trace, device);
            // 6 is the group of computing.
            let kind = SeriesKind::Device { device, groups: 1 << 6, forwards: false };
            let series =
                Series { kind, name: row.name, description: StrId::NONE, unit: Unit::None };
            return trace.counters.series.push(series);
        }
        let group =
            *self.groups.entry((row.pid, row.tid, row.cat, row.name)).or_insert_with(|| {
                // Counters belong to processes; a thread is named by few.
                let parent = match row.tid {
                    Id::None | Id::Int(0) => rows.parent(trace, row.pid),
                    _ => rows.track(trace, row.pid, row.tid),
                };
                // A number that says nothing is said all the same.
                let marked = row.tid == Id::Int(0);
                let description = if marked { trace.strings.intern(ROW) } else { StrId::NONE };
                trace.tracks.push(Track { description, ..Track::new(Some(parent), row.name) })
            });
        let kind = TrackKind::Counter(Unit::None);
        let track = trace.tracks.push(Track { kind, ..Track::new(Some(group), key) });
        let kind = SeriesKind::Track(track);
        // The hub has no category for counters; it comes back from here.
        trace.counters.series.push(Series {
            kind,
            name: key,
            description: row.cat,
            unit: Unit::None,
        })
    }
}

/// The device whose hardware counter this is, as Kineto writes it.
fn device_of(trace: &Trace, row: Row, key: StrId) -> Option<i64> {
    let Id::Text(pid) = row.pid else { return None };
    let number = trace.strings.get(pid).strip_prefix("GPU ")?.strip_suffix(" Counters")?;
    let plain = trace.strings.get(row.cat) == "hardware_counters"
        && trace.strings.get(key).is_empty()
        && row.tid == Id::Int(0);
    number.parse().ok().filter(|_| plain)
}

/// The value of a counter, also in quotes.
pub(super) fn counted(value: json::Value<'_>) -> Option<Number> {
    match value.kind() {
        json::Kind::String => {
            let text = value.raw();
            let whole = text.parse().ok().map(Number::I64);
            whole.or_else(|| text.parse().ok().map(Number::F64))
        }
        _ => match json::number(value)? {
            json::Number::Int(n) => Some(Number::I64(n)),
            json::Number::Uint(n) => Some(Number::F64(n as f64)),
            json::Number::Float(x) => Some(Number::F64(x)),
            json::Number::Huge => value.raw().parse().ok().map(Number::F64),
        },
    }
}
