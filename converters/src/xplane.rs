//! XPlane: what JAX, TensorFlow and PyTorch/XLA write (`.xplane.pb`).
//!
//! A file is one `XSpace`: planes, which have lines, which have events. Names, and keys of
//! values, are numbers of tables that stand behind the lines in each plane, so a plane is read
//! twice.
//!
//! | XPlane | hub |
//! |---|---|
//! | a plane `/device:…:N` | device N |
//! | its lines `Stream #N(…)`, `XLA Ops` and `Async XLA Ops` | a queue; their events are work |
//! | its other lines | tracks of the host beside the devices |
//! | another plane with lines | a process, numbered by its id: the file has no pid |
//! | its lines | threads |
//! | values of events (`stats`) and of what they are instances of | arguments |
//! | `correlation_id` | the arrow from a call to what it launched |
//! | `kernel_details` | grid, block and registers of a kernel |
//!
//! Times are nanoseconds since 1970; picoseconds are rounded down, beginnings and ends alike, so
//! that what nests still does.

use hashbrown::HashMap;

use crate::builder::{Builder, Done, Entries};
use crate::perfetto::wire::{Field, Fields};
use crate::trace::{Api, ClockReading, Dim3, Nanos, QueueId, StrId, Trace, TrackId, Value, Work};

/// Reads an `XSpace`; `None` when the bytes are something else.
pub(crate) fn read(bytes: &[u8]) -> Option<Trace> {
    let mut reader = Reader::default();
    let mut host = None;
    for (number, field) in Fields::new(bytes) {
        match (number, field) {
            (1, Field::Bytes(plane)) => reader.plane(plane)?,
            (2, Field::Bytes(text)) => reader.remark("error of the profiler: ", text),
            (3, Field::Bytes(text)) => reader.remark("warning of the profiler: ", text),
            (4, Field::Bytes(name)) => host = Some(String::from_utf8_lossy(name).into_owned()),
            (0, _) => reader.build.trace.facts.warn("the end of the file is missing", None),
            _ => return None,
        }
    }
    if let Some(host) = host {
        let (key, value) = (reader.build.text("host_name"), reader.build.string(&host));
        reader.build.trace.facts.metadata.push((key, value));
    }
    if let Some(first) = reader.first {
        let now = Nanos(first);
        let reading = ClockReading { trace: now, realtime: Some(now), monotonic: None };
        reader.build.trace.facts.readings.push(reading);
    }
    Some(reader.build.finish("XPlane"))
}

/// Whether a file begins as an `XSpace` does: with a plane, whose first field is its number or
/// its name.
pub(crate) fn is_xplane(first: &[u8]) -> bool {
    let mut fields = Fields::new(first.get(1..).unwrap_or_default());
    // The plane is longer than what is looked at, so its length is taken off by hand.
    let Some(rest) = first.strip_prefix(&[0x0a]) else { return false };
    let at = rest.iter().position(|byte| *byte < 0x80).filter(|at| *at < 5);
    if let Some(at) = at {
        fields = Fields::new(&rest[at + 1..]);
    }
    let names = [&b"/device:"[..], b"/host:", b"Task Environment"];
    fields.take(2).any(|(number, field)| {
        number == 2 && names.iter().any(|name| field.bytes().starts_with(name))
    })
}

#[derive(Debug, Default)]
struct Reader {
    build: Builder,
    /// When the first event begins.
    first: Option<i64>,
    /// Planes so far.
    planes: i64,
}

/// The tables of a plane.
#[derive(Debug, Default)]
struct Tables {
    /// What events are instances of: its name, and values that all of them have.
    events: HashMap<u64, (StrId, Entries)>,
    /// Keys of values.
    stats: HashMap<u64, StrId>,
}

/// Where the events of a line go.
#[derive(Clone, Copy, Debug)]
enum Row {
    Queue(QueueId),
    Track(TrackId),
}

impl Reader {
    fn remark(&mut self, what: &str, text: &[u8]) {
        self.build.trace.facts.warn(format!("{what}{}", String::from_utf8_lossy(text)), None);
    }

    fn plane(&mut self, bytes: &[u8]) -> Option<()> {
        self.planes += 1;
        let (mut id, mut name, mut tables) = (self.planes, String::new(), Tables::default());
        let mut lines = 0;
        for (number, field) in Fields::new(bytes) {
            match (number, field) {
                (1, Field::Varint(n)) => id = n as i64,
                (2, Field::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
                (3, Field::Bytes(_)) => lines += 1,
                (4, Field::Bytes(_)) | (6, Field::Bytes(_)) => {}
                (5, Field::Bytes(entry)) => self.stat_name(&mut tables, entry),
                (0, _) => self.build.trace.facts.warn("a plane that is cut off", None),
                // A field of another type: not an `XPlane`.
                (1..=6, _) => return None,
                _ => {}
            }
        }
        // Keys before what they are keys of. Without lines there is nothing but programs.
        for (number, field) in Fields::new(bytes) {
            if number == 4 && lines > 0 {
                self.event_name(&mut tables, field.bytes());
            }
        }
        let device = name.strip_prefix("/device:").map(|rest| device_number(rest).unwrap_or(id));
        if let Some(number) = device {
            let device = self.build.device(number);
            self.build.trace.devices[device].name = self.build.text(&name);
        } else if lines > 0 {
            self.build.name_process(id, &name);
        }
        for (number, field) in Fields::new(bytes) {
            match number {
                3 => self.line(&tables, field.bytes(), device, (id, &name)),
                6 => self.fact(&tables, field.bytes(), &name),
                _ => {}
            }
        }
        Some(())
    }

    /// An entry of a map: its key is field 1 and its value field 2.
    fn stat_name(&mut self, tables: &mut Tables, entry: &[u8]) {
        let (key, value) = entry_of(entry);
        let name = Fields::new(value).filter(|(number, _)| *number == 2).last();
        let name = name.map_or("".into(), |(_, name)| String::from_utf8_lossy(name.bytes()));
        tables.stats.insert(key, self.build.text(&name));
    }

    fn event_name(&mut self, tables: &mut Tables, entry: &[u8]) {
        let (key, value) = entry_of(entry);
        let (mut name, mut shown, mut own) = (&[][..], &[][..], Entries::new());
        for (number, field) in Fields::new(value) {
            match number {
                2 => name = field.bytes(),
                4 => shown = field.bytes(),
                5 => own.extend(self.stat(tables, field.bytes())),
                _ => {}
            }
        }
        let text = String::from_utf8_lossy(if shown.is_empty() { name } else { shown });
        let text = self.build.text(&text);
        tables.events.insert(key, (text, own));
    }

    fn stat(&mut self, tables: &Tables, bytes: &[u8]) -> Option<(StrId, Value)> {
        let (mut key, mut value) = (None, None);
        for (number, field) in Fields::new(bytes) {
            match number {
                1 => key = tables.stats.get(&field.uint()).copied(),
                2 => value = Some(Value::F64(field.double())),
                3 => value = Some(Value::U64(field.uint())),
                4 => value = Some(Value::I64(field.int())),
                5 => value = Some(self.build.string(&String::from_utf8_lossy(field.bytes()))),
                7 => value = tables.stats.get(&field.uint()).map(|text| Value::Str(*text)),
                6 => self.build.trace.facts.warn("value of raw bytes, left out", None),
                _ => {}
            }
        }
        Some((key?, value?))
    }

    /// A value of the whole plane.
    fn fact(&mut self, tables: &Tables, bytes: &[u8], plane: &str) {
        if let Some((key, value)) = self.stat(tables, bytes) {
            let key = format!("{plane} {}", self.build.trace.strings.get(key));
            let key = self.build.text(&key);
            self.build.trace.facts.metadata.push((key, value));
        }
    }

    fn line(&mut self, tables: &Tables, bytes: &[u8], device: Option<i64>, plane: (i64, &str)) {
        let (mut id, mut name, mut base) = (0, &[][..], 0i64);
        for (number, field) in Fields::new(bytes) {
            match number {
                1 => id = field.int(),
                2 if name.is_empty() => name = field.bytes(),
                // What is shown of it.
                11 if !field.bytes().is_empty() => name = field.bytes(),
                3 => base = field.int(),
                _ => {}
            }
        }
        let name = String::from_utf8_lossy(name);
        let build = &mut self.build;
        let row = match device {
            Some(device) => match stream(&name) {
                Some(stream) => Row::Queue(build.stream(device, stream)),
                None if matches!(&*name, "XLA Ops" | "Async XLA Ops") => {
                    Row::Queue(build.queue(device, id, &name))
                }
                None => Row::Track(build.trace.track(None, &format!("{} {name}", plane.1))),
            },
            None => {
                // A thread without a number has that of its line.
                build.name_thread(plane.0, id, &name);
                Row::Track(build.thread(plane.0, id))
            }
        };
        for (number, field) in Fields::new(bytes) {
            if number == 4 {
                self.event(tables, field.bytes(), base, row);
            }
        }
    }

    fn event(&mut self, tables: &Tables, bytes: &[u8], base: i64, row: Row) {
        let (mut kind, mut offset, mut length, mut args) = (0, Some(0), 0, Entries::new());
        for (number, field) in Fields::new(bytes) {
            match number {
                1 => kind = field.uint(),
                2 => offset = Some(field.int()),
                3 => length = field.int(),
                4 => args.extend(self.stat(tables, field.bytes())),
                // How often it happened, instead of when.
                5 => offset = None,
                _ => {}
            }
        }
        let Some(offset) = offset else {
            return self.build.trace.facts.warn("sum over many events, left out", None);
        };
        let unnamed = (StrId::NONE, Entries::new());
        let (name, own) = tables.events.get(&kind).unwrap_or(&unnamed);
        args.extend(own);
        let nanos = |pico: i64| base.saturating_add(pico.div_euclid(1000));
        let (start, end) = (nanos(offset), nanos(offset.saturating_add(length.max(0))));
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        match row {
            Row::Queue(queue) => self.work(queue, (start, end), *name, args),
            Row::Track(track) => self.slice(track, (start, end), *name, args),
        }
    }

    fn slice(&mut self, track: TrackId, times: (i64, i64), name: StrId, args: Entries) {
        let correlation = self.number(&args, "correlation_id");
        let category = self.build.text(if correlation != 0 { "cuda_runtime" } else { "cpu_op" });
        let slice = self.build.slice(track, times, name, category, &args);
        self.build.call(slice, correlation, Api::Unknown);
    }

    fn work(&mut self, queue: QueueId, (start, end): (i64, i64), name: StrId, args: Entries) {
        let text = self.build.trace.strings.get(name).to_ascii_lowercase();
        let work = match () {
            () if text.starts_with("memcpy") || self.find(&args, "memcpy_details").is_some() => {
                Work::Copy
            }
            () if text.starts_with("memset") || self.find(&args, "memset_details").is_some() => {
                Work::Set
            }
            () => Work::Kernel,
        };
        let correlation = self.number(&args, "correlation_id");
        let context = self.number(&args, "context_id");
        let context = (context != 0).then(|| self.build.context(context, 0, Api::Unknown));
        let details = match self.find(&args, "kernel_details") {
            Some(Value::Str(text)) => self.build.trace.strings.get(text).to_owned(),
            _ => String::new(),
        };
        let says = |key: &str| details.split([' ', '\n']).find_map(|word| word.strip_prefix(key));
        let mut kernel = Entries::new();
        for (key, name) in [("regs:", "registers per thread"), ("dynamic_shared:", "shared memory")]
        {
            if let Some(n) = says(key).and_then(|n| n.parse().ok()) {
                kernel.push((self.build.text(name), Value::I64(n)));
            }
        }
        let (grid, block) = (says("grid:").and_then(dim), says("block:").and_then(dim));
        let done =
            Done { work, queue, start, end, name, correlation, context, grid, block, kernel };
        self.build.work(done, &args);
    }

    fn find(&self, args: &Entries, key: &str) -> Option<Value> {
        let key = self.build.trace.strings.find(key)?;
        args.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The value of a key; 0 if it is no number.
    fn number(&self, args: &Entries, key: &str) -> u64 {
        match self.find(args, key) {
            Some(Value::U64(n)) => n,
            Some(Value::I64(n)) => n.try_into().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Key and value of a map's entry.
fn entry_of(entry: &[u8]) -> (u64, &[u8]) {
    let mut both = (0, &[][..]);
    for (number, field) in Fields::new(entry) {
        match number {
            1 => both.0 = field.uint(),
            2 => both.1 = field.bytes(),
            _ => {}
        }
    }
    both
}

/// The number behind `GPU:`, `TPU:`…
fn device_number(name: &str) -> Option<i64> {
    let (_, number) = name.rsplit_once(':')?;
    number.split(' ').next()?.parse().ok()
}

/// The number of `Stream #13(Compute)`.
fn stream(line: &str) -> Option<i64> {
    let rest = line.strip_prefix("Stream #")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// `2,1,1`
fn dim(text: &str) -> Option<Dim3> {
    let mut numbers = text.split(',').map(|n| n.parse().ok());
    Some(Dim3 { x: numbers.next()??, y: numbers.next()??, z: numbers.next()?? })
}
