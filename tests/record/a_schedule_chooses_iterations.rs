//! A program's own sessions: cycles of waiting, warming up and recording, a trace for each.

use harness::alone;
use std::sync::{Arc, Mutex};

use kymograph::session::Schedule;
use kymograph::{Config, Ready, Recording, Session, scope};
use oracle::Trace;

/// Runs `steps` iterations, and returns the traces.
fn run(schedule: Schedule, steps: u64) -> (tempfile::TempDir, Vec<Ready>) {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::to_file(folder.path().join("t.pftrace"));
    let ready = Arc::new(Mutex::new(Vec::new()));
    let theirs = ready.clone();
    let note = move |trace: &Ready| theirs.lock().unwrap().push(trace.clone());
    let mut session = Session::new(config, schedule, note).unwrap();
    session.add_metadata("trace_id", "4711");
    for _ in 0..steps {
        {
            let _scope = scope!("work");
        }
        session.step().unwrap();
    }
    let traces = session.finish();
    let ready = Arc::try_unwrap(ready)
        .map_or_else(|r| r.lock().unwrap().clone(), |r| r.into_inner().unwrap());
    assert_eq!(ready.len() as u64, traces);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count() as u64, traces);
    (folder, ready)
}

/// The numbers of the iterations in a trace, less that of the session's first; each whole,
/// with its work in it.
#[track_caller]
fn iterations(ready: &Ready, first: u64) -> Vec<u64> {
    let trace = Trace::open(&ready.path);
    trace.assert_clean();
    let steps = "FROM slice WHERE name GLOB 'ProfilerStep#*'";
    let names = trace.strings(&format!("SELECT name {steps} ORDER BY ts"));
    let count = names.len() as i64;
    assert_eq!(trace.one_i64(&format!("SELECT COUNT(*) {steps} AND dur = -1")), 0);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'"), count);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE arg_set_id IS NOT NULL AND EXTRACT_ARG(arg_set_id, 'debug.straddles') IS NOT NULL"), 0);
    let id = "SELECT COUNT(*) FROM metadata WHERE name GLOB '*.trace_id' AND str_value = '4711'";
    assert_eq!(trace.one_i64(id), 1);
    let number = |name: &String| name.strip_prefix("ProfilerStep#").unwrap().parse::<u64>();
    names.iter().map(|name| number(name).unwrap() - first).collect()
}

#[test]
fn cycles_become_traces() {
    alone!();
    let first = kymograph::steps();
    let schedule =
        Schedule { skip_first: 1, wait: 1, warmup: 1, active: 2, repeat: 2, ..Schedule::default() };
    let (folder, ready) = run(schedule, 12);
    let names: Vec<_> = ready.iter().map(|r| r.path.strip_prefix(folder.path()).unwrap()).collect();
    assert_eq!(names, ["t.pftrace", "t.2.pftrace"].map(std::path::Path::new));
    assert_eq!(iterations(&ready[0], first), [3, 4]);
    assert_eq!(iterations(&ready[1], first), [7, 8]);
    assert!(!Recording::is_running());
}

#[test]
fn a_session_may_begin_with_its_first_iteration() {
    alone!();
    let first = kymograph::steps();
    let (_folder, ready) = run(Schedule { active: 2, repeat: 1, ..Schedule::default() }, 5);
    assert_eq!(iterations(&ready[0], first), [0, 1]);
}

#[test]
fn a_session_that_ends_in_a_warm_up_leaves_nothing() {
    alone!();
    let (_folder, ready) = run(Schedule { wait: 1, warmup: 5, ..Schedule::default() }, 3);
    assert_eq!(ready, []);
}
