//! A process that becomes another program leaves what its flight recorder holds, as one that
//! ends does; a forked child does the same. An attempt that fails costs nothing.

use harness::{kymo, native};
use oracle::Trace;
use std::path::Path;

/// The names of the slices in a trace, with how many there are.
fn slices(path: &Path) -> Vec<String> {
    let trace = Trace::open(path);
    trace.assert_clean();
    trace.strings("SELECT name || ' ' || count(*) FROM slice GROUP BY name ORDER BY name")
}

fn record(folder: &Path, options: &[&str], args: &[&str]) {
    let program = native::compile("cc", "-std=c11", "tests/data/c/exec.c", folder);
    let mut command = kymo::kymo();
    command.args(["record", "--flight", "1h", "--memory", "16M", "-o"]);
    let output = command
        .arg(folder.join("t.pftrace"))
        .args(options)
        .arg("--")
        .arg(program)
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_was_before_is_in_the_trace() {
    for args in [&[][..], &["fork"]] {
        let folder = tempfile::tempdir().unwrap();
        record(folder.path(), &[], args);
        let slices = slices(&folder.path().join("t.pftrace"));
        assert_eq!(slices, ["after 100", "before 100"]);
        assert!(!folder.path().join("t.1.pftrace").exists(), "nothing has crashed");
    }
}

#[test]
fn who_wants_nothing_at_the_end_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &["--dump-on", "none"], &[]);
    assert!(!folder.path().join("t.1.pftrace").exists());
}
