//! The rows of one trace, appended to those of another.
//!
//! Tables are dense, so a row's number becomes the number of rows before it plus its own.
//! Only devices are chosen: see [`super`].

use super::args::ArgRows;
use super::numbers::{Numbers, Replaced};
use super::{Rows, state};
use crate::chrome;
use crate::trace::{
    ArgsId, ContextId, Device, DeviceId, EventRef, FlowPoint, KernelId, LaunchId, LaunchLink,
    Nanos, Position, Process, ProcessId, Queue, QueueId, Sample, Series, SeriesId, SeriesKind,
    SliceId, StageId, StrId, Thread, ThreadId, Trace, Track, TrackId, TrackKind, Unit, Value,
};

/// Appends all rows of `from`. Returns where they are, and the devices, except those that
/// nothing refers to.
pub(super) fn append(
    to: &mut Trace,
    numbers: &mut Numbers,
    from: &Trace,
    label: &str,
) -> (Rows, Vec<Option<DeviceId>>) {
    let base = Base {
        processes: to.processes.len(),
        threads: to.threads.len(),
        tracks: to.tracks.len(),
        queues: to.queues.len(),
        contexts: to.contexts.len(),
        stages: to.stages.len(),
        kernels: to.kernels.len(),
        launches: to.launches.len(),
        slices: to.slices.len(),
        instants: to.instants.len(),
        activities: to.activities.len(),
        series: to.counters.series.len(),
        position: to.last_position(),
    };
    let (samples, points) = (to.counters.len(), to.flows.points.len());
    let args = ArgRows::new(from);
    let mut rows = Append { to, from, numbers, label, base, replaced: Replaced::default(), args };
    let devices = rows.devices();
    rows.places();
    rows.references(&devices);
    rows.events();
    rows.counters(&devices);
    let to = rows.to;
    let base = rows.base;
    let rows = Rows {
        processes: base.processes..to.processes.len(),
        slices: base.slices..to.slices.len(),
        instants: base.instants..to.instants.len(),
        activities: base.activities..to.activities.len(),
        samples: samples..to.counters.len(),
        points: points..to.flows.points.len(),
    };
    (rows, devices)
}

/// Moves all times of some rows.
pub(super) fn shift(trace: &mut Trace, rows: &Rows, by: Nanos) {
    if by == Nanos(0) {
        return;
    }
    trace.slices.shift(rows.slices.clone(), by);
    trace.instants.shift(rows.instants.clone(), by);
    trace.activities.shift(rows.activities.clone(), by);
    trace.counters.shift(rows.samples.clone(), by);
    for point in &mut trace.flows.points[rows.points.clone()] {
        point.time = point.time + by;
    }
    for (id, process) in trace.processes.iter_mut() {
        if rows.processes.contains(&id.index()) {
            process.started = process.started.map(|started| started + by);
        }
    }
}

/// How many rows there were.
#[derive(Clone, Copy)]
struct Base {
    processes: usize,
    threads: usize,
    tracks: usize,
    queues: usize,
    contexts: usize,
    stages: usize,
    kernels: usize,
    launches: usize,
    slices: usize,
    instants: usize,
    activities: usize,
    series: usize,
    position: u32,
}

struct Append<'a> {
    to: &'a mut Trace,
    from: &'a Trace,
    numbers: &'a mut Numbers,
    label: &'a str,
    base: Base,
    replaced: Replaced,
    args: ArgRows,
}

impl Append<'_> {
    fn text(&mut self, id: StrId) -> StrId {
        self.args.text(self.to, self.from, id)
    }

    /// A name with the words that tell traces apart.
    fn labelled(&mut self, id: StrId) -> StrId {
        let name = match self.from.strings.get(id) {
            "" => self.label.to_owned(),
            name => format!("{name} ({})", self.label),
        };
        self.to.strings.intern(&name)
    }

    fn devices(&mut self) -> Vec<Option<DeviceId>> {
        let mut used = vec![false; self.from.devices.len()];
        for (_, queue) in self.from.queues.iter() {
            used[queue.device.index()] = true;
        }
        for (_, series) in self.from.counters.series.iter() {
            if let Some(device) = device_of(series.kind) {
                used[device.index()] = true;
            }
        }
        let mut devices = Vec::with_capacity(used.len());
        for ((_, device), used) in self.from.devices.iter().zip(used) {
            devices.push(used.then(|| self.device(device)));
        }
        devices
    }

    fn device(&mut self, device: &Device) -> DeviceId {
        let number = self.numbers.device(device.number);
        self.replaced.devices.insert(device.number, number);
        let device = Device {
            number,
            name: if device.name.is_none() { device.name } else { self.labelled(device.name) },
            vendor: self.text(device.vendor),
            model: self.text(device.model),
            architecture: self.text(device.architecture),
            pci: self.text(device.pci),
            properties: self.args.plain(self.to, self.from, device.properties),
            // Numbers tell machines apart now.
            machine: 0,
            uuid: device.uuid,
        };
        self.to.devices.push(device)
    }

    /// Processes, threads and tracks.
    fn places(&mut self) {
        for (id, process) in self.from.processes.iter() {
            let pid = self.numbers.pid(process.pid);
            self.replaced.pids.insert(process.pid, pid);
            let command = process.command.iter().map(|word| self.text(*word)).collect();
            let labels = process.labels.iter().map(|word| self.text(*word)).collect();
            let process = Process {
                pid,
                name: self.labelled(process.name),
                command,
                labels,
                track: TrackId::at(self.base.tracks + process.track.index()),
                machine: 0,
                ..process.clone()
            };
            self.to.processes.push(process);
            self.state(id, pid);
        }
        for (_, thread) in self.from.threads.iter() {
            let own = self.from.processes[thread.process].pid;
            let pid = self.replaced.pids.get(&own).copied().unwrap_or(own);
            let thread = Thread {
                process: ProcessId::at(self.base.processes + thread.process.index()),
                // The main thread has its process's number, by which viewers know it.
                tid: if thread.tid == own { pid } else { thread.tid },
                name: self.text(thread.name),
                track: TrackId::at(self.base.tracks + thread.track.index()),
                sort_index: thread.sort_index,
            };
            self.to.threads.push(thread);
        }
        for (_, track) in self.from.tracks.iter() {
            let track = self.track(track);
            self.to.tracks.push(track);
        }
    }

    /// States where a process ran, by its new number.
    fn state(&mut self, id: ProcessId, pid: i64) {
        if let Some(rank) = self.from.rank(id) {
            state(self.to, pid, "rank", Value::I64(rank));
        }
        let host = self.from.host(id);
        if !host.is_empty() {
            let host = Value::Str(self.to.strings.intern(&host));
            state(self.to, pid, "host", host);
        }
    }

    fn track(&mut self, track: &Track) -> Track {
        let kind = match track.kind {
            TrackKind::Process(id) => {
                TrackKind::Process(ProcessId::at(self.base.processes + id.index()))
            }
            TrackKind::Thread(id) => {
                TrackKind::Thread(ThreadId::at(self.base.threads + id.index()))
            }
            TrackKind::Counter(Unit::Named(unit)) => {
                TrackKind::Counter(Unit::Named(self.text(unit)))
            }
            kind => kind,
        };
        let uuid = match track.uuid {
            0 => 0,
            uuid if self.numbers.tracks.insert(uuid) => uuid,
            // The writer makes one.
            _ => 0,
        };
        Track {
            kind,
            uuid,
            parent: track.parent.map(|id| TrackId::at(self.base.tracks + id.index())),
            name: self.track_name(track),
            description: self.text(track.description),
            queue: track.queue.map(|id| QueueId::at(self.base.queues + id.index())),
            rank: track.rank,
            order: track.order,
        }
    }

    /// Names of tracks that stand for something by their name get those that stand for it
    /// now.
    fn track_name(&mut self, track: &Track) -> StrId {
        let name = self.from.strings.get(track.name);
        let replaced =
            chrome::with_device(name, |device| self.replaced.devices.get(&device).copied());
        let replaced = replaced.or_else(|| {
            let mut number = chrome::overhead(name)?;
            while !self.numbers.overheads.insert(number) {
                number += 1;
            }
            Some(chrome::overhead_name(number))
        });
        if let Some(name) = replaced {
            return self.to.strings.intern(&name);
        }
        let root = track.parent.is_none()
            && matches!(track.kind, TrackKind::Other | TrackKind::Counter(_));
        if root { self.labelled(track.name) } else { self.text(track.name) }
    }

    /// What activities refer to.
    fn references(&mut self, devices: &[Option<DeviceId>]) {
        self.to.annotated |= self.from.annotated;
        for (_, queue) in self.from.queues.iter() {
            let Some(device) = devices[queue.device.index()] else { continue };
            let (name, description) = (self.text(queue.name), self.text(queue.description));
            self.to.queues.push(Queue { device, name, description, number: queue.number });
        }
        for (_, context) in self.from.contexts.iter() {
            let pid = self.replaced.pids.get(&context.pid).copied().unwrap_or(context.pid);
            self.to.contexts.push(crate::trace::Context { pid, ..*context });
        }
        for (_, stage) in self.from.stages.iter() {
            let (name, description) = (self.text(stage.name), self.text(stage.description));
            self.to.stages.push(crate::trace::Stage { name, description, kind: stage.kind });
        }
        for (_, kernel) in self.from.kernels.iter() {
            let kernel = crate::trace::Kernel {
                name: self.text(kernel.name),
                demangled: self.text(kernel.demangled),
                architecture: self.text(kernel.architecture),
                args: self.set(kernel.args),
            };
            self.to.kernels.push(kernel);
        }
        for (_, launch) in self.from.launches.iter() {
            self.to.launches.push(*launch);
        }
    }

    fn events(&mut self) {
        for id in self.from.slices.ids() {
            let mut slice = self.from.slices.get(id);
            slice.track = TrackId::at(self.base.tracks + slice.track.index());
            (slice.name, slice.category) = (self.text(slice.name), self.text(slice.category));
            slice.args = self.set(slice.args);
            let new = self.to.slices.push(slice);
            self.to.slices.set_position(new, self.position(self.from.slices.position(id)));
            self.to.slices.set_end_position(new, self.position(self.from.slices.end_position(id)));
        }
        for id in self.from.instants.ids() {
            let mut instant = self.from.instants.get(id);
            instant.track = TrackId::at(self.base.tracks + instant.track.index());
            (instant.name, instant.category) =
                (self.text(instant.name), self.text(instant.category));
            instant.args = self.set(instant.args);
            let new = self.to.instants.push(instant);
            self.to.instants.set_position(new, self.position(self.from.instants.position(id)));
        }
        let base = self.base;
        for id in self.from.activities.ids() {
            let mut activity = self.from.activities.get(id);
            activity.queue = QueueId::at(base.queues + activity.queue.index());
            activity.name = self.text(activity.name);
            activity.stage = activity.stage.map(|id| StageId::at(base.stages + id.index()));
            activity.context = activity.context.map(|id| ContextId::at(base.contexts + id.index()));
            activity.kernel = activity.kernel.map(|id| KernelId::at(base.kernels + id.index()));
            activity.launch = activity.launch.map(|id| LaunchId::at(base.launches + id.index()));
            activity.correlation =
                self.numbers.correlation(&mut self.replaced, activity.correlation);
            activity.args = self.set(activity.args);
            let new = self.to.activities.push(activity);
            self.to.activities.set_position(new, self.position(self.from.activities.position(id)));
        }
        for link in &self.from.flows.links {
            let correlation = self.numbers.correlation(&mut self.replaced, link.correlation);
            let event = self.event(link.event);
            self.to.flows.links.push(LaunchLink { event, correlation, ..*link });
        }
        for point in &self.from.flows.points {
            let id = self.numbers.joint(&mut self.replaced, point.id);
            let (event, name) = (self.event(point.event), self.text(point.name));
            let known = Some(Position::new(point.position)).filter(|known| known.number != 0);
            let position = self.position(known).map_or(0, |position| position.number);
            self.to.flows.points.push(FlowPoint { id, event, name, position, ..*point });
        }
    }

    /// Files follow each other.
    fn position(&self, position: Option<Position>) -> Option<Position> {
        let moved = |Position { number, marks }| {
            let number = number.saturating_add(self.base.position);
            Position { number, marks }
        };
        position.map(moved)
    }

    fn event(&self, event: EventRef) -> EventRef {
        match event {
            EventRef::Slice(id) => EventRef::Slice(SliceId::at(self.base.slices + id.index())),
            EventRef::Instant(id) => {
                EventRef::Instant(crate::trace::InstantId::at(self.base.instants + id.index()))
            }
            EventRef::Activity(id) => {
                EventRef::Activity(crate::trace::ActivityId::at(self.base.activities + id.index()))
            }
        }
    }

    fn set(&mut self, set: Option<ArgsId>) -> Option<ArgsId> {
        self.args.set(self.to, self.from, self.numbers, &mut self.replaced, set)
    }

    fn counters(&mut self, devices: &[Option<DeviceId>]) {
        for (_, series) in self.from.counters.series.iter() {
            let moved = |device: DeviceId| devices[device.index()].unwrap_or(device);
            let kind = match series.kind {
                SeriesKind::Track(track) => {
                    SeriesKind::Track(TrackId::at(self.base.tracks + track.index()))
                }
                SeriesKind::Device { device, groups, forwards } => {
                    SeriesKind::Device { device: moved(device), groups, forwards }
                }
                SeriesKind::DeviceMemory { device, pid } => SeriesKind::DeviceMemory {
                    device: moved(device),
                    pid: self.replaced.pids.get(&pid).copied().unwrap_or(pid),
                },
                SeriesKind::DeviceFrequency { device } => {
                    SeriesKind::DeviceFrequency { device: moved(device) }
                }
            };
            let name = match kind {
                SeriesKind::Track(track) => self.to.tracks[track].name,
                _ => self.text(series.name),
            };
            let unit = match series.unit {
                Unit::Named(unit) => Unit::Named(self.text(unit)),
                unit => unit,
            };
            let description = self.text(series.description);
            self.to.counters.series.push(Series { kind, name, description, unit });
        }
        for (row, sample) in self.from.counters.iter().enumerate() {
            let series = SeriesId::at(self.base.series + sample.series.index());
            self.to.counters.push(Sample { series, ..sample });
            let position = self.from.counters.position(row).map(Position::new);
            let position = self.position(position).map(|position| position.number);
            self.to.counters.set_last_position(position);
        }
    }
}

fn device_of(kind: SeriesKind) -> Option<DeviceId> {
    match kind {
        SeriesKind::Track(_) => None,
        SeriesKind::Device { device, .. }
        | SeriesKind::DeviceMemory { device, .. }
        | SeriesKind::DeviceFrequency { device } => Some(device),
    }
}
