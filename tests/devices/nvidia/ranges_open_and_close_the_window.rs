//! `kymo record --capture-range`: only what happens in ranges of the program is in the trace.

use harness::nvidia;

use nvidia::{Machine, Recorded, WORK, record};

/// Three rounds: work before a range, in it, and in a range in that.
const ROUNDS: &str = "\
kernel before dur=20us
sync
call cudaProfilerStart
push outer
kernel first dur=20us
sync
push outer
kernel second dur=20us
sync
pop
kernel third dur=20us
sync
pop
call cudaProfilerStop
kernel after dur=20us
sync
";

fn captured(script: &str, own: &[&str]) -> Recorded {
    let arguments: Vec<&str> = ["--"].into_iter().chain(own.iter().copied()).collect();
    let recorded = record(&Machine::with("12.9"), script, &arguments);
    recorded.trace.assert_clean();
    recorded
}

/// The kernels in the trace, by time.
fn kernels(recorded: &Recorded) -> Vec<String> {
    recorded.trace.strings(&format!("SELECT name FROM {WORK} ORDER BY ts"))
}

fn slices(recorded: &Recorded, name: &str) -> i64 {
    recorded.trace.one_i64(&format!("SELECT count(*) FROM slice WHERE name = '{name}'"))
}

fn unfinished(recorded: &Recorded) -> i64 {
    recorded.trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1")
}

#[test]
fn the_first_only() {
    let script = ROUNDS.repeat(3);
    for range in ["cudaProfilerApi", "nvtx:outer", "nvtx:out*@nvtx", "nvtx:outer@*"] {
        let recorded = captured(&script, &["--capture-range", range]);
        assert_eq!(kernels(&recorded), ["first", "second", "third"], "{range}");
        assert_eq!(unfinished(&recorded), 0, "{range}");
        assert_eq!(slices(&recorded, "cudaLaunchKernel"), 3, "{range}");
        recorded.every_launch_has_its_arrow();
    }
}

#[test]
fn each_or_the_first_of_them() {
    let script = ROUNDS.repeat(3);
    for (range, end, rounds) in [
        ("cudaProfilerApi", "repeat", 3),
        ("nvtx:outer", "repeat", 3),
        ("nvtx:outer", "repeat:2", 2),
        ("cudaProfilerApi", "repeat:2", 2),
        ("nvtx:outer", "repeat:7", 3),
    ] {
        let recorded = captured(&script, &["--capture-range", range, "--capture-range-end", end]);
        assert_eq!(
            kernels(&recorded),
            ["first", "second", "third"].repeat(rounds),
            "{range} {end}"
        );
        assert_eq!(slices(&recorded, "cudaLaunchKernel"), 3 * rounds as i64, "{range} {end}");
        assert_eq!(unfinished(&recorded), 0, "{range} {end}");
        recorded.every_launch_has_its_arrow();
    }
}

#[test]
fn what_reaches_into_windows_has_its_own_times() {
    // A range around two windows, and work between them.
    let script = "push around\npush in\nkernel a dur=20us\nsync\npop\nkernel gap dur=20us\nsync\n\
                  push in\nkernel b dur=20us\nsync\npop\npop\n";
    let own = ["--capture-range", "nvtx:in", "--capture-range-end", "repeat"];
    let recorded = captured(script, &own);
    assert_eq!(kernels(&recorded), ["a", "b"]);
    // On the thread; the stream has a piece of it for each window.
    let around = "SELECT count(*) FROM slice JOIN thread_track t ON t.id = track_id
                  WHERE slice.name = 'around'";
    assert_eq!((recorded.trace.one_i64(around), unfinished(&recorded)), (1, 0));
    let inside = "SELECT count(*) FROM slice i JOIN slice o ON o.ts <= i.ts
                  AND o.ts + o.dur >= i.ts + i.dur JOIN thread_track t ON t.id = i.track_id
                  WHERE i.name = 'in' AND o.name = 'around' AND i.track_id = o.track_id";
    assert_eq!(recorded.trace.one_i64(inside), 2);
}

#[test]
fn the_driver_api_counts_as_well() {
    let script = "kernel before dur=20us\nsync\ncall cuProfilerStart\nkernel in dur=20us\nsync\n\
                  call cuProfilerStop\nkernel after dur=20us\nsync\n";
    let recorded = captured(script, &["--capture-range", "cudaProfilerApi"]);
    assert_eq!(kernels(&recorded), ["in"]);
}

#[test]
fn a_range_that_does_not_end_is_open_until_the_end() {
    let script = "kernel before dur=20us\nsync\ncall cudaProfilerStart\nkernel in dur=20us\nsync\n";
    let recorded = captured(script, &["--capture-range", "cudaProfilerApi"]);
    assert_eq!(kernels(&recorded), ["in"]);
}

#[test]
fn a_range_that_never_begins_is_reported() {
    for range in ["nvtx:nothing", "nvtx:outer@elsewhere", "nvtx:oute"] {
        let recorded = captured(ROUNDS, &["--capture-range", range]);
        assert!(kernels(&recorded).is_empty());
        let said = String::from_utf8_lossy(&recorded.output.stderr);
        assert!(said.contains("no range of that name began"), "{said}");
    }
    let recorded = captured("kernel k\nsync\n", &["--capture-range", "cudaProfilerApi"]);
    let said = String::from_utf8_lossy(&recorded.output.stderr);
    assert!(said.contains("did not call cudaProfilerStart"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for own in [
        &["--capture-range", "step"][..],
        &["--capture-range", "nvtx:a", "--capture-range-end", "often"],
        &["--capture-range", "nvtx:a", "--flight", "1s"],
        &["--capture-range-end", "repeat"],
    ] {
        let arguments: Vec<&str> = own.iter().copied().chain(["true"]).collect();
        let output = harness::kymo::kymo().arg("record").args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("--capture-range"), "{said}");
    }
}
