//! Exit codes and signals of the command are those of `kymo record`, and signals sent to
//! `kymo` reach the command.

use harness::kymo;
use harness::kymo::Guarded;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn record(script: &str) -> Command {
    // Not a folder that goes when the test ends: the command may outlive it.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut command = kymo::kymo();
    let output = format!("{}/ends-{number}.pftrace", env!("CARGO_TARGET_TMPDIR"));
    command.args(["record", "-q", "-o", &output]);
    command.args(["--", "/bin/sh", "-c", script]);
    kymo::heed_signals(&mut command);
    command
}

fn status(script: &str) -> ExitStatus {
    record(script).status().unwrap()
}

#[test]
fn it_exits_with_the_code_of_the_command() {
    for code in [0, 1, 2, 7, 126, 127, 255] {
        assert_eq!(status(&format!("exit {code}")).code(), Some(code));
    }
}

#[test]
fn it_dies_by_the_signal_of_the_command() {
    for (name, number) in
        [("TERM", 15), ("INT", 2), ("KILL", 9), ("SEGV", 11), ("PIPE", 13), ("HUP", 1)]
    {
        let status = status(&format!("kill -{name} $$"));
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
    }
}

/// Starts `kymo` and waits until the script says that it is ready.
fn ready(script: &str) -> Guarded {
    use std::io::Read;
    let mut child = Guarded::start(record(script).stdout(Stdio::piped()));
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    child
}

#[test]
fn signals_sent_to_kymo_reach_the_command() {
    for (name, number) in
        [("TERM", 15), ("HUP", 1), ("USR1", 10), ("USR2", 12), ("INT", 2), ("QUIT", 3)]
    {
        let script = format!("trap 'exit 33' {name}; echo ready; while :; do sleep 0.02; done");
        let mut child = ready(&script);
        // SAFETY: the pid of a child that was not waited for.
        unsafe { libc::kill(child.id() as i32, number) };
        assert_eq!(child.wait().unwrap().code(), Some(33), "{name}");
    }
}

#[test]
fn what_kymo_was_told_to_ignore_the_command_ignores() {
    // As under nohup, and under a shell that ignores SIGPIPE.
    let output = |mut command: Command| {
        kymo::heed_signals(&mut command);
        // SAFETY: `signal` is async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let script = "exec grep -E 'Sig(Ign|Blk)' /proc/self/status";
    let mut plain = Command::new("/bin/sh");
    plain.args(["-c", script]);
    assert_eq!(output(record(script)), output(plain));
}

#[test]
fn the_command_goes_on_when_kymo_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("proof");
    let mut child = ready(&format!("echo ready; sleep 0.3; echo done > {}", proof.display()));
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !proof.exists() {
        assert!(Instant::now() < deadline, "the command did not go on");
        std::thread::sleep(Duration::from_millis(20));
    }
}
