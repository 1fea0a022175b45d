//! Processes, threads and tracks: where events lie.

use super::{Nanos, ProcessId, QueueId, StrId, ThreadId, Trace, TrackId};

/// A process. Whatever lies on its track belongs to the process as a whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// The kernel's id.
    pub pid: i64,
    /// What it is called; may be none.
    pub name: StrId,
    /// Its command line.
    pub command: Vec<StrId>,
    /// When it started, if known.
    pub started: Option<Nanos>,
    /// Words that viewers show beside the name.
    pub labels: Vec<StrId>,
    /// Its place among processes, if one was given.
    pub sort_index: Option<i64>,
    /// Tells the machines of a merged trace apart; 0 is the host.
    pub machine: u32,
    /// Its own track.
    pub track: TrackId,
}

/// A thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Thread {
    /// Its process.
    pub process: ProcessId,
    /// The kernel's id.
    pub tid: i64,
    /// What it is called; may be none.
    pub name: StrId,
    /// Its place among its process's threads, if one was given.
    pub sort_index: Option<i64>,
    /// Its own track.
    pub track: TrackId,
}

/// A track: a row of events. Viewers show tracks of one name and parent as one row.
#[derive(Clone, PartialEq, Debug)]
pub struct Track {
    /// What it stands for.
    pub kind: TrackKind,
    /// The track that it lies under; none for roots (also those of processes).
    pub parent: Option<TrackId>,
    /// What it is called; none for processes and threads, which have their own names.
    pub name: StrId,
    /// A text that explains it; may be none.
    pub description: StrId,
    /// Its place among its siblings, if their parent orders by rank.
    pub rank: Option<i32>,
    /// How its children are ordered.
    pub order: Order,
    /// The queue of a device that its events tell about, if any.
    pub queue: Option<QueueId>,
    /// The number by which a Perfetto trace knows it; 0 if there is none yet.
    pub uuid: u64,
}

/// What a track stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackKind {
    /// A process.
    Process(ProcessId),
    /// A thread.
    Thread(ThreadId),
    /// The samples of a counter.
    Counter(Unit),
    /// Anything else. A format's process or thread whose id is no number is one too: a
    /// root, or below one.
    Other,
}

/// How a track's children are ordered by viewers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// Not said.
    #[default]
    Unknown = 0,
    /// By name.
    ByName = 1,
    /// By their first event.
    ByTime = 2,
    /// By rank.
    ByRank = 3,
}

/// The unit of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// Not said.
    #[default]
    None,
    /// Nanoseconds.
    Nanoseconds,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Anything else, by name.
    Named(StrId),
}

impl Track {
    /// A track of no special kind.
    pub fn new(parent: Option<TrackId>, name: StrId) -> Track {
        Track {
            kind: TrackKind::Other,
            parent,
            name,
            description: StrId::NONE,
            rank: None,
            order: Order::Unknown,
            queue: None,
            uuid: 0,
        }
    }
}

impl Trace {
    /// Adds a process and its track.
    pub fn process(&mut self, pid: i64, name: &str) -> ProcessId {
        let name = if name.is_empty() { StrId::NONE } else { self.strings.intern(name) };
        let track = self.tracks.push(Track::new(None, StrId::NONE));
        let process = self.processes.push(Process {
            pid,
            name,
            command: Vec::new(),
            started: None,
            labels: Vec::new(),
            sort_index: None,
            machine: 0,
            track,
        });
        self.tracks[track].kind = TrackKind::Process(process);
        process
    }

    /// Adds a thread and its track, under its process's.
    pub fn thread(&mut self, process: ProcessId, tid: i64, name: &str) -> ThreadId {
        let name = if name.is_empty() { StrId::NONE } else { self.strings.intern(name) };
        let parent = self.processes[process].track;
        let track = self.tracks.push(Track::new(Some(parent), StrId::NONE));
        let thread = self.threads.push(Thread { process, tid, name, sort_index: None, track });
        self.tracks[track].kind = TrackKind::Thread(thread);
        thread
    }

    /// Adds a track of no special kind.
    pub fn track(&mut self, parent: Option<TrackId>, name: &str) -> TrackId {
        let name = self.strings.intern(name);
        self.tracks.push(Track::new(parent, name))
    }

    /// The thread whose track this is or lies under.
    pub fn thread_of(&self, track: TrackId) -> Option<ThreadId> {
        self.ancestors(track).find_map(|(_, track)| match track.kind {
            TrackKind::Thread(thread) => Some(thread),
            _ => None,
        })
    }

    /// The process whose track this is or lies under.
    pub fn process_of(&self, track: TrackId) -> Option<ProcessId> {
        self.ancestors(track).find_map(|(_, track)| match track.kind {
            TrackKind::Process(process) => Some(process),
            TrackKind::Thread(thread) => Some(self.threads[thread].process),
            _ => None,
        })
    }

    /// The track, its parent, and so on up to a root. Ends also when parents go in circles.
    pub fn ancestors(&self, track: TrackId) -> impl Iterator<Item = (TrackId, &Track)> {
        const DEEPEST: usize = 128;
        std::iter::successors(Some(track), |id| self.tracks.get(*id)?.parent)
            .take(DEEPEST)
            .map_while(|id| Some((id, self.tracks.get(id)?)))
    }
}
