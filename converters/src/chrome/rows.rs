//! Rows: what `pid` and `tid` stand for.

use hashbrown::HashMap;
use kymograph_protos::rows::{self, Beside, Of};

use super::args::intern;
use super::places::overhead_name;
use super::{ASYNC, ROW};
use crate::json::{self, Kind};
use crate::trace::{Device, DeviceId, ProcessId, Queue, QueueId, StrId, Trace, Track, TrackId};

/// What comes before the number of a stream in old files.
pub(super) const STREAM: &str = "stream ";

/// A `pid` or a `tid`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Id {
    None,
    Int(i64),
    Text(StrId),
}

impl Id {
    /// Numbers in quotes are numbers; what is no number of 64 bits is its text.
    #[inline]
    pub(super) fn new(trace: &mut Trace, value: Option<json::Value<'_>>) -> Id {
        let Some(value) = value else { return Id::None };
        match json::short_integer(value) {
            Some(short) => Id::Int(short),
            None => Id::any(trace, value),
        }
    }

    fn any(trace: &mut Trace, value: json::Value<'_>) -> Id {
        match value.kind() {
            Kind::Int => match json::number(value) {
                Some(json::Number::Int(n)) => Id::Int(n),
                _ => Id::Text(trace.strings.intern(value.raw())),
            },
            Kind::Null => Id::None,
            Kind::String => {
                let text = value.raw();
                // Only what is written the way numbers are: `007` is a name.
                // Kineto's streams were called so until 2022.
                if let Some(stream) = text.strip_prefix(STREAM).and_then(|n| n.parse().ok()) {
                    return Id::Int(stream);
                }
                match text.parse::<i64>() {
                    Ok(n) if n.to_string() == text => Id::Int(n),
                    _ => Id::Text(intern(trace, value.as_str())),
                }
            }
            _ => Id::Text(trace.strings.intern(value.raw())),
        }
    }
}

/// Which of the rows that have the same `pid` and `tid`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RowKind {
    /// A thread, or whatever else is on the host.
    Host,
    /// What a device did; in Kineto's files, `pid` is the device and `tid` the stream.
    Queue,
    /// What is said about a queue: annotations, in a track of their own.
    Notes,
    /// Waiting for a queue.
    Sync,
    /// What recording cost.
    Overhead,
    /// Async events of a category and name.
    Async(StrId, StrId),
}

/// Where events of a row go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Track(TrackId),
    Queue(QueueId),
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    places: HashMap<(RowKind, Id, Id), Place>,
    last: Option<((RowKind, Id, Id), Place)>,
    processes: HashMap<i64, ProcessId>,
    roots: HashMap<StrId, TrackId>,
    devices: HashMap<i64, DeviceId>,
    /// Tracks that are to lie under the process, once it is known which one that is.
    pub(super) orphans: Vec<TrackId>,
}

impl Rows {
    /// Where events of this row go; makes the place if it is new.
    #[inline]
    pub(super) fn place(&mut self, trace: &mut Trace, kind: RowKind, pid: Id, tid: Id) -> Place {
        let key = (kind, pid, tid);
        if let Some((last, place)) = self.last
            && last == key
        {
            return place;
        }
        let place = match self.places.get(&key) {
            Some(&place) => place,
            None => {
                let place = self.make(trace, kind, pid, tid);
                self.places.insert(key, place);
                place
            }
        };
        self.last = Some((key, place));
        place
    }

    /// The place, if there is one.
    pub(super) fn find(&self, kind: RowKind, pid: Id, tid: Id) -> Option<Place> {
        self.places.get(&(kind, pid, tid)).copied()
    }

    /// The track of a host row.
    pub(super) fn track(&mut self, trace: &mut Trace, pid: Id, tid: Id) -> TrackId {
        match self.place(trace, RowKind::Host, pid, tid) {
            Place::Track(track) => track,
            // Host rows are tracks; see `make`.
            Place::Queue(_) => self.root(trace, StrId::NONE),
        }
    }

    pub(super) fn device(&mut self, trace: &mut Trace, number: i64) -> DeviceId {
        *self.devices.entry(number).or_insert_with(|| trace.devices.push(Device::new(number)))
    }

    pub(super) fn device_found(&self, number: i64) -> Option<DeviceId> {
        self.devices.get(&number).copied()
    }

    pub(super) fn process_found(&self, pid: i64) -> Option<ProcessId> {
        self.processes.get(&pid).copied()
    }

    pub(super) fn process(&mut self, trace: &mut Trace, pid: i64) -> ProcessId {
        *self.processes.entry(pid).or_insert_with(|| trace.process(pid, ""))
    }

    /// The track that stands for a `pid`.
    pub(super) fn parent(&mut self, trace: &mut Trace, pid: Id) -> TrackId {
        match pid {
            Id::Int(pid) => {
                let process = self.process(trace, pid);
                trace.processes[process].track
            }
            Id::Text(name) => self.root(trace, name),
            Id::None => self.parent(trace, Id::Int(0)),
        }
    }

    fn root(&mut self, trace: &mut Trace, name: StrId) -> TrackId {
        *self.roots.entry(name).or_insert_with(|| trace.tracks.push(Track::new(None, name)))
    }

    fn make(&mut self, trace: &mut Trace, kind: RowKind, pid: Id, tid: Id) -> Place {
        match (kind, pid, tid) {
            (RowKind::Queue, Id::Int(device), Id::Int(stream)) => {
                Place::Queue(self.queue(trace, device, stream))
            }
            (RowKind::Notes | RowKind::Sync, Id::Int(device), Id::Int(stream)) => {
                Place::Track(self.beside(trace, kind, device, stream))
            }
            (RowKind::Overhead, _, tid) => {
                let tid = if let Id::Int(tid) = tid { tid } else { 0 };
                let track = trace.track(None, &overhead_name(tid));
                self.orphans.push(track);
                Place::Track(track)
            }
            (RowKind::Async(_, name), pid, _) => {
                let parent = self.parent(trace, pid);
                let track = trace.tracks.push(Track::new(Some(parent), name));
                if matches!(pid, Id::Text(_)) {
                    trace.tracks[track].description = trace.strings.intern(ASYNC);
                }
                Place::Track(track)
            }
            (_, pid, tid) => Place::Track(self.host(trace, pid, tid)),
        }
    }

    fn host(&mut self, trace: &mut Trace, pid: Id, tid: Id) -> TrackId {
        let parent = self.parent(trace, pid);
        let row = |trace: &mut Trace, name, marked| {
            let track = trace.tracks.push(Track::new(Some(parent), name));
            if marked {
                trace.tracks[track].description = trace.strings.intern(ROW);
            }
            track
        };
        match (pid, tid) {
            (_, Id::None) => parent,
            (Id::Int(_) | Id::None, Id::Int(tid)) => {
                let process = self.process(trace, if let Id::Int(pid) = pid { pid } else { 0 });
                let thread = trace.thread(process, tid, "");
                trace.threads[thread].track
            }
            (Id::Text(_), Id::Text(name)) => row(trace, name, false),
            (_, Id::Text(name)) => row(trace, name, true),
            (_, Id::Int(tid)) => {
                let name = trace.strings.intern(&tid.to_string());
                row(trace, name, true)
            }
        }
    }

    /// The queue of a stream.
    pub(super) fn queue(&mut self, trace: &mut Trace, device: i64, stream: i64) -> QueueId {
        let key = (RowKind::Queue, Id::Int(device), Id::Int(stream));
        if let Some(&Place::Queue(queue)) = self.places.get(&key) {
            return queue;
        }
        let name = trace.strings.intern(&rows::stream(stream));
        let queue = Queue {
            device: self.device(trace, device),
            // A sign survives this; `-1` stands for the device as a whole.
            number: stream as u64,
            name,
            description: StrId::NONE,
        };
        let queue = trace.queues.push(queue);
        self.places.insert(key, Place::Queue(queue));
        queue
    }

    /// A track of the host that tells about a queue.
    fn beside(&mut self, trace: &mut Trace, kind: RowKind, device: i64, stream: i64) -> TrackId {
        let row = match (kind, stream) {
            (RowKind::Notes, _) => Beside { device, stream, of: Of::Annotations },
            // Where Kineto puts waits for a stream: beside it, so that they overlap nothing.
            (_, 1_000_000..) => Beside { device, stream: stream - 1_000_000, of: Of::Sync },
            _ => Beside { device, stream, of: Of::Waits },
        };
        let name = row.name();
        let track = trace.track(None, &name);
        trace.tracks[track].queue = Some(self.queue(trace, device, stream));
        self.orphans.push(track);
        track
    }
}
