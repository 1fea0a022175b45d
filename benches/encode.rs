//! What the writer costs: encoding alone, and everything that the engine does from the
//! queues to the sink. See `docs/BENCHMARKS.md`.
//!
//! `cargo bench --bench encode [-- FILTER]`; criterion's options work too.

mod measure;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use kymograph::{Config, Counter, Recording, instant, scope};
use kymograph_protos::StrId;
use kymograph_protos::packet::{
    Arg, CounterValue, Event, EventType, Name, Sequence, Snapshot, Strings, Text, Value,
};
use measure::cores;
use measure::gate::Gate;
use measure::turns::{best, median};

/// Packets that are made before the buffer is emptied: what the engine keeps, 1 MiB.
const FULL: usize = 1 << 20;
/// Events that wait in the queues before the engine is let loose; a quarter of the buffer.
const QUEUED: u64 = 500_000;

/// The row that has a target.
const TARGET: &str = "scope, one u64: begin and end";

/// What all samples of a row were, in nanoseconds per event, and its bytes per event.
type Rows = RefCell<BTreeMap<usize, (String, Vec<f64>, f64)>>;

fn main() {
    let rows = Rows::default();
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
        .configure_from_args();
    let [mine, other] = cores::two();
    cores::pin(&[mine]);
    encoder(&mut criterion, &rows);
    engine(&mut criterion, &rows, mine, other);
    criterion.final_summary();
    print(&rows.into_inner());
}

fn print(rows: &BTreeMap<usize, (String, Vec<f64>, f64)>) {
    println!("\n### From records to packets\n");
    println!("| case | best ns | median ns | bytes | target | |");
    println!("|---|--:|--:|--:|---|---|");
    for (name, nanos, bytes) in rows.values() {
        let (best, median) = (best(nanos), median(nanos));
        let target = if name == TARGET { "≤ 50 ns, ≤ 38 bytes" } else { "" };
        let small = *bytes <= 38.0;
        let verdict = match name.as_str() {
            TARGET if small && median <= 50.0 => "met",
            TARGET if small && best <= 50.0 => "met by the best batch",
            TARGET => "**missed**",
            _ => "",
        };
        println!("| {name} | {best:.1} | {median:.1} | {bytes:.1} | {target} | {verdict} |");
    }
}

/// Lets criterion measure `run`, which takes a number of events and returns the time they
/// took and the bytes they became.
fn bench(
    criterion: &mut Criterion,
    rows: &Rows,
    name: &str,
    mut run: impl FnMut(u64) -> (Duration, u64),
) {
    let at = rows.borrow().len();
    let group = &mut criterion.benchmark_group("encode");
    group.bench_function(BenchmarkId::from_parameter(name), |b| {
        b.iter_custom(|events| {
            let (time, bytes) = run(events);
            let mut rows = rows.borrow_mut();
            let row = rows.entry(at).or_insert_with(|| (name.to_owned(), Vec::new(), 0.0));
            // Criterion's first samples are a few events: the clock is not that fine.
            if events >= 1000 {
                row.1.push(time.as_nanos() as f64 / events as f64);
                row.2 = bytes as f64 / events as f64;
            }
            time
        });
    });
}

/// Names of two categories, some slices and arguments.
struct Names;

impl Strings for Names {
    fn text(&self, id: StrId) -> Text<'_> {
        let all: [&[u8]; 12] =
            [b"", b"app", b"one", b"two", b"level", b"n", b"a", b"b", b"c", b"d", b"e", b"value"];
        Text { bytes: all[id.0 as usize % all.len()], ..Text::default() }
    }
}

const APP: StrId = StrId(1);
const ONE: Name<'_> = Name::Id(StrId(2));

fn arg(name: u32, value: Value<'_>) -> Arg<'_> {
    Arg { name: Name::Id(StrId(name)), value }
}

/// A sequence, its buffer and its clock. The buffer is emptied when it is full.
struct Encoder {
    sequence: Sequence,
    out: Vec<u8>,
    time: u64,
    bytes: u64,
}

impl Encoder {
    fn new() -> Encoder {
        let mut sequence = Sequence::new(2);
        let mut out = Vec::with_capacity(2 * FULL);
        let boottime = 1_000_000_000_000;
        let clocks = Snapshot { boottime, ..Snapshot::default() };
        sequence.restart(&mut out, 77, &clocks, boottime, false);
        out.clear();
        Encoder { sequence, out, time: boottime, bytes: 0 }
    }

    /// An event some hundred nanoseconds after the last one.
    #[inline(always)]
    fn event(&mut self, event: Event<'_>) {
        self.time += 500;
        self.sequence.event(&mut self.out, &Names, &Event { time: self.time, ..event });
        if self.out.len() >= FULL {
            self.empty();
        }
    }

    fn empty(&mut self) {
        self.bytes += black_box(&self.out).len() as u64;
        self.out.clear();
    }

    /// Times `each` for all of `0..events`.
    fn run(events: u64, mut each: impl FnMut(&mut Encoder, u64)) -> (Duration, u64) {
        let mut encoder = Encoder::new();
        // The first one introduces the names.
        each(&mut encoder, 0);
        encoder.out.clear();
        let start = Instant::now();
        for n in 0..events {
            each(&mut encoder, n);
        }
        let time = start.elapsed();
        encoder.empty();
        (time, encoder.bytes)
    }
}

const BEGIN: Event<'_> = Event { category: APP, name: ONE, ..Event::new(EventType::Begin, 0) };
const END: Event<'_> = Event { name: ONE, ..Event::new(EventType::End, 0) };

fn encoder(criterion: &mut Criterion, rows: &Rows) {
    bench(criterion, rows, TARGET, |events| {
        Encoder::run(events, |to, n| {
            to.event(Event { args: &[arg(5, Value::U64(n & 0x7f))], ..BEGIN });
            to.event(END);
        })
    });
    bench(criterion, rows, "scope, no argument: begin and end", |events| {
        Encoder::run(events, |to, _| {
            to.event(BEGIN);
            to.event(END);
        })
    });
    bench(criterion, rows, "scope, one u64 of up to 40 bits", |events| {
        Encoder::run(events, |to, n| {
            let value = Value::U64(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
            to.event(Event { args: &[arg(5, value)], ..BEGIN });
            to.event(END);
        })
    });
    bench(criterion, rows, "scope, six arguments", |events| {
        Encoder::run(events, |to, n| {
            let args = [
                arg(5, Value::U64(n)),
                arg(6, Value::I64(-(n as i64))),
                arg(7, Value::F64(n as f64)),
                arg(8, Value::Bool(n & 1 == 0)),
                arg(9, Value::Str(StrId(11))),
                arg(10, Value::Pointer(0x7fff_0000_0000 + n)),
            ];
            to.event(Event { args: &args, ..BEGIN });
            to.event(END);
        })
    });
    bench(criterion, rows, "instant, one u64", |events| {
        Encoder::run(events, |to, n| {
            let ty = EventType::Instant;
            to.event(Event { ty, args: &[arg(5, Value::U64(n & 0x7f))], ..BEGIN });
        })
    });
    bench(criterion, rows, "counter", |events| {
        Encoder::run(events, |to, n| {
            let counter = Some(CounterValue::I64((n & 0x3fff) as i64));
            to.event(Event {
                track: 0x1234_5678_9abc_def0,
                counter,
                ..Event::new(EventType::Counter, 0)
            });
        })
    });
}

static LEVEL: Counter = Counter::new("level");

/// From the queues to a sink that keeps nothing: the engine is held while the queues fill,
/// then let loose on another core.
fn engine(criterion: &mut Criterion, rows: &Rows, mine: usize, other: usize) {
    let gate = Gate::open();
    cores::pin(&[other]);
    let recording =
        Recording::start_with(Config::default(), gate.clone()).expect("no other recording");
    cores::pin(&[mine]);
    let mut through = |name: &str, push: fn(u64)| {
        bench(criterion, rows, name, |events| {
            let mut time = Duration::ZERO;
            let before = gate.bytes();
            let mut left = events;
            while left > 0 {
                let now = left.min(QUEUED);
                left -= now;
                gate.hold();
                // The engine arrives at the gate.
                push(1);
                recording.flush(Duration::from_millis(1));
                push(now);
                let start = Instant::now();
                gate.release();
                assert!(recording.flush(Duration::from_secs(60)), "the engine does not answer");
                time += start.elapsed();
            }
            (time, gate.bytes() - before)
        });
    };
    through("engine: scope, one u64", |events| {
        for n in 0..events {
            let _scope = scope!("one", n = black_box(n & 0x7f));
        }
    });
    through("engine: scope, one u64, three deep", |events| {
        for n in 0..events.div_ceil(3) {
            let _outer = scope!("outer", n = black_box(n & 0x7f));
            let _middle = scope!("middle", n = black_box(n & 0x7f));
            let _inner = scope!("inner", n = black_box(n & 0x7f));
        }
    });
    through("engine: scope, three arguments", |events| {
        for n in 0..events {
            let _scope = scope!("three", n = black_box(n & 0x7f), ratio = 0.5, ready = true);
        }
    });
    through("engine: instant, one u64", |events| {
        for n in 0..events {
            instant!("moment", n = black_box(n & 0x7f));
        }
    });
    through("engine: counter", |events| {
        for n in 0..events {
            LEVEL.set(black_box(n & 0x3fff));
        }
    });
    let summary = recording.stop();
    assert_eq!(summary.lost, 0);
}
