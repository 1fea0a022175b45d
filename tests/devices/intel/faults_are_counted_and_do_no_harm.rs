//! What PTI and Level Zero may do wrong, one fault after another: the program ends as it
//! would have, the trace is clean, and what is missing in it is counted there.

use faults::{KERNELS, LOST, SCRIPT, count, given_up, lost, nothing, whole};
use harness::{faults, intel};
use intel::{Machine, Recorded};

fn with(fault: &str) -> Recorded {
    on(&Machine::with("1.2").fault(fault))
}

/// The program ended as it does without us.
#[track_caller]
fn on(machine: &Machine) -> Recorded {
    let recorded = machine.record(SCRIPT, &["--exit", "7"]);
    recorded.ended(7);
    recorded
}

/// PTI does not say that it drops something.
#[test]
fn dropped_records() {
    let recorded = with("drop:10");
    lost(&recorded, "lost.never_reported");
    assert_eq!(recorded.kernels(), 900);
}

#[test]
fn lost_times() {
    let recorded = with("zero-times:10");
    lost(&recorded, "lost.without_times");
    assert_eq!(recorded.kernels(), 900);
}

/// They are there, but nobody knows where they came from.
#[test]
fn lost_correlation_ids() {
    let recorded = with("zero-correlation:10");
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM flow"), 900);
}

#[test]
fn kernels_without_names() {
    let recorded = with("no-name");
    whole(&recorded);
    let names = "SELECT DISTINCT name FROM gpu_slice";
    assert_eq!(recorded.trace.strings(names), ["<unknown>"]);
}

/// PTI was loaded too late: it knows Level Zero's queues, but not SYCL's.
#[test]
fn queues_that_sycl_did_not_tell_of() {
    let recorded = with("no-sycl");
    whole(&recorded);
    let queues = "SELECT DISTINCT t.name FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id";
    let names = recorded.trace.strings(queues);
    assert!(names.iter().all(|name| name.contains("Level Zero queue 00")), "{names:?}");
}

/// PTI can step over them: nothing is missing.
#[test]
fn kinds_of_a_later_version() {
    let recorded = with("unknown-kind:10");
    whole(&recorded);
    assert!(count(&recorded, "records_skipped") >= 100, "{:#?}", recorded.metadata);
}

/// PTI cannot: what follows in the buffer cannot be read.
#[test]
fn kinds_that_pti_does_not_know() {
    for version in ["0.12", "1.2"] {
        let recorded = on(&Machine::with(version).fault("invalid-kind:500"));
        recorded.trace.clean_except(LOST);
        assert!(count(&recorded, "buffers_broken") > 0, "{version}: {:#?}", recorded.metadata);
    }
}

#[test]
fn a_buffer_that_ends_within_a_record() {
    let recorded = with("truncated");
    recorded.trace.clean_except(LOST);
    assert!((1..KERNELS).contains(&recorded.kernels()));
    assert!(count(&recorded, "buffers_broken") > 0, "{:#?}", recorded.metadata);
}

#[test]
fn buffers_out_of_order() {
    let part = "repeat 4000\nkernel k dur=10\nend\nsync\n";
    let script = format!("set 8\nthread\n{part}thread\n{part}");
    let machine = Machine::with("1.2").fault("out-of-order");
    let recorded = machine.record(&script, &["--exit", "7"]);
    recorded.ended(7);
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 8000);
    recorded.every_launch_has_its_arrow();
}

/// What ends in an hour cannot have been read now.
#[test]
fn a_clock_that_jumps() {
    let recorded = with("clock-jump");
    lost(&recorded, "lost.in_the_future");
    assert_eq!(count(&recorded, "lost.in_the_future"), 900);
    assert_eq!(recorded.kernels(), 100);
}

/// Buffers that come back only when they are asked for: the pool is bounded, and what does
/// not fit is counted.
#[test]
fn buffers_that_do_not_come_back() {
    const LAUNCHES: i64 = 300_000;
    let script = format!("repeat {LAUNCHES}\nkernel k dur=10\nend\nsync\n");
    let machine = Machine::with("1.2").fault("hoard");
    let recorded = machine.record(&script, &["--exit", "7"]);
    recorded.ended(7);
    recorded.trace.clean_except(LOST);
    // Calls take room, too: what is missing is not only kernels.
    let missing = LAUNCHES - recorded.kernels();
    // All that was lost: a slow machine's writer may have lost some of what was read.
    let counted = recorded.metadata.get("kymograph.lost").map_or(0, |lost| lost.parse().unwrap());
    // A machine that is too slow to read them all before the program ends says so.
    let said = recorded.fact("xpu", "not_recorded").is_some();
    assert!(counted >= missing || said, "{missing}: {:#?}", recorded.metadata);
}

/// Without a driver that works, PTI would end the process: it is not asked.
#[test]
fn no_driver() {
    let recorded = with_output("no-driver");
    assert_eq!(recorded.printed(), "no Level Zero\n");
    nothing(&with("no-sub-devices"), "zeDeviceGetSubDevices");
    nothing(&with("no-device"), "no GPU");
}

/// Level Zero does not start: no recording was asked for by anybody but NVTX.
fn with_output(fault: &str) -> Recorded {
    let machine = Machine::with("1.2").fault(fault);
    let recorded = machine.record(SCRIPT, &["--exit", "7", "--nvtx", "only"]);
    recorded.ended(7);
    recorded.trace.assert_clean();
    recorded
}

/// The same through SYCL, which starts the recording before it looks for a driver.
#[test]
fn no_driver_under_sycl() {
    let recorded = on(&Machine::with("1.2").sycl().fault("no-driver"));
    assert_eq!(recorded.printed(), "no Level Zero\n");
    nothing(&recorded, "Level Zero has no driver that works here (zeInit: 0x78000001)");
}

#[test]
fn no_pti() {
    nothing(&on(&Machine::without_pti("1.2")), "pip install intel-pti");
}

#[test]
fn versions_that_are_not_known() {
    nothing(&on(&Machine::with("0.10")), "0.12 is the oldest");
    nothing(&on(&Machine::with("2.0")), "not known yet");
}

/// `libpti.so` or what it needs is missing.
#[test]
fn pti_without_its_other_half() {
    nothing(&with("not-implemented"), "libxptifw.so");
}

/// Intel's own library, which does not find its other half here.
#[test]
fn the_real_pti() {
    let setup = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/setup");
    let output = std::process::Command::new(setup).arg("pti").output().unwrap();
    let reason = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        println!("not tested: {reason}");
        return;
    }
    assert!(output.status.success(), "{reason}");
    for version in ["1.1.0", "1.2.0"] {
        let recorded = on(&Machine::with_real(version));
        nothing(&recorded, "libpti.so beside");
        assert_eq!(recorded.printed(), "");
    }
}

#[test]
fn errors_from_every_call() {
    nothing(&with("errors"), "PTI_ERROR_INTERNAL (200)");
}

/// Each call that a recording needs fails alone.
#[test]
fn one_call_that_fails() {
    nothing(&with("error:ptiViewSetCallbacks=3"), "PTI_ERROR_BAD_ARGUMENT (3)");
    nothing(&with("error:ptiViewEnable=3"), "refused");
    for function in ["ptiViewEnableDriverApiClass", "ptiViewGPULocalAvailable", "ptiViewDisable"] {
        whole(&with(&format!("error:{function}=3")));
    }
    // Neither the calls nor, without their names, what they are.
    let recorded = with("error:ptiViewEnableRuntimeApiClass=3");
    recorded.trace.assert_clean();
    assert_eq!((recorded.kernels(), recorded.calls()), (KERNELS, "name  n\n".to_owned()));
    assert!(recorded.fact("xpu", "kind_not_recorded.6").is_some(), "{:#?}", recorded.metadata);
    let recorded = with("error:ptiViewGetApiIdName=3");
    recorded.trace.assert_clean();
    assert_eq!(recorded.calls(), "name             n\nSYCL function 1  1000\n");
    let recorded = with("error:ptiFlushAllViews=200");
    assert!(recorded.fact("xpu", "error").unwrap_or_default().contains("ptiFlushAllViews"));
}

#[test]
fn missing_functions() {
    for function in ["ptiViewSetCallbacks", "ptiFlushAllViews", "ptiVersion"] {
        nothing(&on(&Machine::with("1.2").without(function)), function);
    }
    for function in
        ["ptiViewGPULocalAvailable", "ptiResultTypeToString", "ptiViewEnableDriverApiClass"]
    {
        whole(&on(&Machine::with("1.2").without(function)));
    }
}

/// The end of the program is delayed, but not for ever.
#[test]
fn a_flush_that_never_ends() {
    given_up(|| with("flush-hangs"));
}
