//! A flight recorder keeps the last packets in memory, and writes them when asked: a clean
//! trace that begins in the middle, with all that was said or begun before.

use harness::alone;
use kymograph::{Category, Config, Counter, Recording, Track, instant, range, scope};
use oracle::Trace;
use std::path::Path;
use std::time::{Duration, Instant};

static TIMEOUT: Duration = Duration::from_secs(120);

static WORK: Category = Category::new("work");
static DEPTH: Counter = Counter::new("depth").category(&WORK);
static STEADY: Counter = Counter::new("steady").category(&WORK);

fn flight(folder: &Path, window: &str, memory: &str) -> Config {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    for (key, value) in
        [("FLIGHT", window), ("FLIGHT_MEMORY", memory), ("FLUSH", "10ms"), ("POLICY", "stall:10s")]
    {
        config.set(key, value).unwrap();
    }
    config
}

/// Numbered scopes with something of everything in them, until `done` says so.
fn work(from: u64, mut done: impl FnMut(u64) -> bool) -> u64 {
    let mut n = from;
    while !done(n) {
        let _outer = scope!(WORK, "step", n = n);
        let _inner = scope!("inner", text = "of some length", half = n as f64 / 2.0);
        instant!(WORK, "moment", n = n);
        DEPTH.set(n);
        n += 1;
    }
    n
}

/// How many segments were let go so far, by the events in them.
fn discarded(recording: &Recording) -> u64 {
    recording.stats().total.discarded
}

#[test]
fn what_began_before_the_dump_is_in_it() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(flight(folder.path(), "1h", "2M")).unwrap();
    let before = Instant::now();
    STEADY.set(42);
    let track = Track::new("requests").rank(3);
    let request = range!(track: &track, WORK, "request", id = 7);
    let request_begun = Instant::now();
    let epoch = scope!(WORK, "epoch", number = 1, why = "it is the first");
    let idle = std::thread::spawn({
        let (begun, wait) = std::sync::mpsc::channel::<()>();
        move || {
            let _scope = scope!("waiting", on = "nothing");
            instant!("about to wait");
            let _ = wait.recv_timeout(Duration::from_millis(1));
            drop(begun);
            work(0, |n| n == 10);
        }
    });
    idle.join().unwrap();
    // Until the memory has been full several times over.
    let mut next = 0;
    let since = Instant::now();
    while discarded(&recording) < 10_000 && since.elapsed() < TIMEOUT {
        next = work(next, |n| n % 10_000 == 9_999) + 1;
    }
    drop(epoch);
    request.end();
    let path = folder.path().join("dump.pftrace");
    let dump = recording.dump(&path, TIMEOUT).unwrap();
    let elapsed = before.elapsed();
    // It goes on.
    work(next + 1, |n| n == next + 100);
    let summary = recording.stop();
    assert!(summary.discarded >= 10_000, "{summary:?}");
    assert_eq!((summary.lost, summary.failure.as_deref()), (0, None));

    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(dump.lost, 0);
    // Which events they are: the last ones, without a gap.
    let last = next as i64;
    let steps = trace.rows(
        "SELECT count(*), max(extract_arg(arg_set_id, 'debug.n')), \
         min(extract_arg(arg_set_id, 'debug.n')) FROM slice WHERE name = 'step'",
    );
    let [count, newest, oldest] = [0, 1, 2].map(|column| steps[0][column].as_i64().unwrap());
    assert!(newest >= last - 2 && count > 1000, "{newest} {last} {count}");
    // One step in ten thousand is not made: the loop's own.
    assert!(newest - oldest + 1 - count <= (newest - oldest) / 9_999 + 1, "{steps:?}");
    // What was begun long before, with its arguments and its real duration.
    let long = trace.rows(
        "SELECT name, dur, extract_arg(arg_set_id, 'debug.number'), \
         extract_arg(arg_set_id, 'debug.why'), extract_arg(arg_set_id, 'debug.id') \
         FROM slice WHERE name IN ('epoch', 'request') ORDER BY name",
    );
    assert_eq!(long.len(), 2, "{long:?}");
    let real = request_begun.elapsed().as_nanos() as i64;
    for row in &long {
        let dur = row[1].as_i64().unwrap();
        assert!(dur > 0 && dur <= real && dur <= elapsed.as_nanos() as i64, "{row:?}");
    }
    assert_eq!(long[0][2], 1);
    assert_eq!(long[0][3], "it is the first");
    assert_eq!(long[1][4], 7);
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL OR dur < 0"), 0);
    // Tracks and counters, also those of which nothing was heard since.
    let names =
        "SELECT name FROM track WHERE name IN ('requests', 'depth', 'steady') ORDER BY name";
    assert_eq!(trace.strings(names), ["depth", "requests", "steady"]);
    let steady = "SELECT CAST(value AS INT) FROM counter JOIN track ON track_id = track.id \
                  WHERE name = 'steady'";
    assert_eq!(trace.one_i64(steady), 42);
    // The steps are children of the epoch.
    let children = "SELECT count(*) FROM slice s JOIN slice p ON s.parent_id = p.id \
                    WHERE s.name = 'step' AND p.name = 'epoch'";
    assert_eq!(trace.one_i64(children), count);
}

#[test]
fn the_window_is_kept_and_not_much_more() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(flight(folder.path(), "500ms", "64M")).unwrap();
    let mut next = 0;
    let since = Instant::now();
    while discarded(&recording) == 0 || since.elapsed() < Duration::from_secs(2) {
        assert!(since.elapsed() < TIMEOUT);
        next = work(next, |n| n % 100 == 99) + 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    let dump = recording.dump(folder.path().join("dump.pftrace"), TIMEOUT).unwrap();
    assert!(dump.covers >= Duration::from_millis(500), "{dump:?}");
    assert!(dump.covers < since.elapsed(), "{dump:?}");
    let summary = recording.stop();
    // At the end, what is left goes into the output.
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let there =
        trace.one_i64("SELECT (SELECT count(*) FROM slice) + (SELECT count(*) FROM counter)");
    // What was said again because it still held comes on top.
    assert!((summary.events..summary.events + 10).contains(&(there as u64)), "{there} {summary:?}");
    Trace::open(folder.path().join("dump.pftrace")).assert_clean();
}

#[test]
fn a_trace_that_nobody_wants_is_not_written() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = flight(folder.path(), "10s", "8M");
    config.set("DUMP_ON", "none").unwrap();
    let recording = Recording::start(config).unwrap();
    work(0, |n| n == 1000);
    let dumps: Vec<_> = (0..3).map(|_| recording.trigger("to see", TIMEOUT).unwrap()).collect();
    let summary = recording.stop();
    assert_eq!(std::fs::metadata(folder.path().join("t.pftrace")).unwrap().len(), 0);
    assert_eq!((summary.events, summary.discarded), (0, 4000));
    for (at, dump) in dumps.iter().enumerate() {
        assert_eq!(dump.path, folder.path().join(format!("t.{}.pftrace", at + 1)));
        assert_eq!((dump.events, dump.why.as_str()), (4000, "to see"));
        let trace = Trace::open(&dump.path);
        trace.assert_clean();
        assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name = 'step'"), 1000);
    }
}

#[test]
fn slices_that_take_too_long_cause_a_dump_each_window() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = flight(folder.path(), "1h", "2M");
    // Longer than a thread may wait for a processor within a slice that is short.
    config.set("DUMP_ON", "frame*>1s,never>1h,stuck>1ms").unwrap();
    let recording = Recording::start(config).unwrap();
    work(0, |n| n == 10);
    let first = folder.path().join("t.1.pftrace");
    drop(scope!("framework"));
    assert!(recording.flush(TIMEOUT) && !first.exists());
    for _ in 0..2 {
        let _frame = scope!("frame 1");
        std::thread::sleep(Duration::from_millis(1100));
    }
    let since = Instant::now();
    // The flush comes after the dump has begun; a dump is finished by the end at the latest.
    while !first.exists() && since.elapsed() < TIMEOUT {
        assert!(recording.flush(TIMEOUT));
    }
    let summary = recording.stop();
    assert_eq!(summary.failure, None);
    let trace = Trace::open(&first);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) > 0 FROM slice WHERE name = 'frame 1'"), 1);
    let why =
        trace.strings("SELECT str_value FROM metadata WHERE name LIKE 'trace_attribute.%dump.why'");
    assert!(why.is_empty() || why[0].starts_with("frame 1 took "), "{why:?}");
    assert!(!folder.path().join("t.2.pftrace").exists(), "one in a window is enough");
}

#[test]
fn what_was_lost_in_its_time_is_said_in_a_dump_and_nothing_else() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = flight(folder.path(), "1h", "4M");
    for (key, value) in [("BUFFER", "128K"), ("POLICY", "drop")] {
        config.set(key, value).unwrap();
    }
    let recording = Recording::start(config).unwrap();
    let since = Instant::now();
    let mut next = 0;
    while recording.stats().total.lost == 0 && since.elapsed() < TIMEOUT {
        next = work(next, |n| n % 20_000 == 19_999) + 1;
        assert!(recording.flush(TIMEOUT));
    }
    let lost = recording.stats().total.lost;
    assert!(lost > 0);
    let dump = recording.dump(folder.path().join("lossy.pftrace"), TIMEOUT).unwrap();
    assert_eq!(dump.lost, lost);
    let trace = Trace::open(&dump.path);
    trace.clean_except(&["traced_buf_trace_writer_packet_loss"]);
    let said = "SELECT value FROM stats WHERE name = 'traced_buf_trace_writer_packet_loss'";
    assert_eq!(trace.one_i64(said) as u64, lost);
    recording.stop();
}

#[test]
fn a_dump_that_cannot_be_written_is_an_error_and_the_next_one_works() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(flight(folder.path(), "1h", "4M")).unwrap();
    work(0, |n| n == 100);
    for bad in [Path::new("/dev/full"), &folder.path().join("none/dump.pftrace")] {
        let error = recording.dump(bad, TIMEOUT).unwrap_err().to_string();
        assert!(error.contains(bad.to_str().unwrap()), "{error}");
    }
    let dump = recording.dump(folder.path().join("dump.pftrace"), TIMEOUT).unwrap();
    assert_eq!(dump.events, 400);
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.write_errors), (400, 0, 2));
    Trace::open(dump.path).assert_clean();
    Trace::open(folder.path().join("t.pftrace")).assert_clean();
}

#[test]
fn a_recording_without_one_says_so() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(Config::to_file(folder.path().join("t.pftrace"))).unwrap();
    let error = recording.dump(folder.path().join("dump.pftrace"), TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("FLIGHT=30s"), "{error}");
}
