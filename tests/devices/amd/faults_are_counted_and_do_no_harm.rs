//! What rocprofiler-sdk may do wrong, one fault after another: the program ends as it would
//! have, the trace is clean, and what is missing in it is counted there.

use amd::{Machine, Recorded, VERSIONS};
use faults::{KERNELS, SCRIPT, count, given_up, lost, nothing, whole};
use harness::{amd, faults};

fn with(fault: &str) -> Recorded {
    on(&Machine::with("1.0").fault(fault))
}

/// The program ended as it does without us.
#[track_caller]
fn on(machine: &Machine) -> Recorded {
    let recorded = machine.record(SCRIPT, &["--exit", "7"]);
    recorded.ended(7);
    recorded
}

#[test]
fn dropped_records() {
    for version in VERSIONS {
        let recorded = on(&Machine::with(version).fault("drop:10"));
        lost(&recorded, "lost.dropped_by_rocprofiler");
        let notes = "SELECT count(*) > 0 FROM slice WHERE name LIKE '% HIP records dropped'";
        assert_eq!(recorded.trace.one_i64(notes), 1);
    }
}

#[test]
fn records_without_times_or_with_wrong_ones() {
    lost(&with("zero-times:10"), "lost.without_times");
    lost(&with("backwards:7"), "lost.without_times");
    lost(&with("future:10"), "lost.in_the_future");
}

#[test]
fn records_that_are_too_short() {
    for version in VERSIONS {
        lost(&on(&Machine::with(version).fault("truncated:10")), "lost.broken");
    }
}

#[test]
fn records_of_unknown_kinds() {
    let recorded = with("unknown-kind:10");
    whole(&recorded);
    assert_eq!(count(&recorded, "records_skipped"), KERNELS / 10);
}

#[test]
fn records_in_any_order() {
    whole(&with("out-of-order"));
}

#[test]
fn records_that_come_only_at_the_end() {
    whole(&with("late"));
}

#[test]
fn kernels_that_nobody_knows() {
    for fault in ["unregistered", "no-name"] {
        let recorded = with(fault);
        recorded.trace.assert_clean();
        assert_eq!(recorded.kernels(), KERNELS);
        let names = "SELECT DISTINCT name FROM gpu_slice";
        assert_eq!(recorded.trace.strings(names), ["<unknown>"]);
        recorded.every_launch_has_its_arrow();
    }
    assert_eq!(count(&with("unregistered"), "kernels_unnamed"), KERNELS);
}

/// Then there are no arrows, and what is known is the HSA queue.
#[test]
fn records_that_do_not_know_their_call() {
    let recorded = with("no-correlation");
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM flow"), 0);
    let rows = "SELECT DISTINCT substr(t.name, 1, 11) FROM gpu_slice s
                JOIN gpu_track t ON t.id = s.track_id";
    assert_eq!(recorded.trace.strings(rows), ["HSA queue 3"]);
}

/// Device work lies where the calls are, whatever the library's clock says.
#[test]
fn another_clock() {
    let hour = 3_600_000_000_000_u64;
    let recorded = with(&format!("clock:{hour}"));
    whole(&recorded);
    let apart = "SELECT max(ts) - min(ts) FROM (SELECT ts FROM gpu_slice UNION ALL
                 SELECT ts FROM slice WHERE category = 'cuda_runtime')";
    assert!(recorded.trace.one_i64(apart) < (hour / 2) as i64);
    // Set in the middle: it is noticed, what was decoded before is right, and all is there.
    let recorded = with(&format!("clock-jump:{hour}"));
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), KERNELS);
    assert_eq!(count(&recorded, "clock_jumps"), 1);
}

#[test]
fn errors_from_every_call() {
    nothing(&with("errors"), "General error");
}

/// Each call that a recording needs fails alone.
#[test]
fn one_call_that_fails() {
    for function in [
        "rocprofiler_query_available_agents",
        "rocprofiler_create_context",
        "rocprofiler_create_buffer",
        "rocprofiler_start_context",
        "rocprofiler_context_is_valid",
    ] {
        nothing(&with(&format!("error:{function}=16")), function);
    }
    for kind in ["configure_callback_tracing_service", "configure_buffer_tracing_service"] {
        let recorded = with(&format!("error:rocprofiler_{kind}=4"));
        recorded.trace.assert_clean();
        let said = recorded.metadata.iter().any(|(key, value)| {
            key.contains(".kind_not_recorded.") && value.contains("Kind ID not found")
        });
        assert!(said, "{:#?}", recorded.metadata);
    }
    for function in [
        "rocprofiler_create_callback_thread",
        "rocprofiler_assign_callback_thread",
        "rocprofiler_get_timestamp",
        "rocprofiler_iterate_callback_tracing_kind_operation_args",
    ] {
        whole(&with(&format!("error:{function}=1")));
    }
}

#[test]
fn missing_functions() {
    for function in
        ["rocprofiler_create_context", "rocprofiler_flush_buffer", "rocprofiler_start_context"]
    {
        nothing(&on(&Machine::with("1.0").without(function)), function);
    }
    for function in [
        "rocprofiler_create_callback_thread",
        "rocprofiler_get_timestamp",
        "rocprofiler_get_status_string",
        "rocprofiler_iterate_callback_tracing_kind_operation_args",
    ] {
        whole(&on(&Machine::with("1.0").without(function)));
    }
}

#[test]
fn an_old_version() {
    nothing(&on(&Machine::with("0.4")), "0.4.0 is older than 0.5.0");
}

/// The end of the program is delayed, but not for ever.
#[test]
fn a_flush_that_never_ends() {
    given_up(|| with("flush-hangs"));
}

#[test]
fn no_device() {
    nothing(&with("no-agents"), "no AMD GPU");
}

/// librocprofiler-register would end the program here, because it sees a tool: ours.
#[test]
fn no_rocprofiler() {
    nothing(&on(&Machine::without_rocprofiler()), "no librocprofiler-sdk.so");
}

#[test]
fn switched_off_by_the_environment() {
    let off = |command: &mut std::process::Command| {
        command.env("ROCPROFILER_REGISTER_ENABLED", "0");
    };
    let recorded = Machine::with("1.0").record_with(off, "--hip", SCRIPT, &["--exit", "7"]);
    recorded.ended(7);
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 0);
}
