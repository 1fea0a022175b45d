//! A step of a real trace, cut into what each rank repeats and what differs.

use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// A part of an event's text.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The same for all.
    Text(Box<[u8]>),
    /// When it begins.
    Start,
    /// How long it takes.
    Dur,
    /// A number that no other event of another step may have.
    Id(u64),
    /// The number of the device.
    Device,
    /// The name of the process group.
    GroupName,
    /// Its members.
    GroupRanks,
    /// How many they are.
    GroupSize,
}

/// What an event is, for its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Role {
    /// Something that the host does.
    Host,
    /// A call that launches work: its number among the works.
    Launch(usize),
    /// A call in which the host waits for the device.
    Sync,
    /// The data loader.
    Loader,
}

/// An event of the host.
#[derive(Clone, Debug)]
pub struct Event {
    /// When it begins, in nanoseconds since the step began.
    pub start: i64,
    /// When it ends.
    pub end: i64,
    /// What it is.
    pub role: Role,
    /// Its text, and those of arrows that begin or end with it.
    pub pieces: Vec<Piece>,
}

/// Work of a device.
#[derive(Clone, Debug)]
pub struct Work {
    /// How long it takes, in nanoseconds; of a collective, how long the data takes to move.
    pub dur: i64,
    /// The stream.
    pub stream: i64,
    /// Of a collective, whether it goes over a rail and not within a host.
    pub collective: Option<bool>,
    /// Its text, and that of the arrow to it.
    pub pieces: Vec<Piece>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Template {
    /// The host's events, by beginning.
    pub events: Vec<Event>,
    /// The work, in the order in which it is launched.
    pub works: Vec<Work>,
    /// When events begin and end, in the order of time: the number of the event, and whether it
    /// ends.
    pub moments: Vec<(i64, u32, bool)>,
    /// The first number that no event has.
    pub ids: u64,
    /// How many entries a repetition has in the file.
    pub entries: usize,
    /// The process and the thread that does the steps.
    pub main: (i64, i64),
    /// Names of processes and threads, as text.
    pub metadata: Vec<String>,
    /// What the file says of the devices, as text.
    pub devices: String,
}

/// A collective moves so many bytes in a nanosecond, at best: over a rail, within a host.
const BANDWIDTH: [f64; 2] = [40.0, 200.0];
/// Before the first byte arrives.
const LATENCY: i64 = 25_000;
/// The device has so many times as much to do as the host: it is what the job waits for.
const DEVICE_BOUND: f64 = 1.15;

/// An entry of the file, in nanoseconds.
struct Entry<'a> {
    json: &'a Map<String, Value>,
    ts: i64,
    dur: i64,
}

impl<'a> Entry<'a> {
    fn text(&self, key: &str) -> &'a str {
        self.json.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn int(&self, key: &str) -> i64 {
        self.json.get(key).and_then(Value::as_i64).unwrap_or_default()
    }

    fn arg(&self, key: &str) -> Option<&'a Value> {
        self.json.get("args")?.get(key)
    }

    fn correlation(&self) -> Option<u64> {
        self.arg("correlation")?.as_u64()
    }

    fn on_host(&self) -> bool {
        ["cpu_op", "cuda_runtime", "cuda_driver", "user_annotation", "python_function"]
            .contains(&self.text("cat"))
    }

    fn is_work(&self) -> bool {
        ["kernel", "gpu_memcpy", "gpu_memset"].contains(&self.text("cat"))
    }
}

/// Microseconds with a fraction, exactly.
fn nanos(value: Option<&Value>) -> Option<i64> {
    Some((value?.as_f64()? * 1000.0).round() as i64)
}

impl Template {
    /// The longest step but the first and the last of a trace as PyTorch's profiler writes it.
    ///
    /// # Errors
    ///
    /// When it is no such trace, or has no step that launches work: a sentence for people.
    pub fn of(trace: &Value) -> Result<Template, String> {
        let list = trace.get("traceEvents").and_then(Value::as_array);
        let list = list.ok_or("it has no traceEvents")?;
        let base = list.iter().filter_map(|e| e.get("ts")?.as_f64()).fold(f64::MAX, f64::min);
        let mut entries: Vec<Entry<'_>> = Vec::new();
        for json in list.iter().filter_map(Value::as_object) {
            let Some(ts) = json.get("ts").and_then(Value::as_f64) else { continue };
            let ts = ((ts - base) * 1000.0).round() as i64;
            entries.push(Entry { json, ts, dur: nanos(json.get("dur")).unwrap_or(0) });
        }
        let is_step = |e: &&Entry<'_>| {
            e.text("cat") == "user_annotation" && e.text("name").starts_with("ProfilerStep")
        };
        let mut steps: Vec<&Entry<'_>> = entries.iter().filter(is_step).collect();
        steps.sort_by_key(|e| e.ts);
        if steps.len() > 2 {
            steps = steps[1..steps.len() - 1].to_vec();
        }
        let step = steps.iter().max_by_key(|e| e.dur).ok_or("it has no ProfilerStep")?;
        let main = (step.int("pid"), step.int("tid"));
        let within = |e: &Entry<'_>| (step.ts..step.ts + step.dur).contains(&e.ts);
        let mut hosts: Vec<&Entry<'_>> = entries
            .iter()
            .filter(|e| e.text("ph") == "X" && e.on_host() && within(e) && !is_step(e))
            .collect();
        hosts.sort_by_key(|e| (e.ts, std::cmp::Reverse(e.dur)));
        let by_correlation: HashMap<u64, &Entry<'_>> = entries
            .iter()
            .filter(|e| e.text("ph") == "X" && e.is_work())
            .filter_map(|e| Some((e.correlation()?, e)))
            .collect();
        let devices = trace.get("deviceProperties").and_then(|all| all.get(0));
        let mut template = Template {
            events: Vec::new(),
            works: Vec::new(),
            moments: Vec::new(),
            ids: 1,
            entries: 0,
            main,
            metadata: Vec::new(),
            devices: devices.map_or_else(String::new, |first| json!([first]).to_string()),
        };
        template.take(&entries, &hosts, &by_correlation, (step.ts, step.dur));
        if template.works.is_empty() {
            return Err("its steps launch no work".to_owned());
        }
        template.balance();
        let used = |e: &&Entry<'_>| e.text("ph") == "M" && e.int("pid") == main.0;
        template.metadata = entries
            .iter()
            .filter(used)
            .map(|e| Value::Object(e.json.clone()).to_string())
            .collect();
        Ok(template)
    }

    fn take(
        &mut self,
        entries: &[Entry<'_>],
        hosts: &[&Entry<'_>],
        by_correlation: &HashMap<u64, &Entry<'_>>,
        (from, length): (i64, i64),
    ) {
        // Arrows by what they begin or end at: process, thread, time.
        let mut arrows: HashMap<(i64, i64, i64), Vec<&Entry<'_>>> = HashMap::new();
        let mut ends: HashMap<u64, usize> = HashMap::new();
        let mut launches: HashSet<u64> = HashSet::new();
        for e in entries.iter().filter(|e| ["s", "f"].contains(&e.text("ph"))) {
            if e.text("cat") == "fwdbwd" && (from..from + length).contains(&e.ts) {
                *ends.entry(e.int("id") as u64).or_default() += 1;
            }
            if e.text("cat") == "ac2g" && e.text("ph") == "f" {
                launches.insert(e.int("id") as u64);
            }
            arrows.entry((e.int("pid"), e.int("tid"), e.ts)).or_default().push(e);
        }
        let loads = |e: &Entry<'_>| e.text("name").starts_with("enumerate(DataLoader)");
        // What happens before the step's own events: the data loader, where there is none.
        let lead = if hosts.iter().any(|e| loads(e)) { 0 } else { 200_000 };
        if lead > 0 {
            let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            self.push(
                added(self.main, "user_annotation", name, None),
                20_000,
                180_000,
                Role::Loader,
            );
        }
        let mut collectives = 0;
        for e in hosts {
            let correlation = e.correlation();
            let work = correlation.and_then(|number| by_correlation.get(&number).copied());
            let role = match work {
                Some(work) => {
                    let over_rail = work.text("name").starts_with("nccl").then(|| {
                        collectives += 1;
                        collectives % 2 == 0
                    });
                    let id = correlation.unwrap_or_default();
                    let mut work = self.work(work, over_rail);
                    if launches.contains(&id) {
                        work.pieces.extend(arrow(Piece::Id(id), "f", "ac2g", None, work.stream));
                        self.entries += 1;
                    }
                    self.works.push(work);
                    Role::Launch(self.works.len() - 1)
                }
                None if e.text("name").contains("Synchronize") => Role::Sync,
                None if loads(e) => Role::Loader,
                None => Role::Host,
            };
            let mut pieces = pieces(e.json, None);
            let at = arrows.get(&(e.int("pid"), e.int("tid"), e.ts)).into_iter().flatten();
            for a in at {
                let id = a.int("id") as u64;
                let whole = match a.text("cat") {
                    "ac2g" => a.text("ph") == "s" && correlation == Some(id) && work.is_some(),
                    _ => e.text("cat") == "cpu_op" && ends.get(&id) == Some(&2),
                };
                if whole {
                    let ends = a.text("ph");
                    let at = (e.int("pid"), e.int("tid"));
                    pieces.extend(arrow(Piece::Id(id), ends, a.text("cat"), Some(at), 0));
                    self.entries += 1;
                }
            }
            let start = e.ts - from + lead;
            self.push(pieces, start, (start + e.dur).min(lead + length), role);
        }
        // The host waits for the device at the end of a step, as one that reads the loss does.
        let end = lead + length;
        let wait = added(self.main, "cuda_runtime", "cudaDeviceSynchronize", Some(self.ids));
        self.ids += 1;
        self.push(wait, end + 1_000, end + 2_000, Role::Sync);
        for (number, event) in self.events.iter().enumerate() {
            self.moments.push((event.start, number as u32, false));
            self.moments.push((event.end, number as u32, true));
        }
        // What ends goes before what begins then; of what ends, the inner one.
        self.moments.sort_by_key(|(at, number, ends)| {
            let inner = if *ends { -i64::from(*number) } else { i64::from(*number) };
            (*at, !*ends, inner)
        });
        self.entries += self.events.len() + self.works.len();
    }

    fn push(&mut self, pieces: Vec<Piece>, start: i64, end: i64, role: Role) {
        self.number(&pieces);
        // Nothing takes no time, so that each begins before it ends.
        self.events.push(Event { start, end: end.max(start + 1), role, pieces });
    }

    fn number(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            if let Piece::Id(id) = piece {
                self.ids = self.ids.max(id + 1);
            }
        }
    }

    fn work(&mut self, e: &Entry<'_>, collective: Option<bool>) -> Work {
        let pieces = pieces(e.json, collective);
        self.number(&pieces);
        let stream = e.arg("stream").and_then(Value::as_i64).unwrap_or_else(|| e.int("tid"));
        let dur = collective.map_or(e.dur, |over_rail| {
            let elements = e.arg("Out msg nelems").and_then(Value::as_f64).unwrap_or(0.0);
            LATENCY + (4.0 * elements / BANDWIDTH[usize::from(!over_rail)]) as i64
        });
        Work { dur, stream, collective, pieces }
    }

    /// Makes kernels longer if the device has little to do: then faults of it would cost nothing.
    fn balance(&mut self) {
        let waits = self.events.iter().filter(|e| e.role == Role::Sync);
        let host = self.length() - waits.map(|e| e.end - e.start).sum::<i64>();
        let kernels = || self.works.iter().filter(|work| work.collective.is_none());
        let device: i64 = kernels().map(|work| work.dur).sum();
        let scale = (DEVICE_BOUND * host as f64 / device.max(1) as f64).max(1.0);
        for work in self.works.iter_mut().filter(|work| work.collective.is_none()) {
            work.dur = (work.dur as f64 * scale) as i64;
        }
    }

    /// How long a repetition takes on the host, in nanoseconds.
    pub fn length(&self) -> i64 {
        self.moments.last().map_or(0, |(at, ..)| *at)
    }
}

/// An event that the trace does not have.
fn added((pid, tid): (i64, i64), cat: &str, name: &str, correlation: Option<u64>) -> Vec<Piece> {
    let args = correlation.map_or(json!({}), |number| json!({"correlation": number}));
    let event = json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": 0, "dur": 0, "args": args});
    event.as_object().map_or_else(Vec::new, |event| pieces(event, None))
}

/// Texts, and the gaps in them.
struct Pieces(Vec<Piece>, Vec<u8>);

impl Pieces {
    fn gap(&mut self, piece: Piece) {
        self.0.push(Piece::Text(std::mem::take(&mut self.1).into()));
        self.0.push(piece);
    }

    fn text(&mut self, text: &str) {
        self.1.extend(text.as_bytes());
    }

    fn done(mut self) -> Vec<Piece> {
        self.0.push(Piece::Text(self.1.into()));
        self.0
    }
}

/// An end of an arrow: at a thread of the host, or at a stream.
fn arrow(id: Piece, ph: &str, cat: &str, at: Option<(i64, i64)>, stream: i64) -> Vec<Piece> {
    let mut out = Pieces(Vec::new(), Vec::new());
    out.text(&format!("{{\"ph\":\"{ph}\",\"cat\":\"{cat}\",\"name\":\"{cat}\",\"id\":"));
    out.gap(id);
    out.text(",\"pid\":");
    match at {
        Some((pid, tid)) => out.text(&format!("{pid},\"tid\":{tid},\"ts\":")),
        None => {
            out.gap(Piece::Device);
            out.text(&format!(",\"tid\":{stream},\"ts\":"));
        }
    }
    out.gap(Piece::Start);
    out.text(if ph == "f" { ",\"bp\":\"e\"},\n" } else { "},\n" });
    out.done()
}

/// An event as text with gaps. `collective` has a process group.
fn pieces(event: &Map<String, Value>, collective: Option<bool>) -> Vec<Piece> {
    let cat = event.get("cat").and_then(Value::as_str).unwrap_or_default();
    let on_device = ["kernel", "gpu_memcpy", "gpu_memset"].contains(&cat);
    let mut out = Pieces(Vec::new(), Vec::new());
    let key = |out: &mut Pieces, name: &str, first: bool| {
        out.text(if first { "" } else { "," });
        out.text(&Value::from(name).to_string());
        out.text(":");
    };
    out.text("{");
    for (n, (name, value)) in event.iter().filter(|(name, _)| *name != "args").enumerate() {
        key(&mut out, name, n == 0);
        match name.as_str() {
            "ts" => out.gap(Piece::Start),
            "dur" => out.gap(Piece::Dur),
            "pid" if on_device => out.gap(Piece::Device),
            _ => out.text(&value.to_string()),
        }
    }
    let args = event.get("args").and_then(Value::as_object);
    let args = args.into_iter().flatten().filter(|(name, _)| {
        // What only a collective has, its kernel says.
        collective.is_some() || !(name.starts_with("Process Group") || *name == "Group size")
    });
    out.text(",\"args\":{");
    for (n, (name, value)) in args.enumerate() {
        key(&mut out, name, n == 0);
        match (name.as_str(), value.as_u64()) {
            ("correlation" | "External id" | "Sequence number", Some(id)) => out.gap(Piece::Id(id)),
            ("device", _) if on_device => out.gap(Piece::Device),
            ("Process Group Name", _) => out.gap(Piece::GroupName),
            ("Process Group Ranks", _) => out.gap(Piece::GroupRanks),
            ("Group size", _) => out.gap(Piece::GroupSize),
            _ => out.text(&value.to_string()),
        }
    }
    out.text("}},\n");
    out.done()
}
