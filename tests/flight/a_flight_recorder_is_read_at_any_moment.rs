//! Dumps at random moments, while threads record: each is clean, begins where it must and
//! ends with what was recorded just before it was asked for; and memory stays bounded.
//! `benches/flight.rs` does the same for ten minutes.

use harness::alone;
use kymograph::{Config, Dump, Recording, scope};
use oracle::Trace;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const DUMPS: u64 = 6;
static TIMEOUT: Duration = Duration::from_secs(120);

/// The number that a thread has recorded last, and a time just before that, in nanoseconds of
/// `CLOCK_BOOTTIME`.
type Last = (u64, u64);

static LAST: [Mutex<Last>; THREADS] = [const { Mutex::new((0, 0)) }; THREADS];
static STOP: AtomicBool = AtomicBool::new(false);

/// Steps of three slices, with a number; a pause now and then.
fn work(thread: usize) {
    kymograph::set_thread_name(&format!("worker {thread}"));
    let _life = scope!("life", thread = thread);
    let mut n = 0;
    while !STOP.load(Ordering::Relaxed) {
        n += 1;
        let before = kymograph::clock::system(libc::CLOCK_BOOTTIME);
        {
            let _outer = scope!("step", n = n);
            let _inner = scope!("part", text = "the same for all");
            drop(scope!("leaf", n = n));
        }
        *LAST[thread].lock().unwrap() = (n, before);
        if n % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn last() -> [Last; THREADS] {
    LAST.each_ref().map(|last| *last.lock().unwrap())
}

fn check(before: [Last; THREADS], dump: &Dump) {
    let trace = Trace::open(&dump.path);
    trace.assert_clean();
    let began = "SELECT int_value FROM metadata WHERE name GLOB '*kymograph.[0-9]*.flight.began'";
    let began = trace.one_i64(began) as u64;
    for (thread, (before, time)) in before.into_iter().enumerate() {
        let of = format!(
            "FROM slice s JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) \
             WHERE t.name = 'worker {thread}'"
        );
        let n = "extract_arg(s.arg_set_id, 'debug.n')";
        let rows = trace.rows(&format!(
            "SELECT coalesce(min({n}), 0), coalesce(max({n}), 0), count(*), count(DISTINCT {n}) \
             {of} AND s.name = 'step'"
        ));
        let [oldest, newest, count, distinct] =
            [0, 1, 2, 3].map(|column| rows[0][column].as_u64().unwrap());
        // Of a thread that has not run for so long, there need not be any.
        let missing = newest < before && time >= began;
        assert!(!missing, "what was recorded before is missing: {newest} < {before}");
        let all = if newest == 0 { 0 } else { newest - oldest + 1 };
        assert_eq!((count, distinct), (all, all), "numbers are missing");
        let lives = trace.one_i64(&format!("SELECT count(*) {of} AND s.name = 'life'"));
        assert_eq!(lives, 1, "it began long before the dump");
        let inside = format!("SELECT count(*) {of} AND s.name = 'step' AND s.depth != 1");
        assert_eq!(trace.one_i64(&inside), 0);
    }
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IS NULL"), 0);
}

#[test]
fn each_dump_is_a_trace_of_its_own() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    // The threads wait for the writer, however slow that is: what has not been read when a dump
    // is asked for takes its time, and a share of the memory.
    let options = [
        ("FLIGHT", "300ms"),
        ("FLIGHT_MEMORY", "32M"),
        ("BUFFER", "2M"),
        ("POLICY", "stall:60s"),
        ("FLUSH", "20ms"),
    ];
    for (key, value) in options {
        config.set(key, value).unwrap();
    }
    let recording = Recording::start(config).unwrap();
    let mut dumps = Vec::new();
    let mut random = 88_172_645_463_325_252u64;
    std::thread::scope(|scope| {
        let stop = StopThem;
        (0..THREADS).for_each(|thread| {
            scope.spawn(move || work(thread));
        });
        let since = Instant::now();
        let has_run = |(number, _): Last| number > 0;
        while recording.stats().total.discarded == 0 || !last().into_iter().all(has_run) {
            assert!(since.elapsed() < TIMEOUT);
            std::thread::sleep(Duration::from_millis(10));
        }
        for number in 0..DUMPS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            std::thread::sleep(Duration::from_millis(random % 200));
            let last = last();
            let path = folder.path().join(format!("{number}.pftrace"));
            let dump = recording.dump(path, TIMEOUT).unwrap();
            // An engine that is seconds late fills the memory, and says what is missing.
            assert!(dump.covers + dump.missing >= Duration::from_millis(300), "{dump:?}");
            assert!(dump.held < 32 << 20, "{dump:?}");
            dumps.push((last, dump));
        }
        drop(stop);
    });
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.failure), (0, None));
    dumps.into_iter().for_each(|(last, dump)| check(last, &dump));
}

/// Ends the threads also when the test fails.
struct StopThem;

impl Drop for StopThem {
    fn drop(&mut self) {
        STOP.store(true, Ordering::Relaxed);
    }
}
