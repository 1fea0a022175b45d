//! Several traces on one timeline: the ranks of a job, on one or on many hosts.
//!
//! ```text
//! trace ─► rows: appended, under numbers that no other trace uses ─┐
//! trace ─► rows …                                                  ├─► clocks: each trace's
//! trace ─► rows …                                                  ┘   rows moved ─► Trace
//! ```
//! **Numbers.** Processes, devices, and whatever joins events by number mean something only
//! within their trace. The first trace that has a number keeps it; in later ones it is
//! replaced ([`numbers`]), also where arguments repeat it, so that the merged trace stays
//! whole when it is written as JSON. A process whose id is taken gets one above 10,000,000,
//! of which the last digits are its own.
//!
//! **Names.** Processes, devices and rows that belong to no process are called after the
//! rank and the host as well: `python3 (rank 1, node7)`; if neither is known, after the file.
//! Facts that all traces agree on are kept; where they differ, the key of all but the first
//! gains the same words.
//!
//! **Clocks.** The merged trace has the clock of the first. Others are moved by the
//! difference of the times of day, or not at all where both were recorded since the same
//! start of the same machine. [`Align::Collectives`] then moves them so that collectives,
//! which no rank leaves before the last has entered, end together ([`align`]).
//!
//! Devices that did nothing are taken over only where their number is free: each rank of a
//! job lists all devices of its machine. Events of metadata that the hub could not express
//! are dropped, with the facts that hold them.

mod align;
mod args;
mod numbers;
mod rows;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::chrome;
use crate::trace::{
    ClockReading, Device, DeviceId, Facts, Job, Loss, Nanos, StrId, Trace, Value, Warning,
};
use numbers::Numbers;

/// How clocks are aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Align {
    /// By the times of day that traces state.
    #[default]
    Clocks,
    /// By those, and then by collectives that ranks have in common.
    Collectives,
}

/// How the clock of a trace was related to that of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Related {
    /// It is the first.
    First,
    /// It is the same clock.
    Same,
    /// By the time of day.
    TimeOfDay,
    /// Not at all: its times were left as they are, since they lie within those of the
    /// first.
    Assumed,
    /// Not at all: it was made to begin with the first.
    Unrelated,
}

/// A trace that was merged.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The name that it was added under.
    pub name: String,
    /// What its processes and devices are called after.
    pub label: String,
    /// Its rank, if known.
    pub rank: Option<i64>,
    /// How its clock was related.
    pub related: Related,
    /// By how much its times were moved in all.
    pub shift: Nanos,
    /// What collectives said; it was heeded if they agree.
    pub collectives: Option<Collectives>,
}

/// What collectives say about the clock of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collectives {
    /// How much later than by its clock its events were: the median.
    pub offset: Nanos,
    /// Half of the collectives lie within this of the median.
    pub spread: Nanos,
    /// How many were compared.
    pub matched: u64,
}

impl Collectives {
    /// Whether they agree well enough to move a trace: all but exactly, or much better than
    /// the clocks do.
    pub fn agree(&self) -> bool {
        let spread = self.spread.0.unsigned_abs();
        spread <= 100_000 || spread <= self.offset.0.unsigned_abs() / 4
    }
}

/// The rows of a trace in the merged one, and its clock.
#[derive(Debug)]
struct Added {
    part: Part,
    rows: Rows,
    span: Option<(Nanos, Nanos)>,
    /// How far the time of day is ahead of its clock.
    realtime: Option<Nanos>,
    boot: String,
}

/// Rows by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Rows {
    processes: Range<usize>,
    slices: Range<usize>,
    instants: Range<usize>,
    activities: Range<usize>,
    samples: Range<usize>,
    points: Range<usize>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Merger {
    trace: Trace,
    numbers: Numbers,
    added: Vec<Added>,
    readings: Vec<ClockReading>,
    /// Devices that did nothing, by number.
    idle: BTreeMap<i64, Device>,
}

impl Merger {
    /// Nothing yet.
    pub fn new() -> Merger {
        Merger::default()
    }

    /// Adds a trace; `name` is for messages, and for labels where there is neither a rank
    /// nor a host.
    pub fn add(&mut self, name: &str, trace: Trace) {
        let job = Job::of(&trace);
        let mut words: Vec<String> = job.rank.iter().map(|rank| format!("rank {rank}")).collect();
        words.extend(Some(job.host.clone()).filter(|host| !host.is_empty()));
        let label = if words.is_empty() { name.to_owned() } else { words.join(", ") };
        if self.added.is_empty() {
            self.readings.clone_from(&trace.facts.readings);
        }
        let related = if self.added.is_empty() { Related::First } else { Related::Unrelated };
        let span = trace.time_span();
        let realtime = trace.facts.realtime_offset();
        let (rows, devices) = rows::append(&mut self.trace, &mut self.numbers, &trace, &label);
        for (id, device) in trace.devices.iter() {
            if devices[id.index()].is_none() {
                self.idle(&trace, device);
            }
        }
        self.facts(&trace, &label);
        let part = Part {
            name: name.to_owned(),
            label,
            rank: job.rank,
            related,
            shift: Nanos(0),
            collectives: None,
        };
        self.added.push(Added { part, rows, span, realtime, boot: job.boot });
    }

    /// The merged trace, and what became of each.
    pub fn finish(mut self, align: Align) -> (Trace, Vec<Part>) {
        for (number, device) in std::mem::take(&mut self.idle) {
            if self.numbers.devices.insert(number) {
                let _: DeviceId = self.trace.devices.push(device);
            }
        }
        self.relate();
        if align == Align::Collectives {
            align::collectives(&self.trace, &mut self.added);
        }
        // Formats do not have times before their clock's zero.
        let moved = |added: &Added| added.span.map(|(start, _)| start + added.part.shift);
        let first = self.added.iter().filter_map(moved).min().unwrap_or_default();
        let up = Nanos(0) - first.min(Nanos(0));
        for added in &mut self.added {
            added.part.shift = added.part.shift + up;
            rows::shift(&mut self.trace, &added.rows, added.part.shift);
        }
        let shift = self.added.first().map_or(Nanos(0), |added| added.part.shift);
        for mut reading in self.readings {
            let moved = reading.trace + shift;
            reading.trace = moved.max(Nanos(0));
            let by = reading.trace - moved;
            reading.realtime = reading.realtime.map(|time| time + by);
            reading.monotonic = reading.monotonic.map(|time| time + by);
            self.trace.facts.readings.push(reading);
        }
        (self.trace, self.added.into_iter().map(|added| added.part).collect())
    }

    /// Moves each trace to where its clock says.
    fn relate(&mut self) {
        let Some((first, others)) = self.added.split_first_mut() else { return };
        for added in others {
            let offsets = added.realtime.zip(first.realtime).map(|(own, first)| own - first);
            let same = !added.boot.is_empty() && added.boot == first.boot;
            let within = |(start, end): (Nanos, Nanos), (first, last): (Nanos, Nanos)| {
                start <= last && end >= first
            };
            let (related, shift) = match (offsets, added.span.zip(first.span)) {
                _ if same => (Related::Same, Nanos(0)),
                (Some(shift), _) => (Related::TimeOfDay, shift),
                (None, Some((own, first))) if !within(own, first) => {
                    (Related::Unrelated, first.0 - own.0)
                }
                _ => (Related::Assumed, Nanos(0)),
            };
            (added.part.related, added.part.shift) = (related, shift);
        }
    }

    fn idle(&mut self, from: &Trace, device: &Device) {
        let to = &mut self.trace;
        let mut text = |id: StrId| match id {
            StrId::NONE => id,
            id => to.strings.intern(from.strings.get(id)),
        };
        let device = Device {
            name: text(device.name),
            vendor: text(device.vendor),
            model: text(device.model),
            architecture: text(device.architecture),
            pci: text(device.pci),
            properties: args::properties(to, from, device.properties),
            machine: 0,
            ..device.clone()
        };
        self.idle.entry(device.number).or_insert(device);
    }

    fn facts(&mut self, from: &Trace, label: &str) {
        let Facts { producer, kinds, losses, warnings, .. } = &from.facts;
        let to = &mut self.trace;
        let producer = from.strings.get(*producer);
        let known = to.strings.get(to.facts.producer);
        if known.is_empty() {
            to.facts.producer = to.strings.intern(producer);
        } else if !known.split(" + ").any(|one| one == producer) && !producer.is_empty() {
            let both = format!("{known} + {producer}");
            to.facts.producer = to.strings.intern(&both);
        }
        for (kind, count) in kinds {
            *to.facts.kinds.entry(kind.clone()).or_default() += count;
        }
        let labelled = |what: &str| format!("{label}: {what}");
        to.facts.losses.extend(losses.iter().map(|l| Loss { what: labelled(&l.what), ..*l }));
        to.facts
            .warnings
            .extend(warnings.iter().map(|w| Warning { what: labelled(&w.what), ..*w }));
        self.metadata(from, label);
    }

    fn metadata(&mut self, from: &Trace, label: &str) {
        let to = &mut self.trace;
        for (key, _) in &from.facts.metadata {
            let name = from.strings.get(*key);
            if OF_THE_FILE.contains(&name) || FIRST.contains(&name) && !self.added.is_empty() {
                continue;
            }
            let Some(value) = from.facts.get(*key) else { continue };
            let value = args::value(to, from, value);
            let mut key = to.strings.intern(name);
            match to.facts.get(key) {
                Some(known) if known == value => continue,
                Some(_) => key = to.strings.intern(&format!("{name} ({label})")),
                None => {}
            }
            if to.facts.get(key).is_none() {
                to.facts.metadata.push((key, value));
            }
        }
    }
}

/// Facts about a file of events that are written anew.
const OF_THE_FILE: [&str; 7] = [
    chrome::METADATA_EVENTS,
    chrome::METADATA_POSITIONS,
    chrome::METADATA_TIME,
    chrome::WHOLE_TIMES,
    chrome::QUOTED_TIDS,
    chrome::BARE_MOMENTS,
    chrome::GPU_ROWS,
];
/// Facts that hold for the clock of the first trace, and the form of its file.
const FIRST: [&str; 4] =
    ["baseTimeNanoseconds", "displayTimeUnit", "schemaVersion", chrome::LAUNCH_ARROWS];

/// States where a process ran.
fn state(trace: &mut Trace, pid: i64, what: &str, value: Value) {
    let key = trace.strings.intern(&format!("kymograph.{pid}.{what}"));
    trace.facts.metadata.push((key, value));
}
