//! stdin, stdout and stderr are the command's, byte for byte, also when they are closed.

use harness::kymo;
use harness::kymo::Guarded;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn record(folder: &tempfile::TempDir, words: &[&str]) -> Command {
    let mut command = kymo::kymo();
    command.args(["record", "-q", "-o"]).arg(folder.path().join("t.pftrace"));
    command.arg("--").args(words);
    command
}

#[test]
fn binary_data_passes() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> =
        (0..1_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut command = record(&folder, &["sh", "-c", "tee /dev/stderr"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guarded::start(&mut command);
    let mut stdin = child.stdin.take().unwrap();
    let input = data.clone();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output();
    feeder.join().unwrap().unwrap();
    assert!(output.stdout == data && output.stderr == data);
}

#[test]
fn closed_streams_stay_closed() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    let script = format!("ls /proc/$$/fd > {}", list.display());
    let mut command = record(&folder, &["sh", "-c", &script]);
    // SAFETY: `close` is async-signal-safe, and exec follows.
    unsafe {
        command.pre_exec(|| {
            libc::close(0);
            libc::close(2);
            Ok(())
        });
    }
    assert!(command.status().unwrap().success());
    let open = std::fs::read_to_string(list).unwrap();
    let open: Vec<&str> = open.split_whitespace().collect();
    assert!(open.contains(&"1") && !open.contains(&"0") && !open.contains(&"2"), "{open:?}");
}

#[test]
fn other_descriptors_are_inherited_and_none_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let recorded = record(&folder, &["ls", "/proc/self/fd"]).output().unwrap();
    assert_eq!(plain.stdout, recorded.stdout);
}
