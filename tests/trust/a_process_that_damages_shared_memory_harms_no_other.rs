//! A process of a recording cuts short, or fills with anything, all files of the recording
//! that it can reach, of itself, of `kymo` and of the others: everybody goes on, and what the
//! others record is in the trace.

use guest::Guest;
use harness::guest;

/// Runs the program with these options; the output is `t.pftrace`, or its first part.
fn check(options: &[&str], output: &str) {
    let mut program = Guest::compiled("damages_what_it_can_reach.c");
    for option in options {
        program = program.option(option);
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = program.run_recorded(&[], folder.path());
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    let trace = oracle::Trace::open(folder.path().join(output));
    trace.assert_clean();
    assert_eq!(guest::count(&trace, "of another"), 2000, "{ran:?}");
    assert_eq!(guest::count(&trace, "of the one"), 20, "{ran:?}");
}

#[test]
fn while_it_is_recorded() {
    check(&[], "t.pftrace");
}

#[test]
fn while_it_is_sent_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let also = folder.path().join("also.pftrace");
    check(&["--also", also.to_str().unwrap()], "t.pftrace");
}

#[test]
fn while_it_is_in_a_flight_recorder() {
    check(&["--flight", "1h"], "t.pftrace");
}

#[test]
fn while_parts_are_written() {
    check(&["--rotate", "1h"], "t.1.pftrace");
}
