//! When threads record faster than their buffer allows, whole events are lost and every
//! one of them is counted: in the summary and, in three ways, in the trace.

use harness::alone;
use kymograph::__private::PIPELINE;
use kymograph::{Config, Recording, instant, scope};
use kymograph_protos::Recorder;
use oracle::Trace;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Barrier;

const THREADS: u64 = 4;
const STEPS: u64 = 8000;

fn tiny(folder: &Path, policy: &str) -> Config {
    let mut config = Config::to_file(folder.join("t.pftrace"));
    for (key, value) in [("BUFFER", "128K"), ("POLICY", policy), ("CLOCK", "boottime")] {
        config.set(key, value).unwrap();
    }
    config
}

/// A scope's number, and between which times it was open.
type Log = Vec<(u64, u64, u64)>;

/// Attempts `4 * STEPS` events; three in four are scopes.
fn work(thread: u64) -> Log {
    let mut log = Vec::new();
    for step in 0..STEPS {
        let n = (thread << 32) + step * 4;
        let before = PIPELINE.now();
        {
            let _outer = scope!("outer", n = n);
            let inside = PIPELINE.now();
            {
                let _inner = scope!("inner", n = n + 1, text = "of some length");
                instant!("moment", n = n + 2);
            }
            log.push((n + 1, inside, PIPELINE.now()));
            drop(scope!("leaf", n = n + 3));
            log.push((n + 3, inside, PIPELINE.now()));
        }
        log.push((n, before, PIPELINE.now()));
    }
    log
}

fn lossy(policy: &str) {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(tiny(folder.path(), policy)).unwrap();
    let threads: Vec<_> = (0..THREADS).map(|t| std::thread::spawn(move || work(t))).collect();
    let logs: Vec<Log> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let summary = recording.stop();
    assert_eq!(summary.events + summary.lost, THREADS * STEPS * 4, "{summary:?}");
    assert!(summary.lost > 0, "nothing was lost: {summary:?}");
    assert_eq!((summary.misnested, summary.unmatched_ends, summary.clamped), (0, 0, 0));

    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.clean_except(&["traced_buf_trace_writer_packet_loss", "traced_buf_sequence_packet_loss"]);
    let lost = summary.lost as i64;
    assert_eq!(
        trace.one_i64("SELECT value FROM stats WHERE name = 'traced_buf_trace_writer_packet_loss'"),
        lost
    );
    assert_eq!(
        trace.one_i64("SELECT sum(cast(name AS INT)) FROM slice WHERE name GLOB '* records lost'"),
        lost
    );
    let metadata = trace
        .rows("SELECT int_value FROM metadata WHERE name GLOB 'trace_attribute.kymograph.*.lost'");
    assert_eq!(metadata, [[lost]]);
    let present = trace.rows(
        "SELECT extract_arg(arg_set_id, 'debug.n'), ts, dur, name FROM slice
         WHERE name NOT GLOB '* records lost'",
    );
    assert_eq!(present.len() as u64, summary.events);
    // Those that are there are whole: they lie between the times that their thread saw.
    let mut log: HashMap<u64, (u64, u64)> =
        logs.into_iter().flatten().map(|(n, from, to)| (n, (from, to))).collect();
    for row in present.iter().filter(|row| row[3] != "moment") {
        let (n, ts, dur) = (row[0].as_u64().unwrap(), row[1].as_u64().unwrap(), &row[2]);
        let (from, to) = log.remove(&n).expect("is there once");
        let end = ts + dur.as_u64().expect("has ended");
        assert!(from <= ts && end <= to, "{n}: {ts}..{end} is not within {from}..{to}");
    }
}

#[test]
fn when_events_are_dropped() {
    alone!();
    lossy("drop");
}

#[test]
fn when_threads_wait_a_little() {
    alone!();
    lossy("stall:50us");
}

#[test]
fn when_threads_wait_long_enough_nothing_is_lost() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(tiny(folder.path(), "stall:20s")).unwrap();
    let threads: Vec<_> = (0..THREADS).map(|t| std::thread::spawn(move || work(t))).collect();
    threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost), (THREADS * STEPS * 4, 0), "{summary:?}");
    Trace::open(folder.path().join("t.pftrace")).assert_clean();
}

/// More threads at once than there is room for.
#[test]
fn when_there_are_too_many_threads() {
    alone!();
    const MANY: usize = 1100;
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(tiny(folder.path(), "drop")).unwrap();
    let all_there = Barrier::new(MANY);
    std::thread::scope(|threads| {
        for n in 0..MANY {
            let all_there = &all_there;
            let thread = std::thread::Builder::new().stack_size(128 << 10);
            let live = move || {
                instant!("arrives", n = n);
                all_there.wait();
                drop(scope!("stays", n = n));
            };
            thread.spawn_scoped(threads, live).unwrap();
        }
    });
    let summary = recording.stop();
    assert_eq!(summary.events + summary.lost, 2 * MANY as u64, "{summary:?}");
    let trace = Trace::open(folder.path().join("t.pftrace"));
    assert_eq!(
        trace.one_i64("SELECT value FROM stats WHERE name = 'traced_buf_trace_writer_packet_loss'")
            as u64,
        summary.lost
    );
    // And the next recording begins at zero.
    let recording = Recording::start(Config::to_file(folder.path().join("next.pftrace"))).unwrap();
    drop(scope!("next"));
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost), (1, 0), "{summary:?}");
    Trace::open(folder.path().join("next.pftrace")).assert_clean();
}
