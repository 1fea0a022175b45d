//! Whatever is wrong is said in one line that tells what to do, with exit code 2, before
//! the command runs and before an earlier trace is overwritten.

use harness::kymo;
use std::path::Path;

/// Runs `kymo` in `folder`, expects a refusal and returns its line.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = kymo::kymo().args(args).current_dir(folder).output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    assert!(line.starts_with("kymo: "), "{line}");
    line
}

#[test]
fn each_mistake_has_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("folder")).unwrap();
    std::fs::write(folder.join("script.py"), "print(1)").unwrap();
    let touch = ["touch", "ran"];
    let cases: [(&[&str], &str); 19] = [
        (&["record", "--bufer", "1M", "--"], "similar argument exists: '--buffer'"),
        (&["record", "--buffer", "lots", "--"], "BUFFER=lots: expected a size such as 64M"),
        (&["record", "--flush-interval", "5s", "--"], "from 1ms to 1s"),
        (&["record", "--duration", "5", "--"], "expected a duration such as"),
        (&["record", "--policy", "wait", "--"], "stall:5ms"),
        (&["record", "--mode", "999", "--"], "0600"),
        (&["record", "--set", "BUFER=1M", "--"], "did you mean BUFFER?"),
        (&["record", "--set", "BUFFER", "--"], "expected KEY=VALUE"),
        (&["record", "-o", "no/such/t.pftrace", "--"], "create its folder first"),
        (&["record", "-o", "folder", "--"], "is a folder"),
        (&["record", "-o", "/dev/null", "--"], "not a regular file"),
        (&["record", "-o", "script.py", "--"], "is not a trace"),
        (
            &["record", "--rotate", "1M", "--also", "c.pftrace", "--"],
            "--rotate makes several traces",
        ),
        (&["record", "--rotate", "1M", "--to-trace-processor", "--"], "leave one of them out"),
        (
            &["record", "--flight", "1s", "--dump-on", "none", "--also", "c.pftrace", "--"],
            "--dump-on without exit",
        ),
        (&["record", "--wait", "--rotate", "1M", "--"], "cannot be used with"),
        (&["record", "--", "nosuchcommand"], "no command nosuchcommand in PATH"),
        (&["record", "--", "script.py"], "./script.py"),
        (&["record", "--", "./script.py"], "chmod +x"),
    ];
    for (args, expected) in cases {
        let line = refused(folder, &[args, &touch].concat());
        assert!(line.contains(expected), "{args:?}: {line}");
    }
    assert!(refused(folder, &["record"]).contains("COMMAND"));
    assert!(refused(folder, &["rekord", "ls"]).contains("'record'"));
    assert!(!folder.join("ran").exists());
}

#[test]
fn an_earlier_trace_survives_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.pftrace");
    std::fs::write(&trace, b"\x0a\x02hi").unwrap();
    refused(folder.path(), &["record", "nosuchcommand"]);
    refused(folder.path(), &["record", "--mode", "9", "ls"]);
    assert_eq!(std::fs::read(&trace).unwrap(), b"\x0a\x02hi");
}

#[test]
fn a_library_that_is_not_there_or_none_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (library, expected) in
        [("/nonexistent.so", "no such file"), ("/bin/sh", "not a shared library")]
    {
        let mut command = kymo::kymo();
        command.env("KYMOGRAPH_LIBRARY", library).current_dir(folder.path());
        let output = command.args(["record", "ls"]).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap().to_lowercase();
        assert_eq!(output.status.code(), Some(2));
        assert!(line.contains(expected) && line.lines().count() == 1, "{line}");
    }
}

#[test]
fn a_bad_variable_is_said_by_its_name() {
    let mut command = kymo::kymo();
    command.env("KYMOGRAPH_BUFER", "1M");
    let output = command.args(["record", "ls"]).output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        line.contains("KYMOGRAPH_BUFER: no such option; did you mean KYMOGRAPH_BUFFER?"),
        "{line}"
    );
}
