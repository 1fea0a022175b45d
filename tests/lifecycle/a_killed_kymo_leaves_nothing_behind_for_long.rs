//! The page of a `kymo` that was killed is removed by the next recording, and that of one
//! that runs is not.

use harness::kymo;
use harness::kymo::Guarded;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Starts a recording that lasts until its stdin closes, and says where its page is.
fn start(folder: &tempfile::TempDir, name: &str) -> (Guarded, PathBuf) {
    let mut command = kymo::kymo();
    command.args(["record", "-q", "-o"]).arg(folder.path().join(name));
    command.args(["--", "sh", "-c", "echo $KYMOGRAPH_CONTROL; read line"]);
    let mut child = Guarded::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim().into())
}

#[test]
fn a_killed_kymo_leaves_nothing_behind_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let (mut killed, orphan) = start(&folder, "killed");
    let (mut running, page) = start(&folder, "running");
    assert!(orphan.exists() && page.exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(orphan.exists());

    let deadline = Instant::now() + Duration::from_secs(10);
    while orphan.exists() {
        assert!(Instant::now() < deadline, "the orphan stays");
        let (mut next, _) = start(&folder, "next");
        drop(next.stdin.take());
        next.wait().unwrap();
    }
    assert!(!orphan.parent().unwrap().exists());
    assert!(page.exists(), "a page in use was removed");

    drop(running.stdin.take());
    running.wait().unwrap();
    assert!(!page.exists());
}
