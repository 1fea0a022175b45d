//! `ACTIVITY_TYPES`, `ALL_ARGS` and `CUPTI_PATH`.

use harness::nvidia;
use nvidia::Machine;
use nvidia::record;

const SCRIPT: &str = "\
    kernel k\n\
    kernel direct via=driver\n\
    copy htod 4096 dur=1us\n\
    set 1024\n\
    sync stream\n\
    sync\n";

#[test]
fn kinds_are_chosen_by_kinetos_names() {
    let machine = Machine::with("12.6");
    let types = ["--", "--set", "ACTIVITY_TYPES=CPU_OP,kernel,cuda_runtime"];
    let recorded = record(&machine, SCRIPT, &types);
    recorded.trace.assert_clean();
    let names = "SELECT DISTINCT name FROM gpu_slice ORDER BY 1";
    assert_eq!(recorded.trace.strings(names), ["direct", "k"]);
    let calls = recorded.calls();
    assert!(calls.contains("cudaMemcpyAsync") && !calls.contains("cuLaunchKernel"), "{calls}");
    let waits = "SELECT COUNT(*) FROM slice WHERE name = 'Stream Sync'";
    assert_eq!(recorded.trace.one_i64(waits), 0);

    let none = record(&machine, SCRIPT, &["--nvtx", "r", "--", "--set", "ACTIVITY_TYPES=cpu_op"]);
    assert_eq!((none.kernels(), none.calls().lines().count()), (0, 1));
}

#[test]
fn waits_need_no_calls_beside_them() {
    let script = "kernel a\nrecord event=1\nkernel b stream=9\nwait event=1 stream=9 via=driver\n\
                  kernel c stream=9\nsync stream stream=9 via=both\nsync event=1 via=driver\nsync\n";
    for (types, calls) in [("kernel,cuda_sync", 0), ("kernel,cuda_event,cuda_runtime", 6)] {
        let types = format!("ACTIVITY_TYPES={types}");
        let recorded = record(&Machine::with("12.6"), script, &["--", "--set", &types]);
        recorded.trace.assert_clean();
        let waits = "SELECT w.name AS wait, g.name AS work FROM slice w
                     LEFT JOIN flow ON slice_in = w.id LEFT JOIN gpu_slice g ON g.id = slice_out
                     WHERE w.category = 'cuda_sync' ORDER BY w.ts";
        assert_eq!(
            recorded.trace.table(waits),
            "wait               work\n\
             Stream Wait Event  a\n\
             Stream Sync        c\n\
             Event Sync         a\n\
             Context Sync       NULL\n",
            "{types}"
        );
        let slices = "SELECT count(*) FROM slice WHERE category IN ('cuda_runtime', 'cuda_driver')";
        assert_eq!(recorded.trace.one_i64(slices), calls, "{types}");
    }
}

#[test]
fn all_args_are_those_of_kineto() {
    let script = "kernel k grid=4,2,1 block=128 regs=40 shared=16 dynamic=512\nkernel _Z4gemmPfi\n\
                  copy htod 4096 dur=1us\nsync\n";
    let recorded = record(&Machine::with("13.1"), script, &["--", "--set", "ALL_ARGS=1"]);
    recorded.trace.assert_clean();
    let args = |name: &str| {
        recorded.trace.strings(&format!(
            "SELECT key || '=' || display_value FROM gpu_slice s JOIN args USING (arg_set_id)
             WHERE s.name = '{name}' AND display_value IS NOT NULL ORDER BY 1"
        ))
    };
    let found = args("k");
    for expected in [
        "blocks per SM=0.0606060606060606",
        "context=1",
        "device=0",
        "est. achieved occupancy %=0",
        "registers per thread=40",
        "shared memory=528",
        "stream=7",
    ] {
        assert!(found.iter().any(|arg| arg == expected), "{expected}: {found:?}");
    }
    let found = args("gemm");
    assert!(found.iter().any(|arg| arg == "mangled name=_Z4gemmPfi"), "{found:?}");
    let found = args("Memcpy HtoD (Pinned -> Device)");
    assert!(found.iter().any(|arg| arg == "memory bandwidth (GB/s)=4.096"), "{found:?}");
}

#[test]
fn cupti_is_found_where_it_is_said_to_be() {
    let machine = Machine::with_driver_only("12.6");
    let elsewhere = Machine::with("12.6");
    let folder = elsewhere.cupti().parent().unwrap().to_owned();
    for path in [elsewhere.cupti(), folder] {
        let option = format!("CUPTI_PATH={}", path.display());
        let recorded = record(&machine, SCRIPT, &["--", "--set", &option]);
        assert_eq!(recorded.kernels(), 2);
    }
    let recorded = record(&machine, SCRIPT, &["--", "--set", "CUPTI_PATH=/nonexistent"]);
    assert!(recorded.cuda("not_recorded").unwrap().contains("/nonexistent"));
}
