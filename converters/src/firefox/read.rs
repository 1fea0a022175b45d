//! The reader.

use std::io::Read;

use super::table::{cell, column, indices};
use crate::builder::{Builder, Entries};
use crate::json::{Error, Kind, Value, number, whole};
use crate::stacks::{Frame, Stack, ends};
use crate::trace::{self, ClockReading, Nanos, StrId, Trace, TrackId};

/// So many functions of a stack are read, from the outermost on.
const DEEPEST: usize = 500;
/// Profiles of other processes may lie in those of others.
const DEEPEST_PROCESS: usize = 8;

/// Reads a file.
///
/// # Errors
/// When it is not of this format, or no JSON.
pub(crate) fn read(input: impl Read) -> Result<Trace, Error> {
    whole(input, |root| {
        let meta = root.get("meta").filter(|meta| meta.kind() == Kind::Object);
        let (Some(meta), Some(_)) = (meta, root.get("threads")) else {
            let what = "JSON without the `meta` and `threads` of a Firefox profile";
            return Err(Error::NotATrace(what.to_owned()));
        };
        // Compact tables can stand for far more slices than they have bytes; a slice for each is
        // more than any real profile has.
        let mut reader = Reader { build: Builder::default(), room: root.raw().len() };
        // Milliseconds since 1970.
        let start = meta.get("startTime").and_then(Value::float).unwrap_or(0.0);
        let base = nanos(start);
        if base > 0 {
            let time = Some(Nanos(base));
            let reading = ClockReading { trace: Nanos(0), realtime: time, monotonic: None };
            reader.build.trace.facts.readings.push(reading);
        }
        for key in ["product", "oscpu", "platform", "abi"] {
            if let Some(text) = meta.text(key) {
                let (key, value) = (reader.build.text(key), reader.build.string(&text));
                reader.build.trace.facts.metadata.push((key, value));
            }
        }
        reader.profile(root, start, 0);
        Ok(reader.build.finish("Firefox Profiler"))
    })?
}

/// Milliseconds.
fn nanos(millis: f64) -> i64 {
    // What is too large for either is the largest there is.
    (millis * 1e6).round() as i64
}

struct Reader {
    build: Builder,
    /// Slices that there is still room for.
    room: usize,
}

/// The tables of a thread.
struct Tables {
    prefixes: Vec<Option<usize>>,
    frames: Vec<Option<usize>>,
    /// Function of each frame.
    names: Vec<Frame>,
    strings: Vec<StrId>,
}

impl Reader {
    fn profile(&mut self, profile: Value<'_>, origin: f64, depth: usize) {
        let meta = profile.get("meta");
        let start = meta.and_then(|meta| meta.get("startTime")).and_then(Value::float);
        // Times of a process are since its own start.
        let shift = nanos(start.unwrap_or(origin) - origin);
        let shared = profile.get("shared");
        for (row, thread) in profile.get("threads").into_iter().flat_map(Value::items).enumerate() {
            self.thread(thread, shared, shift, row as i64 + 1);
        }
        if depth < DEEPEST_PROCESS {
            for other in profile.get("processes").into_iter().flat_map(Value::items) {
                self.profile(other, origin, depth + 1);
            }
        }
    }

    fn thread(&mut self, thread: Value<'_>, shared: Option<Value<'_>>, shift: i64, row: i64) {
        if thread.get("samples").is_none() && thread.get("markers").is_none() {
            return self.build.trace.facts.warn("thread with nothing in it, left out", None);
        }
        let build = &mut self.build;
        // Numbers of processes and threads may be texts, such as `12.1`.
        let id = |key: &str| {
            let value = thread.get(key)?;
            value.int().or_else(|| value.as_str()?.text().split('.').next()?.parse().ok())
        };
        let pid = id("pid").unwrap_or(1);
        let tid = id("tid").unwrap_or(row);
        let process = thread.text("processName").or_else(|| thread.text("processType"));
        if let Some(name) = process.filter(|name| *name != "default") {
            build.name_process(pid, &name);
        }
        let track = build.thread(pid, tid);
        build.name_thread(pid, tid, &thread.text("name").unwrap_or_default());
        // The thread's own, or those of all.
        let table = |name: &str| thread.get(name).or_else(|| shared.and_then(|all| all.get(name)));
        let tables = self.tables(table);
        self.samples(&tables, thread.get("samples"), track, shift);
        self.markers(&tables, thread.get("markers"), track, shift);
    }

    fn tables<'a>(&mut self, table: impl Fn(&str) -> Option<Value<'a>>) -> Tables {
        let texts = table("stringArray").or_else(|| table("stringTable"));
        let texts = texts.into_iter().flat_map(Value::items);
        let text = |value: Value<'_>| value.as_str().map(|text| text.text().into_owned());
        let strings: Vec<StrId> =
            texts.map(|value| self.build.text(&text(value).unwrap_or_default())).collect();
        let string = |number: Option<usize>| strings.get(number?).copied();
        let stacks = table("stackTable");
        let frames = table("frameTable");
        let (functions, locations) = (indices(frames, "func"), indices(frames, "location"));
        let lines = column(frames, "line");
        let names = indices(table("funcTable"), "name");
        let files = indices(table("funcTable"), "fileName");
        let count = functions.len().max(locations.len());
        let frame = |row: usize| {
            let function = functions.get(row).copied().flatten();
            let name = match function {
                Some(function) => string(names.get(function).copied().flatten()),
                None => string(locations.get(row).copied().flatten()),
            };
            let file = function.and_then(|function| string(files.get(function).copied().flatten()));
            (name.unwrap_or(StrId::NONE), file, cell(&lines, row).and_then(Value::int))
        };
        let names = (0..count).map(|row| {
            let (name, file, line) = frame(row);
            let mut args = Entries::new();
            args.extend(file.map(|file| (self.build.text("file"), trace::Value::Str(file))));
            args.extend(line.map(|line| (self.build.text("line"), trace::Value::I64(line))));
            (name, self.build.trace.args.add(&args))
        });
        let names = names.collect();
        let (prefixes, frames) = (indices(stacks, "prefix"), indices(stacks, "frame"));
        Tables { prefixes, frames, names, strings }
    }

    fn samples(&mut self, tables: &Tables, samples: Option<Value<'_>>, track: TrackId, shift: i64) {
        let stacks = indices(samples, "stack");
        let mut times = column(samples, "time");
        let deltas = column(samples, "timeDeltas");
        let mut sum = 0.0;
        let times: Vec<i64> = if times.is_empty() {
            let add = |delta: &Option<Value<'_>>| {
                sum += delta.and_then(Value::float).unwrap_or(0.0);
                nanos(sum).saturating_add(shift)
            };
            deltas.iter().map(add).collect()
        } else {
            let time = |time: Option<Value<'_>>| nanos(time.and_then(Value::float).unwrap_or(0.0));
            times.drain(..).map(|value| time(value).saturating_add(shift)).collect()
        };
        let ends = ends(&times);
        let category = self.build.text("sample");
        let mut stack = Stack::new(track, category);
        let mut frames: Vec<Frame> = Vec::new();
        for (row, number) in stacks.iter().enumerate().take(times.len()) {
            frames.clear();
            let mut next = *number;
            while let Some(number) = next.filter(|_| frames.len() < DEEPEST) {
                let frame = tables.frames.get(number).copied().flatten();
                frames.extend(frame.and_then(|frame| tables.names.get(frame)));
                // A stack lies behind the one that it is in; what does not would never end.
                next = tables.prefixes.get(number).copied().flatten().filter(|to| *to < number);
            }
            frames.reverse();
            let before = self.build.trace.slices.len();
            if self.room < frames.len() {
                self.build.trace.facts.warn("sample beyond the limit of slices, left out", None);
                continue;
            }
            stack.sample(&mut self.build.trace, (times[row], ends[row]), &frames);
            self.room -= self.build.trace.slices.len() - before;
        }
        stack.finish(&mut self.build.trace);
    }

    fn markers(&mut self, tables: &Tables, markers: Option<Value<'_>>, track: TrackId, shift: i64) {
        let names = indices(markers, "name");
        let [mut starts, ends, phases, data] =
            ["startTime", "endTime", "phase", "data"].map(|name| column(markers, name));
        if starts.is_empty() {
            // As it was until 2020.
            starts = column(markers, "time");
        }
        let category = self.build.text("marker");
        // Beginnings that have an end in another row.
        let mut open: Vec<(StrId, i64, Entries)> = Vec::new();
        for (row, name) in names.iter().enumerate() {
            let name =
                name.and_then(|name| tables.strings.get(name)).copied().unwrap_or(StrId::NONE);
            let time = |column: &_| cell(column, row).and_then(Value::float);
            let (start, end) = (time(&starts), time(&ends));
            let [start, end] =
                [start, end].map(|time| time.map(|t| nanos(t).saturating_add(shift)));
            let args = self.entries(cell(&data, row));
            match (cell(&phases, row).and_then(Value::int).unwrap_or(0), start, end) {
                (2, Some(start), _) => open.push((name, start, args)),
                (3, _, Some(end)) => {
                    let place = open.iter().rposition(|(known, ..)| *known == name);
                    match place.map(|place| open.remove(place)) {
                        Some((_, start, mut all)) => {
                            all.extend(args);
                            self.build.slice(track, (start, end.max(start)), name, category, &all);
                        }
                        None => self.build.trace.facts.warn("end without a beginning", None),
                    }
                }
                (1, Some(start), Some(end)) => {
                    self.build.slice(track, (start, end.max(start)), name, category, &args);
                }
                (_, Some(start), _) => self.build.instant(track, start, name, category, &args),
                _ => self.build.trace.facts.warn("marker without a time, left out", None),
            }
        }
        for (name, start, args) in open {
            self.build.slice(track, (start, start.saturating_sub(1)), name, category, &args);
        }
    }

    /// What a marker says: its members, lists and objects as JSON.
    fn entries(&mut self, data: Option<Value<'_>>) -> Entries {
        let mut entries = Entries::new();
        for (key, value) in data.into_iter().flat_map(Value::fields) {
            let key = self.build.text(&key.text());
            let value = match value.kind() {
                Kind::String => {
                    let text = value.as_str().map(|text| text.text()).unwrap_or_default();
                    self.build.string(&text)
                }
                Kind::True => trace::Value::Bool(true),
                Kind::False => trace::Value::Bool(false),
                Kind::Null => trace::Value::Null,
                Kind::Int | Kind::Float => match number(value) {
                    Some(crate::json::Number::Int(n)) => trace::Value::I64(n),
                    Some(crate::json::Number::Uint(n)) => trace::Value::U64(n),
                    Some(crate::json::Number::Float(x)) => trace::Value::F64(x),
                    _ => continue,
                },
                Kind::Object | Kind::Array => {
                    let mut text = Vec::new();
                    crate::json::write_value(&mut text, value);
                    trace::Value::Json(self.build.text(&String::from_utf8_lossy(&text)))
                }
            };
            entries.push((key, value));
        }
        entries
    }
}
