//! `SIGNAL`: a signal asks for a trace, unless the program handles it itself.

use harness::control;
use std::path::Path;
use std::time::Instant;

use control::{Place, Program, TIMEOUT};
use oracle::Trace;

fn start(place: &Place, args: &[&str]) -> Program {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/control/signals.py");
    let mut command = place.kymo(&["record", "--wait", "--set", "SIGNAL=USR2", "--"]);
    command.arg(oracle::venv_python()).arg(script).args(args);
    command.env("KYMOGRAPH_DURATION", "100ms").env("KYMOGRAPH_OUTPUT", place.path("t.pftrace"));
    Program::start(command)
}

fn send(program: &Program) {
    // SAFETY: no pointers; a process of this test that nobody has waited for.
    assert_eq!(unsafe { libc::kill(program.pid as libc::pid_t, libc::SIGUSR2) }, 0);
}

/// Waits for the trace with this number.
fn trace(place: &Place, program: &Program, number: u32) -> Trace {
    let path = place.path(&format!("t.{number}.pftrace"));
    let deadline = Instant::now() + TIMEOUT;
    while !path.exists() {
        assert!(Instant::now() < deadline, "no {}", path.display());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    place.wait_for(program.pid, "waiting");
    control::open(&path)
}

#[test]
fn each_signal_gets_a_trace() {
    let place = Place::new();
    let program = start(&place, &[]);
    let deadline = Instant::now() + TIMEOUT;
    let (mut number, mut with_work) = (0, 0);
    // On a busy machine the program need not have run while it was recorded.
    while with_work < 2 {
        assert!(Instant::now() < deadline, "{with_work} of {number} have work");
        number += 1;
        send(&program);
        let trace = trace(&place, &program, number);
        let work = trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'");
        with_work += u32::from(work > 0);
    }
    assert!(program.end());
}

#[test]
fn a_handler_of_the_program_stays() {
    let place = Place::new();
    let program = start(&place, &["before"]);
    send(&program);
    place.run(&["trigger", "--duration", "10ms", "-o", "asked.pftrace"]).trace();
    let said = program.end_and_hear("handled");
    assert_eq!(said, 1);
    assert!(!place.path("t.1.pftrace").exists());
}
