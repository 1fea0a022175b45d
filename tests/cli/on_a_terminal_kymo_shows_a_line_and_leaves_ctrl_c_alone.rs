//! On a terminal there is a status line, which is gone at the end, and Ctrl-C reaches the
//! command once.

use harness::kymo::Guarded;
use harness::{alone, kymo};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;

/// A new terminal: its two ends.
fn terminal() -> (std::fs::File, std::fs::File) {
    let (mut ours, mut theirs) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: fills the two integers; the other three may be null. Both descriptors are
    // new and owned by nobody else.
    unsafe {
        assert_eq!(libc::openpty(&mut ours, &mut theirs, null, null.cast(), null.cast()), 0);
        let own = |fd| std::fs::File::from_raw_fd(fd);
        (own(ours), own(theirs))
    }
}

#[test]
fn on_a_terminal_kymo_shows_a_line_and_leaves_ctrl_c_alone() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.05; done";
    let (mut ours, theirs) = terminal();
    let mut command = kymo::kymo();
    command.args(["record", "-o"]).arg(folder.path().join("t.pftrace"));
    command.args(["--", "sh", "-c", script]);
    let end = || theirs.try_clone().unwrap();
    command.stdin(end()).stdout(end()).stderr(end());
    kymo::heed_signals(&mut command);
    let fd = theirs.as_raw_fd();
    // SAFETY: only async-signal-safe calls: makes the terminal that of the new session.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::ioctl(fd, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = Guarded::start_in_its_group(&mut command);
    drop((command, theirs));

    let mut seen = String::new();
    let mut interrupted = false;
    let mut bytes = [0; 1024];
    // A terminal whose other end is closed reads as an error.
    while let Ok(n @ 1..) = ours.read(&mut bytes) {
        seen += &String::from_utf8_lossy(&bytes[..n]);
        if seen.contains("events/s") && seen.contains("ready") && !interrupted {
            interrupted = true;
            ours.write_all(b"\x03").unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(4), "{seen}");
    assert_eq!(seen.matches("interrupted").count(), 1, "{seen}");
    let (_, after) = seen.rsplit_once("events/s").unwrap();
    assert!(after.contains("\x1b[2K"), "the line stays: {seen:?}");
}
