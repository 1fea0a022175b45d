//! When there is no more room, what is in the file is whole batches, the caller is told,
//! and writing goes on once there is room again.
//!
//! One test: the limits are those of the process.

use harness::alone;
use kymograph::config::Config;
use kymograph::control::Page;
use kymograph::sink::{self, Sink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// `n` bytes that look like one packet.
fn batch(n: usize) -> Vec<u8> {
    vec![b'k'; n]
}

fn set_file_limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads the struct. SIGXFSZ keeps its default action, which is to kill: that
    // it does not is part of the test.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
}

fn length(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn a_full_disk_leaves_whole_batches() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.pftrace");
    let mut config = Config::default();
    config.set("OUTPUT", &own).unwrap();
    let mut file = sink::open(&config).unwrap();

    let page = Arc::new(Page::new());
    let shared = folder.path().join("shared.pftrace");
    std::fs::write(&shared, b"").unwrap();
    config.set("OUTPUT", &shared).unwrap();
    let mut appender = sink::open_shared(&config, page.clone()).unwrap();

    // The limit falls into the middle of the second batch: a short write, then an error.
    set_file_limit(100_000);
    for (sink, path) in [(&mut file, &own), (&mut appender, &shared)] {
        sink.write(&batch(60_000)).unwrap();
        assert!(sink.write(&batch(60_000)).is_err());
        assert_eq!(length(path), 60_000);
        sink.write(&batch(30_000)).unwrap();
        assert_eq!(length(path), 90_000);
    }
    set_file_limit(libc::RLIM_INFINITY);
    for (sink, path) in [(&mut file, &own), (&mut appender, &shared)] {
        sink.write(&batch(60_000)).unwrap();
        sink.finish().unwrap();
        assert_eq!(length(path), 150_000);
    }
    assert_eq!(page.totals().write_errors, 1);

    on_a_small_disk();
}

/// The same on a real full file system, where one can be mounted.
fn on_a_small_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"])
        .arg(folder.path())
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        eprintln!("cannot mount a tmpfs here: skipped");
        return;
    }
    let path = folder.path().join("t.pftrace");
    let mut file = sink::File::create(&path, false, None).unwrap();
    let mut whole = 0;
    let error = loop {
        match file.write(&batch(30_000)) {
            Ok(()) => whole += 30_000,
            Err(error) => break error,
        }
    };
    let length = length(&path);
    drop(file);
    let unmounted = Command::new("umount").arg(folder.path()).status();
    assert!(unmounted.unwrap().success());
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(length, whole);
    assert!(whole > 0);
}
