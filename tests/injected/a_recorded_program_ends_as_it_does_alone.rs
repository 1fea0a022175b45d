//! As in `injected/a_recorded_program_behaves_as_it_does_alone.rs`: what needs queues in memory that
//! outlives the process, so that nothing is to be done, and nobody waited for, at its end.

use harness::kymo::Guarded;
use harness::{guest, kymo, native};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use guest::{Guest, count};
use oracle::Trace;

#[test]
fn it_ends_without_a_word() {
    let guest = Guest::compiled("ends.c");
    for way in ["quick_exit", "execle", "abort", "SIGKILL", "SIGTERM", "SIGSEGV"] {
        let trace = guest.behaves_as_alone(&[way]).trace();
        assert_eq!(count(&trace, "before the end"), 100, "{way}");
    }
}

#[test]
fn it_makes_children_that_nobody_hears_of() {
    let guest = Guest::compiled("children.c");
    let trace = guest.behaves_as_alone(&["vfork"]).trace();
    assert_eq!(count(&trace, "after"), 1000);
    for way in ["_Fork", "clone"] {
        for end in ["exit", "_exit"] {
            let trace = guest.behaves_as_alone(&[way, end]).opened();
            assert_eq!(count(&trace, "after"), 1000, "{way} {end}");
            // Recorded or counted.
            let all = count(&trace, "in the child") + guest::lost(&trace);
            assert_eq!(all, 1000, "{way} {end}");
        }
    }
}

#[test]
fn it_forks_while_its_threads_record() {
    let trace = Guest::compiled("forks_often.c").behaves_as_alone(&["60", "threads"]).opened();
    assert_eq!((count(&trace, "child"), count(&trace, "parent")), (60, 1));
}

#[test]
fn it_leaves_main_by_pthread_exit() {
    let trace = Guest::compiled("leaves_main_by_pthread_exit.c").behaves_as_alone(&[]).trace();
    assert_eq!((count(&trace, "main"), count(&trace, "after main")), (1, 1));
}

#[test]
fn it_filters_its_system_calls() {
    let guest = Guest::compiled("filters_system_calls.c");
    for action in ["refuse", "kill"] {
        for whose in ["thread", "process"] {
            let trace = guest.behaves_as_alone(&[action, whose, "after"]).trace();
            let found = (count(&trace, "before the filter"), count(&trace, "behind the filter"));
            assert_eq!(found, (1, 100), "{action} {whose}");
        }
    }
}

#[test]
fn it_runs_out_of_memory() {
    let guest = Guest::compiled("runs_out_of_memory.c");
    for when in ["before", "after"] {
        for names in ["same", "unique"] {
            let trace = guest.behaves_as_alone(&[when, names]).opened();
            let start = i64::from(when == "after") * 2;
            let names = if names == "same" { "same" } else { "with memory" };
            let found = count(&trace, "start");
            assert_eq!(found, start, "{when} {names}");
            if when == "after" {
                let all = trace.one_i64("SELECT count(*) FROM slice WHERE category = 'nvtx'");
                assert_eq!(all + guest::lost(&trace), 4102, "{when} {names}");
            }
        }
    }
}

#[test]
fn it_becomes_a_daemon() {
    let trace = Guest::compiled("becomes_a_daemon.c").behaves_as_alone(&[]).trace();
    assert_eq!(count(&trace, "before"), 100);
}

#[test]
fn it_records_in_destructors_to_the_end() {
    let trace = Guest::compiled("records_in_destructors.cc").behaves_as_alone(&[]).trace();
    assert_eq!((count(&trace, "atexit"), count(&trace, "static destructor")), (1, 1));
}

#[test]
fn it_is_python() {
    let trace = Guest::python("missing_command.py").behaves_as_alone(&[]).trace();
    assert_eq!(count(&trace, "after"), 200);
    Guest::python("forks.py").behaves_as_alone(&[]).trace();
    Guest::python("leaves_its_user_namespace.py").behaves_as_alone(&[]).trace();
}

/// The child of the vfork must not end what its parent is asked for.
#[test]
fn it_is_asked_for_a_trace_after_a_missing_command() {
    let guest = Guest::python("waits_for_requests.py");
    let mut command = kymo::kymo();
    command.args(["record", "--wait", "--"]).args(guest.words());
    let mut program = Guarded::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut pid = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut pid).unwrap();
    let output = guest.folder().join("t.pftrace");
    let mut trigger = kymo::kymo();
    trigger.args(["trigger", "--pid", pid.trim(), "--duration", "200ms", "-o"]).arg(&output);
    let asked = trigger.output().unwrap();
    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert!(count(&Trace::open(output), "loop") > 0);
}

#[test]
fn an_embedder_forks_between_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let program =
        native::compile("cc", "-std=gnu11", "tests/data/programs/embeds.c", folder.path());
    let output = native::run(&program, &folder.path().join("t.pftrace"));
    let said = String::from_utf8(output.stdout).unwrap();
    let rounds = "stopped: 1\nchild: exit 6\n".repeat(2);
    assert_eq!(said, rounds + "again: 200\n");
}
