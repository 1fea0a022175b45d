//! Everything that has a beginning and an end, in one table.

use std::cmp::Ordering;

use hashbrown::HashMap;
use kymograph_converters::order::Order as _;
use kymograph_converters::trace::{
    Activity, ActivityId, Args, ArgsId, EventRef, LaunchKind, ProcessId, QueueId, SliceId,
    StageKind, StrId, Trace, TrackKind, Value,
};

use super::{Kind, Reading};

/// Where an event lies: a thread, a stream, or beside one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Lane {
    /// The process; for device events, the number of the device.
    pub pid: i64,
    /// The thread or the stream.
    pub tid: i64,
    /// Whether it is a thread of the host.
    pub thread: bool,
}

/// A column each; see the module.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// When each begins, in nanoseconds.
    pub starts: Vec<i64>,
    /// How long it takes, in nanoseconds.
    pub durs: Vec<i64>,
    /// What it is called.
    pub names: Vec<StrId>,
    /// What it is.
    pub kinds: Vec<Kind>,
    /// Where it lies: an index of `lanes`.
    pub lane_of: Vec<u32>,
    /// The stream of a device, [`Events::HOST`] for what the host does.
    pub streams: Vec<i32>,
    /// What joins launches with what they launched; -1 if there is nothing.
    pub correlations: Vec<i64>,
    /// Where each stands among the events of the trace.
    pub positions: Vec<u32>,
    /// The row of the trace's slices or, counted from the end of those, activities.
    pub rows: Vec<u32>,
    /// Threads and streams.
    pub lanes: Vec<Lane>,
    /// Device work that cannot have taken as long as the trace says, which is left out: when it
    /// begins, how long it is said to take.
    pub impossible: Vec<(i64, i64)>,
    /// How many slices the trace has.
    slices: u32,
}

impl Events {
    /// The stream of what the host does.
    pub const HOST: i32 = -1;

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Sorts rows by when they begin; of the same time, as they were.
    pub fn sort_by_start(&self, rows: &mut [u32]) {
        rows.sort_by_key(|row| self.starts[*row as usize]);
    }

    /// Sorts those of some rows that begin together; the rows are in the order of their beginnings.
    pub fn sort_together(&self, rows: &mut [u32], compare: impl Fn(u32, u32) -> Ordering) {
        let starts = &self.starts;
        let mut left = rows;
        while let Some(start) = left.first().map(|row| starts[*row as usize]) {
            let ends = left.iter().position(|row| starts[*row as usize] != start);
            let (together, rest) = left.split_at_mut(ends.unwrap_or(left.len()));
            match together {
                [_] => {}
                [one, other] => {
                    if compare(*one, *other).is_gt() {
                        std::mem::swap(one, other);
                    }
                }
                many => many.order_by(|one, other| compare(*one, *other)),
            }
            left = rest;
        }
    }

    /// Sorts rows by where they stand in the trace.
    pub fn sort_by_position(&self, rows: &mut [u32]) {
        rows.sort_by_key(|row| self.positions[*row as usize]);
    }

    /// When an event ends.
    pub fn end(&self, row: u32) -> i64 {
        self.starts[row as usize].saturating_add(self.durs[row as usize])
    }

    /// Beginning and end.
    pub fn interval(&self, row: u32) -> (i64, i64) {
        (self.starts[row as usize], self.end(row))
    }

    /// Where an event lies.
    pub fn lane(&self, row: u32) -> Lane {
        self.lanes[self.lane_of[row as usize] as usize]
    }

    /// Whether a device did it.
    pub fn on_device(&self, row: u32) -> bool {
        self.streams[row as usize] != Events::HOST
    }

    /// The arguments of an event.
    pub fn args(&self, trace: &Trace, row: u32) -> Option<ArgsId> {
        let at = self.rows[row as usize];
        match at.checked_sub(self.slices) {
            None => trace.slices.args()[at as usize],
            Some(activity) => trace.activities.args()[activity as usize],
        }
    }

    /// The row of an event of a device among the trace's activities; none for other events.
    pub fn activity_of(&self, row: u32) -> Option<usize> {
        self.rows[row as usize].checked_sub(self.slices).map(|at| at as usize)
    }

    /// An event of a device, with its kernel and the dimensions of its launch.
    pub fn activity(&self, trace: &Trace, row: u32) -> Option<Activity> {
        Some(trace.activities.get(ActivityId::at(self.activity_of(row)?)))
    }

    /// The category of an event of the host; none for other events.
    pub fn category(&self, trace: &Trace, row: u32) -> StrId {
        let at = self.rows[row as usize] as usize;
        trace.slices.categories().get(at).copied().unwrap_or(StrId::NONE)
    }

    /// Only some of the rows, in the order in which they are given.
    pub fn select(&self, rows: &[u32]) -> Events {
        fn pick<T: Copy>(from: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|row| from[*row as usize]).collect()
        }
        Events {
            starts: pick(&self.starts, rows),
            durs: pick(&self.durs, rows),
            names: pick(&self.names, rows),
            kinds: pick(&self.kinds, rows),
            lane_of: pick(&self.lane_of, rows),
            streams: pick(&self.streams, rows),
            correlations: pick(&self.correlations, rows),
            positions: pick(&self.positions, rows),
            rows: pick(&self.rows, rows),
            lanes: self.lanes.clone(),
            impossible: self.impossible.clone(),
            slices: self.slices,
        }
    }

    /// Reads a trace. Slices come before activities; both are in the order of the trace.
    pub(super) fn of(trace: &Trace, process: Option<ProcessId>, reading: Reading) -> Events {
        let count = trace.slices.len() + trace.activities.len();
        let mut events = Events { slices: trace.slices.len() as u32, ..Events::default() };
        let wanted = Wanted::new(trace, process);
        events.lanes(trace, &wanted);
        events.reserve(count);
        events.take_slices(trace, &wanted, reading);
        events.take_activities(trace, &wanted, reading);
        if reading == Reading::Exact { events.without_impossible() } else { events }
    }

    /// Without device work that takes less than no time, or more than a second and ten times as
    /// long as anything else was seen: a sum with such a duration in it says nothing else.
    fn without_impossible(mut self) -> Events {
        let first = self.starts.iter().copied().min().unwrap_or(0);
        let ends = (0..self.len() as u32)
            .map(|row| if self.on_device(row) { self.starts[row as usize] } else { self.end(row) });
        let last = ends.max().unwrap_or(0);
        let most = last.saturating_sub(first).saturating_mul(10).max(1_000_000_000);
        let wrong = |row: &u32| {
            let dur = self.durs[*row as usize];
            self.on_device(*row) && (dur < 0 || dur > most)
        };
        let all = 0..self.len() as u32;
        let impossible: Vec<(i64, i64)> = all
            .clone()
            .filter(wrong)
            .map(|row| (self.starts[row as usize], self.durs[row as usize]))
            .collect();
        if !impossible.is_empty() {
            let rows: Vec<u32> = all.filter(|row| !wrong(row)).collect();
            self = self.select(&rows);
            self.impossible = impossible;
        }
        self
    }

    fn reserve(&mut self, count: usize) {
        self.starts.reserve(count);
        self.durs.reserve(count);
        self.names.reserve(count);
        self.kinds.reserve(count);
        self.lane_of.reserve(count);
        self.streams.reserve(count);
        self.correlations.reserve(count);
        self.positions.reserve(count);
        self.rows.reserve(count);
    }

    /// A lane for each track and then for each queue.
    fn lanes(&mut self, trace: &Trace, wanted: &Wanted) {
        let number = |id: StrId| trace.strings.get(id).parse().unwrap_or(-1);
        let streams = streams(trace, wanted);
        let of_queue = |queue: QueueId| Lane {
            pid: trace.devices[trace.queues[queue].device].number,
            tid: streams[queue.index()],
            thread: false,
        };
        for (id, track) in trace.tracks.iter() {
            let process = trace.process_of(id).map(|id| trace.processes[id].pid);
            self.lanes.push(match (track.queue, track.kind) {
                (Some(queue), _) => of_queue(queue),
                (None, TrackKind::Process(_)) => {
                    Lane { pid: process.unwrap_or(-1), tid: 0, thread: true }
                }
                _ => match trace.thread_of(id) {
                    Some(thread) => Lane {
                        pid: process.unwrap_or(-1),
                        tid: trace.threads[thread].tid,
                        thread: true,
                    },
                    None => {
                        let pid = process.unwrap_or(-1);
                        Lane { pid, tid: number(track.name), thread: false }
                    }
                },
            });
        }
        self.lanes.extend(trace.queues.iter().map(|(id, _)| of_queue(id)));
    }

    fn take_slices(&mut self, trace: &Trace, wanted: &Wanted, reading: Reading) {
        let keys = Keys::new(trace);
        let links = links(trace);
        let mut kinds: HashMap<StrId, (Kind, bool)> = HashMap::new();
        let mut operators: HashMap<StrId, bool> = HashMap::new();
        let slices = &trace.slices;
        let skipped = trace.strings.find("Trace").filter(|_| reading.hta().is_some());
        for row in 0..slices.len() {
            let (dur, category) = (slices.durs()[row], slices.categories()[row]);
            let track = slices.tracks()[row];
            let left_out = reading.hta().is_some() && category == StrId::NONE;
            if dur < 0 || left_out || Some(category) == skipped || !wanted.tracks[track.index()] {
                continue;
            }
            let (kind, named) = *kinds.entry(category).or_insert_with(|| {
                let category = trace.strings.get(category);
                (Kind::of_category(category), category == "nvtx" && reading == Reading::Exact)
            });
            let mut is_operator = || {
                let name = slices.names()[row];
                *operators.entry(name).or_insert_with(|| names_operator(trace.strings.get(name)))
            };
            let kind = if named && is_operator() { Kind::Operator } else { kind };
            let linked = links.get(row).copied().filter(|number| *number != 0);
            // What launches nothing has no such arguments, and often many others.
            let plain = matches!(kind, Kind::Operator | Kind::Python | Kind::Step);
            let (stream, correlation) = match reading {
                Reading::Exact if plain || linked.is_some() => (None, None),
                _ => keys.look_up(&trace.args, slices.args()[row]),
            };
            self.starts.push(slices.starts()[row]);
            self.durs.push(dur);
            self.names.push(slices.names()[row]);
            self.kinds.push(kind);
            self.lane_of.push(track.index() as u32);
            self.streams.push(match reading {
                Reading::Exact => Events::HOST,
                Reading::Hta(_) => stream.unwrap_or(Events::HOST),
            });
            let number = linked.map(|number| number as i64).or(correlation);
            self.correlations.push(number.unwrap_or(-1));
            let position = slices.position(SliceId::at(row));
            self.positions.push(position.map_or(row as u32, |position| position.number - 1));
            self.rows.push(row as u32);
        }
    }

    fn take_activities(&mut self, trace: &Trace, wanted: &Wanted, reading: Reading) {
        let keys = Keys::new(trace);
        let tracks = trace.tracks.len();
        // Where JSON says no stream HTA sees none, though it has a row of its own.
        let unsaid = trace.was_json().then_some(Events::HOST);
        let stages: Vec<Kind> = trace
            .stages
            .iter()
            .map(|(_, stage)| match trace.strings.get(stage.name) {
                "MemoryTransfer" => Kind::Copy,
                "MemorySet" => Kind::Set,
                "Communication" => Kind::Communication,
                _ if stage.kind == StageKind::Compute => Kind::Kernel,
                "Kernel" => Kind::Kernel,
                _ => Kind::Other,
            })
            .collect();
        for (row, activity) in trace.activities.iter().enumerate() {
            let process = activity.context.map(|context| trace.contexts[context].pid);
            if !wanted.takes_device_work_of(process) {
                continue;
            }
            let queue = activity.queue;
            let number = self.lanes[tracks + queue.index()].tid;
            let stream = match reading {
                Reading::Exact => None,
                Reading::Hta(_) => keys.look_up(&trace.args, activity.args).0.or(unsaid),
            };
            self.starts.push(activity.start.0);
            self.durs.push(activity.dur.0);
            self.names.push(activity.name);
            self.kinds.push(activity.stage.map_or(Kind::Kernel, |stage| stages[stage.index()]));
            self.lane_of.push((tracks + queue.index()) as u32);
            let number = i32::try_from(number).ok().filter(|n| *n >= 0);
            self.streams.push(stream.or(number).unwrap_or(i32::MAX));
            let correlation = activity.correlation;
            self.correlations.push(if correlation == 0 { -1 } else { correlation as i64 });
            let position = trace.activities.position(ActivityId::at(row));
            let otherwise = self.slices + row as u32;
            self.positions.push(position.map_or(otherwise, |position| position.number - 1));
            self.rows.push(self.slices + row as u32);
        }
    }
}

/// The stream of each queue. Where two queues of a device are streams of one number, as those of
/// several processes may be, the second keeps the number that the trace has for it.
fn streams(trace: &Trace, wanted: &Wanted) -> Vec<i64> {
    let mut used = vec![false; trace.queues.len()];
    for activity in trace.activities.iter() {
        let process = activity.context.map(|context| trace.contexts[context].pid);
        used[activity.queue.index()] |= wanted.takes_device_work_of(process);
    }
    let mut taken = hashbrown::HashSet::new();
    let queues = trace.queues.iter().map(|(id, queue)| {
        let stream = trace.stream(id);
        let own = !used[id.index()] || taken.insert((queue.device, stream));
        if own { stream } else { queue.number as i64 }
    });
    queues.collect()
}

/// Whether a range of NVTX is an operator: PyTorch marks its operators with such ranges where no
/// profiler of its own runs.
fn names_operator(name: &str) -> bool {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let backward = digits.len() < name.len() && digits.ends_with("Backward");
    backward || name.contains("::") && !name.contains(['#', ' ']) || name.starts_with(EVALUATE)
}

/// What the autograd engine calls a node that it evaluates.
const EVALUATE: &str = "autograd::engine::evaluate_function: ";

/// The tracks and contexts that belong to the process that is looked at.
struct Wanted {
    tracks: Vec<bool>,
    pid: Option<i64>,
}

impl Wanted {
    fn new(trace: &Trace, process: Option<ProcessId>) -> Wanted {
        let of =
            |id| process.is_none() || trace.process_of(id).is_none_or(|of| Some(of) == process);
        Wanted {
            tracks: trace.tracks.iter().map(|(id, _)| of(id)).collect(),
            pid: process.map(|id| trace.processes[id].pid),
        }
    }

    fn takes_device_work_of(&self, pid: Option<i64>) -> bool {
        match (self.pid, pid) {
            (Some(wanted), Some(pid)) => wanted == pid,
            _ => true,
        }
    }
}

/// The correlation numbers of calls that submitted something, by slice; 0 for others.
fn links(trace: &Trace) -> Vec<u64> {
    let mut numbers = vec![0; trace.slices.len()];
    for link in &trace.flows.links {
        if let (EventRef::Slice(slice), LaunchKind::Submit) = (link.event, link.kind)
            && let Some(number) = numbers.get_mut(SliceId::index(slice))
        {
            *number = link.correlation;
        }
    }
    numbers
}

/// Arguments that tell where an event belongs.
struct Keys {
    stream: Option<StrId>,
    correlation: Option<StrId>,
}

impl Keys {
    fn new(trace: &Trace) -> Keys {
        let find = |name| trace.strings.find(name);
        Keys { stream: find("stream"), correlation: find("correlation") }
    }

    /// Stream and correlation number.
    fn look_up(&self, args: &Args, set: Option<ArgsId>) -> (Option<i32>, Option<i64>) {
        let (mut stream, mut correlation) = (None, None);
        // Most events of the host have neither.
        if !args.has_any(set, &[self.stream, self.correlation].map(|key| key.unwrap_or(NO_KEY))) {
            return (stream, correlation);
        }
        for (name, value) in args.entries(set) {
            if Some(name) == self.stream {
                stream = whole(value).map(stream_number);
            } else if Some(name) == self.correlation {
                correlation = whole(value);
            }
        }
        (stream, correlation)
    }
}

/// The name of no argument.
const NO_KEY: StrId = StrId(u32::MAX);

/// Some streams are numbered beyond 31 bits: those that stand for all.
fn stream_number(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A whole number, also one that was written with a fraction of 0.
fn whole(value: Value) -> Option<i64> {
    match value {
        Value::I64(n) => Some(n),
        Value::U64(n) => i64::try_from(n).ok(),
        Value::F64(x) => Some(x as i64),
        _ => None,
    }
}
