//! Closures that take part in recordings: told once each time, whoever records; what goes
//! wrong in them is in the trace and nowhere else.

use harness::alone;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kymograph::session::take_part;
use kymograph::{Config, Recording, instant};
use oracle::Trace;

#[test]
fn they_are_told_once_each_time_and_may_fail() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let theirs = [counts.clone(), counts.clone()];
    let [on_start, on_stop] = theirs;
    let counted = || counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    let good = take_part(
        "good",
        move || {
            on_start[0].fetch_add(1, Ordering::Relaxed);
            instant!("started");
            Ok(())
        },
        move || {
            on_stop[1].fetch_add(1, Ordering::Relaxed);
            instant!("stopped");
            Ok(())
        },
    );
    let _bad = take_part("bad", || Err("no device".to_owned()), || panic!("a bug of theirs"));
    for round in 1..=2 {
        let recording = Recording::start(Config::to_file(&path)).unwrap();
        recording.stop();
        assert_eq!(counted(), [round, round]);
    }
    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.strings("SELECT name FROM slice ORDER BY ts"), ["started", "stopped"]);
    assert_eq!(
        trace.strings(
            "SELECT str_value FROM metadata WHERE name GLOB '*.child.bad' ORDER BY str_value"
        ),
        ["it could not start: no device", "it could not stop: it panicked"]
    );
    drop(good);
    let recording = Recording::start(Config::to_file(&path)).unwrap();
    recording.stop();
    assert_eq!(counted(), [2, 2]);
}
