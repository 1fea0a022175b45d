//! `kymo record` on a program that uses an Intel GPU: the trace holds what the program's
//! script says, call by call and kernel by kernel, whatever the version of PTI. The
//! libraries are fakes (`backends/fakes`), since there is no GPU here.

use harness::intel;
use intel::Machine;

const VERSIONS: [&str; 4] = ["0.12", "0.17", "1.0", "1.2"];

#[test]
fn all_work_and_all_calls_with_every_pti() {
    let script = "\
        kernel _Z4gemmPfi grid=4,2,1 block=128,2 dur=20us\n\
        kernel reduce dur=1500\n\
        kernel _ZTSN2at6native3AddE dur=600\n\
        copy htod 4096 dur=3us\n\
        copy dtoh 1048576 dur=50us\n\
        set 1024 value=7 dur=700\n\
        call cudaMalloc\n\
        call cudaGetDevice\n\
        kernel driven via=driver dur=900\n\
        kernel wrapped via=both dur=800\n\
        sync\n";
    for (version, sycl) in VERSIONS.into_iter().flat_map(|v| [(v, false), (v, true)]) {
        let machine = Machine::with(version);
        let machine = if sycl { machine.sycl() } else { machine };
        let recorded = machine.record(script, &["--exit", "7"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        assert_eq!(
            recorded.device_work(),
            "name                                            n  dur\n\
             Memcpy D2H (Device -> Host (Driver Allocated))  1  50000\n\
             Memcpy H2D (Host (Driver Allocated) -> Device)  1  3000\n\
             Memset (Device)                                 1  700\n\
             at::native::Add                                 1  600\n\
             driven                                          1  900\n\
             gemm                                            1  20000\n\
             reduce                                          1  1500\n\
             wrapped                                         1  800\n",
            "{version}"
        );
        // Only the classes that ask for work: neither urDeviceGet nor urQueueFinish.
        assert_eq!(
            recorded.calls(),
            "name                             n\n\
             urEnqueueKernelLaunch            4\n\
             urEnqueueUSMFill                 1\n\
             urEnqueueUSMMemcpy               2\n\
             urUSMDeviceAlloc                 1\n\
             zeCommandListAppendLaunchKernel  2\n",
            "{version}"
        );
        recorded.every_launch_has_its_arrow();
        assert_eq!(recorded.fact("xpu", "lost.never_reported"), Some("0"));
    }
}

/// The arguments of everything with this name, in Kineto's words, those that differ from run
/// to run left out.
fn args(recorded: &intel::Recorded, name: &str) -> Vec<String> {
    recorded.trace.strings(&format!(
        "SELECT DISTINCT key || '=' || display_value FROM gpu_slice JOIN args USING (arg_set_id)
         WHERE name = '{name}' AND key NOT IN ('appended', 'submitted')
           AND key NOT LIKE 'correlation' AND key NOT LIKE 'hw%' AND key NOT LIKE 'submission%'
         ORDER BY 1"
    ))
}

#[test]
fn work_says_what_kineto_says() {
    let script = "kernel gemm dur=20us\ncopy htod 4096 dur=2us\nset 1024 value=7 dur=700\nsync\n";
    let recorded = Machine::with("1.2").record(script, &[]);
    recorded.ended(0);
    let always = ["source_file_name=gemm.cpp", "source_line_number=42", "sycl queue=7"];
    assert!(always.iter().all(|arg| args(&recorded, "gemm").contains(&(*arg).to_owned())));
    let recorded = Machine::with("1.2").record(script, &["--", "--set", "ALL_ARGS=1"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let kineto = |name: &str, args_of: &[&str]| {
        let all = args(&recorded, name);
        for arg in args_of {
            assert!(all.contains(&(*arg).to_owned()), "{name}: no {arg} in {all:#?}");
        }
    };
    let place = ["device=0", "sycl queue=7", "l0 queue=0x0000000000001007"];
    kineto("gemm", &place);
    kineto("gemm", &["context=0x000000000000c001", "sycl_node_id=5", "sycl_invocation_id=3"]);
    kineto("Memcpy H2D (Host (Driver Allocated) -> Device)", &place);
    kineto(
        "Memcpy H2D (Host (Driver Allocated) -> Device)",
        &["bytes=4096", "l0 call=zeCommandListAppendMemoryCopy", "memory bandwidth (GB/s)=2.048"],
    );
    kineto("Memset (Device)", &["bytes=1024", "value=7", "l0 call=zeCommandListAppendMemoryFill"]);
    for name in ["appended", "submitted", "correlation", "kernel_id"] {
        let has = format!(
            "SELECT count(*) FROM gpu_slice JOIN args USING (arg_set_id)
             WHERE name = 'gemm' AND key = '{name}'"
        );
        assert_eq!(recorded.trace.one_i64(&has), 1, "{name}");
    }
}

#[test]
fn calls_lie_under_the_threads_that_made_them() {
    let part = "repeat 50\nkernel k via=both\ncopy htod 8\nend\nsync\n";
    let script = format!("call cudaMalloc\nthread\n{part}thread\n{part}thread\n{part}");
    let recorded = Machine::with("1.2").record(&script, &["--nvtx", "step"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    // Each within the range that its thread recorded itself.
    let within = "SELECT s.category AS api, count(*) AS n, count(DISTINCT t.utid) AS threads
                  FROM slice s JOIN thread_track t ON t.id = s.track_id
                  JOIN thread_track own ON own.utid = t.utid
                  JOIN slice r ON r.track_id = own.id AND r.name = 'step'
                  WHERE s.category LIKE 'xpu_%' AND s.category != 'xpu_sync'
                    AND s.ts BETWEEN r.ts - 100000 AND r.ts + r.dur + 100000 GROUP BY 1 ORDER BY 1";
    assert_eq!(
        recorded.trace.table(within),
        "api          n    threads\n\
         xpu_driver   150  3\n\
         xpu_runtime  301  4\n"
    );
    assert_eq!(recorded.kernels_of_threads(), "n\n50\n50\n50\n");
    recorded.every_launch_has_its_arrow();
}

#[test]
fn several_devices_and_queues() {
    let script = "\
        kernel k device=0\nkernel k device=1\nkernel k device=1 stream=13\n\
        copy peer:1 4096\n\
        sync device=0\nsync device=1\n";
    let recorded = Machine::with("1.2").devices(2).record(script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let work = "SELECT name, count(*) AS n, sum(dur) AS dur FROM gpu_slice GROUP BY 1 ORDER BY 1";
    assert_eq!(
        recorded.trace.table(work),
        "name                           n  dur\n\
         Memcpy D2D (Device -> Device)  1  1000\n\
         k                              3  3000\n"
    );
    let gpus = "SELECT name, count(*) AS n FROM gpu GROUP BY 1 ORDER BY 1";
    assert_eq!(
        recorded.trace.table(gpus),
        "name                      n\nGPU 0 · Fake Intel GPU 0  1\nGPU 1 · Fake Intel GPU 1  1\n"
    );
    let queues = "SELECT count(DISTINCT queue) FROM (
                      SELECT extract_arg(t.dimension_arg_set_id, 'gpu') || t.name AS queue
                      FROM gpu_slice s JOIN track t ON t.id = s.track_id)";
    assert_eq!(recorded.trace.one_i64(queues), 3);
    assert!(args(&recorded, "Memcpy D2D (Device -> Device)").contains(&"toDevice=1".to_owned()));
    recorded.every_launch_has_its_arrow();
}

#[test]
fn waits_are_ranges_of_the_process() {
    let script = "\
        kernel k dur=100us\nrecord event=4\nwait event=4 stream=13\nkernel k stream=13\n\
        sync event=4\nsync stream stream=13\nsync\n";
    for version in VERSIONS {
        let recorded = Machine::with(version).record(script, &[]);
        recorded.ended(0);
        recorded.trace.assert_clean();
        let waits =
            "SELECT slice.name, extract_arg(arg_set_id, 'debug.Type') AS type, count(*) AS n
                     FROM slice WHERE category = 'xpu_sync' GROUP BY 1, 2 ORDER BY 1";
        assert_eq!(
            recorded.trace.table(waits),
            "name                          type                   n\n\
             zeCommandListAppendBarrier    GPU_BARRIER_EXECUTION  1\n\
             zeCommandListHostSynchronize  HOST_COMMAND_LIST      1\n\
             zeCommandQueueSynchronize     HOST_COMMAND_QUEUE     1\n\
             zeEventHostSynchronize        HOST_EVENT             1\n",
            "{version}"
        );
    }
}

#[test]
fn activity_types_select() {
    let script = "kernel k\ncopy htod 8\noverhead 3 dur=5us\nsync\n";
    let types = ["--", "--set", "ACTIVITY_TYPES=kernel,overhead"];
    let recorded = Machine::with("1.2").record(script, &types);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(recorded.device_work(), "name  n  dur\nk     1  1000\n");
    assert_eq!(recorded.calls(), "name  n\n");
    let overheads = "SELECT name, dur FROM slice WHERE category = 'overhead'";
    assert_eq!(recorded.trace.table(overheads), "name          dur\nBuffer Flush  5000\n");
    let none = Machine::with("1.2").record(script, &["--", "--set", "ACTIVITY_TYPES=cpu_op"]);
    none.ended(0);
    assert_eq!(none.kernels(), 0);
}

/// All of them on request, and not only those that ask for work.
#[test]
fn all_calls_of_level_zero_on_request() {
    let script = "call cuCtxGetCurrent\ncall cudaGetDevice\nkernel k\nsync\n";
    let record = |types: &str| {
        let set = format!("ACTIVITY_TYPES={types}");
        let recorded = Machine::with("1.2").record(script, &["--", "--set", &set]);
        recorded.ended(0);
        recorded.trace.assert_clean();
        assert_eq!(recorded.kernels(), 1);
        let calls = "SELECT name FROM slice WHERE category IN ('xpu_driver', 'xpu_runtime')";
        recorded.trace.strings(calls)
    };
    assert!(!record("kernel,xpu_driver").contains(&"zeContextGetStatus".to_owned()));
    let all = record("kernel,level_zero_api");
    assert!(all.contains(&"zeContextGetStatus".to_owned()), "{all:?}");
    assert!(all.iter().all(|name| name.starts_with("ze")), "{all:?}");
    assert!(record("kernel,sycl_api").contains(&"urDeviceGet".to_owned()));
}

#[test]
fn a_hundred_thousand_kernels() {
    let script = "repeat 100000\nkernel k dur=10\nend\nsync\n";
    let recorded = Machine::with("1.2").record(script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 100_000, "{:#?}", recorded.metadata);
    recorded.every_launch_has_its_arrow();
}

/// JSON made from the trace has what Kineto writes for XPU (libkineto's
/// XpuptiActivityHandlers.cpp), so that tools that read that read this.
#[test]
fn its_json_has_kinetos_keys() {
    let script = "kernel gemm dur=20us via=both\ncopy htod 4096 dur=2us\nset 64 value=7\nsync\n";
    let recorded = Machine::with("1.2").record(script, &["--", "--set", "ALL_ARGS=1"]);
    recorded.ended(0);
    let json = recorded.json();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |category: &str| {
        let mut all = events.iter().filter(|event| event["cat"] == category && event["ph"] == "X");
        let first = all.next().unwrap_or_else(|| panic!("no {category}"));
        (first.clone(), 1 + all.count())
    };
    let place = ["device", "context", "sycl queue", "l0 queue", "correlation"];
    let times = ["appended", "submitted"];
    let memory = ["l0 call", "memory opration id", "bytes", "memory bandwidth (GB/s)"];
    let kernel = ["kernel_id", "sycl_node_id", "sycl_invocation_id"];
    for (category, own) in
        [("kernel", &kernel[..]), ("gpu_memcpy", &memory[..]), ("gpu_memset", &memory[..])]
    {
        let (event, count) = of(category);
        assert_eq!((event["pid"].as_i64(), event["tid"].as_i64(), count), (Some(0), Some(7), 1));
        for key in place.iter().chain(&times).chain(own) {
            assert!(!event["args"][key].is_null(), "{category}: no {key} in {event}");
        }
    }
    // Calls stand on their threads' rows.
    let (call, count) = of("xpu_runtime");
    assert_eq!((call["pid"].as_i64(), count), (call["tid"].as_i64(), 3));
    assert!(call["args"]["correlation"].is_u64(), "{call}");
    assert_eq!(of("xpu_driver").1, 1);
    let arrows = |ph: &str| events.iter().filter(|e| e["cat"] == "ac2g" && e["ph"] == ph).count();
    assert_eq!((arrows("s"), arrows("f")), (3, 3));
}

/// Devices of several vendors in one process: each has its own, and no arrow leads astray.
#[test]
fn with_gaudi_in_one_process() {
    let script = "repeat 10\nkernel k dur=2us\ncopy htod 64\nend\nsync\n";
    let machine = Machine::with("1.2").gaudi();
    let recorded = machine.record(script, &["--hpu", "--exit", "7"]);
    recorded.ended(7);
    recorded.trace.assert_clean();
    let work = "SELECT extract_arg(t.dimension_arg_set_id, 'gpu') AS gpu, s.name, count(*) AS n,
                       sum((SELECT count(*) FROM flow WHERE slice_in = s.id)) AS arrows
                FROM gpu_slice s JOIN track t ON t.id = s.track_id GROUP BY 1, 2 ORDER BY 1, 2";
    assert_eq!(
        recorded.trace.table(work),
        "gpu  name                                            n   arrows\n\
         0    Memcpy H2D (Host (Driver Allocated) -> Device)  10  10\n\
         0    k                                               10  10\n\
         1    k                                               10  10\n\
         1    memcpy                                          10  10\n"
    );
    let crossed = "SELECT count(*) FROM flow JOIN slice c ON c.id = slice_out
                   JOIN gpu_slice g ON g.id = slice_in JOIN track t ON t.id = g.track_id
                   WHERE (c.category = 'xpu_runtime')
                      != (extract_arg(t.dimension_arg_set_id, 'gpu') = 0)";
    assert_eq!(recorded.trace.one_i64(crossed), 0);
}

/// A program that profiles itself with PyTorch: both get what each asked for, as often as it
/// does so, and the program is none the wiser.
#[test]
fn another_user_of_pti_gets_its_records_too() {
    let script = "\
        kernel before via=runtime\ncopy htod 8\nsync\n---\n\
        repeat 300\nkernel within dur=2us\nend\ncopy htod 64\nset 8\nsync\n\
        thread\nrepeat 100\nkernel thread stream=13\nend\nsync\n---\n\
        kernel between\nsync\n---\n\
        repeat 50\nkernel again\nend\nsync\n---\n\
        kernel after\nsync\n";
    for version in ["0.12", "1.2"] {
        let recorded = Machine::with(version).record(script, &["--pti-client", "--exit", "4"]);
        recorded.ended(4);
        recorded.trace.assert_clean();
        let work = "SELECT name, count(*) AS n FROM gpu_slice WHERE name NOT LIKE 'Mem%'
                    GROUP BY 1 ORDER BY 1";
        let expected = "name     n\nafter    1\nagain    50\nbefore   1\nbetween  1\n\
                        thread   100\nwithin   300\n";
        assert_eq!(recorded.trace.table(work), expected, "{version}: {:#?}", recorded.metadata);
        recorded.every_launch_has_its_arrow();
        let printed = recorded.printed();
        let kernels: Vec<_> = printed.lines().filter(|line| line.starts_with("kind 1:")).collect();
        // What it counts is of both of its sessions.
        assert_eq!(kernels, ["kind 1: 400", "kind 1: 450"], "{version}: {printed}");
        assert!(printed.contains("kind 8: 1\n") && printed.contains("kind 9: 1\n"), "{printed}");
        assert_eq!(recorded.number("xpu", "buffers_of_others"), 0);
        assert!(recorded.number("xpu", "records_shared") >= 452);
    }
}

/// PTI's flush may lose what is written meanwhile: that is counted, and work is flushed seldom.
#[test]
fn what_a_flush_loses_is_counted() {
    let script = "repeat 8000\nkernel k dur=10\nend\nsync\nthread\nrepeat 8000\n\
                  kernel k dur=10 stream=13\nend\nsync\n";
    let recorded = Machine::with("1.2").fault("race").record(script, &[]);
    recorded.trace.assert_clean();
    let lost = recorded.number("xpu", "lost.never_reported");
    assert_eq!(recorded.kernels() + lost, 16_000, "{:#?}", recorded.metadata);
}
