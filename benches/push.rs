//! What recording costs the thread that records. See `docs/BENCHMARKS.md`.
//!
//! `cargo bench --bench push [-- --rounds N]`

mod measure;

use std::hint::black_box;
use std::time::Duration;

use kymograph::queue::POOL;
use kymograph::{Category, Config, Counter, Flow, Recording, instant, range, scope};
use measure::cores;
use measure::drain::Drain;
use measure::floor::Floor;
use measure::gate::Gate;
use measure::table::{self, Row, Target};
use measure::turns::{self, Case, Meeting};

/// Scopes in a batch: as many as the ring of the floor holds.
const BATCH: u64 = 4096;

static OFF: Category = Category::new("off");
static LEVEL: Counter = Counter::new("level");

fn main() {
    let rounds = measure::option("rounds", 300);
    let [mine, other] = cores::two();
    // One core while nothing else is to be measured: the engine is held.
    cores::pin(&[mine]);
    drained(rounds);
    recorded(rounds, mine, other);
    two_threads(rounds, [mine, other]);
    idle(rounds);
}

fn config() -> Config {
    let mut config = Config::default();
    config.set("CATEGORIES", "*,-off").expect("a good value");
    config
}

#[inline(never)]
fn one_arg(scopes: u64) {
    for n in 0..scopes {
        let _scope = scope!("one", n = black_box(n));
    }
}

#[inline(never)]
fn no_arg(scopes: u64) {
    for n in 0..scopes {
        let _scope = scope!("none");
        black_box(n);
    }
}

#[inline(never)]
fn three_args(scopes: u64) {
    for n in 0..scopes {
        let _scope = scope!("three", n = black_box(n), ratio = 0.5, ready = true);
    }
}

#[inline(never)]
fn string_arg(scopes: u64) {
    let text = black_box(String::from("a string of 25 characters"));
    for _ in 0..scopes {
        let _scope = scope!("string", text = &text);
    }
}

#[inline(never)]
fn nested(scopes: u64) {
    for n in 0..scopes / 3 {
        let _outer = scope!("outer", n = black_box(n));
        let _middle = scope!("middle", n = black_box(n));
        let _inner = scope!("inner", n = black_box(n));
    }
}

#[inline(never)]
fn flow(scopes: u64) {
    let flow = Flow::new();
    for _ in 0..scopes {
        let _scope = scope!("flow", flow = black_box(flow));
    }
}

#[inline(never)]
fn instants(count: u64) {
    for n in 0..count {
        instant!("moment", n = black_box(n));
    }
}

#[inline(never)]
fn counters(count: u64) {
    for n in 0..count {
        LEVEL.set(black_box(n));
    }
}

#[inline(never)]
fn ranges(count: u64) {
    for n in 0..count {
        let _range = range!("range", n = black_box(n));
    }
}

#[inline(never)]
fn category_off(scopes: u64) {
    for n in 0..scopes {
        let _scope = scope!(OFF, "off", n = black_box(n));
    }
}

/// The same loop with nothing in it but the argument.
#[inline(never)]
fn empty(scopes: u64) {
    for n in 0..scopes {
        black_box(n);
    }
}

type Run = fn(u64);
const KINDS: &[(&str, Run, Target)] = &[
    ("scope, one u64", one_arg, Target::Ratio(1.25)),
    ("scope, no argument", no_arg, Target::None),
    ("scope, three arguments", three_args, Target::None),
    ("scope, string of 25 characters", string_arg, Target::None),
    ("scope, one u64, three deep", nested, Target::None),
    ("scope with a flow", flow, Target::None),
    ("instant, one u64", instants, Target::None),
    ("counter", counters, Target::None),
    ("range, one u64", ranges, Target::None),
];

/// Recorded and drained on one core: what is measured includes the drain.
fn drained(rounds: usize) {
    let gate = Gate::closed();
    let recording = Recording::start_with(config(), gate.clone()).expect("no other recording");
    one_arg(1);
    let drain = std::cell::RefCell::new(Drain::here());
    let mut floor = Floor::new();
    let mut cases = vec![Case::new("floor", BATCH, || floor.run(BATCH))];
    cases.extend(KINDS.iter().map(|(name, run, _)| {
        Case::new(name, BATCH, || {
            run(BATCH);
            drain.borrow_mut().all();
        })
    }));
    cases.push(Case::new("scope of a category that is off", BATCH, || category_off(BATCH)));
    cases.push(Case::new("the empty loop", BATCH, || empty(BATCH)));
    turns::take(&mut cases, rounds);
    let targets = [Target::None]
        .into_iter()
        .chain(KINDS.iter().map(|kind| kind.2))
        .chain([Target::Nanos(1.0), Target::None]);
    let rows: Vec<_> = cases.iter().zip(targets).map(|(c, t)| Row::new(c, &cases[0], t)).collect();
    table::print("One thread, recorded and drained on one core", &rows);
    drop(cases);
    let drain = drain.into_inner();
    assert_eq!(drain.dropped(), 0);
    drain.end();
    gate.release();
    recording.stop();
}

/// With a recording that runs: the engine, on another core, drains, encodes and writes to a
/// sink that keeps nothing.
fn recorded(rounds: usize, mine: usize, other: usize) {
    cores::pin(&[other]);
    let recording = Recording::start_with(config(), Gate::open()).expect("no other recording");
    cores::pin(&[mine]);
    let mut floor = Floor::new();
    let mut cases = vec![
        Case::new("floor", BATCH, || floor.run(BATCH)),
        Case::new("scope, one u64, 2 million per second", BATCH, || one_arg(BATCH))
            .after(|| measure::pace(BATCH)),
        Case::new("scope, one u64, three deep, 2 million per second", BATCH, || nested(BATCH))
            .after(|| measure::pace(BATCH)),
        Case::new("instant, one u64, 2 million per second", BATCH, || instants(BATCH))
            .after(|| measure::pace(BATCH)),
    ];
    turns::take(&mut cases, rounds);
    let targets = [Target::None, Target::Ratio(1.25), Target::None, Target::None];
    let mut rows: Vec<_> =
        cases.iter().zip(targets).map(|(c, t)| Row::new(c, &cases[0], t)).collect();
    drop(cases);
    let mut floor = Floor::new();
    let mut cases = vec![
        Case::new("floor", BATCH, || floor.run(BATCH)),
        Case::new("scope, one u64, full speed", BATCH, || one_arg(BATCH))
            .after(|| catch_up(&recording)),
    ];
    turns::take(&mut cases, rounds * 4);
    rows.push(Row::new(&cases[1], &cases[0], Target::None));
    drop(cases);
    table::print("One thread, while the engine on another core encodes", &rows);
    report(recording);
}

/// Lets the engine catch up when half the buffer is full: a thread that does nothing but
/// record is faster than any writer.
fn catch_up(recording: &Recording) {
    if POOL.bytes_in_use() > 32 << 20 {
        recording.flush(Duration::from_secs(5));
    }
}

fn report(recording: Recording) {
    let summary = recording.stop();
    println!("\n{} events, {} lost", summary.events, summary.lost);
    assert_eq!(summary.lost, 0, "what was lost was not paid for");
}

/// Two threads on a core each, at the same time.
fn two_threads(rounds: usize, both: [usize; 2]) {
    let gate = Gate::closed();
    cores::pin(&both);
    let recording = Recording::start_with(config(), gate.clone()).expect("no other recording");
    let drained = on_both(both, |meeting| {
        one_arg(1);
        let mut drain = Drain::here();
        let mut floor = Floor::new();
        let mut cases = [
            Case::new("floor, two threads", BATCH, || floor.run(BATCH)),
            Case::new("scope, one u64, recorded and drained on each", BATCH, || {
                one_arg(BATCH);
                drain.all();
            }),
        ];
        turns::take_together(&mut cases, rounds, meeting);
        let samples = cases.each_ref().map(|c| (c.name.clone(), c.nanos.clone()));
        drop(cases);
        drain.end();
        samples
    });
    gate.release();
    recording.stop();

    let recording = Recording::start_with(config(), Gate::open()).expect("no other recording");
    let recorded = on_both(both, |meeting| {
        let mut floor = Floor::new();
        let mut cases = [
            Case::new("floor", BATCH, || floor.run(BATCH)),
            Case::new("scope, one u64, while the engine encodes", BATCH, || one_arg(BATCH))
                .after(|| catch_up(&recording)),
        ];
        turns::take_together(&mut cases, rounds, meeting);
        cases.each_ref().map(|c| (c.name.clone(), c.nanos.clone()))
    });
    let row = |(name, nanos): &(String, Vec<f64>), floor: &[f64], target| Row {
        name: name.clone(),
        nanos: nanos.clone(),
        floor: floor.to_vec(),
        target,
    };
    let rows = [
        row(&drained[0], &drained[0].1, Target::None),
        row(&drained[1], &drained[0].1, Target::Ratio(1.4)),
        row(&recorded[1], &recorded[0].1, Target::Ratio(1.4)),
    ];
    table::print("Two threads, each on its own core", &rows);
    report(recording);
}

/// Runs `work` on both cores and puts the samples of both threads together.
fn on_both<const N: usize>(
    both: [usize; 2],
    work: impl Fn(&Meeting) -> [(String, Vec<f64>); N] + Sync,
) -> [(String, Vec<f64>); N] {
    let meeting = Meeting::of(2);
    let [a, b] = std::thread::scope(|scope| {
        let threads = both.map(|core| {
            let (work, meeting) = (&work, &meeting);
            scope.spawn(move || {
                cores::pin(&[core]);
                work(meeting)
            })
        });
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let mut all = a;
    for (mine, theirs) in all.iter_mut().zip(b) {
        mine.1.extend(theirs.1);
    }
    all
}

/// Compiled in, but nothing is recorded.
fn idle(rounds: usize) {
    cores::pin(&[cores::two()[0]]);
    let mut floor = Floor::new();
    let mut cases = [
        Case::new("floor", BATCH, || floor.run(BATCH)),
        Case::new("scope, one u64, no recording", BATCH, || one_arg(BATCH)),
        Case::new("the empty loop", BATCH, || empty(BATCH)),
    ];
    turns::take(&mut cases, rounds);
    let targets = [Target::None, Target::Nanos(1.0), Target::None];
    let rows: Vec<_> = cases.iter().zip(targets).map(|(c, t)| Row::new(c, &cases[0], t)).collect();
    table::print("Nothing is recorded", &rows);
}
