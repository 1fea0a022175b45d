//! What people see in Perfetto's UI, asked of trace_processor: names and order of rows, and what
//! is said of work. Further parts have tests of their own: `a_long_call_stays_on_its_thread`,
//! `devices_show_the_ranges_they_worked_for`, `gradients_belong_to_the_ranges_around_backward`,
//! `steps_have_one_numbering`, `threads_have_the_names_that_python_gives_them`,
//! `a_trace_opens_in_the_ui_and_nowhere_else`, and of converted traces
//! `kinetos_traces_read_at_a_glance`. `tests/ui/pictures.mjs` shows it all.

use harness::{kymo, nvidia};
use kymograph_protos::perfetto::trace_packet::Data;
use kymograph_protos::perfetto::{self, TrackDescriptor};
use nvidia::Machine;
use nvidia::record;
use oracle::Trace;
use prost::Message as _;
use std::path::Path;

/// Two ranks, the second of which starts first.
const JOB: &str = "RANK=1 WORLD_SIZE=2 \"$0\" \"$1\" & sleep 0.4; \
                   RANK=0 WORLD_SIZE=2 \"$0\" \"$1\"; wait";

const WORK: &str = "\
    push step\n\
    kernel a\n\
    kernel b stream=13\n\
    record event=1 stream=7\n\
    wait event=1 stream=13\n\
    sync stream stream=13\n\
    pop\n\
    sync\n";

fn job(machine: &Machine, script: &str) -> (tempfile::TempDir, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = kymo::kymo();
    machine.prepare(&mut command);
    command.args(["record", "--quiet", "--output"]).arg(&path).args(["--", "sh", "-c", JOB]);
    let output = command.arg(machine.program()).arg(machine.script(script)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let trace = Trace::open(&path);
    trace.assert_clean();
    (folder, trace)
}

fn descriptors(path: &Path) -> Vec<TrackDescriptor> {
    let bytes = std::fs::read(path).unwrap();
    let packets = perfetto::Trace::decode(&bytes[..]).unwrap().packet.into_iter();
    let described = packets.filter_map(|packet| match packet.data {
        Some(Data::TrackDescriptor(track)) => Some(track),
        _ => None,
    });
    described.collect()
}

#[test]
fn ranks_in_their_order() {
    let (folder, trace) = job(&Machine::with("12.6").devices(2), WORK);
    let names = "SELECT name FROM process WHERE name LIKE 'rank %' ORDER BY 1";
    for (rank, name) in trace.strings(names).iter().enumerate() {
        assert!(name.starts_with(&format!("rank {rank} · ")) && !name.contains('/'), "{name}");
    }
    // The viewer looks at these; trace_processor shows them in no table before v58.
    let mut rows: Vec<(i32, i32, Option<i32>)> = Vec::new();
    let mut ordered = false;
    for track in descriptors(&folder.path().join("t.pftrace")) {
        ordered |= (track.uuid, track.process_ordering, track.thread_ordering)
            == (Some(0), Some(1), Some(1));
        assert!(track.process.is_none() || track.child_ordering.is_none());
        let rank = track.sibling_order_rank;
        if let Some(process) = track.process {
            rows.push((rank.unwrap(), process.pid.unwrap(), None));
        } else if let Some(thread) = track.thread {
            rows.push((rank.unwrap(), thread.pid.unwrap(), thread.tid.map(|tid| tid as i32)));
        }
    }
    assert!(ordered);
    let of = |rank: i32| rows.iter().find(|row| row.0 == rank && row.2.is_none()).unwrap().1;
    let main = |pid: i32| rows.contains(&(0, pid, Some(pid)));
    assert!(of(0) > of(1) && main(of(0)) && main(of(1)), "{rows:?}");
    let streams = "SELECT DISTINCT name FROM gpu_track ORDER BY lower(name)";
    assert_eq!(
        trace.strings(streams),
        [
            "Stream 007 default · rank 0",
            "Stream 007 default · rank 1",
            "Stream 007 · rank 0 · annotations",
            "Stream 007 · rank 1 · annotations",
            "Stream 013 · rank 0",
            "Stream 013 · rank 0 · annotations",
            "Stream 013 · rank 1",
            "Stream 013 · rank 1 · annotations",
        ]
    );
    let shared = "SELECT count(*) FROM (SELECT t.name FROM gpu_slice s
                  JOIN gpu_track t ON t.id = s.track_id
                  GROUP BY 1 HAVING count(DISTINCT s.upid) > 1)";
    assert_eq!(trace.one_i64(shared), 0, "no two processes share one");
    let names = "SELECT name || ' / ' || model FROM gpu ORDER BY 1";
    assert_eq!(
        trace.strings(names),
        ["GPU 0 · Fake GPU 0 / Fake GPU 0", "GPU 1 · Fake GPU 1 / Fake GPU 1"]
    );
}

#[test]
fn what_tells_about_streams_is_folded() {
    let recorded = record(&Machine::with("12.6"), WORK, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let rows = "SELECT g.name AS parent, t.name AS row, o.int_value AS place
                FROM track t JOIN track g ON g.id = t.parent_id
                JOIN args o ON o.arg_set_id = t.source_arg_set_id
                    AND o.flat_key = 'sibling_order_rank'
                WHERE g.name LIKE 'GPU %' ORDER BY 1, 3";
    assert_eq!(
        recorded.trace.table(rows),
        "parent                 row                          place\n\
         GPU 0 annotations      Stream 007                   16\n\
         GPU 0 annotations      Stream 013                   28\n\
         GPU 0 synchronization  CPU waits for GPU            1\n\
         GPU 0 synchronization  CPU waits for stream 013     28\n\
         GPU 0 synchronization  Stream 013 waits for events  29\n"
    );
    let loose =
        "SELECT count(*) FROM process_track WHERE name LIKE '%stream%' AND parent_id IS NULL";
    assert_eq!(recorded.trace.one_i64(loose), 0);
    // One process: nothing has to be told apart.
    let streams = "SELECT DISTINCT name FROM gpu_track ORDER BY 1";
    assert_eq!(
        recorded.trace.strings(streams),
        [
            "Stream 007 default",
            "Stream 007 · annotations",
            "Stream 013",
            "Stream 013 · annotations",
        ]
    );
}

/// What the plugins for GPUs show: each launch knows where it ran, for whom and how large it
/// was; and so do copies and fills.
#[test]
fn device_work_tells_what_it_is() {
    let script =
        "kernel _Z9vectorAddPKfS0_Pfi grid=2,3,4 block=8,2,1\ncopy htod 64\nset 32\nsync\n";
    let recorded = record(&Machine::with("12.6"), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let args = |of: &str| {
        recorded.trace.strings(&format!(
            "SELECT a.key || '=' || a.display_value FROM gpu_slice s JOIN args a USING (arg_set_id)
             WHERE s.name LIKE '{of}' AND a.key IN ('arch', 'device', 'stream', 'correlation',
                'grid_size', 'workgroup_size', 'thread_count', 'process_id', 'process_name',
                'kernel_name', 'kernel_demangled_name', 'registers_per_thread',
                'launch.grid_size.x', 'launch.grid_size.y', 'launch.grid_size.z',
                'launch.workgroup_size.x') ORDER BY 1"
        ))
    };
    let process = "SELECT pid || '' FROM process WHERE name LIKE 'kymo%' OR name LIKE '%program%'";
    let pid = recorded.trace.strings(process).pop().unwrap();
    let kernel = args("vectorAdd");
    for expected in [
        "arch=sm_90",
        "device=0",
        "stream=7",
        "grid_size=24",
        "workgroup_size=16",
        "thread_count=384",
        "kernel_name=_Z9vectorAddPKfS0_Pfi",
        "kernel_demangled_name=vectorAdd(float const*, float const*, float*, int)",
        "launch.grid_size.x=2",
        "launch.grid_size.y=3",
        "launch.grid_size.z=4",
        "launch.workgroup_size.x=8",
        &format!("process_id={pid}"),
    ] {
        assert!(kernel.iter().any(|arg| arg == expected), "{expected} {kernel:#?}");
    }
    for work in ["vectorAdd", "Memcpy%", "Memset%"] {
        let args = args(work);
        for name in ["device", "stream", "correlation", "process_id", "process_name"] {
            let said = args.iter().filter(|arg| arg.starts_with(&format!("{name}="))).count();
            assert_eq!(said, 1, "{work}: {name} in {args:#?}");
        }
    }
    // The number of a call is the one of its work, and a column of that.
    let numbers = "SELECT count(*) FROM flow JOIN slice c ON c.id = slice_out
                   JOIN gpu_slice g ON g.id = slice_in
                   WHERE extract_arg(c.arg_set_id, 'debug.correlation') = g.submission_id
                   AND extract_arg(g.arg_set_id, 'correlation') = g.submission_id";
    assert_eq!(recorded.trace.one_i64(numbers), 3);
    let stages = "SELECT count(*) FROM gpu_slice s JOIN args a USING (arg_set_id)
                  WHERE a.key = 'description' AND a.string_value != ''";
    assert!(recorded.trace.one_i64(stages) >= 3);
}

/// A kernel in ever new sizes is told of a few times, and each launch has its own sizes.
#[test]
fn sizes_are_those_of_each_launch() {
    let script: String =
        (1..=40).map(|n| format!("kernel k grid={n},1,1 block=32,1,1\n")).collect();
    let recorded = record(&Machine::with("12.6"), &(script + "sync\n"), &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let sizes = "SELECT extract_arg(arg_set_id, 'grid_size') AS blocks FROM gpu_slice
                 WHERE extract_arg(arg_set_id, 'grid_size')
                     = extract_arg(arg_set_id, 'launch.grid_size.x')
                 AND extract_arg(arg_set_id, 'thread_count')
                     = 32 * extract_arg(arg_set_id, 'launch.grid_size.x') ORDER BY 1";
    let found: Vec<i64> =
        recorded.trace.rows(sizes).iter().map(|row| row[0].as_i64().unwrap()).collect();
    assert_eq!(found, (1..=40).collect::<Vec<_>>());
    assert_eq!(recorded.json_lines(&["\"grid\": [40, 1, 1]"]).len(), 1);
}

/// XLA puts arguments into names: ever new ones would be neither found nor summed up.
#[test]
fn names_of_xla_have_arguments() {
    let script = "push XlaModule:#hlo_module=jit_step,program_id=7#\n\
                  push Thunk:#hlo_op=fusion.3#\nkernel a\npop\n\
                  push Thunk:#hlo_op=fusion.4#\nkernel b\npop\npop\n\
                  push ## forward ##\nkernel c\npop\nsync\n";
    let recorded = record(&Machine::with("12.6"), script, &[]);
    recorded.ended(0);
    recorded.trace.assert_clean();
    let ranges = "SELECT s.name,
                      (SELECT group_concat(replace(a.key, 'debug.', '') || '=' || a.display_value)
                       FROM args a WHERE a.arg_set_id = s.arg_set_id) AS args
                  FROM slice s JOIN thread_track t ON t.id = s.track_id
                  WHERE s.category = 'nvtx' OR s.name IN ('XlaModule', 'Thunk', '## forward ##')
                  ORDER BY s.ts";
    assert_eq!(
        recorded.trace.table(ranges),
        "name           args\n\
         XlaModule      hlo_module=jit_step,program_id=7\n\
         Thunk          hlo_op=fusion.3\n\
         Thunk          hlo_op=fusion.4\n\
         ## forward ##  NULL\n"
    );
    let beside = "SELECT s.name || ' ' || count(*) FROM gpu_slice s
                  JOIN gpu_track t ON t.id = s.track_id
                  WHERE t.name LIKE '%annotations' GROUP BY s.name ORDER BY 1";
    assert_eq!(recorded.trace.strings(beside), ["## forward ## 1", "Thunk 2", "XlaModule 1"]);
}

/// Which trace it is, and where it was made.
#[test]
fn a_trace_names_itself_and_its_machine() {
    let recorded = record(&Machine::with("12.6"), WORK, &[]);
    recorded.ended(0);
    let said = "SELECT name FROM metadata WHERE str_value != '' AND name IN ('trace_uuid',
                    'system_name', 'system_machine', 'system_release', 'system_version')
                ORDER BY 1";
    assert_eq!(
        recorded.trace.strings(said),
        ["system_machine", "system_name", "system_release", "system_version", "trace_uuid"]
    );
}
