//! `kymo record --delay`: the trace begins some time after the command.

use harness::{kymo, native};
use oracle::Trace;
use std::path::Path;

const STEPS: &str = "SELECT count(*) FROM slice WHERE name = 'step'";

/// Records a shell's line, in which `$APP` records as many steps as it is told.
fn record(folder: &Path, delay: &str, line: &str) -> (Trace, String) {
    let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder);
    let path = folder.join("t.pftrace");
    let mut command = kymo::kymo();
    command.args(["record", "--delay", delay, "-o"]).arg(&path).args(["sh", "-c", line]);
    let output = command.env("APP", program).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let trace = Trace::open(&path);
    trace.assert_clean();
    (trace, said)
}

#[test]
fn nothing_of_a_command_that_ends_before() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, said) = record(folder.path(), "1h", "echo 10 | $APP");
    assert_eq!(trace.one_i64(STEPS), 0);
    assert!(said.contains("ended before --delay was over"), "{said}");
}

#[test]
fn all_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let line = "echo 10 | $APP; sleep 0.3; echo 100 | $APP";
    let (trace, said) = record(folder.path(), "300ms", line);
    // The first ten are in it if they took so long to begin.
    let steps = trace.one_i64(STEPS);
    assert!((100..=110).contains(&steps), "{steps}: {said}");
    assert!(!said.contains("--delay"), "{said}");
}
