//! Whatever a trace, a file, a command line or another process has in its text: `kymo` prints
//! nothing that a terminal obeys.

use control::Place;
use harness::{control, kymo};
use std::process::Output;

/// Clears the screen, sets the window's title, writes from right to left, begins a line.
const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}b\r\u{8}\u{7f}c\u{2028}\nkymo: d";

#[track_caller]
fn check(output: &Output, expected: &str) {
    let obeyed = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2028}'..='\u{2029}')
    };
    for text in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(text).unwrap();
        assert!(!text.contains(obeyed), "{text:?}");
        assert!(!text.contains("\nkymo: d"), "a line of its own: {text:?}");
    }
    let both = [&output.stdout[..], &output.stderr].concat();
    let both = String::from_utf8(both).unwrap();
    assert!(both.contains(expected), "{both:?}");
}

/// Process, thread, category, slice, metadata: all that `kymo info` shows, and what it warns of.
#[test]
fn of_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    let name = serde_json::Value::from(HOSTILE);
    let trace = serde_json::json!({
        HOSTILE: HOSTILE,
        "deviceProperties": [{"id": 0, "name": name}],
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": {"name": name}},
            {"ph": "M", "name": "process_labels", "pid": 1, "args": {"labels": name}},
            {"ph": "X", "name": name, "cat": name, "pid": 1, "tid": 1, "ts": 1, "dur": 2},
            {"ph": name, "name": name, "pid": 1, "tid": 1, "ts": 1},
            {"ph": "X", "name": "k", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 2,
             "args": {"device": 0, "stream": 7}},
        ],
    });
    std::fs::write(&path, trace.to_string()).unwrap();
    check(&kymo::kymo().arg("info").arg(&path).output().unwrap(), "a?[2J");
    let made = folder.path().join("t.pftrace");
    let output = kymo::kymo().arg("convert").arg(&path).arg(&made).output().unwrap();
    check(&output, "");
    check(&kymo::kymo().arg("info").arg(&made).output().unwrap(), "a?[2J");
}

#[test]
fn of_a_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["record", "--", HOSTILE][..],
        &["record", "--category", HOSTILE, "-o", "t.pftrace", "--", "true"],
        &["record", "--set", HOSTILE, "--", "true"],
        &["record", "-o", HOSTILE, "--", "true"],
        &["info", HOSTILE],
        &["open", "--no-browser", "--port", "0", "--timeout", "1ms", HOSTILE],
        &["trigger", "--duration", HOSTILE],
        &[HOSTILE],
    ] {
        let output = kymo::kymo().args(args).current_dir(folder.path()).output().unwrap();
        check(&output, "");
    }
    let place = Place::new();
    let program = place.start(&[HOSTILE]);
    check(&place.kymo(&["ps"]).output().unwrap(), "a?[2J");
    check(&place.kymo(&["status"]).output().unwrap(), "a?[2J");
    assert!(program.end());
}
