//! What Synapse may do wrong, one fault after another: the program ends as it would have, the
//! trace is clean, and what is missing in it is counted there.

use faults::{KERNELS, LOST, SCRIPT, count, given_up, lost, nothing};
use gaudi::{Machine, Recorded};
use harness::{faults, gaudi};

fn with(fault: &str) -> Recorded {
    on(&Machine::with("new").fault(fault))
}

/// The program ended as it does without us.
#[track_caller]
fn on(machine: &Machine) -> Recorded {
    let recorded = machine.record(SCRIPT, &["--exit", "7"]);
    recorded.ended(7);
    recorded
}

/// Everything is there, and nothing is said to be lost.
#[track_caller]
fn whole(recorded: &Recorded) {
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    let arrows = recorded.trace.one_i64("SELECT count(DISTINCT slice_in) FROM flow");
    assert_eq!(arrows, KERNELS);
}

#[test]
fn ends_that_are_missing() {
    // The beginning of one is taken for that of the next: by number, nothing else is missing.
    let recorded = with("drop:10");
    recorded.trace.clean_except(LOST);
    assert_eq!(recorded.kernels(), 900);
    assert_eq!(count(&recorded, "lost.unfinished"), 100);
}

#[test]
fn lost_times() {
    lost(&with("zero-times:10"), "lost.without_times");
    lost(&with("odd-times:10"), "lost.without_times");
    lost(&with("future:10"), "lost.in_the_future");
}

/// They are there, but nobody knows where they came from.
#[test]
fn lost_recipes() {
    let recorded = with("no-recipe:10");
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    // Of those that have one, some may be of several launches: they are not guessed.
    let arrows = recorded.trace.one_i64("SELECT count(DISTINCT slice_in) FROM flow");
    assert_eq!(arrows + count(&recorded, "arrows_ambiguous"), 900, "{:#?}", recorded.metadata);
}

#[test]
fn events_of_a_later_release() {
    let recorded = with("unknown-kind:10");
    recorded.trace.clean_except(LOST);
    assert_eq!(recorded.kernels(), KERNELS);
    assert!(count(&recorded, "lost.of_unknown_kind") >= 100, "{:#?}", recorded.metadata);
}

#[test]
fn events_out_of_order() {
    whole(&with("out-of-order"));
}

#[test]
fn a_buffer_that_ends_within_an_event() {
    let recorded = with("truncated");
    recorded.trace.clean_except(LOST);
    let said = recorded.fact("hpu", "error").unwrap_or_default();
    assert!(said.contains("not all there"), "{:#?}", recorded.metadata);
}

/// No name is followed out of the buffer: the work is there without it.
#[test]
fn names_that_are_elsewhere() {
    let some = with("wild-pointers:10");
    some.trace.assert_clean();
    // What has a beginning and an end has its name twice.
    assert_eq!(some.device_work(), "name  n     dur\nk     1000  10000\n");
    assert!(count(&some, "names_lost") > 100, "{:#?}", some.metadata);
    let none = with("wild-pointers");
    none.trace.assert_clean();
    assert_eq!(none.trace.strings("SELECT DISTINCT name FROM gpu_slice"), ["<unknown>"]);
}

/// The profiler keeps what it records in memory that the program may have taken.
#[test]
fn a_device_without_memory_for_the_profiler() {
    let machine = Machine::with("new").fault("memory").fault("full");
    nothing(&on(&machine), "the profiler needs 256 MiB of the device's memory");
}

#[test]
fn a_layout_that_is_not_known() {
    let recorded = with("other-layout");
    recorded.trace.clean_except(LOST);
    let said = recorded.fact("hpu", "error").unwrap_or_default();
    assert!(said.contains("neither 208 nor 112 bytes"), "{:#?}", recorded.metadata);
}

/// The times are those of the clock as it was at the start.
#[test]
fn a_clock_that_jumps() {
    let recorded = with("clock-jump");
    whole(&recorded);
    assert_eq!(count(&recorded, "0.clock_jumps"), 1, "{:#?}", recorded.metadata);
    let launch = "SELECT count(*) FROM slice c JOIN flow ON flow.slice_out = c.id
                  JOIN gpu_slice g ON g.id = slice_in WHERE g.ts - c.ts BETWEEN 0 AND 60000000000";
    assert_eq!(recorded.trace.one_i64(launch), KERNELS);
}

#[test]
fn a_size_that_cannot_be() {
    let recorded = with("huge");
    recorded.trace.clean_except(LOST);
    let said = recorded.fact("hpu", "error").unwrap_or_default();
    assert!(said.contains("bytes"), "{:#?}", recorded.metadata);
}

#[test]
fn no_device() {
    let recorded = on(&Machine::with("new").fault("no-device"));
    assert_eq!(recorded.printed(), "no Synapse\n");
    assert_eq!(recorded.kernels(), 0);
}

/// The user has switched the profiler off, or chosen how it is configured.
#[test]
fn habana_profile() {
    nothing(&on(&Machine::with("new").profile("0")), "HABANA_PROFILE was not set when");
    whole(&on(&Machine::with("new").profile("profile_api_full")));
}

#[test]
fn errors_from_every_call() {
    nothing(&with("errors"), "synStatus 26");
}

/// Each call fails alone.
#[test]
fn one_call_that_fails() {
    nothing(&with("error:synProfilerStart=9"), "synProfilerStart: synStatus 9");
    // It may need none.
    let recorded = with("error:synProfilerQueryRequiredMemory=9");
    whole(&recorded);
    let said = recorded.fact("hpu", "limit").unwrap_or_default();
    assert!(said.contains("synProfilerQueryRequiredMemory: synStatus 9"), "{said}");
    nothing(&with("error:synProfilerGetCurrentTimeNS=9"), "synProfilerGetCurrentTimeNS");
    for function in ["synProfilerStop", "synProfilerGetTrace"] {
        let recorded = with(&format!("error:{function}=9"));
        recorded.trace.clean_except(LOST);
        let said = recorded.fact("hpu", "error").unwrap_or_default();
        assert!(said.contains(&format!("{function}: synStatus 9")), "{:#?}", recorded.metadata);
    }
    let machine = Machine::with("new").fault("memory").fault("error:synProfilerSetUserBuffer=9");
    nothing(&on(&machine), "synProfilerSetUserBuffer: synStatus 9");
}

#[test]
fn missing_functions() {
    for function in ["synProfilerStart", "synProfilerGetTrace", "synProfilerGetCurrentTimeNS"] {
        nothing(&on(&Machine::with("new").without(function)), function);
    }
    for function in ["synProfilerQueryRequiredMemory", "synDeviceGetName", "synDeviceSynchronize"] {
        whole(&on(&Machine::with("new").without(function)));
    }
}

/// The end of the program is delayed, but not for ever.
#[test]
fn a_stop_that_never_ends() {
    given_up(|| with("stop-hangs"));
}
