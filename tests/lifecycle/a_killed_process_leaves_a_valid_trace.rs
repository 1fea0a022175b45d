//! SIGKILL at any moment: the file opens, and what is in it is right up to the cut.
//!
//! A few kills here; `tests/kill_a_thousand` does them all and prints the figures.

use harness::child;
use harness::kymo::Guarded;
use kymograph::{Config, Counter, Recording, Scope, instant, range, scope};
use oracle::Trace;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Kills where the environment does not say how many.
const KILLS: u32 = 24;

static COUNT: Counter = Counter::new("count");

/// A numbered scope, and what belongs to it.
fn step(thread: u64, n: u64) {
    let _step = scope!("step", thread = thread, n = n);
    for _ in 0..5 {
        let _part = scope!("part", text = "the same text again");
        instant!("moment");
    }
    drop(Scope::named(&kymograph::APP, &format!("name {}", n % 5000)));
    COUNT.set(n);
    let _range = range!("range");
    std::thread::sleep(Duration::from_micros(50));
}

/// Records until it is killed: numbered scopes on two threads, at some 100,000 a second.
fn run(output: &str) -> ! {
    let mut config = Config::to_file(child::folder().join(output));
    config.set("FLUSH", "20ms").unwrap();
    std::mem::forget(Recording::start(config).unwrap());
    let work = |thread: u64, first: u64| -> ! {
        let mut n = first;
        loop {
            step(thread, n);
            n += 1;
        }
    };
    // Of threads that come to a call site for the first time at once, one may do without the
    // names of its arguments.
    step(0, 0);
    std::thread::spawn(move || -> () { work(1, 0) });
    println!("running");
    work(0, 1)
}

/// What `gzip -dc` or `zstd -dc` would give of a file that may end anywhere, and whether
/// it ends where it should.
fn unpack(path: &Path) -> (Vec<u8>, bool) {
    let file = std::fs::read(path).unwrap();
    let mut content = Vec::new();
    let whole = match path.extension().unwrap().to_str().unwrap() {
        // Killed before the first packets were written.
        _ if file.is_empty() => true,
        "gz" => {
            let mut decoder = flate2::bufread::GzDecoder::new(&file[..]);
            let read = decoder.read_to_end(&mut content);
            read.is_ok() && decoder.into_inner().is_empty()
        }
        "zst" => zstd::stream::copy_decode(&file[..], &mut content).is_ok(),
        _ => {
            content = file;
            true
        }
    };
    (content, whole)
}

struct Figures {
    events: i64,
    /// From the last event in the file to the kill, in milliseconds.
    missing: f64,
    whole: bool,
}

/// Starts a process, kills it after `micros`, and looks at what it left.
fn kill(output: &str, micros: u64) -> Figures {
    let folder = tempfile::tempdir().unwrap();
    let mut command = child::command(
        module_path!(),
        "a_killed_process_leaves_a_valid_trace",
        output,
        folder.path(),
    );
    let mut process = Guarded::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut seen = Vec::new();
    while !seen.ends_with(b"running\n") {
        let mut byte = [0];
        process.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    std::thread::sleep(Duration::from_micros(micros));
    let killed = boottime();
    process.kill().unwrap();
    process.wait().unwrap();

    let path = folder.path().join(output);
    let (content, whole) = unpack(&path);
    let plain = folder.path().join("plain.pftrace");
    std::fs::write(&plain, content).unwrap();
    // As the user would open it, unless he has to unpack it first.
    let trace = Trace::open(if whole { &path } else { &plain });
    trace.assert_clean();
    // Of each thread everything up to a moment is there: numbers without a gap.
    let gaps = trace.rows(
        "SELECT thread, max(n) + 1 - count(*), count(*) - count(DISTINCT n), sum(dur = -1) FROM (
           SELECT extract_arg(arg_set_id, 'debug.thread') AS thread,
                  extract_arg(arg_set_id, 'debug.n') AS n, dur
           FROM slice WHERE name = 'step') GROUP BY thread",
    );
    for row in gaps {
        assert_eq!((row[1].as_i64(), row[2].as_i64()), (Some(0), Some(0)), "{output}: {row:?}");
        assert!(row[3].as_i64().unwrap() <= 1, "{output}: {row:?}");
    }
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL"), 0);
    // A step has five parts with a moment each, unless it is where the file ends.
    let torn = "SELECT count(*) FROM (SELECT s.id FROM slice s JOIN slice p ON p.parent_id = s.id
                WHERE s.name = 'step' AND s.dur >= 0 AND p.name = 'part' GROUP BY s.id HAVING count(*) != 5)";
    assert_eq!(trace.one_i64(torn), 0);
    let events = trace.one_i64("SELECT count(*) FROM slice");
    let last = match events {
        0 => killed,
        _ => trace.one_i64("SELECT max(ts) FROM slice"),
    };
    Figures { events, missing: (killed - last) as f64 / 1e6, whole }
}

fn boottime() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[test]
fn a_killed_process_leaves_a_valid_trace() {
    if let Some(output) = child::part() {
        run(&output);
    }
    let kills = std::env::var("KYMO_KILLS").map_or(KILLS, |n| n.parse().unwrap());
    let mut seed = 1u64;
    for output in ["t.pftrace", "t.pftrace.gz", "t.pftrace.zst"] {
        // Half of them plain.
        let share = if output == "t.pftrace" { kills / 2 } else { kills / 4 };
        let figures: Vec<Figures> = (0..share)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
                kill(output, (seed >> 33) % 150_000)
            })
            .collect();
        let events: i64 = figures.iter().map(|f| f.events).sum();
        let mut missing: Vec<f64> = figures.iter().map(|f| f.missing).collect();
        missing.sort_by(f64::total_cmp);
        let unpacked = figures.iter().filter(|f| !f.whole).count();
        println!(
            "{output}: {share} killed, all open clean; {events} events; missing before the kill: \
             median {:.1} ms, most {:.1} ms; killed within a write: {unpacked}",
            missing[missing.len() / 2],
            missing[missing.len() - 1],
        );
        assert!(output != "t.pftrace" || unpacked == 0);
    }
}
