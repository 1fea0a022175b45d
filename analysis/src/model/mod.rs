//! What many metrics need of a trace, computed once, as columns.
//!
//! | part | what it is |
//! |---|---|
//! | [`Events`] | everything that has a beginning and an end, a row each |
//! | [`Peers`] | launches and what they launched |
//! | [`Steps`] | profiler steps, and the step of each event |
//! | [`Classes`] | what kind of work device events are |
//! | [`Calls`] | the call tree of each thread |
//! | [`Leaves`] | what a thread did at each moment |
//! | [`Work`] | what devices did, by correlation number |
//! | [`QueueChange`] | how many activities each stream had waiting |
//! | [`Owners`] | the operator that launched each event of a device |
//!
//! Parts are made when they are first asked for, so that a metric pays for what it reads; threads
//! that ask for one at the same time get the same one. A row
//! of [`Events`] is a `u32`; [`NONE`] is no row.

mod arguments;
mod calls;
mod classes;
pub(crate) mod events;
pub(crate) mod kind;
mod leaves;
mod memo;
mod numbered;
mod owners;
mod peers;
mod queues;
pub(crate) mod steps;
mod work;

pub use arguments::{Argument, number, whole};

pub use crate::reading::Reading;
pub use calls::{Calls, Thread};
pub(crate) use calls::{chains, nest_by_count};
pub use classes::{Classes, of_kernel as kernel_class};
pub use events::{Events, Lane};
pub use kind::{Class, Kind};
pub use leaves::Leaves;
pub(crate) use numbered::Numbered;
pub use owners::Owners;
pub use peers::Peers;
pub use queues::QueueChange;
pub use steps::{Step, Steps};
pub use work::Work;

use std::sync::{Arc, OnceLock};

use kymograph_converters::trace::{ProcessId, StrId, Trace, TrackId};

use crate::compat::hta;
use crate::interval::{self, Interval};
use crate::options::Options;
use crate::reading::Rules;
use memo::Memo;

/// No row.
pub const NONE: u32 = u32::MAX;

/// A trace as metrics see it: one rank's part of it.
#[derive(Debug)]
pub struct Model<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// How it is read.
    pub reading: Reading,
    /// The rank.
    pub rank: i64,
    /// When the first event begins, before any was left out.
    pub origin: i64,
    /// Everything that has a beginning and an end.
    pub events: Events,
    process: Option<ProcessId>,
    peers: OnceLock<Peers>,
    steps: OnceLock<Steps>,
    classes: OnceLock<Classes>,
    calls: OnceLock<Calls>,
    device: OnceLock<Vec<u32>>,
    owners: OnceLock<Owners>,
    work: OnceLock<Work>,
    queues: OnceLock<Vec<(i64, Vec<QueueChange>)>>,
    memo: Memo,
}

impl<'a> Model<'a> {
    /// Reads a trace, or the part of one process of it.
    pub fn new(
        trace: &'a Trace,
        process: Option<ProcessId>,
        rank: i64,
        reading: Reading,
    ) -> Model<'a> {
        let mut model = Model {
            trace,
            reading,
            rank,
            origin: 0,
            events: Events::of(trace, process, reading),
            process,
            peers: OnceLock::new(),
            steps: OnceLock::new(),
            classes: OnceLock::new(),
            calls: OnceLock::new(),
            device: OnceLock::new(),
            owners: OnceLock::new(),
            work: OnceLock::new(),
            queues: OnceLock::new(),
            memo: Memo::default(),
        };
        model.origin = model.events.starts.iter().copied().min().unwrap_or(0);
        if let Reading::Hta(rules) = reading {
            hta::retime(&mut model.events, rules);
            model.origin = model.events.starts.iter().copied().min().unwrap_or(0);
            model.leave_out_last_step(rules);
        }
        model
    }

    /// HTA leaves out the last step, where there are several.
    fn leave_out_last_step(&mut self, rules: Rules) {
        if rules.last_step {
            return;
        }
        let device_side = |row: usize| peers::is_device_side(self, row);
        if let Some(kept) = hta::without_last_step(&self.events, self.steps(), device_side) {
            self.keep(&kept);
        }
    }

    /// Whether a track belongs to the process that is looked at.
    pub fn takes(&self, track: TrackId) -> bool {
        let of = self.process.and_then(|_| self.trace.process_of(track));
        of.is_none() || of == self.process
    }

    /// What PyTorch calls the trace's devices, by the categories of calls and the devices' makers.
    pub fn device_type(&self) -> &'static str {
        const BY_CATEGORY: [(&str, &str); 6] = [
            ("xpu_runtime", "XPU"),
            ("xpu_driver", "XPU"),
            ("hpu_runtime", "HPU"),
            ("hpu_op", "HPU"),
            ("mtia_runtime", "MTIA"),
            ("privateuse1_runtime", "PRIVATEUSE1"),
        ];
        const BY_NAME: [(&str, &str); 4] =
            [("Gaudi", "HPU"), ("Habana", "HPU"), ("HL-", "HPU"), ("Intel", "XPU")];
        let strings = &self.trace.strings;
        let of = BY_CATEGORY.iter().find(|(category, _)| strings.find(category).is_some());
        let named = || {
            let devices = self.trace.devices.iter();
            let mut names = devices.flat_map(|(_, device)| [device.vendor, device.name]);
            names.find_map(|name| BY_NAME.iter().find(|(part, _)| self.text(name).contains(part)))
        };
        of.or_else(named).map_or("CUDA", |(_, kind)| kind)
    }

    /// A name or another text.
    pub fn text(&self, id: StrId) -> &'a str {
        self.trace.strings.get(id)
    }

    /// The name of an event.
    pub fn name(&self, row: u32) -> &'a str {
        self.text(self.events.names[row as usize])
    }

    /// Tells whether the name of an event is of some kind; `is` is asked once for each name.
    pub fn names_that(&self, is: impl Fn(&str) -> bool) -> impl FnMut(u32) -> bool {
        let mut known: Vec<Option<bool>> = vec![None; self.trace.strings.len() + 1];
        move |row| {
            let id = self.events.names[row as usize];
            match known.get_mut(id.0 as usize) {
                Some(known) => *known.get_or_insert_with(|| is(self.text(id))),
                None => is(self.text(id)),
            }
        }
    }

    /// Launches and what they launched.
    pub fn peers(&self) -> &Peers {
        self.peers.get_or_init(|| Peers::of(self))
    }

    /// Profiler steps.
    pub fn steps(&self) -> &Steps {
        self.steps.get_or_init(|| Steps::of(self))
    }

    /// What kind of work device events are.
    pub fn classes(&self) -> &Classes {
        self.classes.get_or_init(|| Classes::of(self))
    }

    /// The call tree of each thread.
    pub fn calls(&self) -> &Calls {
        self.calls.get_or_init(|| Calls::of(self))
    }

    /// The operators that device work belongs to.
    pub fn owners(&self) -> &Owners {
        self.owners.get_or_init(|| Owners::of(self))
    }

    /// Work of devices by its correlation number.
    pub fn work(&self) -> &Work {
        self.work.get_or_init(|| Work::of_model(self))
    }

    /// Whether an event is a call that launched something that counts for queues.
    pub fn launches(&self, row: u32) -> bool {
        queues::is_launch(self, row)
    }

    /// For each stream, in the order of their numbers, when the length of its queue changes: one
    /// more when a call launches something on it, one fewer when that begins.
    pub fn queues(&self) -> &[(i64, Vec<QueueChange>)] {
        self.queues.get_or_init(|| queues::queues(self))
    }

    /// What several metrics derive from the events, made for the first of them. `T` tells what it
    /// is, `key` has all the options that it depends on. It lives as long as the model: keep it
    /// small.
    pub(crate) fn shared<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        self.memo.get(key, make)
    }

    /// Likewise for what is large: it lives while a metric holds it.
    pub(crate) fn while_held<K, T>(&self, key: K, make: impl FnOnce() -> T) -> Arc<T>
    where
        K: PartialEq + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        self.memo.while_held(key, make)
    }

    /// All events in the order of their beginnings; of those that begin together, in that of rows.
    pub fn by_time(&self) -> Arc<Vec<u32>> {
        self.shared("by time", || {
            let starts = &self.events.starts;
            let mut keys: Vec<(i64, u32)> = Vec::with_capacity(self.events.len());
            let mut taken = vec![false; self.events.len()];
            // Sorting is fast where long stretches are in order: those of threads and of devices.
            for row in self.calls().order.iter().chain(self.device()).copied() {
                taken[row as usize] = true;
                keys.push((starts[row as usize], row));
            }
            let others = (0..).zip(taken).filter(|(_, taken)| !taken);
            keys.extend(others.map(|(row, _)| (starts[row as usize], row)));
            keys.sort();
            keys.into_iter().map(|(_, row)| row).collect()
        })
    }

    /// Events on devices, in the order of their beginnings; of those that begin together, in
    /// the order of the trace.
    pub fn device(&self) -> &[u32] {
        self.device.get_or_init(|| {
            let streams = self.events.streams.iter().enumerate();
            let rows = streams.filter(|(_, stream)| **stream != Events::HOST);
            let mut rows: Vec<u32> = rows.map(|(row, _)| row as u32).collect();
            self.events.sort_by_start(&mut rows);
            rows
        })
    }

    /// Device events of one class, joined where they overlap.
    pub fn busy(&self, class: Class) -> Arc<Vec<Interval>> {
        self.shared(("busy", class), || {
            let classes = self.classes();
            let rows = self.device().iter().filter(|row| classes.of_row(self, **row) == class);
            interval::merge(rows.map(|row| self.events.interval(*row)))
        })
    }

    /// Device events of any class, joined where they overlap.
    pub fn busy_at_all(&self) -> Vec<Interval> {
        interval::merge(self.device().iter().map(|row| self.events.interval(*row)))
    }

    /// Leaves out all but some events, and puts those in the given order; an event may come
    /// more than once. Launches and steps stay those of all events.
    pub fn keep(&mut self, rows: &[u32]) {
        let (peers, steps) = (self.peers(), self.steps());
        let mut places = vec![NONE; self.events.len()];
        for (place, row) in rows.iter().enumerate().rev() {
            places[*row as usize] = place as u32;
        }
        let peer = |row: &u32| peers.get(*row).map_or(NONE, |peer| places[peer as usize]);
        let peers = Peers { of: rows.iter().map(peer).collect() };
        let mut all = steps.all.clone();
        all.retain_mut(|step| {
            step.row = places[step.row as usize];
            step.row != NONE
        });
        let of = rows.iter().map(|row| steps.of[*row as usize]).collect();
        let steps = Steps { all, of };
        self.events = self.events.select(rows);
        (self.peers, self.steps) = (OnceLock::from(peers), OnceLock::from(steps));
        (self.classes, self.calls, self.device, self.owners) = Default::default();
        (self.work, self.queues, self.memo) = Default::default();
    }

    /// Leaves out what `options` do not want: other steps, devices, times and names.
    pub fn restrict(&mut self, options: &Options) {
        let Options { steps, devices, times, names, .. } = options;
        if steps.is_empty() && devices.is_empty() && times.is_none() && names.is_empty() {
            return;
        }
        let (events, of) = (&self.events, &self.steps().of);
        let wants = |row: &u32| {
            let at = *row as usize;
            let (start, end) = events.interval(*row);
            let device = !events.on_device(*row)
                || devices.is_empty()
                || devices.contains(&events.lane(*row).pid);
            let time = times.is_none_or(|(from, to)| {
                start < self.origin.saturating_add(to) && end > self.origin.saturating_add(from)
            });
            let named = names.is_empty() || {
                let name = self.name(*row);
                names.iter().any(|part| name.contains(part.as_str()))
            };
            device && time && named && (steps.is_empty() || steps.contains(&of[at]))
        };
        let rows: Vec<u32> = (0..events.len() as u32).filter(wants).collect();
        self.keep(&rows);
    }
}
