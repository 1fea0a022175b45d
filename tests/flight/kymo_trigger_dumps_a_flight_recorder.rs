//! `kymo trigger --dump`: from another terminal, a flight recorder writes what it holds; a
//! process without one says what to do.

use harness::kymo::Guarded;
use harness::{kymo, native};
use oracle::Trace;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// A `kymo` whose processes meet in `folder`.
fn kymo_in(folder: &Path) -> Command {
    let mut command = kymo::kymo();
    command.env("KYMOGRAPH_SOCKETS", folder.join("sockets"));
    command
}

fn record(folder: &Path, options: &[&str]) -> Guarded {
    let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder);
    let mut command = kymo_in(folder);
    command.arg("record").args(options).arg("-o").arg(folder.join("t.pftrace")).arg("--");
    command.arg(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Guarded::start(&mut command)
}

fn trigger(folder: &Path) -> (bool, String, String) {
    let output = kymo_in(folder).args(["trigger", "--dump"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_path_is_printed_and_the_program_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut recorded = record(folder, &["--flight", "1h", "--memory", "4M"]);
    let mut answers = BufReader::new(recorded.stdout.take().unwrap());
    for number in 1..=2 {
        writeln!(recorded.stdin.as_mut().unwrap(), "1000").unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
        let (good, path, said) = trigger(folder);
        assert!(good && said.contains(&format!("{number}000 events")), "{said}");
        assert_eq!(Path::new(path.trim()), folder.join(format!("t.{number}.pftrace")));
        let trace = Trace::open(path.trim());
        trace.assert_clean();
        let steps = "SELECT count(*) FROM slice WHERE name = 'step'";
        assert_eq!(trace.one_i64(steps), number * 1000);
    }
    drop(recorded.stdin.take());
    let output = recorded.wait_with_output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("dump 2: 1 process, 2,000 events"), "{said}");
}

#[test]
fn a_recording_that_keeps_nothing_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = record(folder.path(), &[]);
    let mut answers = BufReader::new(recorded.stdout.take().unwrap());
    writeln!(recorded.stdin.as_mut().unwrap(), "10").unwrap();
    answers.read_line(&mut String::new()).unwrap();
    let (good, path, said) = trigger(folder.path());
    assert!(!good && path.is_empty(), "{path}");
    assert!(said.contains("no flight recorder") && said.contains("FLIGHT=30s"), "{said}");
    drop(recorded.stdin.take());
    assert!(recorded.wait_with_output().status.success());
}
