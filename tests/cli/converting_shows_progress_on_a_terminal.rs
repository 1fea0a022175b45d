//! A line with bytes, rate and time left on a terminal; nothing anywhere else.

use harness::kymo::Guarded;
use harness::{alone, kymo};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

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

/// A trace that takes a while to read.
fn large(folder: &std::path::Path) -> std::path::PathBuf {
    let path = folder.join("large.json");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    file.write_all(b"[").unwrap();
    for n in 0..60_000 {
        let event = "\"ph\": \"X\", \"cat\": \"c\", \"pid\": 1, \"tid\": 1, \"dur\": 1";
        writeln!(file, "{{{event}, \"name\": \"n{n}\", \"ts\": {n}}},").unwrap();
    }
    file.flush().unwrap();
    path
}

#[test]
fn converting_shows_how_far_it_is_on_a_terminal() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let (large, out) = (large(folder.path()), folder.path().join("out.pftrace"));
    let (mut ours, theirs) = terminal();
    let mut command = kymo::kymo();
    command.arg("convert").args([&large, &out]).env("TERM", "xterm");
    let mut child = Guarded::start_in_its_group(command.stderr(theirs));
    drop(command);
    let (mut seen, mut bytes) = (String::new(), [0; 4096]);
    // A terminal whose other end is closed reads as an error.
    while let Ok(n @ 1..) = ours.read(&mut bytes) {
        seen += &String::from_utf8_lossy(&bytes[..n]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{seen}");
    for words in ["reading large.json", "/s", "left", "60,000 events"] {
        assert!(seen.contains(words), "{words} in {seen:?}");
    }
    let (_, after) = seen.rsplit_once("left").unwrap();
    assert!(after.contains("\x1b[2K"), "the line stays: {seen:?}");

    let output = kymo::kymo().arg("convert").args([&large, &out]).output().unwrap();
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "only the warning about its end: {said}");
    assert!(said.contains("closing bracket"), "{said}");
}
