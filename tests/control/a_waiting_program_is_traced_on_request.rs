//! `kymo record --wait` on a Python program, and `kymo trigger` from elsewhere: by time, by
//! iterations, more than once, at the wrong moment, and called off.

use control::{Place, TIMEOUT, fact, open};
use harness::control;
use harness::kymo::Guarded;
use oracle::Trace;
use std::time::Instant;

const MS: i64 = 1_000_000;
/// A start that several share, so far ahead that each hears of it and has its sources on in
/// time, also on a busy machine.
const AHEAD: [&str; 4] = ["--at", "+5s", "--warmup", "3s"];

/// The window that the trace says it has, in nanoseconds, and that all of it lies in it: what
/// began before it opened was still going on then, and says so.
#[track_caller]
fn window(trace: &Trace) -> (i64, i64) {
    let (opened, closed) = (fact(trace, "window.opened"), fact(trace, "window.closed"));
    let outside = format!(
        "SELECT COUNT(*) FROM slice WHERE ts >= {closed} OR ts < {opened} AND NOT (
            COALESCE(EXTRACT_ARG(arg_set_id, 'debug.straddles'), '') = 'start'
            AND (dur = -1 OR ts + dur >= {opened}))"
    );
    assert_eq!(trace.one_i64(&outside), 0);
    (opened, closed)
}

/// The numbers of the iterations in the trace, by time.
fn steps(trace: &Trace) -> Vec<i64> {
    let names =
        trace.strings("SELECT name FROM slice WHERE name GLOB 'ProfilerStep#*' ORDER BY ts");
    names.iter().map(|name| name.strip_prefix("ProfilerStep#").unwrap().parse().unwrap()).collect()
}

/// Asks for so many milliseconds. How much the program did in them.
#[track_caller]
fn work_within(place: &Place, name: &str, duration: i64) -> i64 {
    let output = place.path(name);
    let output = output.to_str().unwrap();
    let trace =
        place.run(&["trigger", "--duration", &format!("{duration}ms"), "-o", output]).trace();
    let (opened, closed) = window(&trace);
    assert!((closed - opened - duration * MS).abs() < MS, "{}", closed - opened);
    // The program may have been busy with one when it was over.
    assert!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE dur = -1") <= 1);
    assert_eq!(steps(&trace), [0i64; 0]);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(output).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'")
}

#[test]
fn by_time_and_again() {
    let place = Place::new();
    let program = place.start(&[]);
    let listed = place.run(&["ps"]);
    let row = listed.out.lines().nth(1).unwrap_or_else(|| panic!("{listed:?}"));
    assert!(row.contains(&program.pid.to_string()) && row.contains("waiting"), "{row}");
    assert!(row.ends_with("steps.py"), "{row}");
    for command in ["ps", "status"] {
        let listed = place.run(&[command, "--json"]);
        let rows: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
        let row = rows.as_array().unwrap().iter().find(|row| row["pid"] == program.pid).unwrap();
        assert_eq!((&row["state"], &row["answers"]), (&"waiting".into(), &true.into()), "{row}");
    }

    for (name, duration) in [("first", 200), ("second", 300)] {
        // A program that is not let run for as long does nothing in the window.
        let deadline = Instant::now() + TIMEOUT;
        while work_within(&place, name, duration) == 0 {
            assert!(Instant::now() < deadline, "no work in any window");
        }
    }
    assert!(program.end());
    assert_eq!(std::fs::read_dir(place.sockets()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn by_ranges_of_any_name() {
    let place = Place::new();
    for program in [&["busy"][..], &["steps"]] {
        let program = place.start(program);
        for count in [1, 5] {
            let text = count.to_string();
            let asked = ["trigger", "--iterations", &text, "--iteration-of", "wor*"];
            let trace = place.run(&[&asked[..], &["-o", "t.pftrace"]].concat()).trace();
            let ranges = "SELECT COUNT(*) FROM slice WHERE name = 'work' AND dur >= 0";
            assert_eq!(trace.one_i64(ranges), count);
            let unfinished = "SELECT COUNT(*) FROM slice WHERE dur = -1
                              AND name NOT GLOB 'ProfilerStep#*'";
            assert_eq!(trace.one_i64(unfinished), 0);
            let cut = "SELECT COUNT(*) FROM slice WHERE name = 'work'
                       AND EXTRACT_ARG(arg_set_id, 'debug.straddles') IS NOT NULL";
            assert_eq!(trace.one_i64(cut), 0);
        }
        assert!(program.end());
    }
}

#[test]
fn by_iterations_and_again() {
    let place = Place::new();
    let program = place.start(&["steps"]);
    for count in [1, 7] {
        let count_text = count.to_string();
        let trace = place.run(&["trigger", "--iterations", &count_text, "-o", "t.pftrace"]).trace();
        let (opened, closed) = window(&trace);
        let steps = steps(&trace);
        assert_eq!(steps.len(), count, "{steps:?}");
        assert!(steps.windows(2).all(|two| two[0] + 1 == two[1]), "{steps:?}");
        // One piece of work in each, and the window is where the iterations are.
        let works = "SELECT COUNT(*) FROM slice WHERE name = 'work'";
        assert_eq!(trace.one_i64(works), count as i64);
        let of_steps = "FROM slice WHERE name GLOB 'ProfilerStep#*'";
        let first = trace.one_i64(&format!("SELECT MIN(ts) {of_steps}"));
        let last = trace.one_i64(&format!("SELECT MAX(ts + dur) {of_steps}"));
        assert!(first >= opened && last <= closed, "{opened} {first} {last} {closed}");
        assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE dur = -1"), 0);
    }
    assert!(program.end());
}

#[test]
fn by_iterations_of_a_training_that_says_nothing() {
    for args in [&[][..], &["profiler"]] {
        let place = Place::new();
        let program = place.start_script("train.py", args);
        let trace = place.run(&["trigger", "--iterations", "3", "-o", "t.pftrace"]).trace();
        window(&trace);
        let steps = steps(&trace);
        assert_eq!(steps.len(), 3, "{steps:?}");
        let operators = "SELECT COUNT(*) FROM slice WHERE name = 'aten::add'";
        assert_eq!(trace.one_i64(operators), 3, "one in each iteration");
        assert!(program.end());
    }
}

#[test]
fn a_program_without_iterations_is_asked_for_time_instead() {
    let place = Place::new();
    let program = place.start(&[]);
    let refused = place.run(&["trigger", "--iterations", "5"]);
    assert!(!refused.good && refused.err.contains("never called step()"), "{refused:?}");
    let both = ["trigger", "--iterations", "5", "--duration", "100ms"];
    let trace = place.run(&both).trace();
    let (opened, closed) = window(&trace);
    assert!((closed - opened - 100 * MS).abs() < MS);
    assert!(program.end());
}

#[test]
fn one_at_a_time_and_the_other_is_told_why() {
    let place = Place::new();
    let program = place.start(&["steps"]);
    let mut first = place.kymo(&["trigger", "--duration", "1h", "-o", "first.pftrace"]);
    let first = Guarded::start(first.stdout(std::process::Stdio::piped()));
    place.wait_for(program.pid, "recording");
    let status = place.run(&["status"]);
    assert!(status.out.contains(" s of 3600.0 s"), "{status:?}");
    let second = place.run(&["trigger", "--duration", "1ms", "-o", "second.pftrace"]);
    assert!(!second.good && second.err.contains("the process is busy"), "{second:?}");
    assert!(!place.path("second.pftrace").exists());

    let stopped = place.run(&["stop"]);
    stopped.trace();
    let first = control::Said::from(first.wait_with_output());
    assert_eq!(first.paths(), [place.path("first.pftrace")]);
    let again = place.run(&["trigger", "--duration", "10ms", "-o", "third.pftrace"]);
    again.trace();
    assert!(program.end());
}

#[test]
fn a_pending_request_keeps_others_out_until_it_is_cancelled() {
    let place = Place::new();
    let program = place.start(&[]);
    let mut first = place.kymo(&["trigger", "--duration", "1s", "--at", "+1h", "-o", "t.pftrace"]);
    let first = Guarded::start(first.stderr(std::process::Stdio::piped()));
    place.wait_for(program.pid, "starts later");
    let second = place.run(&["trigger", "--duration", "1ms"]);
    assert!(!second.good && second.err.contains("another request is pending"), "{second:?}");
    let cancelled = place.run(&["stop", "--discard"]);
    assert!(cancelled.err.contains("cancelled"), "{cancelled:?}");
    let first = control::Said::from(first.wait_with_output());
    assert!(!first.good && first.err.contains("cancelled"), "{first:?}");
    place.run(&["trigger", "--duration", "10ms"]).trace();
    assert!(program.end());
}

#[test]
fn what_is_cancelled_leaves_no_file() {
    let place = Place::new();
    let program = place.start(&[]);
    for state in ["recording", "warming up"] {
        let warmup = if state == "warming up" { "1h" } else { "1ns" };
        let args = ["trigger", "--duration", "1h", "--warmup", warmup, "-o", "t.pftrace"];
        let first = Guarded::start(place.kymo(&args).stderr(std::process::Stdio::piped()));
        place.wait_for(program.pid, state);
        let cancelled = place.run(&["stop", "--discard"]);
        assert!(cancelled.good && cancelled.err.contains("cancelled"), "{cancelled:?}");
        let first = control::Said::from(first.wait_with_output());
        assert!(!first.good && first.err.contains("cancelled"), "{first:?}");
        assert!(!place.path("t.pftrace").exists());
    }
    place.run(&["trigger", "--duration", "10ms"]).trace();
    assert!(program.end());
}

#[test]
fn what_is_no_trace_is_not_overwritten_and_mistakes_are_said() {
    let place = Place::new();
    let program = place.start(&[]);
    let script = place.path("train.pftrace");
    std::fs::write(&script, "print(1)").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["--duration", "1ms", "-o", "train.pftrace"], "exists and is not a trace"),
        (&["--duration", "1ms", "-o", "train.py"], ".py is not what kymo writes"),
        (&["--duration", "5"], "--duration 5: expected a duration"),
        (&["--duration", "1ms", "--rank", "3"], "such a rank"),
        (&["--duration", "1ms", "--set", "WARMUP=x"], "WARMUP=x: expected"),
    ];
    for (args, expected) in cases {
        let said = place.run(&[&["trigger"], args].concat());
        assert!(!said.good && said.err.contains(expected), "{said:?}");
        assert!(!said.err.contains("line "), "{said:?}");
    }
    assert_eq!(std::fs::read(&script).unwrap(), b"print(1)");
    // A trace may be.
    for _ in 0..2 {
        place.run(&["trigger", "--duration", "1ms", "-o", "t.pftrace"]).trace();
    }
    assert!(program.end());
}

#[test]
fn who_hangs_up_gets_what_there_is_so_far() {
    let place = Place::new();
    let program = place.start(&[]);
    let mut first =
        Guarded::start(&mut place.kymo(&["trigger", "--duration", "1h", "-o", "t.pftrace"]));
    place.wait_for(program.pid, "recording");
    first.kill().unwrap();
    first.wait().unwrap();
    place.wait_for(program.pid, "waiting");
    window(&open(&place.path("t.pftrace")));
    assert!(program.end());
}

#[test]
fn a_program_that_ends_meanwhile_leaves_what_it_has() {
    let place = Place::new();
    let program = place.start(&[]);
    let mut asked = place.kymo(&["trigger", "--duration", "1h", "-o", "t.pftrace"]);
    let asked = Guarded::start(asked.stdout(std::process::Stdio::piped()));
    place.wait_for(program.pid, "recording");
    assert!(program.end());
    let said = control::Said::from(asked.wait_with_output());
    window(&said.trace());

    let program = place.start(&[]);
    let mut asked = place.kymo(&["trigger", "--duration", "1h", "-o", "killed.pftrace"]);
    let asked = Guarded::start(asked.stderr(std::process::Stdio::piped()));
    place.wait_for(program.pid, "recording");
    let pid = program.pid.to_string();
    program.kill();
    let said = control::Said::from(asked.wait_with_output());
    assert!(!said.good && said.err.contains("the process ended"), "{said:?}");
    let gone = place.run(&["trigger", "--pid", &pid, "--duration", "1ms"]);
    assert!(!gone.good && gone.err.contains("no such process"), "{gone:?}");
    let nobody = place.run(&["ps"]);
    assert!(nobody.err.contains("kymo record --wait"), "{nobody:?}");
}

#[test]
fn four_processes_record_the_same_window() {
    let place = Place::new();
    let programs: Vec<_> =
        [None, Some("busy")].repeat(2).iter().map(|arg| place.start(arg.as_slice())).collect();
    let args = ["trigger", "--all", "--duration", "300ms", "-o", "%p.pftrace"];
    let said = place.run(&[&args[..], &AHEAD].concat());
    assert!(said.good && said.paths().len() == 4, "{said:?}");
    let windows: Vec<_> = said.paths().iter().map(|path| window(&open(path))).collect();
    let spread = |edge: fn(&(i64, i64)) -> i64| {
        let edges = windows.iter().map(edge);
        edges.clone().max().unwrap() - edges.min().unwrap()
    };
    let (opened, closed) = (spread(|w| w.0), spread(|w| w.1));
    println!("the windows differ by {opened} ns and {closed} ns");
    // Windows are enforced by timestamps: nobody is late whose sources are on by then.
    assert!(opened < 2 * MS && closed < 2 * MS, "{windows:?}");
    assert!(programs.into_iter().all(control::Program::end));
}

#[test]
fn a_forked_child_can_be_asked_as_well() {
    let place = Place::new();
    let mut program = place.start(&["fork"]);
    let child = program.hear("begun");
    // Nobody says when: all agree on a moment after the warm-up.
    let args = ["trigger", "--all", "--duration", "100ms", "--warmup", "3s", "-o", "t.pftrace"];
    let said = place.run(&args);
    let mut paths = said.paths();
    let mut expected =
        [program.pid, child].map(|pid| place.path(&format!("t_{pid}.pftrace"))).to_vec();
    paths.sort();
    expected.sort();
    assert_eq!(paths, expected, "{said:?}");
    for path in &paths {
        window(&open(path));
    }
    let child = child.to_string();
    place.run(&["trigger", "--pid", &child, "--duration", "10ms", "-o", "one.pftrace"]).trace();
    assert!(program.end());
}
