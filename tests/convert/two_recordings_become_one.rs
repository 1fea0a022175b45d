//! `kymo merge` on two recordings made on this machine, by programs with CUDA (fakes, since
//! there is no GPU here): one clean trace, in which everything lies where it lay and every
//! arrow leads from a call to the work of its own program. By itself, each recording has the
//! same device, stream and numbers of launches as the other.

use fakes::Machine;
use harness::{fakes, kymo};
use kymo::kymo;
use oracle::Trace;
use std::path::{Path, PathBuf};

/// Records a program that launches kernels called after its rank.
fn record(folder: &Path, rank: u32) -> PathBuf {
    let machine = Machine::with("13.1");
    let path = folder.join(format!("rank{rank}.pftrace"));
    let script = format!("kernel work_of_{rank} dur=20us\n").repeat(20) + "sync\n";
    let mut command = kymo();
    machine.prepare(&mut command);
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
    command.args(["record", "--quiet", "--output"]).arg(&path).arg("--");
    let output = command.arg(machine.program()).arg(machine.script(&script)).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    path
}

fn merge(out: &Path, inputs: &[PathBuf], options: &[&str]) -> String {
    let output = kymo().arg("merge").args(options).arg(out).args(inputs).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout.is_empty(), "{said}");
    said
}

const SLICES: &str = "SELECT count(*) AS n, sum(dur) AS dur FROM slice WHERE category != ''";

#[test]
fn two_recordings_become_one() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = [record(folder.path(), 0), record(folder.path(), 1)];
    let out = folder.path().join("both.pftrace");
    let said = merge(&out, &ranks, &[]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.contains("rank1.pftrace (rank 1, ") && said.contains("the same clock"), "{said}");
    let both = Trace::open(&out);
    both.assert_clean();
    let apart = ranks.each_ref().map(Trace::open);
    let sum = |column: &str| {
        let one = |trace: &Trace| trace.one_i64(&format!("SELECT {column} FROM ({SLICES})"));
        (one(&both), apart.iter().map(one).sum::<i64>())
    };
    let (merged, single) = (sum("n"), sum("dur"));
    assert_eq!((merged.0, single.0), (merged.1, single.1));
    // The clock is one: times are those that were recorded.
    let starts = |trace: &Trace| trace.rows("SELECT ts FROM gpu_slice ORDER BY ts");
    let mut times = [starts(&apart[0]), starts(&apart[1])].concat();
    times.sort_by_key(|row| row[0].as_i64());
    assert_eq!(starts(&both), times);
    // Each kernel has one arrow, from a call of the process that its name says.
    let arrows = "SELECT g.name, count(*) AS n, count(DISTINCT p.upid) AS processes,
                         min(p.name LIKE '%(rank ' || substr(g.name, -1) || ', %)') AS own
                  FROM flow f JOIN gpu_slice g ON g.id = f.slice_in JOIN slice c ON c.id = f.slice_out
                  JOIN thread_track t ON t.id = c.track_id JOIN thread USING (utid)
                  JOIN process p USING (upid) GROUP BY 1 ORDER BY 1";
    assert_eq!(
        both.table(arrows),
        "name       n   processes  own\n\
         work_of_0  20  1          1\n\
         work_of_1  20  1          1\n"
    );
    assert_eq!(both.one_i64("SELECT count(*) FROM flow"), 40);

    let rows = "SELECT count(DISTINCT track_id) FROM gpu_slice WHERE name LIKE 'work%'";
    let of_each = apart.iter().map(|trace| trace.one_i64(rows));
    assert_eq!(both.one_i64(rows), of_each.sum::<i64>());
}

#[test]
fn json_of_it_has_the_same_arrows() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = [record(folder.path(), 0), record(folder.path(), 1)];
    let json = folder.path().join("both.json");
    assert_eq!(merge(&json, &ranks, &["--quiet", "--align", "collectives"]), "");
    let text = std::fs::read(&json).unwrap();
    let parsed: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let pids = |cat: &str| {
        let events = parsed["traceEvents"].as_array().unwrap().iter();
        let mut pids: Vec<i64> = events
            .filter(|event| event["cat"] == cat)
            .map(|event| event["pid"].as_i64().unwrap())
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    };
    assert_eq!((pids("cuda_runtime").len(), pids("kernel")), (2, vec![0, 1]));
    // And back again.
    let back = folder.path().join("back.pftrace");
    let output = kymo().arg("convert").arg(&json).arg(&back).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let back = Trace::open(&back);
    back.assert_clean();
    let arrows = "SELECT count(*) FROM flow f JOIN gpu_slice g ON g.id = f.slice_in
                  JOIN slice c ON c.id = f.slice_out JOIN thread_track t ON t.id = c.track_id
                  JOIN thread USING (utid) JOIN process p USING (upid)
                  WHERE p.name LIKE '%(rank ' || substr(g.name, -1) || ', %)'";
    assert_eq!(back.one_i64(arrows), 40);
}
