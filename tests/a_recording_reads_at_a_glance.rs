//! What people see in Perfetto's UI: names and order of rows, asked of trace_processor.

mod cuda;

use cuda::fakes::Machine;
use cuda::{kymo, record};
use judge::Trace;
use kymograph_protos::perfetto::trace_packet::Data;
use kymograph_protos::perfetto::{self, TrackDescriptor};
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
            "Stream 013 · rank 0",
            "Stream 013 · rank 1",
        ]
    );
    let tracks = "SELECT count(DISTINCT track_id) FROM gpu_slice";
    assert_eq!(trace.one_i64(tracks), 4, "no two processes share one");
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
    assert_eq!(recorded.trace.strings(streams), ["Stream 007 default", "Stream 013"]);
}
