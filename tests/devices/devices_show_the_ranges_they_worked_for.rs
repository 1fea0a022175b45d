//! What a program calls `step` or `forward` is seen on the streams that worked for it: as
//! long as the kernels that were launched inside of it, ranges in ranges.

use harness::{kymo, nvidia};
use nvidia::Machine;
use nvidia::{WORK, record};

/// Ranges on devices, with what lies around them, and the kernels that begin and end with
/// them.
fn ranges() -> String {
    format!(
        "SELECT t.name AS track, s.depth, s.name, p.name AS around,
                group_concat(DISTINCT g.name) AS begins, group_concat(DISTINCT h.name) AS ends
         FROM slice s JOIN track t ON t.id = s.track_id LEFT JOIN slice p ON p.id = s.parent_id
         LEFT JOIN {WORK} g ON g.ts = s.ts LEFT JOIN {WORK} h ON h.ts + h.dur = s.ts + s.dur
         WHERE s.category = 'gpu_user_annotation'
         GROUP BY s.id ORDER BY 1, s.ts, s.depth"
    )
}

const STEP: &str = "\
    push step\n\
    push forward\n\
    kernel a\n\
    push attention\n\
    kernel b dur=3us\n\
    kernel c dur=2us\n\
    pop\n\
    pop\n\
    push aten::add, seq = 7, op_id = 8\n\
    kernel d\n\
    pop\n\
    push optimizer, op_id = 9\n\
    kernel e stream=13 dur=5us\n\
    push nothing\n\
    call cudaMalloc\n\
    pop\n\
    pop\n\
    pop\n\
    kernel outside\n\
    sync\n";

#[test]
fn ranges_lie_in_ranges_on_every_stream() {
    for version in ["11.8", "12.6", "13.1"] {
        let recorded = record(&Machine::with(version), STEP, &[]);
        recorded.ended(0);
        recorded.trace.assert_clean();
        assert_eq!(
            recorded.trace.table(&ranges()),
            "track       depth  name       around   begins  ends\n\
             Stream 007  0      step       NULL     a       d\n\
             Stream 007  1      forward    step     a       c\n\
             Stream 007  2      attention  forward  b       c\n\
             Stream 013  0      step       NULL     e       e\n\
             Stream 013  1      optimizer  step     e       e\n",
            "{version}"
        );
    }
}

/// In a row of its own behind the stream's, in the group of the GPU; who sums up what kernels and
/// copies took leaves it out by its stage, and none of it is a compute kernel.
#[test]
fn they_lie_beside_the_kernels() {
    let recorded = record(&Machine::with("12.6"), STEP, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    // The viewer's order of rows, and in each the depth at which it draws.
    let rows = "SELECT DISTINCT name FROM gpu_track ORDER BY lower(name)";
    assert_eq!(
        recorded.trace.strings(rows),
        [
            "Stream 007 default",
            "Stream 007 · annotations",
            "Stream 013",
            "Stream 013 · annotations",
        ]
    );
    let drawn = "
        SELECT t.name AS row, l.layout_depth AS depth, s.name,
               extract_arg(s.arg_set_id, 'description') AS stage,
               s.render_stage_category AS category
        FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
        JOIN experimental_slice_layout((SELECT group_concat(id) FROM gpu_track
            WHERE name = 'Stream 007 · annotations')) l ON l.id = s.id
        ORDER BY s.ts, l.layout_depth";
    let said = "A range of the program, while the device worked for it";
    assert_eq!(recorded.trace.rows(drawn).len(), 3, "{}", recorded.trace.table(drawn));
    for (row, (depth, name)) in
        recorded.trace.rows(drawn).iter().zip([(0, "step"), (1, "forward"), (2, "attention")])
    {
        assert_eq!(row[1].as_i64(), Some(depth));
        assert_eq!((row[2].as_str(), row[3].as_str()), (Some(name), Some(said)));
        assert_eq!(row[4].as_i64(), Some(0));
    }
    // The same ranges at the same times as on the tracks of the process.
    let apart = "
        SELECT count(*) FROM slice s WHERE s.category = 'gpu_user_annotation' AND NOT EXISTS
            (SELECT 1 FROM gpu_slice g WHERE (g.name, g.ts, g.dur) = (s.name, s.ts, s.dur))";
    assert_eq!(recorded.trace.one_i64(apart), 0);
    // Sums of kernels are what they are without ranges.
    let sums = "SELECT name, count(*) AS n, sum(dur) AS dur FROM gpu_slice
                WHERE render_stage_category = 2 GROUP BY 1 ORDER BY 1";
    let types = ["--", "--set", "ACTIVITY_TYPES=kernel,cuda_runtime"];
    let plain = record(&Machine::with("12.6"), STEP, &types);
    assert_eq!(recorded.trace.table(sums), plain.trace.table(sums));
}

/// Through the hub as well, which knows them once.
#[test]
fn they_survive_a_conversion() {
    let recorded = record(&Machine::with("12.6"), STEP, &[]);
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again.pftrace");
    let mut command = kymo::kymo();
    command.arg("convert").arg(recorded.path()).arg(&again);
    assert!(command.output().unwrap().status.success());
    let again = oracle::Trace::open(&again);
    again.assert_clean();
    let work = "SELECT t.name AS row, s.name, s.ts, s.dur, s.render_stage_category AS category,
                       extract_arg(s.arg_set_id, 'description') AS stage, p.pid
                FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
                JOIN process p USING (upid) ORDER BY s.ts, t.name, s.dur DESC, s.name";
    assert_eq!(again.table(work), recorded.trace.table(work));
}

/// Where Kineto writes them: on the rows of the streams.
#[test]
fn they_are_kinetos_in_its_json() {
    let recorded = record(&Machine::with("12.6"), STEP, &[]);
    let place = r#""pid": 0, "tid": 13"#;
    let lines = recorded.json_lines(&[r#""cat": "gpu_user_annotation""#]);
    assert!(lines.iter().all(|line| line.contains(r#""ph": "X""#)), "{lines:#?}");
    let at = |place: &str| lines.iter().filter(|line| line.contains(place)).count();
    assert_eq!((lines.len(), at(place), at(r#""pid": 0, "tid": 7"#)), (5, 2, 3), "{lines:#?}");
}

#[test]
fn threads_and_graphs() {
    let part = "push part\nlaunch 5\nkernel k\npop\nsync\n";
    let script = format!("graph 5\nkernel a\nkernel b dur=9us\nend\nthread\n{part}thread\n{part}");
    let recorded = record(&Machine::with("12.9"), &script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let covered = "SELECT count(*) AS kernels, count(DISTINCT s.id) AS ranges FROM slice s
                   JOIN gpu_slice g ON g.ts BETWEEN s.ts AND s.ts + s.dur
                   WHERE s.category = 'gpu_user_annotation' AND g.name = 'b'
                     AND g.ts + g.dur <= s.ts + s.dur";
    let ranges = "SELECT count(*) FROM slice WHERE category = 'gpu_user_annotation'";
    assert_eq!(recorded.trace.one_i64(ranges), 2);
    assert!(recorded.trace.table(covered).ends_with(" 2\n"), "{}", recorded.trace.table(covered));
}

/// However many there are: the one around them all does not keep the others waiting.
#[test]
fn a_thousand_steps_in_a_run() {
    let step = "push step\nrepeat 20\nkernel k dur=50\nend\npop\n";
    let script = format!("push run\n{}pop\nsync\n", step.repeat(1000));
    let recorded = record(&Machine::with("13.1"), &script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let ranges = "SELECT s.name, p.name AS around, count(*) AS n, sum(s.dur > 0) AS finished
                  FROM slice s LEFT JOIN slice p ON p.id = s.parent_id
                  WHERE s.category = 'gpu_user_annotation' GROUP BY 1 ORDER BY 1";
    assert_eq!(
        recorded.trace.table(ranges),
        "name  around  n     finished\n\
         run   NULL    1     1\n\
         step  run     1000  1000\n"
    );
    let fact =
        |key: &str| recorded.metadata.iter().find(|(name, _)| name.ends_with(key)).unwrap().1;
    let keys = ["launches_without_work", "launches_unfollowed"];
    assert_eq!(keys.map(|key| &**fact(key)), ["0"; 2]);
    let keys = ["device_ranges_too_deep", "device_ranges_moved"];
    assert_eq!(keys.map(|key| &**fact(key)), ["0"; 2]);
}

#[test]
fn they_are_left_out_on_request() {
    let types = ["--", "--set", "ACTIVITY_TYPES=kernel,cuda_runtime"];
    let recorded = record(&Machine::with("12.6"), STEP, &types);
    recorded.trace.assert_clean();
    assert_eq!(recorded.trace.one_i64("SELECT count(*) FROM slice WHERE name = 'step'"), 1);
    assert_eq!(recorded.kernels(), 6);
}
