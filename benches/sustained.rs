//! Whether the writer keeps up, and what memory that takes: into a real file, with default
//! settings. See `docs/BENCHMARKS.md`.
//!
//! `cargo bench --bench sustained [-- --seconds N --rate SCOPES_PER_SECOND]`

mod measure;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymograph::{Config, Recording, Summary};
use measure::burst::{due, row, scopes};

const THREADS: u64 = 2;
const BURST: u64 = 100_000;
const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let seconds = measure::option("seconds", 5u64);
    let rate = measure::option("rate", 2_000_000u64);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("bench.pftrace");
    match measure::option("part", 0) {
        1 => burst(&path, 1, Duration::ZERO),
        2 => burst(&path, 20, Duration::from_millis(20)),
        3 => burst(&path, 20, Duration::ZERO),
        4 => sustained(&path, seconds, rate),
        _ => {
            println!("\n### Keeping up\n\n| what | measured | target | |\n|---|---|---|---|");
            (1..=4).for_each(part);
        }
    }
}

/// Runs a part in a process of its own, whose memory nobody has touched yet.
fn part(part: u32) {
    let this = std::env::current_exe().expect("the path of this program");
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let child =
        std::process::Command::new(this).args(args).args(["--part", &part.to_string()]).status();
    assert!(child.is_ok_and(|status| status.success()), "part {part} failed");
}

/// Records into this file, with default settings.
fn start(path: &Path) -> Recording {
    let mut config = Config::default();
    config.output = path.to_owned();
    Recording::start(config).expect("a file, and no other recording")
}

fn burst(path: &Path, bursts: u32, pause: Duration) {
    let recording = start(path);
    let mut time = Duration::ZERO;
    for _ in 0..bursts {
        time += scopes(BURST);
        std::thread::sleep(pause);
    }
    let summary = recording.stop();
    let all = u64::from(bursts) * BURST;
    let nanos = time.as_nanos() as f64 / all as f64;
    let what = match (bursts, pause.is_zero()) {
        (1, _) => "a burst of 100,000 scopes on one thread".to_owned(),
        (n, true) => format!("{n} bursts without a pause"),
        (n, false) => format!("{n} bursts, {} ms apart", pause.as_millis()),
    };
    let lost = summary.lost;
    assert_eq!(summary.events + lost, all);
    row(&what, &format!("{lost} lost, {nanos:.1} ns per scope"), "0 lost", lost == 0);
}

fn sustained(path: &Path, seconds: u64, rate: u64) {
    let before = resident();
    let recording = start(path);
    let stop = AtomicBool::new(false);
    let (summary, stopping, ran, resident) = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| steadily(rate / THREADS, &stop));
        }
        let start = Instant::now();
        let mut resident_each_second = Vec::new();
        for second in 1..=seconds {
            let until = Duration::from_secs(second);
            std::thread::sleep(until.saturating_sub(start.elapsed()));
            resident_each_second.push(resident());
        }
        // While the threads go on: that is how a program's recording is stopped.
        let ran = start.elapsed();
        let stopping = Instant::now();
        let summary = recording.stop();
        let stopping = stopping.elapsed();
        stop.store(true, Ordering::Relaxed);
        (summary, stopping, ran, resident_each_second)
    });
    report(&summary, stopping, ran, before, &resident, rate);
    let length = std::fs::metadata(path).map_or(0, |file| file.len());
    let each = length as f64 / summary.events as f64;
    let written = format!("{:.1} MiB, {each:.1} bytes per scope", length as f64 / MIB);
    row("the file", &written, "≤ 38 bytes", each <= 38.0);
}

/// Scopes at a steady rate, in batches every millisecond.
fn steadily(rate: u64, stop: &AtomicBool) {
    let start = Instant::now();
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        (done, _) = due(start, rate, done);
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn report(
    summary: &Summary,
    stopping: Duration,
    ran: Duration,
    before: f64,
    resident: &[f64],
    rate: u64,
) {
    let seconds = ran.as_secs();
    let reached = (summary.events + summary.lost) as f64 / ran.as_secs_f64() / 1e6;
    row(
        &format!(
            "{THREADS} threads, {:.1} million scopes per second, {seconds} s",
            rate as f64 / 1e6
        ),
        &format!(
            "{} scopes, {reached:.2} million per second, {} lost",
            summary.events, summary.lost
        ),
        "0 lost",
        summary.lost == 0 && reached > 0.95 * rate as f64 / 1e6,
    );
    let most = resident.iter().copied().fold(0.0, f64::max);
    let growth = most - before;
    row(
        "resident memory over that before the recording",
        &format!("{growth:.1} MiB at most"),
        "≤ 64 MiB",
        growth <= 64.0,
    );
    let (first, last) = (resident.first().unwrap_or(&0.0), resident.last().unwrap_or(&0.0));
    let each: Vec<_> = resident.iter().map(|r| format!("{:.1}", r - before)).collect();
    row(
        "from the first second to the last",
        &format!("{:+.1} MiB ({})", last - first, thinned(&each)),
        "flat: ≤ 4 MiB",
        last - first <= 4.0,
    );
    let millis = stopping.as_secs_f64() * 1e3;
    row("stop, while the threads go on", &format!("{millis:.1} ms"), "≤ 20 ms", millis <= 20.0);
}

/// At most ten of them.
fn thinned(all: &[String]) -> String {
    let step = all.len().div_ceil(10).max(1);
    all.iter().step_by(step).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Resident memory of this process, in MiB (proc_pid_statm(5)).
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    // SAFETY: takes and returns numbers.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64 / MIB
}
