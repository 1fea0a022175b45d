//! `kymo record` on a program that uses CUDA: the trace holds what the program's script
//! says, call by call and kernel by kernel, whatever the version of CUPTI. The libraries
//! are fakes (`backends/fakes`), since there is no GPU here.

use harness::nvidia;
use nvidia::Machine;
use nvidia::record;

const VERSIONS: [&str; 8] = ["11.8", "12.0", "12.3", "12.6", "12.9", "13.0", "13.1", "13.4"];

#[test]
fn all_work_and_all_calls_with_every_cupti() {
    let script = "\
        kernel _Z4gemmPfi grid=4,2,1 block=128,2 regs=40 shared=512 dynamic=256 dur=20us\n\
        kernel reduce dur=1500\n\
        copy htod 4096 dur=3us\n\
        copy dtoh 1048576 dur=50us\n\
        set 1024 value=7 dur=700\n\
        call cudaMalloc\n\
        call cudaGetDevice\n\
        kernel driven via=driver dur=900\n\
        kernel wrapped via=both dur=800\n\
        sync\n";
    for version in VERSIONS {
        let recorded = record(&Machine::with(version), script, &["--exit", "7"]);
        recorded.ended(7);
        recorded.trace.assert_clean();
        assert_eq!(
            recorded.device_work(),
            "name                            n  dur\n\
             Memcpy DtoH (Device -> Pinned)  1  50000\n\
             Memcpy HtoD (Pinned -> Device)  1  3000\n\
             Memset (Device)                 1  700\n\
             driven                          1  900\n\
             gemm                            1  20000\n\
             reduce                          1  1500\n\
             wrapped                         1  800\n",
            "{version}"
        );
        assert_eq!(
            recorded.calls(),
            "name                   n\n\
             cuLaunchKernel         1\n\
             cudaDeviceSynchronize  1\n\
             cudaLaunchKernel       3\n\
             cudaMalloc             1\n\
             cudaMemcpyAsync        2\n\
             cudaMemsetAsync        1\n",
            "{version}"
        );
        recorded.every_launch_has_its_arrow();
    }
}

/// Records that CUPTI 13.0 wrote on an H200, byte by byte: a self-test's report has them.
#[test]
fn what_an_h200_wrote_is_read() {
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/devices/cuda-13.0-h200.txt");
    let machine = Machine::with("13.0").fault(&format!("replay:{report}"));
    let recorded = record(&machine, "kernel own dur=1us\nsync\n", &["--", "--set", "ALL_ARGS=1"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let work = "SELECT s.name, dur, t.name AS row, extract_arg(s.arg_set_id, 'bytes') AS bytes,
                       extract_arg(s.arg_set_id, 'correlation') AS id
                FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
                WHERE s.name != 'own' ORDER BY id";
    assert_eq!(
        recorded.trace.table(work),
        "name                            dur  row         bytes  id\n\
         Memcpy HtoD (Pinned -> Device)  928  Stream 015  4100   58\n\
         kernel_of_the_report            736  Stream 015  NULL   61\n\
         kernel_of_the_report            768  Stream 015  NULL   64\n\
         Memcpy DtoD (Device -> Device)  992  Stream 015  4136   76\n\
         Memset (Device)                 800  Stream 015  4140   77\n\
         Memset (Device)                 928  Stream 016  4188   94\n"
    );
    let launch = "SELECT replace(key, 'debug.', '') || '=' || display_value
                  FROM gpu_slice s JOIN args USING (arg_set_id)
                  WHERE s.name = 'kernel_of_the_report' AND dur = 736
                    AND (key LIKE 'launch.%' OR key LIKE '%registers%') ORDER BY key";
    let said = recorded.trace.strings(launch);
    for part in ["launch.grid_size.x=2", "launch.workgroup_size.x=64"] {
        assert!(said.iter().any(|one| one == part), "{part} in {said:?}");
    }
    let overheads = "SELECT count(*) FROM slice WHERE category = 'overhead'";
    assert_eq!(recorded.trace.one_i64(overheads), 2);
    for key in ["records_skipped", "lost.without_times", "lost.in_the_future", "buffers_broken"] {
        assert_eq!(recorded.cuda(key), Some("0"), "{key}");
    }
}

#[test]
fn launches_say_how() {
    let script = "kernel _Z4gemmPfi grid=4,2,1 block=128,2 regs=40 shared=512 dynamic=256\nsync\n";
    let recorded = record(&Machine::with("13.1"), script, &[]);
    recorded.ended(0);
    let args = "SELECT key || '=' || display_value FROM gpu_slice JOIN args USING (arg_set_id)
                WHERE key LIKE 'launch.%' OR key LIKE 'kernel%' OR key LIKE '%shared%'
                   OR key = 'registers_per_thread' ORDER BY 1";
    assert_eq!(
        recorded.trace.strings(args),
        [
            "kernel_demangled_name=gemm(float*, int)",
            "kernel_name=_Z4gemmPfi",
            "launch.grid_size.x=4",
            "launch.grid_size.y=2",
            "launch.grid_size.z=1",
            "launch.workgroup_size.x=128",
            "launch.workgroup_size.y=2",
            "launch.workgroup_size.z=1",
            "registers_per_thread=40",
            "shared_mem_dynamic=256",
            "shared_mem_static=512",
        ]
    );
}

#[test]
fn calls_lie_within_the_ranges_of_their_thread() {
    let part = "repeat 50\nkernel k\ncopy htod 8\nend\nsync\n";
    let script = format!("call cudaMalloc\nthread\n{part}thread\n{part}thread\n{part}");
    let recorded = record(&Machine::with("12.9"), &script, &["--nvtx", "step"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(
        recorded.calls_by_range(),
        "range  n    threads\n\
         step   304  4\n"
    );
    assert_eq!(recorded.kernels_of_threads(), "n\n50\n50\n50\n");
    recorded.every_launch_has_its_arrow();
}

#[test]
fn graphs_by_node() {
    let script = "\
        graph 5\nkernel a\nkernel b dur=2us\ncopy dtod 64\nset 8\nend\n\
        repeat 10\nlaunch 5\nend\n\
        kernel alone\n\
        sync\n";
    let recorded = record(&Machine::with("12.6"), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let nodes = "SELECT c.name AS call, g.name AS node, count(*) AS n,
                        extract_arg(g.arg_set_id, 'graph id') AS graph,
                        extract_arg(g.arg_set_id, 'graph node id') & 15 AS number
                 FROM flow JOIN gpu_slice g ON g.id = slice_in JOIN slice c ON c.id = slice_out
                 GROUP BY 1, 2, 4, 5 ORDER BY 1, 5";
    assert_eq!(
        recorded.trace.table(nodes),
        "call              node                            n   graph  number\n\
         cudaGraphLaunch   a                               10  5      1\n\
         cudaGraphLaunch   b                               10  5      2\n\
         cudaGraphLaunch   Memcpy DtoD (Device -> Device)  10  5      3\n\
         cudaGraphLaunch   Memset (Device)                 10  5      4\n\
         cudaLaunchKernel  alone                           1   NULL   NULL\n"
    );
    assert_eq!(
        recorded.trace.one_i64("SELECT count(*) FROM slice WHERE name = 'cudaGraphLaunch'"),
        10
    );
}

#[test]
fn graphs_as_a_whole() {
    let script = "graph 5\nkernel a\nkernel b dur=2us\nend\nrepeat 10\nlaunch 5\nend\nsync\n";
    let types = ["--", "--set", "ACTIVITY_TYPES=kernel,graph_trace,cuda_runtime"];
    let recorded = record(&Machine::with("12.6"), script, &types);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(recorded.device_work(), "name        n   dur\nCUDA graph  10  30000\n");
    recorded.every_launch_has_its_arrow();
}

#[test]
fn several_devices_and_streams() {
    let script = "\
        kernel k device=0\nkernel k device=1\nkernel k device=1 stream=13\n\
        copy peer:1 4096\n\
        sync device=0\nsync device=1\n";
    let recorded = record(&Machine::with("12.9").devices(2), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(
        recorded.device_work(),
        "name                            n  dur\n\
         Memcpy PtoP (Device -> Device)  1  1000\n\
         k                               3  3000\n"
    );
    let gpus = "SELECT name, count(*) AS n FROM gpu GROUP BY 1 ORDER BY 1";
    assert_eq!(
        recorded.trace.table(gpus),
        "name                n\nGPU 0 · Fake GPU 0  1\nGPU 1 · Fake GPU 1  1\n"
    );
    let tracks = "SELECT count(DISTINCT track_id) FROM gpu_slice";
    assert_eq!(recorded.trace.one_i64(tracks), 3);
    recorded.every_launch_has_its_arrow();
}

#[test]
fn waits_and_what_they_wait_for() {
    let script = "\
        kernel first dur=100us\n\
        record event=4\n\
        wait event=4 stream=13\n\
        kernel second stream=13\n\
        sync event=4\n\
        sync stream stream=13\n\
        sync\n";
    for version in VERSIONS {
        let recorded = record(&Machine::with(version), script, &[]);
        recorded.ended(0);
        recorded.trace.assert_clean();
        let waits = "SELECT name, count(*) AS n FROM slice
                     WHERE category = 'cuda_sync' GROUP BY 1 ORDER BY 1";
        assert_eq!(
            recorded.trace.table(waits),
            "name               n\n\
             Context Sync       1\n\
             Event Sync         1\n\
             Stream Sync        1\n\
             Stream Wait Event  1\n",
            "{version}"
        );
        // The event was recorded after the first kernel; stream 13 did only the second.
        let arrows = "SELECT g.name AS work, t.name AS place, w.name AS wait FROM flow
                      JOIN gpu_slice g ON g.id = slice_out JOIN slice w ON w.id = slice_in
                      JOIN track t ON t.id = w.track_id ORDER BY w.ts";
        assert_eq!(
            recorded.trace.table(arrows),
            "work    place                        wait\n\
             first   Stream 013 waits for events  Stream Wait Event\n\
             first   CPU waits for GPU            Event Sync\n\
             second  CPU waits for stream 013     Stream Sync\n",
            "{version}"
        );
        let known = "SELECT extract_arg(arg_set_id, 'debug.wait_on_stream') AS stream,
                            extract_arg(arg_set_id, 'debug.wait_on_cuda_event_record_corr_id') = (
                              SELECT extract_arg(arg_set_id, 'debug.correlation') FROM slice
                              WHERE name = 'Stream Wait Event') - 1 AS record,
                            extract_arg(arg_set_id, 'debug.cuda_sync_kind') AS kind
                     FROM slice WHERE name IN ('Stream Wait Event', 'Event Sync') ORDER BY ts";
        assert_eq!(
            recorded.trace.table(known),
            "stream  record  kind\n\
             7       1       Stream Wait Event\n\
             7       1       Event Sync\n",
            "{version}"
        );
        // The call that recorded the event has the number that waits state.
        let recorded_by = "SELECT COUNT(*) FROM slice r JOIN slice w
                             ON extract_arg(r.arg_set_id, 'debug.correlation') =
                                extract_arg(w.arg_set_id, 'debug.wait_on_cuda_event_record_corr_id')
                           WHERE r.name LIKE 'c%EventRecord' AND w.category = 'cuda_sync'";
        assert_eq!(recorded.trace.one_i64(recorded_by), 2, "{version}");
    }
}

#[test]
fn work_under_way_at_exit() {
    let script = "kernel quick\nkernel slow dur=300ms\n";
    let recorded = record(&Machine::with("12.6"), script, &["--exit", "3"]);
    recorded.ended(3);
    recorded.trace.assert_clean();
    assert_eq!(
        recorded.device_work(),
        "name   n  dur\n\
         quick  1  1000\n\
         slow   1  300000000\n"
    );
}

#[test]
fn a_hundred_thousand_kernels() {
    let script = "repeat 100000\nkernel k dur=10\nend\nsync\n";
    let recorded = record(&Machine::with("13.1"), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(recorded.kernels(), 100_000);
    recorded.every_launch_has_its_arrow();
}

/// A GPU machine whose program uses no CUDA, and one without GPU.
#[test]
fn nothing_where_there_is_nothing() {
    let recorded = record(&Machine::with("12.6"), "", &["--nvtx", "only"]);
    recorded.ended(0);
    assert_eq!(recorded.kernels(), 0);
    let recorded = record(&Machine::without_driver("12.6"), "kernel k\n", &["--exit", "4"]);
    recorded.ended(4);
    assert_eq!(recorded.printed(), "no CUDA\n");
    recorded.trace.assert_clean();
}

/// Queues are called what the program's author calls them, and say how urgent they are.
#[test]
fn streams_have_names_and_priorities() {
    let script = "kernel a\nkernel b stream=13 priority=-5\nsync\n";
    let recorded = record(&Machine::with("12.6"), script, &[]);
    recorded.trace.assert_clean();
    let queues = "SELECT g.name AS kernel, t.name = 'Stream 007 default' AS first,
                         t.name = 'Stream 013' AS second
                  FROM gpu_slice g JOIN track t ON t.id = g.track_id ORDER BY 1";
    assert_eq!(
        recorded.trace.table(queues),
        "kernel  first  second\n\
         a       1      0\n\
         b       0      1\n"
    );
    let described = |text: &str| recorded.json_lines(&["thread_name", text]).len();
    assert_eq!((described(", priority -5"), described(", priority")), (1, 1));
}

#[test]
fn the_machine_is_described() {
    let recorded = record(&Machine::with("12.6").devices(2), "kernel k device=1\nsync\n", &[]);
    recorded.trace.assert_clean();
    let gpus = "SELECT name, vendor, architecture, pci_bdf, uuid FROM gpu ORDER BY 1";
    assert_eq!(
        recorded.trace.table(gpus),
        "name                vendor  architecture  pci_bdf       uuid\n\
         GPU 0 · Fake GPU 0  NVIDIA  Hopper        0000:10:00.0  6b796d6f2d66616b652d6770752d3030\n\
         GPU 1 · Fake GPU 1  NVIDIA  Hopper        0000:11:00.0  6b796d6f2d66616b652d6770752d3031\n"
    );
    assert_eq!(recorded.metadata["cuda.driver"], "12.6");
    assert!(recorded.metadata["cuda.cupti"].starts_with("24 ("), "{:?}", recorded.metadata);
    let device = recorded.json_lines(&["Fake GPU 1"]).concat();
    for fact in ["computeMajor", "numSms", "totalGlobalMem", "uuid"] {
        assert!(device.contains(fact), "{fact}: {device}");
    }
}
