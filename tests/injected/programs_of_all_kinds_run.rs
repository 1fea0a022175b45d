//! Programs that are built in unusual ways run under `kymo record` as they do alone: static
//! ones, those of another C library, and those that a sanitizer watches.

use harness::guest;
use std::process::Command;

use guest::{Guest, count};

/// Nothing can be loaded into it, though it tries to load us.
#[test]
fn a_static_program_is_not_recorded() {
    for kind in ["-static", "-static-pie"] {
        let guest = Guest::built("names_in_threads.c", "cc", &[kind, "-Wl,--no-warnings"]);
        let ran = guest.behaves_as_alone(&[]);
        assert_eq!(ran.opened().one_i64("SELECT count(*) FROM slice"), 0, "{kind}");
    }
}

/// A glibc shell that runs a program of musl's. `tests/ordinary_programs` always does this.
#[test]
fn a_child_with_another_c_library_runs() {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        eprintln!("musl-gcc is missing (Debian: apt install musl-tools)");
        return;
    }
    let guest = Guest::built("uses_no_library.c", "musl-gcc", &[]);
    let program = guest.folder().join("program");
    let ran = Guest::command(&["/bin/sh", "-c"]);
    ran.behaves_as_alone(&[&format!("{0}; echo $?; exec {0}", program.display())]);
    guest.behaves_as_alone(&[]);
}

#[test]
fn sanitizers_report_nothing_of_ours() {
    for sanitizer in ["address", "leak", "thread", "undefined"] {
        let flag = format!("-fsanitize={sanitizer}");
        let guest = Guest::built("names_in_threads.c", "cc", &[&flag]);
        let ran = guest.behaves_as_alone(&[]);
        assert_eq!(ran.recorded.status.code(), Some(3), "{sanitizer}");
        assert_eq!(count(&ran.trace(), "main"), 1, "{sanitizer}");
    }
}

/// What they say of the program itself stays.
#[test]
fn sanitizers_report_what_is_wrong_with_the_program() {
    for (sanitizer, word) in [("address", "heap-use-after-free"), ("thread", "data race")] {
        let flag = format!("-fsanitize={sanitizer}");
        let guest = Guest::built("is_wrong.c", "cc", &[&flag, "-Wno-use-after-free"]);
        let ran = guest.behaves_as_alone_but_for_stderr(&[sanitizer]);
        for side in [&ran.alone, &ran.recorded] {
            assert!(side.stderr.contains(word), "{}", side.stderr);
        }
    }
}
