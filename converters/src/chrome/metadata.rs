//! Metadata events: names, labels and order of processes and threads.
//!
//! The hub knows most of them in its own way, and [`Generated`] makes them from it. Those that
//! it would not make again, such as Kineto's names for sixteen devices of which two exist, are
//! kept verbatim, and nothing is generated in their place.

use crate::order::Order as _;
use hashbrown::{HashMap, HashSet};

use super::rows::{Id, Place, RowKind, Rows};
use super::{GPU_ROWS, METADATA_EVENTS, METADATA_POSITIONS, METADATA_TIME};
use crate::json::{self, write_int, write_string};
use crate::trace::{DeviceId, ProcessId, StrId, Trace, TrackKind, Value};

/// A metadata event, everything but its time, as JSON.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) pid: String,
    pub(crate) tid: String,
    pub(crate) args: String,
}

/// What a metadata event is about: its name, `pid` and `tid`, as JSON.
pub(crate) type Identity = (String, String, String);

impl Entry {
    pub(crate) fn identity(&self) -> Identity {
        (self.name.clone(), self.pid.clone(), self.tid.clone())
    }
}

/// A metadata event of the input.
#[derive(Debug)]
pub(super) struct Meta {
    entry: Entry,
    pid: Id,
    tid: Id,
    time: Option<i64>,
    position: u32,
    /// It has the members that the writer's have, and no others.
    plain: bool,
    text: StrId,
    /// The argument: a text or a number.
    value: Value,
}

#[derive(Debug, Default)]
pub(super) struct MetaRows {
    events: Vec<Meta>,
}

/// A fact of what we recorded.
const RECORDER: &str = "kymograph.version";
/// Where Kineto puts devices among processes, and the overheads.
const DEVICE_ORDER: i64 = 5_000_000;
const OVERHEAD_ORDER: i64 = 0x0100_000a;
/// What a file may claim about them.
const MOST_GPU_ROWS: i64 = 64;

impl MetaRows {
    pub(super) fn add(
        &mut self,
        trace: &mut Trace,
        element: json::Element<'_>,
        ids: (Id, Id),
        (time, position): (Option<i64>, u32),
        (name, args): (&str, Option<json::Value<'_>>),
    ) {
        let mut text = Vec::new();
        json::write_value(&mut text, element.root());
        let text = trace.strings.intern(&String::from_utf8_lossy(&text));
        let mut json = Vec::new();
        let value = args.and_then(|args| args.fields().next());
        let value = match value.map(|(_, value)| (value.as_str(), json::number(value))) {
            Some((Some(text), _)) => Value::Str(super::args::intern(trace, Some(text))),
            Some((_, Some(json::Number::Int(n)))) => Value::I64(n),
            _ => Value::Null,
        };
        if let Some(args) = args {
            json::write_value(&mut json, args);
        }
        const MEMBERS: [&str; 6] = ["ph", "name", "ts", "pid", "tid", "args"];
        let mut keys = element.root().fields();
        let count = MEMBERS.len() - usize::from(time.is_none());
        let plain = element.root().fields().count() == count
            && keys.all(|(key, _)| MEMBERS.contains(&key.raw()));
        let (pid, tid) = ids;
        let entry = Entry {
            name: name.to_owned(),
            pid: id_json(trace, pid),
            tid: id_json(trace, tid),
            args: String::from_utf8_lossy(&json).into_owned(),
        };
        self.events.push(Meta { entry, pid, tid, time, position, plain, text, value });
    }

    /// Puts what the events say into the hub, and keeps what does not come out of it again.
    pub(super) fn finish(self, trace: &mut Trace, rows: &mut Rows) {
        let mut labelled: HashSet<i64> = HashSet::new();
        for event in self.events.iter().filter(|event| event.entry.name == "process_labels") {
            let (Id::Int(pid), Value::Str(label)) = (event.pid, event.value) else { continue };
            if trace.strings.get(label).starts_with("GPU") {
                labelled.insert(pid);
            }
        }
        for event in &self.events {
            match event.pid {
                Id::Int(pid) if labelled.contains(&pid) || is_device_only(rows, pid) => {
                    queue_name(trace, rows, event);
                }
                Id::Int(-1) => {}
                _ => host_name(trace, rows, event),
            }
        }
        let rows = gpu_rows(&self.events, trace);
        if rows > 0 {
            let key = trace.strings.intern(GPU_ROWS);
            trace.facts.metadata.push((key, Value::I64(rows)));
        }
        let time = most_common(self.events.iter().filter_map(|event| event.time));
        let mut generated: HashMap<Identity, Vec<String>> = HashMap::new();
        for Entry { name, pid, tid, args } in Generated::new(trace).entries {
            generated.entry((name, pid, tid)).or_default().push(args);
        }
        let mut given: HashMap<_, Vec<&Meta>> = HashMap::new();
        for event in &self.events {
            given.entry(event.entry.identity()).or_default().push(event);
        }
        given.retain(|key, events| {
            let same = |args: &Vec<String>| args.iter().eq(events.iter().map(|e| &e.entry.args));
            let plain = events.iter().all(|event| event.plain && event.time == time);
            !(plain && generated.get(key).is_some_and(same))
        });
        let verbatim =
            self.events.iter().filter(|event| given.contains_key(&event.entry.identity()));
        let verbatim: Vec<&str> = verbatim.map(|event| trace.strings.get(event.text)).collect();
        if !verbatim.is_empty() {
            let list = format!("[{}]", verbatim.join(", "));
            let list = Value::Json(trace.strings.intern(&list));
            trace.facts.metadata.push((trace.strings.intern(METADATA_EVENTS), list));
        }
        self.positions(trace, |key| given.contains_key(key));
        if let Some(time) = time {
            let key = trace.strings.intern(METADATA_TIME);
            trace.facts.metadata.push((key, Value::I64(time)));
        }
    }
}

impl MetaRows {
    /// Notes where the events stood in the file; 0 for those that it had not.
    fn positions(&self, trace: &mut Trace, verbatim: impl Fn(&Identity) -> bool) {
        let identity = |event: &Meta| event.entry.identity();
        let mut positions: Vec<u32> = Vec::new();
        let mut others: HashMap<Identity, Vec<u32>> = HashMap::new();
        // The last one is taken first.
        for event in self.events.iter().rev() {
            if !verbatim(&identity(event)) {
                others.entry(identity(event)).or_default().push(event.position);
            }
        }
        let kept = self.events.iter().filter(|event| verbatim(&identity(event)));
        positions.extend(kept.map(|event| event.position));
        let mut generated: Vec<Identity> =
            Generated::new(trace).entries.iter().map(Entry::identity).collect();
        generated.retain(|identity| !verbatim(identity));
        generated.order_by(Ord::cmp);
        let position = |identity| others.get_mut(identity).and_then(Vec::pop).unwrap_or(0);
        positions.extend(generated.iter().map(position));
        let list: Vec<String> = positions.iter().map(u32::to_string).collect();
        let list = Value::Json(trace.strings.intern(&format!("[{}]", list.join(","))));
        trace.facts.metadata.push((trace.strings.intern(METADATA_POSITIONS), list));
    }
}

/// How many devices, from 0 on, have what Kineto says of sixteen, however many there are.
fn gpu_rows(events: &[Meta], trace: &Trace) -> i64 {
    let says = |pid: i64, event: &Meta| match (event.entry.name.as_str(), event.value) {
        ("process_name", Value::Str(_)) => 1,
        ("process_labels", Value::Str(label)) => {
            2 * u8::from(trace.strings.get(label) == format!("GPU {pid}"))
        }
        ("process_sort_index", Value::I64(order)) => {
            4 * u8::from(order == DEVICE_ORDER.saturating_add(pid))
        }
        _ => 0,
    };
    let mut said: HashMap<i64, u8> = HashMap::new();
    for event in events {
        if let Id::Int(pid @ 0..MOST_GPU_ROWS) = event.pid {
            *said.entry(pid).or_default() |= says(pid, event);
        }
    }
    (0..MOST_GPU_ROWS).find(|n| said.get(n) != Some(&7)).unwrap_or(MOST_GPU_ROWS)
}

fn is_device_only(rows: &Rows, pid: i64) -> bool {
    rows.device_found(pid).is_some() && rows.process_found(pid).is_none()
}

fn queue_name(trace: &mut Trace, rows: &Rows, event: &Meta) {
    if event.entry.name != "thread_name" {
        return;
    }
    let Some(Place::Queue(queue)) = rows.find(RowKind::Queue, event.pid, event.tid) else { return };
    let Value::Str(name) = event.value else { return };
    trace.queues[queue].description = name;
    // Formats that know queues by their activities only still know the track.
    for (_, track) in trace.tracks.iter_mut().filter(|(_, t)| t.queue == Some(queue)) {
        track.description = name;
    }
}

fn host_name(trace: &mut Trace, rows: &mut Rows, event: &Meta) {
    let process = match event.pid {
        Id::Int(pid) => Some(rows.process(trace, pid)),
        _ => None,
    };
    let thread = |trace: &mut Trace, rows: &mut Rows| {
        let track = rows.track(trace, event.pid, event.tid);
        match trace.tracks[track].kind {
            TrackKind::Thread(thread) => Some(thread),
            _ => None,
        }
    };
    match (event.entry.name.as_str(), event.value, process) {
        ("process_name", Value::Str(name), Some(process)) => trace.processes[process].name = name,
        ("process_labels", Value::Str(label), Some(process)) => {
            trace.processes[process].labels = vec![label];
        }
        ("process_sort_index", Value::I64(n), Some(process)) => {
            trace.processes[process].sort_index = Some(n);
        }
        ("process_sort_index", Value::I64(n), None) => {
            let track = rows.parent(trace, event.pid);
            trace.tracks[track].rank = i32::try_from(n).ok();
        }
        ("thread_name", Value::Str(name), Some(_)) => {
            if let Some(thread) = thread(trace, rows) {
                trace.threads[thread].name = name;
            }
        }
        ("thread_sort_index", Value::I64(n), Some(_)) => {
            if let Some(thread) = thread(trace, rows) {
                trace.threads[thread].sort_index = Some(n);
            }
        }
        _ => {}
    }
}

fn id_json(trace: &Trace, id: Id) -> String {
    match id {
        Id::None => "0".to_owned(),
        Id::Int(n) => n.to_string(),
        Id::Text(text) => json_string(trace.strings.get(text)),
    }
}

fn json_string(text: &str) -> String {
    let mut out = Vec::new();
    write_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

fn most_common(times: impl Iterator<Item = i64>) -> Option<i64> {
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for time in times {
        *counts.entry(time).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(time, count)| (count, time)).map(|(time, _)| time)
}

/// Metadata events that the hub gives rise to.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) entries: Vec<Entry>,
}

impl Generated {
    pub(crate) fn new(trace: &Trace) -> Generated {
        let mut out = Generated { entries: Vec::new() };
        let recorded =
            trace.strings.find(RECORDER).is_some_and(|key| trace.facts.get(key).is_some());
        for (_, process) in trace.processes.iter() {
            let name = trace.strings.get(process.name);
            let labels: Vec<&str> = process.labels.iter().map(|l| trace.strings.get(*l)).collect();
            let pid = process.pid.to_string();
            if process.name != StrId::NONE {
                out.text("process_name", &pid, 0, "name", name);
            }
            // PyTorch's profiler labels and orders every process.
            if !labels.is_empty() {
                out.text("process_labels", &pid, 0, "labels", &labels.join(","));
            } else if recorded {
                out.text("process_labels", &pid, 0, "labels", "CPU");
            }
            let own = recorded.then_some(process.pid);
            if let Some(order) = process.sort_index.or(own) {
                out.number("process_sort_index", &pid, 0, order);
            }
        }
        for (_, thread) in trace.threads.iter() {
            let pid = trace.processes[thread.process].pid.to_string();
            if thread.name != StrId::NONE {
                let name = trace.strings.get(thread.name);
                out.text("thread_name", &pid, thread.tid, "name", name);
            }
            if let Some(order) = thread.sort_index {
                out.number("thread_sort_index", &pid, thread.tid, order);
            }
        }
        for (_, track) in trace.tracks.iter() {
            if let (TrackKind::Other, None, Some(rank)) = (track.kind, track.parent, track.rank) {
                let pid = json_string(trace.strings.get(track.name));
                out.number("process_sort_index", &pid, 0, rank.into());
            }
        }
        out.devices(trace);
        out
    }

    fn devices(&mut self, trace: &Trace) {
        let main = main_process(trace);
        let users = users(trace);
        let fact = trace.strings.find(GPU_ROWS).and_then(|key| trace.facts.get(key));
        let named = if let Some(Value::I64(rows)) = fact { rows.min(MOST_GPU_ROWS) } else { 0 };
        let mut numbers: Vec<(i64, Option<DeviceId>)> =
            trace.devices.iter().map(|(id, device)| (device.number, Some(id))).collect();
        let known: HashSet<i64> = numbers.iter().map(|(number, _)| *number).collect();
        numbers.extend((0..named).filter(|n| !known.contains(n)).map(|number| (number, None)));
        for (number, id) in numbers {
            let pid = number.to_string();
            let user = id.and_then(|id| users.get(&id).copied()).or(main);
            let name = user.map(|process| trace.processes[process].name);
            if let Some(name) = name.filter(|name| *name != StrId::NONE) {
                self.text("process_name", &pid, 0, "name", trace.strings.get(name));
            }
            self.text("process_labels", &pid, 0, "labels", &format!("GPU {number}"));
            let order = DEVICE_ORDER.saturating_add(number);
            self.number("process_sort_index", &pid, 0, order);
        }
        // Formats that know queues by what ran on them have no others.
        let mut used = vec![false; trace.queues.len()];
        trace.activities.queues().iter().for_each(|queue| used[queue.index()] = true);
        let queues = || trace.queues.iter().filter(|(id, _)| used[id.index()]);
        for (id, queue) in queues() {
            let pid = trace.devices[queue.device].number.to_string();
            let stream = trace.stream(id);
            let name = match trace.strings.get(queue.description) {
                "" if stream < 0 => format!("Device {pid}"),
                "" => format!("stream {stream} "),
                name => name.to_owned(),
            };
            self.text("thread_name", &pid, stream, "name", &name);
            self.number("thread_sort_index", &pid, stream, stream);
        }
        for (_, track) in trace.tracks.iter() {
            let row = super::places::beside(trace.strings.get(track.name));
            let Some((device, stream)) = row.filter(|_| track.queue.is_none()) else { continue };
            let is_here = |id, queue: &crate::trace::Queue| {
                (trace.devices[queue.device].number, trace.stream(id)) == (device, stream)
            };
            let named = !trace.strings.get(track.description).is_empty();
            if named && !queues().any(|(id, queue)| is_here(id, queue)) {
                let name = trace.strings.get(track.description);
                self.text("thread_name", &device.to_string(), stream, "name", name);
            }
        }
        let overhead = |name: StrId| trace.strings.get(name).starts_with("Overhead");
        if trace.tracks.iter().any(|(_, t)| t.kind == TrackKind::Other && overhead(t.name)) {
            self.text("process_name", "-1", 0, "name", "CUPTI Overhead");
            self.number("process_sort_index", "-1", 0, OVERHEAD_ORDER);
        }
    }

    fn text(&mut self, what: &str, pid: &str, tid: i64, key: &str, text: &str) {
        self.push(what, pid, tid, format!("{{\"{key}\": {}}}", json_string(text)));
    }

    fn number(&mut self, what: &str, pid: &str, tid: i64, number: i64) {
        let mut digits = Vec::new();
        write_int(&mut digits, number);
        let digits = String::from_utf8_lossy(&digits);
        self.push(what, pid, tid, format!("{{\"sort_index\": {digits}}}"));
    }

    fn push(&mut self, what: &str, pid: &str, tid: i64, args: String) {
        let (name, pid, tid) = (what.to_owned(), pid.to_owned(), tid.to_string());
        self.entries.push(Entry { name, pid, tid, args });
    }
}

/// Which processes devices worked for, where there are several.
fn users(trace: &Trace) -> HashMap<DeviceId, ProcessId> {
    let mut users = HashMap::new();
    if trace.processes.len() < 2 {
        return users;
    }
    let pids: HashMap<i64, ProcessId> =
        trace.processes.iter().map(|(id, process)| (process.pid, id)).collect();
    for activity in trace.activities.iter() {
        let device = trace.queues[activity.queue].device;
        let process = activity.context.and_then(|id| pids.get(&trace.contexts[id].pid));
        if let (Some(process), false) = (process, users.contains_key(&device)) {
            users.insert(device, *process);
        }
    }
    users
}

/// The process that the devices worked for, as far as one can say: the one with a call.
pub(super) fn main_process(trace: &Trace) -> Option<ProcessId> {
    let cpu = trace
        .processes
        .iter()
        .find(|(_, process)| process.labels.iter().any(|label| trace.strings.get(*label) == "CPU"));
    cpu.or_else(|| trace.processes.iter().find(|(_, process)| process.pid > 0)).map(|(id, _)| id)
}
