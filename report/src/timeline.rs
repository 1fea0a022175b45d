//! The events of a rank, as columns that pack small.
//!
//! A block is the length of the head in four bytes, the head, and then five columns, each as its
//! length in four bytes and numbers of seven bits to a byte (LEB128):
//!
//! | column | an event has |
//! |---|---|
//! | names | the number of its name |
//! | starts | its beginning, since that of the event before it in its row |
//! | durations | how long it takes |
//! | depths | how many events of its row lie around it, or on streams beside it |
//! | launches | of rows of devices: 0, or 1 and how many events the call that launched it lies behind the one that launched the event before, with the sign in the lowest bit |
//!
//! Starts, durations and depths are in the order of names, and of the events where those are the same:
//! what has one name takes about the same time, so that these columns pack half as large. The others
//! are in the order of the events.
//!
//! The head is JSON: `{"grid": 1, "names": [["aten::mm", 0], …], "rows": [{"group", "name", "device",
//! "count"}], "kinds": ["operator", …]}`. A name stands with what it is a name of: a number of
//! `kinds`. Rows lie one behind the other; in each, events begin one after the other, the longer one
//! first. Times are counted from the rank's first event, in so many nanoseconds as `grid` says: where
//! there are very many events, times that are rounded to a microsecond take a sixth of the room.

use hashbrown::HashMap;
use kymograph_analysis::Model;
use kymograph_analysis::model::{Class, Kind};
use kymograph_converters::trace::{Trace, TrackKind};
use std::cmp::Reverse;
use std::fmt::Write as _;

use crate::columns::text;

/// What an event is shown as.
const KINDS: [&str; 10] = [
    "operator",
    "annotation",
    "step",
    "runtime",
    "python",
    "computation",
    "communication",
    "memory",
    "wait",
    "other",
];

/// More events than this are rounded to [`GRID`].
const MANY: usize = 200_000;
const GRID: i64 = 1_000;
/// Events that lie beside each other at most.
const BESIDE: usize = 64;

/// Whether times are rounded, unless they are to be exact.
pub(crate) fn rounds(model: &Model<'_>, exact: bool) -> bool {
    !exact && model.events.len() > MANY
}

/// The events of a rank, not packed; empty if it has none. `exact` rounds no time, however many
/// there are.
pub fn of(model: &Model<'_>, exact: bool) -> Vec<u8> {
    let events = &model.events;
    if events.is_empty() {
        return Vec::new();
    }
    let rows = rows(model);
    let rounds = rounds(model, exact);
    let since = |time: i64| time.saturating_sub(model.origin);
    let rounded = |time: i64| match rounds {
        true => since(time).saturating_add(GRID / 2) / GRID,
        false => since(time),
    };
    let mut head = Head::of(model);
    let mut places = vec![0_u32; events.len()];
    for (place, event) in (0..).zip(rows.iter().flat_map(|row| &row.events)) {
        places[*event as usize] = place;
    }
    let mut entries = Vec::with_capacity(events.len());
    let mut launches = Vec::new();
    let mut launched = 0_i64;
    for row in &rows {
        let mut before = 0;
        let mut lasting = Lasting { ends: Vec::new(), beside: row.device };
        for event in row.events.iter().copied() {
            let (from, to) = events.interval(event);
            let start = rounded(from);
            entries.push(Entry {
                since: (start - before).max(0) as u64,
                duration: (rounded(to) - start).max(0) as u64,
                name: head.name(model, event),
                depth: lasting.depth(from, to),
            });
            before = start;
            if row.device {
                let call = model.peers().get(event).map(|call| i64::from(places[call as usize]));
                let step = call.map(|call| call - launched);
                put(&mut launches, step.map_or(0, |step| zigzag(step) + 1));
                launched = call.unwrap_or(launched);
            }
        }
    }
    let columns = columns(&entries, head.names.len(), launches);
    let grid = if rounds { GRID } else { 1 };
    let head = head.finish(&rows, grid);
    let mut out = Vec::with_capacity(columns.iter().map(Vec::len).sum::<usize>() + head.len() + 20);
    for part in std::iter::once(head.as_bytes()).chain(columns.iter().map(Vec::as_slice)) {
        out.extend((part.len() as u32).to_le_bytes());
        out.extend(part);
    }
    out
}

/// An event as its columns have it.
struct Entry {
    since: u64,
    duration: u64,
    name: u32,
    depth: u16,
}

/// The columns, of which three are in the order of names.
fn columns(entries: &[Entry], names: usize, launches: Vec<u8>) -> [Vec<u8>; 5] {
    let mut places = vec![0_usize; names + 1];
    entries.iter().for_each(|entry| places[entry.name as usize + 1] += 1);
    for name in 0..names {
        places[name + 1] += places[name];
    }
    let mut order = vec![0_u32; entries.len()];
    for (at, entry) in (0..).zip(entries) {
        let place = &mut places[entry.name as usize];
        order[*place] = at;
        *place += 1;
    }
    let column = || Vec::with_capacity(entries.len() + entries.len() / 8);
    let [mut numbers, mut starts, mut durations, mut depths] =
        [column(), column(), column(), column()];
    entries.iter().for_each(|entry| put(&mut numbers, entry.name.into()));
    for at in order {
        let entry = &entries[at as usize];
        put(&mut starts, entry.since);
        put(&mut durations, entry.duration);
        put(&mut depths, entry.depth.into());
    }
    [numbers, starts, durations, depths, launches]
}

/// The events of a rank in the order of its block.
pub(crate) fn order(model: &Model<'_>) -> Vec<u32> {
    rows(model).into_iter().flat_map(|row| row.events).collect()
}

/// A thread, a stream, or what lies beside one.
struct Row {
    group: String,
    name: String,
    device: bool,
    order: (u8, i64, i64, usize),
    events: Vec<u32>,
}

/// Rows that have events: processes with their threads, then devices with their streams.
fn rows(model: &Model<'_>) -> Vec<Row> {
    let events = &model.events;
    let mut of_lane: Vec<Vec<u32>> = vec![Vec::new(); events.lanes.len()];
    for event in model.by_time().iter().copied() {
        of_lane[events.lane_of[event as usize] as usize].push(event);
    }
    let mut rows: Vec<Row> = Vec::new();
    for (lane, mut of) in of_lane.into_iter().enumerate() {
        if of.is_empty() {
            continue;
        }
        events.sort_together(&mut of, |one, other| {
            let key = |at: u32| (Reverse(events.durs[at as usize]), events.positions[at as usize]);
            key(one).cmp(&key(other))
        });
        let own = events.lanes[lane];
        let queue =
            model.trace.tracks.iter().nth(lane).is_none_or(|(_, track)| track.queue.is_some());
        let device = queue || of.iter().all(|event| events.on_device(*event));
        let (group, name) = called(model.trace, lane, own.pid, own.tid, device);
        // What is of no process comes last.
        let place = u8::from(device) + 2 * u8::from(own.pid < 0);
        rows.push(Row { group, name, device, order: (place, own.pid, own.tid, lane), events: of });
    }
    rows.sort_by_key(|row| row.order);
    rows
}

/// When events of a row end that last.
struct Lasting {
    ends: Vec<i64>,
    /// Whether events may overlap, as on streams: each then has a place beside others.
    beside: bool,
}

impl Lasting {
    /// How many events lie around one, or the first place beside others at which it has room.
    fn depth(&mut self, start: i64, end: i64) -> u16 {
        if self.beside {
            let free = self.ends.iter().position(|end| *end <= start);
            // What finds no room among so many lies on the last one.
            let place = free.unwrap_or(self.ends.len().min(BESIDE - 1));
            match self.ends.get_mut(place) {
                Some(last) => *last = end.max(*last),
                None => self.ends.push(end),
            }
            return place as u16;
        }
        // On threads, what begins before another ends lies in it.
        while self.ends.last().is_some_and(|last| *last <= start) {
            self.ends.pop();
        }
        let depth = u16::try_from(self.ends.len()).unwrap_or(u16::MAX);
        if end > start {
            self.ends.push(end);
        }
        depth
    }
}

/// What a row is called, and the process or the device that it belongs to. Lanes are tracks, and
/// behind them queues.
fn called(trace: &Trace, lane: usize, pid: i64, tid: i64, device: bool) -> (String, String) {
    let said = |id| trace.strings.get(id);
    let device_of = |number: i64| {
        let own = trace.devices.iter().find(|(_, device)| device.number == number);
        let name = own.map_or("", |(_, device)| said(device.name));
        let plain = name.is_empty() || name.starts_with("GPU ");
        if plain { format!("GPU {number}") } else { format!("GPU {number} · {name}") }
    };
    let Some(track) = trace.tracks.iter().nth(lane) else {
        let queue = trace.queues.iter().nth(lane - trace.tracks.len());
        let name = queue.map_or("", |(_, queue)| said(queue.name));
        let name = if name.is_empty() { format!("stream {tid}") } else { name.to_owned() };
        return (device_of(pid), name);
    };
    let (id, track) = track;
    if device || track.queue.is_some() {
        let name = said(track.name);
        let name = if name.is_empty() { format!("stream {tid}") } else { name.to_owned() };
        return (device_of(pid), name);
    }
    let process = trace.process_of(id).map(|id| &trace.processes[id]);
    let group = match process.map(|process| said(process.name)) {
        None | Some("") if pid < 0 => "of no process".to_owned(),
        None | Some("") => format!("process {pid}"),
        Some(name) => format!("process {pid} · {name}"),
    };
    let name = match (track.kind, trace.thread_of(id)) {
        (TrackKind::Thread(thread), _) => {
            let name = said(trace.threads[thread].name);
            if name.is_empty() { format!("thread {tid}") } else { format!("{name} {tid}") }
        }
        (TrackKind::Process(_), _) => "process".to_owned(),
        _ => said(track.name).to_owned(),
    };
    (group, if name.is_empty() { format!("track {tid}") } else { name })
}

struct Head {
    /// What each name was a name of last, and its number then: most are names of one thing.
    last: Vec<Option<(u8, u32)>>,
    numbers: HashMap<(u32, u8), u32>,
    names: Vec<(String, u8)>,
}

impl Head {
    fn of(model: &Model<'_>) -> Head {
        let last = vec![None; model.trace.strings.len() + 1];
        Head { last, numbers: HashMap::new(), names: Vec::new() }
    }

    /// The number of the name of an event.
    fn name(&mut self, model: &Model<'_>, event: u32) -> u32 {
        let kind = shown_as(model, event);
        let id = model.events.names[event as usize];
        let last = self.last.get(id.0 as usize).copied().flatten();
        if let Some((_, number)) = last.filter(|(own, _)| *own == kind) {
            return number;
        }
        let number = *self.numbers.entry((id.0, kind)).or_insert_with(|| {
            self.names.push((model.text(id).to_owned(), kind));
            self.names.len() as u32 - 1
        });
        if let Some(last) = self.last.get_mut(id.0 as usize) {
            *last = Some((kind, number));
        }
        number
    }

    fn finish(self, rows: &[Row], grid: i64) -> String {
        let mut out = format!("{{\"grid\":{grid},\"kinds\":[");
        for (n, kind) in KINDS.iter().enumerate() {
            let _ = write!(out, "{}\"{kind}\"", if n == 0 { "" } else { "," });
        }
        out += "],\"names\":[";
        for (n, (name, kind)) in self.names.iter().enumerate() {
            out += if n == 0 { "[" } else { ",[" };
            text(&mut out, name);
            let _ = write!(out, ",{kind}]");
        }
        out += "],\"rows\":[";
        for (n, row) in rows.iter().enumerate() {
            out += if n == 0 { "{\"group\":" } else { ",{\"group\":" };
            text(&mut out, &row.group);
            out += ",\"name\":";
            text(&mut out, &row.name);
            let _ = write!(out, ",\"device\":{},\"count\":{}}}", row.device, row.events.len());
        }
        out + "]}"
    }
}

/// A number of [`KINDS`].
fn shown_as(model: &Model<'_>, event: u32) -> u8 {
    if model.events.on_device(event) && model.events.kinds[event as usize] != Kind::DeviceAnnotation
    {
        return match model.classes().of_row(model, event) {
            Class::Computation => 5,
            Class::Communication => 6,
            Class::Memory => 7,
            Class::Other => 8,
        };
    }
    match model.events.kinds[event as usize] {
        Kind::Operator => 0,
        Kind::Annotation | Kind::DeviceAnnotation => 1,
        Kind::Step => 2,
        Kind::Runtime | Kind::Driver => 3,
        Kind::Python => 4,
        Kind::Kernel => 5,
        Kind::Communication => 6,
        Kind::Copy | Kind::Set => 7,
        Kind::Sync => 8,
        Kind::Overhead | Kind::Other => 9,
    }
}

/// LEB128.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_format() {
        let mut out = Vec::new();
        [0, 127, 128, 300].into_iter().for_each(|number| put(&mut out, number));
        assert_eq!(out, [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }
}
