//! The fake driver and the fake CUPTI alone, with a program that traces itself.

use harness::fakes;

use std::process::Output;

use fakes::Machine;

const VERSIONS: [&str; 8] = ["11.8", "12.0", "12.3", "12.6", "12.9", "13.0", "13.1", "13.4"];

const SCRIPT: &str = "\
    kernel first grid=4,2,1 block=128 dur=20us\n\
    copy htod 4096 dur=3us # a comment\n\
    set 1024 value=7\n\
    graph 5\n\
    kernel a\n\
    kernel b dur=2us\n\
    copy dtod 64\n\
    end\n\
    repeat 3\n\
    launch 5\n\
    end\n\
    kernel direct via=driver\n\
    kernel wrapped via=both\n\
    record event=1\n\
    wait event=1 stream=13\n\
    sync stream\n\
    sync event=1\n\
    sync\n";

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {errors}", output.status);
    assert_eq!(errors, "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// 1: copies, 2: sets, 4: driver, 5: runtime, 10: kernels, 36: events, 38: waits.
const COUNTS: &str = "\
    kind 1: 4\n\
    kind 2: 1\n\
    kind 4: 3\n\
    kind 5: 12\n\
    kind 10: 9\n\
    kind 36: 1\n\
    kind 38: 4\n\
    buffers of others: 0\n";

#[test]
fn every_version_records_the_whole_script() {
    for version in VERSIONS {
        let machine = Machine::with(version);
        let output = machine.command(SCRIPT).arg("--client").output().unwrap();
        assert_eq!(text(&output), COUNTS, "{version}");
    }
}

#[test]
fn threads_work_at_once() {
    let part = "repeat 5000\nkernel k dur=10\nend\nsync\n";
    let script = format!("set 8\nsync\nthread\n{part}thread\n{part}thread\n{part}thread\n{part}");
    for version in ["12.6", "13.1"] {
        let machine = Machine::with(version).fault("several-threads").fault("out-of-order");
        let output = machine.command(&script).arg("--client").output().unwrap();
        let text = text(&output);
        assert!(text.contains("kind 10: 20000\n"), "{text}");
        assert!(text.contains("kind 5: 20006\n"), "{text}");
    }
}

#[test]
fn faults_happen() {
    let script = "repeat 100\nkernel k dur=10\nend\nsync\n";
    for (fault, kernels, calls) in [
        ("drop:10", 90, 101),
        ("unknown-kind", 100, 101),
        ("truncated", 99, 101),
        ("empty-buffers", 100, 101),
        ("hoard", 100, 101),
    ] {
        // From 13.0 on calls have a buffer of their own.
        let machine = Machine::with("13.1").fault(fault);
        let text = text(&machine.command(script).arg("--client").output().unwrap());
        assert!(text.contains(&format!("kind 10: {kernels}\n")), "{fault}: {text}");
        let calls = if fault == "truncated" { calls - 1 } else { calls };
        assert!(text.contains(&format!("kind 5: {calls}\n")), "{fault}: {text}");
    }
}

#[test]
fn a_program_needs_no_cupti_and_no_driver() {
    let script = "kernel k\nsync\n";
    let machine = Machine::with_driver_only("12.6");
    assert_eq!(text(&machine.command(script).output().unwrap()), "");
    for machine in [Machine::without_driver("12.6"), Machine::with("12.6").fault("no-driver")] {
        assert_eq!(text(&machine.command(script).output().unwrap()), "no CUDA\n");
    }
    let status = machine.command(script).args(["--exit", "7"]).status().unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn functions_can_be_missing() {
    let machine = Machine::with("12.6").without("cuptiActivityEnable");
    let output = machine.command("kernel k\n").arg("--client").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("a function of CUPTI"));
}
