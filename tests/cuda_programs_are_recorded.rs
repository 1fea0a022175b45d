//! A CUDA program under `kymo record`, on a machine with a fake GPU: what it did is in the
//! trace, in every version of CUPTI, exactly.

#[path = "../backends/tests/fakes/mod.rs"]
mod fakes;
mod kymo;

use std::path::PathBuf;

use fakes::Machine;
use judge::Trace;
use tempfile::TempDir;

const VERSIONS: [&str; 8] = ["11.8", "12.0", "12.3", "12.6", "12.9", "13.0", "13.1", "13.4"];

struct Recorded {
    trace: Trace,
    messages: String,
    _folder: TempDir,
}

fn record(machine: &Machine, script: &str, options: &[(&str, &str)], words: &[&str]) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("t.pftrace");
    let mut command = kymo::kymo();
    machine.prepare(&mut command);
    for (key, value) in options {
        command.env(format!("KYMOGRAPH_{key}"), value);
    }
    command.args(["record", "-o"]).arg(&path).arg("--").arg(machine.program());
    command.arg(machine.script(script)).args(words);
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{} {messages}", output.status);
    Recorded { trace: Trace::open(&path), messages, _folder: folder }
}

const SCRIPT: &str = "\
    kernel _Z9vectorAddPKfS0_Pfi grid=4,2,1 block=128 dur=20us dynamic=512\n\
    copy htod 4096 dur=3us\n\
    set 1024 value=7\n\
    call cudaGetDevice\n\
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

const WORK: &str = "\
name                            n
Memcpy DtoD (Device -> Device)  3
Memcpy HtoD (Pinned -> Device)  1
Memset (Device)                 1
a                               3
b                               3
direct                          1
vectorAdd                       1
wrapped                         1
";

const CALLS: &str = "\
name                   n
cuLaunchKernel         1
cudaDeviceSynchronize  1
cudaEventRecord        1
cudaEventSynchronize   1
cudaGraphLaunch        3
cudaLaunchKernel       2
cudaMemcpyAsync        1
cudaMemsetAsync        1
cudaStreamSynchronize  1
cudaStreamWaitEvent    1
";

const ARROWS: &str = "\
call              work                            n
cuLaunchKernel    direct                          1
cudaGraphLaunch   Memcpy DtoD (Device -> Device)  3
cudaGraphLaunch   a                               3
cudaGraphLaunch   b                               3
cudaLaunchKernel  vectorAdd                       1
cudaLaunchKernel  wrapped                         1
cudaMemcpyAsync   Memcpy HtoD (Pinned -> Device)  1
cudaMemsetAsync   Memset (Device)                 1
";

const WAITS: &str = "\
name               resolved
Context Sync       0
Event Sync         1
Stream Sync        0
Stream Wait Event  1
";

#[test]
fn every_version_shows_the_whole_script() {
    for version in VERSIONS {
        let Recorded { trace, messages, .. } = record(&Machine::with(version), SCRIPT, &[], &[]);
        assert!(messages.contains(" 0 lost"), "{version}: {messages}");
        trace.assert_clean();
        let tables = [
            ("SELECT name, COUNT(*) AS n FROM gpu_slice GROUP BY 1 ORDER BY 1", WORK),
            (
                "SELECT s.name AS name, COUNT(*) AS n FROM slice s
                 JOIN thread_track t ON t.id = s.track_id GROUP BY 1 ORDER BY 1",
                CALLS,
            ),
            (
                "SELECT a.name AS call, b.name AS work, COUNT(*) AS n FROM flow f
                 JOIN slice a ON a.id = f.slice_out JOIN gpu_slice b ON b.id = f.slice_in
                 GROUP BY 1, 2 ORDER BY 1, 2",
                ARROWS,
            ),
            (
                "SELECT s.name AS name, SUM(IFNULL(EXTRACT_ARG(s.arg_set_id,
                        'debug.wait_on_cuda_event_record_corr_id'), 0) > 0) AS resolved
                 FROM slice s JOIN track t ON t.id = s.track_id
                 WHERE t.name = 'cuda_sync' GROUP BY 1 ORDER BY 1",
                WAITS,
            ),
        ];
        for (sql, expected) in tables {
            assert_eq!(trace.table(sql), expected, "{version}");
        }
        assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE dur < 0"), 0);
        // Work begins within the call that asks for it or later, on one clock.
        let early = "SELECT COUNT(*) FROM flow f JOIN slice a ON a.id = f.slice_out
            JOIN gpu_slice b ON b.id = f.slice_in
            WHERE b.ts < a.ts - 1000 OR b.ts > a.ts + 100000000";
        assert_eq!(trace.one_i64(early), 0, "{version}");
    }
}

#[test]
fn a_kernel_says_how_it_was_launched() {
    let script = "kernel _Z9vectorAddPKfS0_Pfi grid=4,2,1 block=128 regs=40 shared=16 dynamic=512\n\
                  graph 5\nkernel a\nend\nlaunch 5\nsync\n";
    let Recorded { trace, .. } = record(&Machine::with("13.1"), script, &[("ALL_ARGS", "1")], &[]);
    let args = "SELECT key || '=' || display_value FROM gpu_slice s JOIN args USING (arg_set_id)
        WHERE s.name = 'vectorAdd' AND display_value IS NOT NULL AND key NOT LIKE 'render%'
        AND key NOT LIKE 'command%' AND key NOT IN ('context_id', 'submission_id', 'upid')
        ORDER BY 1";
    let found = trace.strings(args);
    for expected in [
        "blocks per SM=0.0606060606060606",
        "device=0",
        "est. achieved occupancy %=0",
        "kernel_demangled_name=vectorAdd(float const*, float const*, float*, int)",
        "launch.grid_size.x=4",
        "launch.grid_size.y=2",
        "launch.workgroup_size.x=128",
        "registers_per_thread=40",
        "shared memory=528",
        "shared_mem_dynamic=512",
        "shared_mem_static=16",
        "stream=7",
    ] {
        assert!(found.iter().any(|arg| arg == expected), "{expected}: {found:?}");
    }
    let graph = "SELECT EXTRACT_ARG(arg_set_id, 'graph id') FROM gpu_slice WHERE name = 'a'";
    assert_eq!(trace.one_i64(graph), 5);
    let gpu = "SELECT name || '/' || vendor || '/' || architecture FROM gpu";
    assert_eq!(trace.strings(gpu), ["Fake GPU 0/NVIDIA/Hopper"]);
}

#[test]
fn activity_types_select() {
    let types = [("ACTIVITY_TYPES", "kernel,cuda_runtime")];
    let Recorded { trace, .. } = record(&Machine::with("12.6"), SCRIPT, &types, &[]);
    trace.assert_clean();
    let names = "SELECT DISTINCT name FROM gpu_slice ORDER BY 1";
    assert_eq!(trace.strings(names), ["a", "b", "direct", "vectorAdd", "wrapped"]);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'cuLaunchKernel'"), 0);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'Stream Sync'"), 0);
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'cudaMemcpyAsync'"), 1);
}

#[test]
fn work_of_several_threads_and_streams_is_complete() {
    let part =
        |stream| format!("repeat 3000\nkernel k{stream} dur=10 stream={stream}\nend\nsync\n");
    let parts: Vec<_> = (7..11).map(part).collect();
    let script = format!("set 8\nsync\nthread\n{}", parts.join("thread\n"));
    for version in ["12.6", "13.1"] {
        let machine = Machine::with(version).fault("several-threads").fault("out-of-order");
        let Recorded { trace, messages, .. } = record(&machine, &script, &[], &[]);
        assert!(messages.contains(" 0 lost"), "{messages}");
        trace.assert_clean();
        let kernels = "SELECT COUNT(*) FROM gpu_slice WHERE name LIKE 'k%'";
        assert_eq!(trace.one_i64(kernels), 12000, "{version}");
        let arrows = "SELECT COUNT(DISTINCT b.id) FROM flow f
            JOIN gpu_slice b ON b.id = f.slice_in WHERE b.name LIKE 'k%'";
        assert_eq!(trace.one_i64(arrows), 12000, "{version}");
    }
}
