//! `kymo trigger --dump`: what devices had finished is in the dump, though it was still in a
//! vendor's buffers when somebody asked.

use harness::kymo::Guarded;
use harness::{kymo, nvidia};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nvidia::Machine;
use oracle::Trace;

const KERNELS: i64 = 40;

fn in_folder(command: &mut Command, folder: &Path) {
    command.env("KYMOGRAPH_SOCKETS", folder.join("sockets"));
}

/// A dump, if there is anything yet.
fn dump(folder: &Path) -> Option<PathBuf> {
    let mut command = kymo::kymo();
    in_folder(&mut command, folder);
    let output = command.args(["trigger", "--dump"]).output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| path.trim().into())
}

#[test]
fn of_cuda() {
    let machine = Machine::with("12.9");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut command = nvidia::kymo_record(&machine, &folder.join("t.pftrace"));
    in_folder(&mut command, folder);
    command.args(["--quiet", "--flight", "1h", "--dump-on", "none", "--"]).arg(machine.program());
    // After each wait everything is finished, and more comes: no buffer is ever full, and who
    // asks at any time finds some in them.
    let script = format!("repeat {KERNELS}\nkernel k dur=1us\nsync\nend\n");
    command.arg("--hold").arg(machine.script(&script));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorded = Guarded::start(&mut command);
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is recorded");
        let Some(path) = dump(folder) else { continue };
        let trace = Trace::open(&path);
        trace.assert_clean();
        let count = |what: &str| trace.one_i64(&format!("SELECT count(*) FROM {what}"));
        let waited = count("slice WHERE name = 'cudaDeviceSynchronize' AND dur >= 0");
        let worked = count("gpu_slice WHERE name = 'k'");
        assert!(worked >= waited, "{worked} kernels after {waited} waits");
        if waited == KERNELS {
            break;
        }
    }
    drop(recorded.stdin.take());
    let output = recorded.wait_with_output();
    assert!(output.status.success(), "{output:?}");
}

/// Whether a process that `recorder` has started has a thread with this name.
fn has_thread(recorder: u32, name: &str) -> bool {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = read(format!("/proc/{recorder}/task/{recorder}/children"));
    let threads = |child: &str| std::fs::read_dir(format!("/proc/{child}/task"));
    let threads = children.split_whitespace().filter_map(|child| threads(child).ok());
    let names = threads.flatten().flatten().map(|thread| thread.path().join("comm"));
    names.into_iter().any(|comm| read(comm.display().to_string()).trim_end() == name)
}

fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that goes on after its recording does so as one that was never recorded.
#[test]
fn after_the_recording_nothing_watches_the_device_any_more() {
    let machine = Machine::with("12.9");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let mut command = nvidia::kymo_record(&machine, &path);
    command.args(["--quiet", "--duration", "2s", "--"]).arg(machine.program());
    command.arg("--hold").arg(machine.script("repeat 10\nkernel k dur=1us\nend\nsync\n"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorded = Guarded::start(&mut command);
    let watched = || has_thread(recorded.id(), "kymograph-gpu");
    // Should the program have been kept from starting for those two seconds, nothing ever does.
    let began = Instant::now();
    until("the recording does not end", || watched() || began.elapsed() > Duration::from_secs(20));
    until("the device is still watched", || !watched());
    drop(recorded.stdin.take());
    let output = recorded.wait_with_output();
    assert!(output.status.success(), "{output:?}");
    let trace = Trace::open(&path);
    trace.assert_clean();
    let count = |what: &str| trace.one_i64(&format!("SELECT count(*) FROM {what}"));
    let waited = count("slice WHERE name = 'cudaDeviceSynchronize' AND dur >= 0");
    assert!(count("gpu_slice WHERE name = 'k'") >= 10 * waited, "finished, and not in the trace");
}
