//! `kymo record` on a program that uses Gaudi: the trace holds what the program's script says,
//! whatever the release of Synapse. The library is a fake (`backends/fakes`).

use gaudi::Machine;
use harness::gaudi;

const SCRIPT: &str = "\
    kernel gemm dur=20us\nkernel reduce dur=1500\n\
    copy htod 4096 dur=3us\ncopy dtoh 1048576 dur=50us\nset 1024 dur=700\n\
    kernel gemm stream=13 dur=800\ncall cudaMalloc\nsync\n";

/// Work with an arrow, by what the arrow comes from.
const ARROWS: &str = "
    SELECT c.name AS call, count(*) AS n FROM flow JOIN gpu_slice g ON g.id = slice_in
    JOIN slice c ON c.id = slice_out WHERE c.ts <= g.ts GROUP BY 1";

#[test]
fn all_work_with_every_synapse() {
    for version in ["new", "old"] {
        for release in [false, true] {
            let end: &[&str] = if release { &["--release"] } else { &[] };
            let arguments = [&["--exit", "7"], end].concat();
            let recorded = Machine::with(version).record(SCRIPT, &arguments);
            recorded.ended(7);
            recorded.trace.assert_clean();
            assert_eq!(
                recorded.device_work(),
                "name    n  dur\n\
                 gemm    2  20800\n\
                 memcpy  2  53000\n\
                 memset  1  700\n\
                 reduce  1  1500\n",
                "{version}, {:#?}",
                recorded.metadata
            );
            let queues = "SELECT DISTINCT t.name FROM gpu_slice s
                          JOIN gpu_track t ON t.id = s.track_id ORDER BY 1";
            let queues = recorded.trace.strings(queues);
            let starts: Vec<_> = queues.iter().map(|name| &name[..6]).collect();
            assert_eq!(starts, ["PDMA 0", "TPC 07", "TPC 13"]);
            assert_eq!(queues[0].split(' ').nth(1), Some("00"), "the first engine of its type");
            let calls = "SELECT name, count(*) AS n FROM slice
                         WHERE category = 'privateuse1_runtime' GROUP BY 1 ORDER BY 1";
            assert_eq!(
                recorded.trace.table(calls),
                "name                       n\n\
                 enqueueWithExternalEvents  6\n\
                 synDeviceMalloc            1\n\
                 synDeviceSynchronize       1\n"
            );
            // Older releases do not say which recipe it was.
            let arrows = match version {
                "new" => "call                       n\nenqueueWithExternalEvents  6\n",
                _ => "call  n\n",
            };
            assert_eq!(recorded.trace.table(ARROWS), arrows);
        }
    }
}

#[test]
fn work_says_what_it_was() {
    let args = |recorded: &gaudi::Recorded, name: &str| {
        recorded.trace.strings(&format!(
            "SELECT DISTINCT key || '=' || display_value FROM gpu_slice
             JOIN args USING (arg_set_id) WHERE name = '{name}' AND dur IN (1500, 3000)"
        ))
    };
    let recorded = Machine::with("new").record(SCRIPT, &["--", "--set", "ALL_ARGS=1"]);
    recorded.ended(0);
    let has = |name: &str, wanted: &[&str]| {
        let all = args(&recorded, name);
        for arg in wanted {
            assert!(all.iter().any(|have| have.starts_with(arg)), "{name}: no {arg} in {all:?}");
        }
    };
    has("reduce", &["recipeName=recipe_of_a_script", "recipeId=", "dataType=bf16"]);
    has("reduce", &["EventName=TPC task"]);
    has("memcpy", &["bytes=4096"]);
    let gpus = "SELECT name FROM gpu";
    assert_eq!(recorded.trace.strings(gpus), ["GPU 0 · Fake Gaudi 0"]);
    assert_eq!(recorded.fact("hpu", "0.trace_version"), Some("3"));
}

#[test]
fn every_device_is_recorded_not_only_the_first() {
    let script = "kernel a device=0\nkernel b device=1\nkernel c device=2\ncopy htod 8 device=1\n\
                  sync device=0\nsync device=1\nsync device=2\n";
    let recorded = Machine::with("new").devices(3).fault("memory").record(script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let work = "SELECT extract_arg(track.dimension_arg_set_id, 'gpu') AS gpu, s.name
                FROM gpu_slice s JOIN track ON track.id = s.track_id ORDER BY 2";
    assert_eq!(recorded.trace.table(work), "gpu  name\n0    a\n1    b\n2    c\n1    memcpy\n",);
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM gpu"), 3);
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM flow"), 4);
}

#[test]
fn several_threads() {
    let part = "repeat 50\nkernel k dur=10\nend\nsync\n";
    let script = format!("call cudaMalloc\nthread\n{part}thread\n{part}thread\n{part}");
    let recorded = Machine::with("new").record(&script, &["--nvtx", "step"]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let tracks = "SELECT count(DISTINCT track_id) FROM slice
                  WHERE name = 'enqueueWithExternalEvents'";
    assert_eq!(recorded.trace.one_i64(tracks), 3);
    assert_eq!(recorded.device_work(), "name  n    dur\nk     150  1500\n");
    assert_eq!(recorded.trace.one_i64("SELECT count(DISTINCT slice_in) FROM flow"), 150);
}

#[test]
fn activity_types_select() {
    let only = |types: &str| {
        let set = format!("ACTIVITY_TYPES={types}");
        let recorded = Machine::with("new").record(SCRIPT, &["--", "--set", &set]);
        recorded.ended(0);
        recorded.trace.assert_clean();
        let calls = "SELECT count(*) FROM slice WHERE category = 'privateuse1_runtime'";
        let work = recorded.trace.one_i64("SELECT count(*) FROM gpu_slice");
        (work, recorded.trace.one_i64(calls))
    };
    assert_eq!(only("kernel"), (6, 0));
    assert_eq!(only("privateuse1_runtime"), (0, 8));
    assert_eq!(only("cpu_op"), (0, 0));
}

#[test]
fn ten_thousand_kernels() {
    let script = "repeat 10000\nkernel k dur=10\nend\nsync\n";
    let recorded = Machine::with("new").record(script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    assert_eq!(recorded.device_work(), "name  n      dur\nk     10000  100000\n");
    assert_eq!(recorded.trace.one_i64("SELECT count(DISTINCT slice_in) FROM flow"), 10_000);
}

/// A program that launches a recipe many times before the device has done it once: the arrows
/// are those of the order.
#[test]
fn arrows_of_a_program_that_is_far_ahead() {
    let script = "\
        graph 5\nkernel a dur=1ms\nkernel b dur=2ms\nkernel a dur=1ms\nend\n\
        repeat 8\nlaunch 5\nkernel c dur=1ms\nlaunch 5 stream=13\nend\nsync\n";
    let recorded = Machine::with("new").record(script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    // Of each queue, the number of the launch by the order of calls, and by that of work.
    let wrong = "
        WITH arrows AS (
            SELECT g.track_id AS queue, g.name AS name, g.ts AS work, c.ts AS call
            FROM flow JOIN gpu_slice g ON g.id = slice_in JOIN slice c ON c.id = slice_out),
        ranked AS (
            SELECT dense_rank() OVER (PARTITION BY queue, name = 'c' ORDER BY call) AS by_call,
                   row_number() OVER (PARTITION BY queue, name = 'c' ORDER BY work) AS by_work,
                   name FROM arrows)
        SELECT count(*) FROM ranked
        WHERE by_call != CASE name WHEN 'c' THEN by_work ELSE (by_work + 2) / 3 END";
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM flow"), 2 * 8 * 3 + 8);
    assert_eq!(recorded.trace.one_i64(wrong), 0);
    let ahead = "SELECT count(*) FROM slice c WHERE c.name LIKE 'enqueue%'
                 AND c.ts < (SELECT min(ts + dur) FROM gpu_slice)";
    assert!(recorded.trace.one_i64(ahead) > 10, "the program was not ahead");
}
