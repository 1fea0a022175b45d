//! From the hub's tracks back to `pid` and `tid`.

use kymograph_protos::record::CALLS_TRACK;
use kymograph_protos::rows::{Beside, Of};

use super::{ASYNC, ROW};
use crate::json::{write_int, write_string};
use crate::trace::{QueueId, StrId, Trace, Track, TrackId, TrackKind};

/// The end of the name of a track under a thread's, on which annotations of PyTorch lie that cross
/// slices of the thread.
const ANNOTATIONS: &str = " · user_annotation";

/// How a track is named in the file. The texts are pieces of JSON, made once for a track.
#[derive(Clone, Debug)]
pub(super) enum Row {
    /// Events with a beginning and an end stand here as one: `"pid": 1, "tid": 2`.
    Plain {
        /// Both ids.
        ids: String,
        /// The scope that moments here have unless they say otherwise.
        scope: char,
    },
    /// Events here may overlap, so they are async: `"pid": 1`.
    Async(String),
}

/// Rows of all tracks and queues.
#[derive(Debug)]
pub(super) struct Places {
    tracks: Vec<Row>,
    queues: Vec<String>,
}

impl Places {
    pub(super) fn new(trace: &Trace) -> Places {
        let tracks = trace.tracks.iter().map(|(id, track)| row(trace, id, track)).collect();
        let queues = trace.queues.iter().map(|(id, _)| queue_ids(trace, id)).collect();
        Places { tracks, queues }
    }

    #[inline]
    pub(super) fn track(&self, track: TrackId) -> &Row {
        &self.tracks[track.index()]
    }

    #[inline]
    pub(super) fn queue(&self, queue: QueueId) -> &str {
        &self.queues[queue.index()]
    }
}

fn queue_ids(trace: &Trace, queue: QueueId) -> String {
    let device = trace.devices[trace.queues[queue].device].number;
    numbers(device, trace.stream(queue))
}

fn numbers(pid: i64, tid: i64) -> String {
    let mut out = b"\"pid\": ".to_vec();
    write_int(&mut out, pid);
    out.extend_from_slice(b", \"tid\": ");
    write_int(&mut out, tid);
    String::from_utf8_lossy(&out).into_owned()
}

fn row(trace: &Trace, id: TrackId, track: &Track) -> Row {
    let plain = |ids, scope| Row::Plain { ids, scope };
    if let Some(queue) = track.queue {
        return plain(queue_ids(trace, queue), 't');
    }
    match track.kind {
        TrackKind::Process(process) => plain(numbers(trace.processes[process].pid, 0), 'p'),
        TrackKind::Thread(thread) => {
            let thread = &trace.threads[thread];
            plain(numbers(trace.processes[thread.process].pid, thread.tid), 't')
        }
        TrackKind::Counter(_) | TrackKind::Other => other(trace, id, track),
    }
}

fn other(trace: &Trace, id: TrackId, track: &Track) -> Row {
    let name = trace.strings.get(track.name);
    let marked = |mark: &str| trace.strings.get(track.description) == mark;
    if let Some(tid) = overhead(name) {
        return Row::Plain { ids: numbers(-1, tid), scope: 't' };
    }
    if let Some((device, stream)) = beside(name) {
        return Row::Plain { ids: numbers(device, stream), scope: 't' };
    }
    let Some(parent) = track.parent else {
        return Row::Plain { ids: format!("\"pid\": {}, \"tid\": 0", quoted(name)), scope: 'g' };
    };
    let tid = || match name.parse::<i64>() {
        Ok(number) if marked(ROW) => number.to_string(),
        _ => quoted(name),
    };
    let above = &trace.tracks[parent];
    match above.kind {
        TrackKind::Other if above.parent.is_none() && above.queue.is_none() && !marked(ASYNC) => {
            let pid = quoted(trace.strings.get(above.name));
            Row::Plain { ids: format!("\"pid\": {pid}, \"tid\": {}", tid()), scope: 'g' }
        }
        // Where slices of a thread cross, some lie on a track of its name under it.
        TrackKind::Thread(thread) if trace.threads[thread].name == track.name => {
            row(trace, parent, above)
        }
        // Annotations that begin and end inside of calls, which they cross.
        TrackKind::Thread(_) if name.ends_with(ANNOTATIONS) => row(trace, parent, above),
        // What its calls to a device's libraries are called lies under it, too.
        TrackKind::Thread(_) if name == CALLS_TRACK => row(trace, parent, above),
        TrackKind::Process(process) if trace.processes[process].name == track.name => {
            row(trace, parent, above)
        }
        TrackKind::Process(process) if marked(ROW) => {
            let pid = trace.processes[process].pid;
            Row::Plain { ids: format!("\"pid\": {pid}, \"tid\": {}", quoted(name)), scope: 't' }
        }
        _ => Row::Async(pid_of(trace, id)),
    }
}

/// The `tid` of a track of overheads, by its name: [`overhead_name`] made it.
pub(crate) fn overhead(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("Overhead")?;
    rest.trim_start().parse().ok().or_else(|| rest.is_empty().then_some(0))
}

/// The name of the track of overheads with this `tid`.
pub(crate) fn overhead_name(tid: i64) -> String {
    if tid == 0 { "Overhead".to_owned() } else { format!("Overhead {tid}") }
}

/// The name of a track beside a queue when its device gets another number; none for other
/// names and devices.
pub(crate) fn with_device(name: &str, other: impl Fn(i64) -> Option<i64>) -> Option<String> {
    let row = Beside::named(name)?;
    Some(Beside { device: other(row.device)?, ..row }.name())
}

/// The device and the stream of a track beside a queue, by its name: [`super::rows`] made it.
pub(super) fn beside(name: &str) -> Option<(i64, i64)> {
    let row = Beside::named(name)?;
    match row.of {
        Of::Sync => Some((row.device, row.stream.checked_add(1_000_000)?)),
        Of::Annotations | Of::Waits => Some((row.device, row.stream)),
    }
}

/// The `pid` of whatever a track lies under.
pub(super) fn pid_of(trace: &Trace, track: TrackId) -> String {
    if let Some(process) = trace.process_of(track) {
        return format!("\"pid\": {}", trace.processes[process].pid);
    }
    let root = trace.ancestors(track).last().map_or(StrId::NONE, |(_, root)| root.name);
    format!("\"pid\": {}", quoted(trace.strings.get(root)))
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}
