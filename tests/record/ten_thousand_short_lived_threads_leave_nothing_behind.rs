//! Threads that come, record a little and go: all of it is in the trace, under their
//! names, and memory does not grow with their number.

use harness::{alone, child};
use kymograph::{Config, Recording, instant, scope, set_thread_name};
use oracle::Trace;
use std::collections::BTreeMap;
use std::time::Duration;

const THREADS: u64 = 10_000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns its kernel id and the name it should have in the trace.
fn live(n: u64) -> (i64, String) {
    {
        let _scope = scope!("life", n = n);
        instant!("moment", n = n);
    }
    let mut name = format!("short {n}");
    // Some call themselves something else before they go.
    if n.is_multiple_of(10) {
        name = format!("a longer name than the system keeps {n}");
        set_thread_name(&name);
    }
    (kymograph_backends::environment::gettid().into(), name)
}

#[test]
fn ten_thousand_short_lived_threads_leave_nothing_behind() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(Config::to_file(folder.path().join("t.pftrace"))).unwrap();
    let mut lived = BTreeMap::new();
    let mut early = 0;
    for first in (0..THREADS).step_by(8) {
        let threads: Vec<_> = (first..first + 8)
            .map(|n| {
                let thread = std::thread::Builder::new().name(format!("short {n}"));
                thread.spawn(move || live(n)).unwrap()
            })
            .collect();
        for thread in threads {
            let (tid, name) = thread.join().unwrap();
            assert!(lived.insert(tid, name).is_none(), "the kernel's ids went round");
        }
        // What ended threads have recorded stays where it is until it is read.
        if first % 512 == 0 {
            assert!(recording.flush(TIMEOUT));
        }
        if first == THREADS / 5 {
            early = child::resident_kb();
        }
    }
    let late = child::resident_kb();
    let summary = recording.stop();
    assert_eq!((summary.events, summary.threads), (2 * THREADS, THREADS), "{summary:?}");
    assert_eq!((summary.lost, summary.clamped, summary.unmatched_ends), (0, 0, 0), "{summary:?}");
    println!("resident after {} threads: {early} kB, after {THREADS}: {late} kB", THREADS / 5);
    assert!(late < early + 8 * 1024, "grew from {early} to {late} kB");

    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let threads = trace.rows(
        "SELECT tid, thread.name, count(*), sum(dur = -1), count(DISTINCT extract_arg(s.arg_set_id, 'debug.n'))
         FROM slice s JOIN thread_track t ON t.id = track_id JOIN thread USING (utid) GROUP BY utid",
    );
    assert_eq!(threads.len() as u64, THREADS);
    for row in threads {
        let name = lived.remove(&row[0].as_i64().unwrap()).expect("lived once");
        assert_eq!(row[1..], [name.into(), 2.into(), 0.into(), serde_json::Value::from(1)]);
    }
}
