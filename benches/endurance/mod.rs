//! Dumps at random moments of a long recording: each clean, each with everything that was
//! recorded in the window before it was asked for; and memory that does not grow.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kymograph::{Config, Dump, Recording, scope};
use oracle::Trace;

use crate::{MIB, measure, row};

/// The number that was recorded last.
static LAST: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

/// What had been recorded, and by when: a note for each batch of the last minute.
static NOTES: Mutex<VecDeque<(Instant, u64)>> = Mutex::new(VecDeque::new());
const NOTED: usize = 60_000;

/// What a dump must hold.
struct Wanted {
    /// What was recorded in the window before it was asked for: all from the first to the
    /// last of these. Whether the recorder was kept from running does not matter then.
    first: u64,
    last: u64,
    /// How long after it was asked for it was written.
    took: Duration,
    dump: Dump,
}

/// The number of the first slice that was recorded after `time`.
fn first_after(time: Instant) -> u64 {
    let notes = NOTES.lock().expect("nobody panics");
    // Of the batch that ended then some may have been recorded before.
    notes.iter().find(|(done, _)| *done > time).map_or(u64::MAX, |(_, last)| last + 1)
}

pub(crate) fn run(time: Duration, rate: u64) {
    let count = measure::option("dumps", 100u64);
    let window = measure::option("window", "1s".to_owned());
    let memory = measure::option("memory", "32M".to_owned());
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut config = Config::to_file(dir.path().join("t.pftrace"));
    for (key, value) in [("FLIGHT", &*window), ("FLIGHT_MEMORY", &*memory), ("DUMP_ON", "none")] {
        config.set(key, value).expect("an option");
    }
    // A machine that is busy with other things may keep the writer waiting for seconds.
    config.buffer = measure::option("buffer", 64u64) << 20;
    let (least, bound) = (config.flight.unwrap_or_default(), config.flight_memory);
    let buffer = config.buffer;
    let before = resident();
    let recording = Recording::start(config).expect("no other recording");
    let recorder = std::thread::spawn(move || steadily(rate));
    let (began, mut dumps, mut most) = (Instant::now(), Vec::new(), 0.0f64);
    let mut random = 88_172_645_463_325_252u64;
    for number in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // Once in each of `count` equal parts, at a random moment of it.
        let part = time.as_secs_f64() / count as f64;
        let at = part * (number as f64 + (random % 1000) as f64 / 1000.0);
        let due = Duration::from_secs_f64(at).max(least * 2);
        while began.elapsed() < due {
            std::thread::sleep(Duration::from_millis(20).min(due - began.elapsed().min(due)));
            most = most.max(resident() - before);
        }
        let (last, asked) = (LAST.load(Ordering::Acquire), Instant::now());
        let begin = asked.checked_sub(least).expect("the machine runs for longer");
        let first = first_after(begin);
        let path = dir.path().join(format!("{number}.pftrace"));
        let dump = recording.dump(path, Duration::from_secs(60)).expect("a dump");
        most = most.max(resident() - before);
        dumps.push(Wanted { first, last, took: asked.elapsed(), dump });
    }
    while began.elapsed() < time {
        std::thread::sleep(Duration::from_millis(20));
        most = most.max(resident() - before);
    }
    STOP.store(true, Ordering::Relaxed);
    let made = recorder.join().expect("records");
    let elapsed = began.elapsed();
    let summary = recording.stop();
    println!(
        "\n### The flight recorder, for long\n\n| what | measured | target | |\n|---|---|---|---|"
    );
    let each = made as f64 / elapsed.as_secs_f64() / 1e6;
    row(
        &format!("{:.0} s at {each:.2} million scopes per second", elapsed.as_secs_f64()),
        &format!("{made} scopes, {} lost", summary.lost),
        "0 lost",
        summary.lost == 0 && summary.failure.is_none(),
    );
    // Names, stacks and the program's own noise come on top.
    let bounds = (bound + buffer) as f64 / MIB + 8.0;
    row(
        &format!("resident memory over that before, FLIGHT_MEMORY={memory}"),
        &format!("{most:.1} MiB at most"),
        &format!("≤ {bounds:.0} MiB, with BUFFER"),
        most <= bounds,
    );
    check(dumps, least);
}

fn check(dumps: Vec<Wanted>, least: Duration) {
    let count = dumps.len();
    let (mut good, mut slices, mut short) = (0, 0, 0);
    let mut longest = Duration::ZERO;
    for Wanted { first, last, took, dump } in dumps {
        let trace = Trace::open(&dump.path);
        // A dump that lost something is not clean, and says so; it counts as bad.
        if dump.lost == 0 {
            trace.assert_clean();
        }
        let n = "extract_arg(arg_set_id, 'debug.n')";
        let rows = trace
            .rows(&format!("SELECT min({n}), max({n}), count(*) FROM slice WHERE name = 'burst'"));
        let [oldest, newest, there] =
            [0, 1, 2].map(|column| rows[0][column].as_u64().unwrap_or_default());
        let gapless = there == newest - oldest + 1 && dump.lost == 0;
        let whole = gapless && oldest <= first && newest >= last;
        if !whole {
            eprintln!("{oldest}..={newest}, {there}, not {first}..={last}: {dump:?}");
        }
        good += usize::from(whole);
        short += usize::from(!dump.missing.is_zero());
        slices += there;
        longest = longest.max(took);
        let _ = std::fs::remove_file(&dump.path);
    }
    row(
        &format!("dumps at random moments that are clean and hold the last {least:?}"),
        &format!("{good} of {count}, {slices} slices, none missing"),
        "all",
        good == count,
    );
    row("dumps for which memory did not suffice", &short.to_string(), "none", short == 0);
    row(
        "the longest that a dump took",
        &format!("{:.0} ms", longest.as_secs_f64() * 1e3),
        "",
        true,
    );
}

/// Numbered scopes at a steady rate, in batches every millisecond. Returns how many.
fn steadily(rate: u64) -> u64 {
    let start = Instant::now();
    let mut done = 0;
    while !STOP.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        // Catches up slowly: a burst would measure something else.
        let due = due.min(done + rate / 100);
        while done < due {
            let _scope = scope!("burst", n = done);
            done += 1;
        }
        LAST.store(done.saturating_sub(1), Ordering::Release);
        let mut notes = NOTES.lock().expect("nobody panics");
        notes.push_back((Instant::now(), done.saturating_sub(1)));
        if notes.len() > NOTED {
            notes.pop_front();
        }
        drop(notes);
        std::thread::sleep(Duration::from_millis(1));
    }
    done
}

/// MiB of this process in memory.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|n| n.parse().ok());
    kib.unwrap_or(0.0f64) / 1024.0
}
