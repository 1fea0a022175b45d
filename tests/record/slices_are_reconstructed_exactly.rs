//! What threads did comes out of trace_processor as it was: every slice with its name,
//! begin, duration and parent. Times are chosen, so that equal ones are common.

use harness::alone;
use kymograph::__private::PIPELINE;
use kymograph::{Config, Flow, Recording, instant, scope};
use kymograph_protos::Recorder;
use kymograph_protos::record::{ArgType, Extra, Kind, Record, StrId};
use oracle::Trace;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A slice as its thread logged it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Slice {
    name: String,
    begin: u64,
    /// -1: it did not end.
    dur: i64,
    /// The slice around it, if that is certain.
    parent: Option<u64>,
}

/// A thread that records what it likes at times it likes.
struct Generator {
    dice: u64,
    time: u64,
    next: u64,
    /// Nesting stacks: scopes, then two domains that may cross. Slices that are open.
    stacks: [(StrId, Vec<u64>); 3],
    names: [[StrId; 4]; 3],
    slices: HashMap<u64, Slice>,
    unmatched: u64,
}

/// The id of a text, which has none while another thread is adding one.
fn interned(category: StrId, text: &[u8]) -> StrId {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let id = PIPELINE.intern(category, text);
        if !id.is_none() {
            return id;
        }
        assert!(Instant::now() < deadline, "{text:?} has no id");
        std::thread::yield_now();
    }
}

impl Generator {
    fn new(thread: u64) -> Generator {
        let domains = [&b""[..], b"domain a", b"domain b"].map(|name| match name {
            b"" => StrId::NONE,
            name => interned(StrId::NONE, name),
        });
        let names = domains.map(|domain| {
            [&b"one"[..], b"two", b"three", b"four"].map(|name| interned(domain, name))
        });
        Generator {
            dice: thread * 77 + 1,
            time: PIPELINE.now(),
            next: thread << 32,
            stacks: domains.map(|domain| (domain, Vec::new())),
            names,
            slices: HashMap::new(),
            unmatched: 0,
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        (self.dice >> 33) % sides
    }

    /// Now: often the same as before.
    fn tick(&mut self) -> u64 {
        self.time += [0, 0, 0, 1, 7, 300][self.roll(6) as usize];
        self.time
    }

    fn begin(&mut self, stack: usize) {
        let name = self.roll(4) as usize;
        let id = self.next;
        self.next += 1;
        let head = Record {
            time: self.tick(),
            site: self.names[stack][name],
            kind: if stack == 0 { Kind::Begin } else { Kind::Push } as u8,
            ..Record::default()
        };
        let id_name = interned(StrId::NONE, b"id");
        assert!(PIPELINE.push(head, &[Extra::new(id_name, ArgType::U64, id)]));
        let alone = self.stacks.iter().enumerate().all(|(s, open)| s == stack || open.1.is_empty());
        let parent = self.stacks[stack].1.last().copied().filter(|_| alone);
        let name = ["one", "two", "three", "four"][name].to_owned();
        self.slices.insert(id, Slice { name, begin: head.time, dur: -1, parent });
        self.stacks[stack].1.push(id);
    }

    fn end(&mut self, stack: usize) {
        let (site, kind) = match stack {
            0 => (StrId::NONE, Kind::End),
            _ => (self.stacks[stack].0, Kind::Pop),
        };
        let head = Record { time: self.tick(), site, kind: kind as u8, ..Record::default() };
        assert!(PIPELINE.push(head, &[]));
        match self.stacks[stack].1.pop() {
            Some(id) => {
                let slice = self.slices.get_mut(&id).unwrap();
                slice.dur = (head.time - slice.begin) as i64;
            }
            None => self.unmatched += 1,
        }
    }

    fn run(mut self, stacks: u64, steps: u64) -> Generator {
        for _ in 0..steps {
            let stack = self.roll(stacks) as usize;
            let open = self.stacks[stack].1.len() as u64;
            match self.roll(12) {
                0 => instant!("between"),
                1 if open == 0 => self.end(stack),
                n if n > open / 2 + 2 => self.begin(stack),
                _ if open > 0 => self.end(stack),
                _ => self.begin(stack),
            }
        }
        // One thread in two leaves its slices open.
        while self.next >> 32 & 1 == 0 && self.stacks.iter().any(|s| !s.1.is_empty()) {
            let stack = self.roll(3) as usize;
            if !self.stacks[stack].1.is_empty() {
                self.end(stack);
            }
        }
        self
    }
}

/// Slices of the trace by the number in their argument.
fn slices_of(trace: &Trace) -> HashMap<u64, Slice> {
    let rows = trace.rows(
        "SELECT extract_arg(s.arg_set_id, 'debug.id'), s.name, s.ts, s.dur,
                extract_arg(p.arg_set_id, 'debug.id')
         FROM slice s LEFT JOIN slice p ON p.id = s.parent_id WHERE s.name != 'between'",
    );
    let count = rows.len();
    let slices: HashMap<u64, Slice> = rows
        .into_iter()
        .map(|row| {
            let slice = Slice {
                name: row[1].as_str().unwrap().to_owned(),
                begin: row[2].as_u64().unwrap(),
                dur: row[3].as_i64().unwrap(),
                parent: row[4].as_u64(),
            };
            (row[0].as_u64().unwrap(), slice)
        })
        .collect();
    assert_eq!(slices.len(), count, "a slice is there twice");
    slices
}

#[test]
fn whatever_threads_do() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    config.set("CLOCK", "boottime").unwrap();
    config.set("FLUSH", "10ms").unwrap();
    let recording = Recording::start(config).unwrap();
    let threads: Vec<_> = (1..=9u64)
        .map(|thread| {
            std::thread::spawn(move || {
                let generator = Generator::new(thread);
                generator.run([1, 2, 3][thread as usize % 3], 6000)
            })
        })
        .collect();
    for _ in 0..40 {
        assert!(recording.flush(Duration::from_secs(10)));
        std::thread::sleep(Duration::from_millis(1));
    }
    let logs: Vec<Generator> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.misnested, summary.clamped), (0, 0, 0), "{summary:?}");
    assert_eq!(summary.unmatched_ends, logs.iter().map(|log| log.unmatched).sum::<u64>());

    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let mut found = slices_of(&trace);
    for (id, slice) in logs.iter().flat_map(|log| &log.slices) {
        let mut seen = found.remove(id).unwrap_or_else(|| panic!("{id:x} is missing: {slice:?}"));
        if slice.parent.is_none() {
            seen.parent = None;
        }
        assert_eq!(seen, *slice, "{id:x}");
    }
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn two_thousand_slices_inside_each_other() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    config.set("CLOCK", "boottime").unwrap();
    let recording = Recording::start(config).unwrap();
    let mut generator = Generator::new(1);
    (0..2000).for_each(|_| generator.begin(0));
    assert!(recording.flush(Duration::from_secs(10)));
    (0..2000).for_each(|_| generator.end(0));
    (0..600).for_each(|_| generator.begin(0));
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.unmatched_ends), (2600, 0, 0));
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let mut found = slices_of(&trace);
    for (id, slice) in &generator.slices {
        let mut seen = found.remove(id).unwrap();
        // Every 500 slices go to a track of their own, where the outermost has no parent.
        seen.parent = seen.parent.or(slice.parent);
        assert_eq!(seen, *slice);
    }
    assert!(found.is_empty());
}

/// An open slice is written when it is flushed, and once more when it ends: its arrows
/// must not be.
#[test]
fn arrows_of_slices_that_are_flushed_while_they_are_open() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(Config::to_file(folder.path().join("t.pftrace"))).unwrap();
    let flow = Flow::new();
    {
        let _send = scope!("send", flow = flow, to = "the other one");
        assert!(recording.flush(Duration::from_secs(10)));
    }
    {
        let _receive = scope!("receive", flow = flow.end(), n = 7);
        assert!(recording.flush(Duration::from_secs(10)));
    }
    assert_eq!(recording.stop().events, 2);
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    assert_eq!(
        trace.table(
            "SELECT o.name AS out, i.name AS into_ FROM flow
             JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in"
        ),
        "out   into_\nsend  receive\n"
    );
    assert_eq!(
        trace.table(
            "SELECT s.name, flat_key, display_value FROM slice s JOIN args USING (arg_set_id)
             ORDER BY s.ts, flat_key"
        ),
        "name     flat_key  display_value\n\
         send     debug.to  the other one\n\
         receive  debug.n   7\n"
    );
}
