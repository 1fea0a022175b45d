//! What a flight recorder costs, next to the same recording into a file, and how much
//! history its memory holds. See `docs/BENCHMARKS.md`.
//!
//! `cargo bench --bench flight [-- --seconds N --rate SCOPES_PER_SECOND]`
//!
//! `cargo bench --bench flight -- --endure SECONDS [--dumps 100 --window 1s --memory 32M]`
//! records at that rate for so long, has dumps written at random moments, and asks
//! trace_processor about each of them.

mod endurance;
mod measure;
#[allow(dead_code, unreachable_pub)]
#[path = "../src/cli/workload.rs"]
mod workload;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kymograph::{Config, Recording};
use measure::burst::{due, row, scopes};

/// How often plain recording and flight recorder are measured, in turns.
const ROUNDS: usize = 7;
pub(crate) const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let seconds = measure::option("seconds", 4u64);
    let rate = measure::option("rate", 1_000_000u64);
    let endured = measure::option("endure", 0u64);
    if endured > 0 {
        return endurance::run(Duration::from_secs(endured), rate);
    }
    match measure::option("part", 0) {
        1 => println!("{}", cost(seconds, rate, false)),
        2 => println!("{}", cost(seconds, rate, true)),
        3 => histories(),
        _ => {
            println!(
                "\n### The flight recorder\n\n| what | measured | target | |\n|---|---|---|---|"
            );
            compare();
            histories();
        }
    }
}

/// What memory holds. (`--part 3`: these rows alone, which no other work disturbs.)
fn histories() {
    // The same with little to compute: it is the packets that count here.
    history("the demo's workload", || workload::render_all(4), 5.0);
    history("scopes, one u64, at full speed", || _ = scopes(1_000_000), 0.0);
}

fn start(path: &Path, flight: bool) -> Recording {
    let mut config = Config::default();
    config.output = path.to_owned();
    if flight {
        config.set("FLIGHT", "1h").expect("an option");
        config.set("DUMP_ON", "none").expect("an option");
    }
    Recording::start(config).expect("a file, and no other recording")
}

/// Records at a steady rate; returns what a scope took on its thread, and of the processor
/// in all: that thread and the writer's, in user and kernel mode.
fn cost(seconds: u64, rate: u64, flight: bool) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let recording = start(&dir.path().join("bench.pftrace"), flight);
    let (began, used) = (Instant::now(), processor());
    let (mut done, mut time) = (0, Duration::ZERO);
    while began.elapsed() < Duration::from_secs(seconds) {
        let (now_done, took) = due(began, rate, done);
        (done, time) = (now_done, time + took);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(recording.flush(Duration::from_secs(10)));
    let used = processor() - used;
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.failure), (0, None));
    let each = |time: Duration| time.as_nanos() as f64 / done as f64;
    format!("{} {}", each(time), each(used))
}

/// Time that the processor spent on this process.
fn processor() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct, which is valid also if it does not.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|t| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000))
        .sum()
}

/// Runs a part in a process of its own.
fn part(part: u32) -> [f64; 2] {
    let this = std::env::current_exe().expect("the path of this program");
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let child = Command::new(this).args(args).args(["--part", &part.to_string()]).output();
    let output = child.expect("runs").stdout;
    let text = String::from_utf8_lossy(&output);
    let mut numbers = text.split_whitespace().map(|n| n.parse().expect("a number"));
    [(); 2].map(|()| numbers.next().expect("two numbers"))
}

fn compare() {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((part(1), part(2)));
    }
    for (at, what) in [(0, "on its thread"), (1, "of the processor, all threads")] {
        let median = |mut numbers: Vec<f64>| {
            numbers.sort_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        };
        let plain = median(rounds.iter().map(|(plain, _)| plain[at]).collect());
        let flight = median(rounds.iter().map(|(_, flight)| flight[at]).collect());
        let ratio = median(rounds.iter().map(|(plain, flight)| flight[at] / plain[at]).collect());
        row(
            &format!("a scope with one u64, {what}"),
            &format!("{flight:.1} ns, into a file {plain:.1} ns: {ratio:.2} ×"),
            "≤ 1.3 ×",
            ratio <= 1.3,
        );
    }
}

/// How many times the packets are as large as the memory in which they are kept.
fn history(what: &str, mut work: impl FnMut(), target: f64) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let recording = start(&dir.path().join("bench.pftrace"), true);
    let began = Instant::now();
    // Until something had to go: then the memory is full.
    while recording.stats().total.discarded == 0 && began.elapsed() < Duration::from_secs(20) {
        work();
        assert!(recording.flush(Duration::from_secs(10)));
    }
    let path = dir.path().join("dump.pftrace");
    let dump = recording.dump(&path, Duration::from_secs(60)).expect("a dump");
    recording.stop();
    let times = dump.bytes as f64 / dump.held as f64;
    let target_text = if target > 0.0 { format!("≥ {target} ×") } else { String::new() };
    row(
        &format!("history per byte of memory: {what}"),
        &format!(
            "{times:.2} × ({:.1} MiB of packets in {:.1} MiB), {:.0} events per KiB",
            dump.bytes as f64 / MIB,
            dump.held as f64 / MIB,
            dump.events as f64 / (dump.held as f64 / 1024.0)
        ),
        &target_text,
        times >= target,
    );
}
