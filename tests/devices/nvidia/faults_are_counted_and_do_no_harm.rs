//! What CUPTI may do wrong, one fault after another: the program ends as it would have,
//! the trace is clean, and what is missing in it is counted there.

use faults::{KERNELS, LOST, SCRIPT, count, given_up, lost, nothing, whole};
use harness::{faults, nvidia};
use nvidia::Machine;
use nvidia::{Recorded, record};

fn with(fault: &str) -> Recorded {
    on(&Machine::with("13.1").fault(fault))
}

/// The program ended as it does without us.
#[track_caller]
fn on(machine: &Machine) -> Recorded {
    let recorded = record(machine, SCRIPT, &["--exit", "7"]);
    recorded.ended(7);
    recorded
}

#[test]
fn dropped_records() {
    let recorded = with("drop:10");
    lost(&recorded, "lost.dropped_by_cupti");
    assert_eq!(recorded.kernels(), 900);
}

#[test]
fn lost_times() {
    let recorded = with("zero-times:10");
    lost(&recorded, "lost.without_times");
    assert_eq!(recorded.kernels(), 900);
}

/// What ends in an hour cannot have been read now.
#[test]
fn times_to_come() {
    let recorded = with("future:10");
    lost(&recorded, "lost.in_the_future");
    assert_eq!(recorded.kernels(), 900);
}

/// They are there, but nobody knows where they came from.
#[test]
fn lost_correlation_ids() {
    let recorded = with("zero-correlation:10");
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    let arrows = "SELECT count(*) FROM flow JOIN gpu_slice g ON g.id = slice_in";
    assert_eq!(recorded.trace.one_i64(arrows), 900);
}

#[test]
fn kernels_without_names() {
    let recorded = with("no-name");
    whole(&recorded);
    let names = "SELECT DISTINCT name FROM gpu_slice";
    assert_eq!(recorded.trace.strings(names), ["<unknown>"]);
}

/// CUPTI can step over them: nothing is missing.
#[test]
fn kinds_of_a_later_version() {
    let recorded = with("unknown-kind:10");
    whole(&recorded);
    assert!(count(&recorded, "records_skipped") >= 100, "{:#?}", recorded.metadata);
}

/// CUPTI cannot: what follows in the buffer cannot be read.
#[test]
fn kinds_that_cupti_does_not_know() {
    for version in ["12.0", "13.1"] {
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
fn empty_buffers() {
    whole(&with("empty-buffers"));
}

#[test]
fn buffers_out_of_order() {
    whole(&with("out-of-order"));
}

#[test]
fn buffers_from_several_threads() {
    let part = "repeat 2000\nkernel k dur=10\nend\nsync\n";
    let script = format!("set 8\nthread\n{part}thread\n{part}thread\n{part}thread\n{part}");
    let machine = Machine::with("13.1").fault("several-threads").fault("out-of-order");
    let recorded = record(&machine, &script, &["--exit", "7"]);
    recorded.ended(7);
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 8000);
    recorded.every_launch_has_its_arrow();
}

/// Buffers that come back only when they are asked for: the pool is bounded, and what does
/// not fit is counted. Before 12.9 CUPTI must not be refused a buffer: it would crash.
#[test]
fn buffers_that_do_not_come_back() {
    const LAUNCHES: i64 = 300_000;
    let script = format!("repeat {LAUNCHES}\nkernel k dur=10\nend\nsync\n");
    for version in ["12.6", "12.9", "13.1"] {
        let machine = Machine::with(version).fault("hoard");
        let recorded = record(&machine, &script, &["--exit", "7"]);
        recorded.ended(7);
        recorded.trace.clean_except(LOST);
        let counted =
            count(&recorded, "lost.dropped_by_cupti") + count(&recorded, "lost.discarded");
        // Records of the context, its stream and the waits may be among what was lost; and on
        // a slow machine the end of the program does not wait for the rest, and says so.
        let missing = LAUNCHES - recorded.kernels();
        let given_up =
            recorded.cuda("not_recorded").is_some_and(|why| why.contains("did not hand over"));
        assert!(
            missing > 0 && (given_up || (missing..missing + 64).contains(&counted)),
            "{version}: {:#?}",
            recorded.metadata
        );
    }
}

#[test]
fn another_subscriber() {
    nothing(&with("other-subscriber"), "another tool");
}

#[test]
fn errors_from_every_call() {
    nothing(&with("errors"), "999");
}

/// Each call that a recording needs fails alone.
#[test]
fn one_call_that_fails() {
    for function in ["cuptiGetVersion", "cuptiSubscribe", "cuptiActivityRegisterCallbacks"] {
        let recorded = with(&format!("error:{function}=35"));
        nothing(&recorded, "35");
    }
    let recorded = with("error:cuptiActivityEnable=35");
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 0);
    let said = recorded.metadata.iter().any(|(key, _)| key.contains("kind_not_recorded.10"));
    assert!(said, "{:#?}", recorded.metadata);
    for function in [
        "cuptiActivitySetAttribute",
        "cuptiActivityRegisterTimestampCallback",
        "cuptiActivityEnableRuntimeApi",
        "cuptiActivityGetNumDroppedRecords",
        "cuptiActivityEnableAndDump",
        "cuptiGetResultString",
    ] {
        whole(&with(&format!("error:{function}=35")));
    }
}

#[test]
fn missing_functions() {
    for function in ["cuptiSubscribe", "cuptiActivityFlushAll", "cuptiActivityGetNextRecord"] {
        nothing(&on(&Machine::with("13.1").without(function)), function);
    }
    for function in [
        "cuptiActivitySetAttribute",
        "cuptiActivityRegisterTimestampCallback",
        "cuptiActivityEnableRuntimeApi",
        "cuptiActivityEnableAndDump",
        "cuptiGetResultString",
    ] {
        whole(&on(&Machine::with("13.1").without(function)));
    }
}

/// The end of the program is delayed, but not for ever.
#[test]
fn a_flush_that_never_ends() {
    given_up(|| with("flush-hangs"));
}

#[test]
fn no_driver() {
    for version in ["12.6", "13.2", "13.4"] {
        let machine = Machine::with(version).fault("no-driver");
        let recorded = record(&machine, SCRIPT, &["--exit", "7", "--nvtx", "only"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        assert_eq!(recorded.printed(), "no CUDA\n");
    }
}

#[test]
fn no_cupti() {
    nothing(&on(&Machine::with_driver_only("12.6")), "libcupti");
}

/// PyTorch's profiler in the program: it registers its own buffers while we record. Its
/// records are its own, whole or not at all; and ours are whole, or the trace says who
/// has them.
#[test]
fn a_second_user_in_the_program() {
    for version in ["12.6", "13.1"] {
        let recorded = record(&Machine::with(version), SCRIPT, &["--client", "--exit", "7"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        let theirs = recorded.printed();
        assert!(theirs.contains("kind 10: 1000\n"), "{version}: theirs is broken: {theirs}");
        assert!(theirs.contains("buffers of others: 0\n"), "{version}: {theirs}");
        let ours = recorded.kernels();
        let said = recorded.cuda("not_recorded").is_some();
        assert!(ours == KERNELS || said, "{version}: ours has {ours}: {:#?}", recorded.metadata);
    }
}
