//! `--also` and packed packets: a pipe gets the same trace while it is written; a reader
//! that goes away costs nothing, and the next one gets everything; so does nobody.

use harness::kymo::Guarded;
use harness::{kymo, native};
use oracle::Trace;
use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(60);
const STEPS: &str = "SELECT count(*) FROM slice WHERE name = 'step'";

fn record(folder: &Path, options: &[&str]) -> Guarded {
    let program = native::compile("cc", "-std=c11", "tests/data/c/steps.c", folder);
    let mut command = kymo::kymo();
    command.args(["record", "--flush-interval", "5ms"]).args(options);
    command.arg("-o").arg(folder.join("t.pftrace")).arg("--").arg(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Guarded::start(&mut command)
}

fn steps(child: &mut Guarded, answers: &mut impl BufRead, count: u32) {
    writeln!(child.stdin.as_mut().unwrap(), "{count}").unwrap();
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    assert_eq!(line, "done\n");
}

fn end(mut child: Guarded) -> String {
    drop(child.stdin.take());
    let output = child.wait_with_output();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    path
}

/// Waits until a process does not have a file open.
fn await_closed(pid: u32, path: &Path) {
    let path = path.canonicalize().unwrap();
    let deadline = Instant::now() + TIMEOUT;
    let is_open = || {
        let mut open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        open.any(|entry| std::fs::read_link(entry.unwrap().path()).is_ok_and(|to| to == path))
    };
    while is_open() {
        assert!(Instant::now() < deadline, "{} is still open", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_reader_that_goes_away_is_followed_by_one_that_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, pipe) = (folder.path(), fifo(folder.path()));
    let mut child = record(folder, &["--also", pipe.to_str().unwrap()]);
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    steps(&mut child, &mut answers, 10_000);
    // One that reads a little and leaves.
    let mut first = File::open(&pipe).unwrap();
    first.read_exact(&mut [0; 1000]).unwrap();
    drop(first);
    // As long as that was not noticed, the pipe keeps what it did not read for the next one.
    await_closed(child.id(), &pipe);
    steps(&mut child, &mut answers, 10_000);
    let second = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut all = Vec::new();
            File::open(pipe).unwrap().read_to_end(&mut all).unwrap();
            all
        }
    });
    steps(&mut child, &mut answers, 10_000);
    let said = end(child);
    let (all, path) = (second.join().unwrap(), folder.join("t.pftrace"));
    assert!(said.contains("pipe has the whole trace"), "{said}");
    assert!(all == std::fs::read(&path).unwrap(), "{} bytes came", all.len());
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(trace.one_i64(STEPS), 30_000);
}

#[test]
fn a_pipe_that_nobody_reads_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, pipe) = (folder.path(), fifo(folder.path()));
    let mut child = record(folder, &["--also", pipe.to_str().unwrap()]);
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    steps(&mut child, &mut answers, 1000);
    let said = end(child);
    assert!(said.contains("does not have the whole trace: no process reads it"), "{said}");
    assert_eq!(Trace::open(folder.join("t.pftrace")).one_i64(STEPS), 1000);
}

#[test]
fn packed_packets_can_be_followed_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let copy = folder.join("copy.pftrace");
    let options = ["--also", copy.to_str().unwrap(), "--set", "COMPRESS=packets"];
    let mut child = record(folder, &options);
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..4 {
        steps(&mut child, &mut answers, 5000);
    }
    let said = end(child);
    assert!(said.contains("copy.pftrace has the whole trace"), "{said}");
    let packed = std::fs::read(folder.join("t.pftrace")).unwrap();
    assert_eq!(packed, std::fs::read(&copy).unwrap());
    assert!(packed.len() < 20_000 * 38 / 4, "{}", packed.len());
    let trace = Trace::open(&copy);
    trace.assert_clean();
    assert_eq!(trace.one_i64(STEPS), 20_000);
    // Cut in the middle of a packet: what is before it is all there.
    std::fs::write(&copy, &packed[..packed.len() / 2]).unwrap();
    let steps = Trace::open(&copy).one_i64(STEPS);
    assert!((1000..20_000).contains(&steps), "{steps}");
}
