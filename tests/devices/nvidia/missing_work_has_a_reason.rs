//! A user who gets a trace without kernels is told why, and what to do, when `kymo record`
//! ends; the trace says the same.

use harness::nvidia;
use nvidia::Machine;
use nvidia::{kymo_record, record};

/// What `kymo record` says about programs with this script: as many as `times`, one after
/// the other.
fn said(machine: &Machine, script: &str, times: usize) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kymo_record(machine, &folder.path().join("t.pftrace"));
    command.args(["--", "sh", "-c", r#"n=$1; shift; for i in $(seq "$n"); do "$@"; done"#, "sh"]);
    command.arg(times.to_string()).arg(machine.program()).arg(machine.script(script));
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn no_cupti() {
    let machine = Machine::with_driver_only("12.6");
    let why = "no libcupti.so.13, .12 or .11.8 found; set KYMOGRAPH_CUPTI_PATH";
    let said = said(&machine, "kernel k\n", 1);
    assert!(said.contains(&format!("kymo: CUDA is not recorded: {why}")), "{said}");
    let recorded = record(&machine, "kernel k\n", &[]);
    assert!(recorded.cuda("not_recorded").unwrap().starts_with(why));
    let notes = "SELECT name FROM slice WHERE dur = 0";
    let note = &recorded.trace.strings(notes)[0];
    assert!(note.starts_with(&format!("CUDA is not recorded: {why}")), "{note}");
    recorded.trace.assert_clean();
}

#[test]
fn several_processes_say_it_once() {
    let machine = Machine::with("12.6").fault("error:cuptiSubscribe=39");
    let said = said(&machine, "kernel k\n", 3);
    let line = "kymo: CUDA is not recorded: another tool uses CUPTI in this process, which \
                serves one tool; record without it (3 processes)\n";
    assert!(said.contains(line), "{said}");
}

#[test]
fn nothing_at_all() {
    let said = said(&Machine::without_driver("12.6"), "", 1);
    let hint = "nothing was recorded: no process used CUDA or PyTorch";
    assert!(said.contains(hint) && !said.contains("CUDA is not recorded"), "{said}");
    assert!(said.contains("PyTorch needs no annotations"), "{said}");
}

#[test]
fn a_recording_that_works_says_nothing_of_it() {
    let said = said(&Machine::with("12.6"), "kernel k\nsync\n", 1);
    assert!(!said.contains("not recorded"), "{said}");
}
