//! A slice that lasts through many flushes lies on its thread, inside of what is around it;
//! one that crosses lies on a track under its thread. On two threads, in ranges of domains.
//!
//! The calls here last a few flushes. `KYMO_CALLS` says how many there are in a row, and
//! `KYMO_CALL_MS` how long each takes.

use harness::alone;
use kymograph::__private::PIPELINE;
use kymograph::{Config, Recording, instant, scope};
use kymograph_protos::Recorder;
use kymograph_protos::record::{Kind, Record, StrId};
use oracle::Trace;
use serde_json::Value;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |n| n.parse().unwrap())
}

fn call_time() -> Duration {
    Duration::from_millis(number("KYMO_CALL_MS", 120))
}

fn config(folder: &Path) -> Config {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    config.set("FLUSH", "10ms").unwrap();
    config
}

/// The id of a text, which has none while another thread is adding one.
fn interned(category: StrId, text: &str) -> StrId {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let id = PIPELINE.intern(category, text.as_bytes());
        if !id.is_none() {
            return id;
        }
        assert!(Instant::now() < deadline, "{text:?} has no id");
        std::thread::yield_now();
    }
}

fn push(domain: &str, name: &str) {
    let site = interned(interned(StrId::NONE, domain), name);
    let head = Record { time: PIPELINE.now(), site, kind: Kind::Push as u8, ..Record::default() };
    assert!(PIPELINE.push(head, &[]));
}

fn pop(domain: &str) {
    let site = interned(StrId::NONE, domain);
    let head = Record { time: PIPELINE.now(), site, kind: Kind::Pop as u8, ..Record::default() };
    assert!(PIPELINE.push(head, &[]));
}

#[test]
fn a_call_that_nests() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(config(folder.path())).unwrap();
    let calls = number("KYMO_CALLS", 3);
    let barrier = Barrier::new(2);
    std::thread::scope(|threads| {
        for busy in [false, true] {
            let (barrier, recording) = (&barrier, &recording);
            threads.spawn(move || {
                for _ in 0..calls {
                    push("one", "outer");
                    push("two", "inner");
                    barrier.wait();
                    let call = scope!("call");
                    let until = Instant::now() + call_time();
                    while busy && Instant::now() < until {
                        instant!("moment");
                        let _part = scope!("part");
                        push("three", "deep");
                        std::thread::sleep(Duration::from_millis(17));
                        pop("three");
                    }
                    // Somebody else may ask for a flush at any moment.
                    assert!(!busy || recording.flush(Duration::from_secs(60)));
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    drop(call);
                    pop("two");
                    pop("one");
                }
            });
        }
    });
    let summary = recording.stop();
    assert_eq!((summary.misnested, summary.unmatched_ends), (0, 0));
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let parents = "SELECT s.name, p.name AS inside FROM slice s
                   LEFT JOIN slice p ON p.id = s.parent_id GROUP BY 1, 2 ORDER BY s.depth, s.name";
    assert_eq!(
        trace.table(parents),
        "name    inside\nouter   NULL\ninner   outer\ncall    inner\nmoment  call\npart    call\n\
         deep    part\n"
    );
    let whole = "SELECT count(*) FROM slice s JOIN thread_track USING (track_id)
                 WHERE s.name = 'call' AND s.dur >= 1000000";
    let whole = whole.replace("USING (track_id)", "t ON t.id = s.track_id");
    assert_eq!(trace.one_i64(&whole), 2 * calls as i64);
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur < 0"), 0);
    assert_eq!(trace.one_i64("SELECT count(DISTINCT track_id) FROM slice"), 2, "no side track");
}

#[test]
fn a_range_that_crosses() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(config(folder.path())).unwrap();
    let thread = std::thread::Builder::new().name("worker".into());
    let work = || {
        push("one", "outer");
        let call = scope!("call");
        push("two", "inner");
        scope!("part").end();
        std::thread::sleep(call_time());
        pop("one");
        std::thread::sleep(call_time());
        pop("two");
        drop(call);
        kymograph_backends::environment::gettid()
    };
    let tid = thread.spawn(work).unwrap().join().unwrap();
    let summary = recording.stop();
    assert_eq!((summary.misnested, summary.unmatched_ends), (0, 0));
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let rows = trace.rows(
        "SELECT s.name, p.name, t.name, u.tid FROM slice s
         JOIN thread_track t ON t.id = s.track_id JOIN thread u USING (utid)
         LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.ts",
    );
    let scopes = format!("worker {tid} · scopes");
    let two = format!("worker {tid} · two");
    let expected = [
        ("outer", Value::Null, Value::Null),
        ("call", Value::Null, scopes.into()),
        ("inner", Value::Null, two.into()),
        ("part", "outer".into(), Value::Null),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (name, inside, track)) in rows.iter().zip(expected) {
        assert_eq!(row, &[name.into(), inside, track, tid.into()]);
    }
}

/// A dump in the middle of a call ends with it; a later one has it once, and whole.
#[test]
fn a_call_in_the_middle_of_which_a_file_ends() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.set("FLIGHT", "60s").unwrap();
    let recording = Recording::start(config).unwrap();
    push("one", "outer");
    push("two", "inner");
    let call = scope!("call");
    let dump = |name: &str| {
        let path = folder.path().join(name);
        Trace::open(recording.dump(path, Duration::from_secs(60)).unwrap().path)
    };
    let parents = "SELECT s.name, p.name AS inside, s.dur < 0 AS open FROM slice s
                   LEFT JOIN slice p ON p.id = s.parent_id ORDER BY s.depth";
    for name in ["1.pftrace", "2.pftrace"] {
        let trace = dump(name);
        trace.assert_clean();
        let expected =
            "name   inside  open\nouter  NULL    1\ninner  outer   1\ncall   inner   1\n";
        assert_eq!(trace.table(parents), expected);
    }
    drop(call);
    pop("two");
    pop("one");
    let trace = dump("3.pftrace");
    trace.assert_clean();
    let expected = "name   inside  open\nouter  NULL    0\ninner  outer   0\ncall   inner   0\n";
    assert_eq!(trace.table(parents), expected);
    assert_eq!(recording.stop().misnested, 0);
}
