//! Programs that do unusual things print the same, end the same and take as long under
//! `kymo record` as alone, and what they recorded is in the trace.

use harness::{guest, install};

use guest::{Guest, count, lost};

#[test]
fn it_ends_by_return_and_by_exit() {
    let guest = Guest::compiled("ends.c");
    for way in ["return", "_exit", "execv without an environment"] {
        let trace = guest.behaves_as_alone(&[way]).trace();
        assert_eq!(count(&trace, "before the end"), 100, "{way}");
    }
}

#[test]
fn it_is_killed() {
    let guest = Guest::compiled("ends.c");
    for way in ["quick_exit", "execle", "abort", "SIGKILL", "SIGTERM", "SIGSEGV"] {
        guest.behaves_as_alone(&[way]).trace();
    }
}

#[test]
fn it_makes_children() {
    let guest = Guest::compiled("children.c");
    for way in ["posix_spawn", "fork"] {
        let trace = guest.behaves_as_alone(&[way, "exit"]).trace();
        assert_eq!(count(&trace, "after"), 1000, "{way}");
        let expected = if way == "fork" { 1000 } else { 0 };
        assert_eq!(count(&trace, "in the child"), expected, "{way}");
    }
    let trace = guest.behaves_as_alone(&["fork", "_exit"]).trace();
    assert_eq!((count(&trace, "after"), count(&trace, "in the child")), (1000, 1000));
}

#[test]
fn it_forks_often() {
    let guest = Guest::compiled("forks_often.c");
    for arguments in [&["60", "quiet"][..], &["60", "marks"], &["60", "marks", "at once"]] {
        let trace = guest.behaves_as_alone(arguments).trace();
        assert_eq!(count(&trace, "child"), 60, "{arguments:?}");
    }
}

#[test]
fn it_closes_all_descriptors() {
    let guest = Guest::compiled("closes_all_descriptors.c");
    for way in ["close", "closefrom"] {
        guest.behaves_as_alone(&[way]);
    }
}

#[test]
fn it_records_nothing_before_its_filter() {
    let guest = Guest::compiled("filters_system_calls.c");
    for action in ["refuse", "kill"] {
        for of in ["thread", "process"] {
            guest.behaves_as_alone(&[action, of]);
        }
    }
}

#[test]
fn it_annotates_when_it_can_open_no_file() {
    let guest = Guest::compiled("annotates_late.c");
    for way in ["descriptors", "root"] {
        let trace = guest.behaves_as_alone(&[way]).trace();
        for name in ["late", "late in the child"] {
            assert_eq!(count(&trace, name), 100, "{way}");
        }
    }
    let filters = Guest::compiled("filters_system_calls.c");
    let trace = filters.behaves_as_alone(&["refuse", "thread"]).opened();
    assert_eq!(count(&trace, "behind the filter"), 100);
}

#[test]
fn its_children_have_a_pid_namespace() {
    let guest = Guest::compiled("leaves_its_pid_namespace.c");
    let recorded = guest.behaves_as_alone(&[]);
    if recorded.alone.status.code() == Some(7) {
        return eprintln!("skipped: {}", recorded.alone.stdout);
    }
    let trace = recorded.trace();
    for (name, expected) in [("outside", 100), ("first", 200), ("second", 200)] {
        assert_eq!(count(&trace, name), expected, "{name}");
    }
    // Whoever has these numbers outside is none of ours, and is not waited for.
    let of_others = trace.one_i64("SELECT count(*) FROM process WHERE pid IN (1, 2)");
    assert_eq!(of_others, 0);
    let folder = tempfile::tempdir().unwrap();
    let ran = Guest::compiled("leaves_its_pid_namespace.c")
        .option("--wait-all")
        .run_recorded(&[], folder.path());
    assert!(ran.status.success(), "{ran:?}");
}

#[test]
fn it_records_in_destructors() {
    let guest = Guest::compiled("records_in_destructors.cc");
    let trace = guest.behaves_as_alone(&[]).trace();
    for (name, expected) in [("body", 400), ("thread-local destructor", 400)] {
        assert_eq!(count(&trace, name), expected, "{name}");
    }
}

#[test]
fn it_loads_and_unloads_the_library() {
    let trace = Guest::compiled("loads_the_tool_itself.c").behaves_as_alone(&[]).trace();
    assert_eq!(count(&trace, "after"), 100);
}

#[test]
fn it_ends_in_a_signal_handler() {
    let guest = Guest::compiled("ends_in_a_signal_handler.c");
    let interrupted = ["malloc", "names", "printf"];
    let ends = ["_exit", "exec", "abort"];
    let all = interrupted.iter().flat_map(|what| ends.map(|end| (*what, end)));
    for run in 0..runs() {
        for (i, (what, end)) in all.clone().enumerate() {
            let milliseconds = (20 + (7 * i + run) % 37).to_string();
            let ran = guest.behaves_as_alone(&[&milliseconds, what, end]);
            // Each of the first run once, as this may be done hundreds of times.
            if run == 0 && i % 4 == 0 {
                ran.trace();
            }
        }
    }
}

/// `tests/soak` says more.
fn runs() -> usize {
    let given = std::env::var("KYMO_SIGNAL_RUNS").ok();
    given.map_or(1, |runs| runs.parse().unwrap())
}

#[test]
fn its_constructors_become_other_programs_before_ours_ran() {
    let guest = Guest::linked("uses_a_library.c", "constructor_starts_programs.c");
    let script = guest.folder().join("script-without-interpreter");
    install::write(&script, "echo \"$0: $1\"\n");
    let ran = guest.behaves_as_alone(&[]);
    assert!(!ran.recorded.stderr.contains("not implemented"), "{}", ran.recorded.stderr);
    let ran = Guest::linked("uses_a_library.c", "becomes_itself_in_a_constructor.c");
    assert_eq!(ran.behaves_as_alone(&[]).recorded.stdout, "main again\n");
}

#[test]
fn its_threads_are_cancelled_after_their_first_events() {
    let guest = Guest::compiled("is_cancelled.c");
    for arguments in [&[][..], &["main first"]] {
        let ran = guest.behaves_as_alone(arguments);
        assert!(!ran.alone.stdout.contains("within"), "{}", ran.alone.stdout);
        assert_eq!(count(&ran.trace(), "still here"), 20);
    }
}

/// The smallest on which NVTX itself records anything.
#[test]
fn its_first_event_is_on_a_small_stack() {
    let guest = Guest::compiled("records_on_a_small_stack.c");
    for arguments in [
        &["thread", "32768"][..],
        &["thread", "16384", "after"],
        &["forked", "32768"],
        &["forked", "16384", "after"],
        &["handler", "32768"],
        &["handler", "16384", "after"],
    ] {
        let trace = guest.behaves_as_alone(arguments).opened();
        if arguments[0] == "handler" {
            assert!(count(&trace, "in the handler") > 0, "{arguments:?}");
        } else {
            assert_eq!(count(&trace, "range"), 100, "{arguments:?}");
            assert_eq!(count(&trace, "with a payload"), 2, "{arguments:?}");
        }
    }
}

/// What is recorded and what is counted is all that there was.
#[test]
fn it_nests_deeply_after_a_loss() {
    let guest = Guest::compiled("nests_after_a_loss.c").option("--buffer=64K");
    for (depth, refused) in [("63", "1"), ("64", "200"), ("300", "1")] {
        let ran = guest.behaves_as_alone(&[depth, refused]);
        let events: i64 = ran.recorded.stdout.split(' ').next().unwrap().parse().unwrap();
        let trace = ran.opened();
        let slices = trace.one_i64("SELECT count(*) FROM slice WHERE category = 'nvtx'");
        let lost = lost(&trace);
        assert!(lost > 0, "{depth} {refused}: nothing was lost, which tests nothing");
        assert_eq!(slices + lost, events, "{depth} {refused}");
        assert!(count(&trace, "inside") > 0, "{depth} {refused}: it ended with the loss");
    }
}

/// Writes of the process that writes the trace fail or are short; the program is none of that.
#[test]
fn its_trace_cannot_be_written() {
    for (name, value) in [("REFUSE_WRITES_AFTER", "2"), ("SHORTEN_WRITES", "1")] {
        let preload = tempfile::tempdir().unwrap();
        let library = preload.path().join("librefuses.so");
        guest::compile("cc", "refuses_writes.c", &library, &["-shared", "-fPIC"]);
        let guest = Guest::compiled("records_many.c");
        let folder = tempfile::tempdir().unwrap();
        let mut command = guest.recorded(&["20000"], folder.path());
        command.env("LD_PRELOAD", &library).env(name, value);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert_eq!(output.stdout, b"20000 ranges\n", "{name}");
    }
}

#[test]
fn it_jumps_out_of_calls() {
    let trace = Guest::compiled("jumps_out_of_calls.c").behaves_as_alone(&[]).opened();
    assert_eq!(count(&trace, "after the jumps"), 1000);
}
