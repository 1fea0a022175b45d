//! `kymo record --flight`: each process keeps its own packets, and a dump has those of all
//! of them; so has what is written at the end.

use harness::{kymo, native};
use oracle::Trace;
use std::path::Path;

const STEPS: &str = "SELECT p.pid, count(*) AS steps FROM slice s \
                     JOIN thread_track k ON k.id = s.track_id JOIN thread t USING (utid) \
                     JOIN process p USING (upid) WHERE s.name = 'step' GROUP BY p.pid";

fn record(folder: &Path, options: &[&str]) -> String {
    let program = native::compile("cc", "-std=c11", "tests/data/c/flight.c", folder);
    let output = kymo::kymo()
        .args(["record", "--flight", "1h", "--memory", "16M", "-o"])
        .arg(folder.join("t.pftrace"))
        .args(options)
        .arg("--")
        .arg(program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// The steps of each process, sorted.
fn steps(trace: &Trace) -> Vec<i64> {
    trace.assert_clean();
    let rows = trace.rows(STEPS);
    let mut steps: Vec<i64> = rows.iter().map(|row| row[1].as_i64().unwrap()).collect();
    steps.sort_unstable();
    steps
}

#[test]
fn by_call_by_abort_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let said = record(folder.path(), &["--dump-on", "exit,abort"]);
    // Asked for by the parent. The children may have gone on meanwhile.
    let asked = Trace::open(folder.path().join("t.1.pftrace"));
    assert_eq!(steps(&asked), [1000, 1000, 1000], "{said}");
    assert_eq!(
        asked.strings("SELECT name FROM slice WHERE name != 'step' ORDER BY name"),
        ["child", "child", "parent"]
    );
    // When the child aborted.
    let aborted = Trace::open(folder.path().join("t.2.pftrace"));
    assert_eq!(steps(&aborted), [1000, 2000, 2000], "{said}");
    // What the others had at their ends.
    let ended = Trace::open(folder.path().join("t.pftrace"));
    assert_eq!(steps(&ended), [1000, 2000]);
    assert_eq!(ended.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert!(said.contains("dump 1: 3 processes, 3,003 events, 0 lost"), "{said}");
    assert!(said.contains("dump 2: 3 processes, 5,003 events, 0 lost"), "{said}");
    assert!(said.contains("3 processes, 3 threads, 3,002 events, 0 lost"), "{said}");
}

#[test]
fn nothing_at_the_end_if_nobody_wants_it() {
    let folder = tempfile::tempdir().unwrap();
    let said = record(folder.path(), &["--dump-on", "none"]);
    assert!(!folder.path().join("t.pftrace").exists());
    assert!(!folder.path().join("t.2.pftrace").exists());
    assert_eq!(steps(&Trace::open(folder.path().join("t.1.pftrace"))), [1000, 1000, 1000]);
    assert!(said.contains("dump 1: "), "{said}");
}
