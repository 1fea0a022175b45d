//! `kymo convert` and `kymo info`: formats by name, pipes, parts, packing, and an output
//! that is whole or not there.

use harness::kymo;
use kymo::kymo;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn demo(folder: &Path) -> PathBuf {
    let path = folder.join("demo.pftrace");
    let demo = kymo().args(["demo", "-o"]).arg(&path).output().unwrap();
    assert!(demo.status.success(), "{demo:?}");
    path
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn info(path: &Path) -> serde_json::Value {
    let (code, out, err) = run(kymo().args(["info", "--json"]).arg(path));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn every_format_and_packing_holds_the_same_events() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path());
    let before = info(&demo);
    assert!(before["slices"].as_u64() > Some(0), "{before}");
    let names =
        ["a.pftrace", "b.pftrace.gz", "c.pftrace.zst", "d.json", "e.json.gz", "f.chrome.json.zst"];
    for name in names {
        let path = folder.path().join(name);
        let (code, out, err) = run(kymo().arg("convert").arg(&demo).arg(&path));
        assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
        let after = info(&path);
        // Kineto's format has a moment of its own, the end of the recording.
        for key in ["slices", "samples", "arrows"] {
            assert_eq!(before[key], after[key], "{key} in {name}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), names.len() + 1, "nothing else is left behind: {left:?}");
}

#[test]
fn packets_are_packed_unless_they_are_to_stay_plain() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path());
    let packed = folder.path().join("packed.pftrace");
    let plain = folder.path().join("plain.pftrace");
    let (code, _, err) = run(kymo().arg("convert").args([&demo, &packed]));
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = run(kymo().args(["convert", "--plain"]).args([&packed, &plain]));
    assert_eq!(code, Some(0), "{err}");
    let count = |path: &Path, of: &str| info(path)["packets"][of].as_u64().unwrap_or(0);
    assert!(count(&packed, "compressed_packets") > 0);
    assert_eq!(count(&plain, "compressed_packets"), 0);
    assert_eq!(count(&plain, "track_event"), count(&packed, "track_event"));
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&packed) * 2 < size(&plain), "{} {}", size(&packed), size(&plain));
}

#[test]
fn a_pipe_is_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path());
    let input = std::fs::File::open(&demo).unwrap();
    let output = kymo()
        .args(["convert", "-", "-", "--to", "chrome"])
        .stdin(Stdio::from(input))
        .output()
        .unwrap();
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["traceEvents"].as_array().unwrap().len() > 10);
}

#[test]
fn a_part_is_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path());
    let all = info(&demo)["slices"].as_u64().unwrap();
    let path = folder.path().join("part.pftrace");
    let (code, _, err) =
        run(kymo().args(["convert", "--time-range", "0s..1us"]).arg(&demo).arg(&path));
    assert_eq!(code, Some(0), "{err}");
    assert!(info(&path)["slices"].as_u64().unwrap() < all);
    std::fs::remove_file(&path).unwrap();
    for part in [["--process", "no such"], ["--category", "none"]] {
        let (code, _, err) = run(kymo().arg("convert").args(part).arg(&demo).arg(&path));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("nothing is left") && !path.exists(), "{err}");
    }
}

#[test]
fn what_cannot_be_converted_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (bad, out) = (folder.path().join("bad"), folder.path().join("out.json"));
    std::fs::write(&bad, b"\x7fELF").unwrap();
    std::fs::write(&out, "precious").unwrap();
    let (code, _, err) = run(kymo().args(["convert", "--force"]).arg(&bad).arg(&out));
    assert_eq!(code, Some(2));
    assert!(err.contains("it seems to be a program") && err.lines().count() == 1, "{err}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    let (code, _, err) = run(kymo().arg("convert").arg(&bad).arg(folder.path().join("x.txt")));
    assert_eq!(code, Some(2));
    assert!(err.contains("--to"), "{err}");
    let (code, _, err) = run(kymo().args(["info", "/no/such/file"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("/no/such/file"), "{err}");
}

/// A trace of two ranks, in Kineto's JSON.
fn two_ranks(folder: &Path) -> PathBuf {
    let rank = |rank: u32| {
        let path = folder.join(format!("rank{rank}.json"));
        let text = format!(
            r#"{{"schemaVersion": 1, "host_name": "node{rank}",
                "distributedInfo": {{"rank": {rank}, "world_size": 2}},
                "baseTimeNanoseconds": 1790000000000000000, "traceEvents": [
                {{"ph": "X", "cat": "cpu_op", "name": "op", "pid": 7, "tid": 7, "ts": 5, "dur": 9}},
                {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7,
                  "tid": 7, "ts": 6, "dur": 1, "args": {{"correlation": 3}}}},
                {{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 20, "ts": 8, "dur": 2,
                  "args": {{"device": 0, "stream": 20, "correlation": 3, "context": 1}}}}]}}"#
        );
        std::fs::write(&path, text).unwrap();
        path
    };
    let both = folder.join("both.pftrace");
    let (code, _, err) = run(kymo().arg("merge").arg(&both).args([rank(0), rank(1)]));
    assert_eq!(code, Some(0), "{err}");
    both
}

#[test]
fn info_knows_ranks_hosts_streams_and_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let both = two_ranks(folder.path());
    let about = info(&both);
    let of = |key: &str| {
        let rows = about[key].as_array().unwrap().iter();
        rows.map(|row| row["rank"].as_i64().or(row["activities"].as_i64())).collect::<Vec<_>>()
    };
    assert_eq!((of("processes"), of("devices")), (vec![Some(0), Some(1)], vec![Some(1), Some(1)]));
    assert_eq!(about["processes"][1]["host"], "node1");
    let stream = &about["devices"][1]["queues"][0];
    assert_eq!((&stream["name"], &stream["busy_ns"]), (&"Stream 020".into(), &2000.into()));
    assert!(about["clock"]["readings"].as_u64() > Some(0), "{about}");
    assert_eq!(about["clock"]["drift_ns"], 0);
    let (_, page, _) = run(kymo().arg("info").arg(&both));
    for words in
        ["2026-09-21 14:13:20.000005000 UTC", "related to", "rank 1, on node1", "Stream 020"]
    {
        assert!(page.contains(words), "{words} in {page}");
    }
}

#[test]
fn a_rank_is_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let both = two_ranks(folder.path());
    for (options, events) in [
        (["--rank", "1"], (2, 1)),
        (["--rank", "0,1"], (4, 2)),
        (["--process", "*node0*"], (2, 1)),
        (["--category", "kernel"], (0, 2)),
        (["--category", "cuda_*"], (2, 0)),
    ] {
        let part = folder.path().join("part.pftrace");
        let (code, _, err) = run(kymo().arg("convert").args(options).args([&both, &part]));
        assert_eq!(code, Some(0), "{err}");
        let about = info(&part);
        let found = (about["slices"].as_i64(), about["activities"].as_i64());
        assert_eq!(found, (Some(events.0), Some(events.1)), "{options:?}");
    }
}

#[test]
fn what_is_no_file_is_not_replaced_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let demo = demo(folder.path());
    // A link leads to the file that is replaced, and stays a link.
    let (link, target) = (folder.path().join("link.json"), folder.path().join("target.json"));
    std::fs::write(&target, "[]").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(run(kymo().arg("convert").args([&demo, &link])).0, Some(0));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().starts_with('{'));
    // A pipe is written to.
    let pipe = folder.path().join("pipe.json");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    assert_eq!(run(kymo().arg("convert").args([&demo, &pipe])).0, Some(0));
    assert!(reader.join().unwrap().starts_with('{'));
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn info_is_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = run(kymo().arg("info").arg(demo(folder.path())));
    assert_eq!(code, Some(0));
    for word in ["Kymograph 0.", "slices", "processes", "threads", "categories", "track_event"] {
        assert!(out.contains(word), "{word} in {out}");
    }
}
