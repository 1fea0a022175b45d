//! When the destination takes nothing more, the program runs on, and every event that is
//! not in the trace is counted as lost.

use harness::{alone, child};
use kymograph::sink::{Sink, Stream};
use kymograph::{Config, Recording, Summary, scope};
use oracle::Trace;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn config() -> Config {
    let mut config = Config::default();
    config.set("FLUSH", "10ms").unwrap();
    config
}

/// Records `n` scopes, flushing now and then; returns how many.
fn work(recording: &Recording, n: u64) -> u64 {
    for i in 0..n {
        let _scope = scope!("step", i = i, text = "some text that takes a little room");
        if i % (n / 8 + 1) == 0 {
            recording.flush(Duration::from_secs(10));
        }
    }
    n
}

/// A disk with so much room.
#[derive(Clone, Default)]
struct Disk {
    room: Arc<AtomicUsize>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Sink for Disk {
    fn write(&mut self, packets: &[u8]) -> io::Result<()> {
        let fits = |room: usize| room.checked_sub(packets.len());
        let full = io::ErrorKind::StorageFull;
        self.room.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits).map_err(|_| full)?;
        self.written.lock().unwrap().extend_from_slice(packets);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk {
    fn with(room: usize) -> Disk {
        Disk { room: Arc::new(room.into()), ..Disk::default() }
    }

    /// Whether the trace holds what the summary says, and is fine.
    #[track_caller]
    fn check(&self, summary: &Summary) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.pftrace");
        std::fs::write(&path, &*self.written.lock().unwrap()).unwrap();
        check(&path, summary);
    }
}

#[track_caller]
fn check(path: &Path, summary: &Summary) {
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(
        trace.one_i64("SELECT count(*) FROM slice WHERE name = 'step'") as u64,
        summary.events
    );
}

#[test]
fn for_good() {
    alone!();
    let disk = Disk::with(20_000);
    let recording = Recording::start_with(config(), disk.clone()).unwrap();
    let pushed = work(&recording, 5_000);
    let summary = recording.stop();
    assert_eq!(summary.events + summary.lost, pushed, "{summary:?}");
    assert!(summary.events > 0 && summary.write_errors > 0, "{summary:?}");
    assert!(summary.failure.is_some());
    disk.check(&summary);
}

/// Longer than the pipeline is willing to keep what it could not write.
#[test]
fn for_good_and_for_long() {
    alone!();
    let disk = Disk::with(20_000);
    let recording = Recording::start_with(config(), disk.clone()).unwrap();
    let before = child::resident_kb();
    let mut pushed = 0;
    while recording.stats().total.lost == 0 {
        pushed += work(&recording, 20_000);
        assert!(pushed < 4_000_000, "keeps everything");
    }
    // What was recorded before it was given up has been read.
    assert!(recording.flush(Duration::from_secs(60)));
    // Given up: nothing more is recorded.
    let events = recording.stats().total.lost;
    work(&recording, 1_000);
    assert_eq!(recording.stats().total.lost, events);
    let summary = recording.stop();
    assert!(summary.events + summary.lost <= pushed, "{summary:?}");
    assert!(child::resident_kb() < before + 200 * 1024);
    disk.check(&summary);
}

#[test]
fn for_a_while() {
    alone!();
    let disk = Disk::with(20_000);
    let recording = Recording::start_with(config(), disk.clone()).unwrap();
    let mut pushed = work(&recording, 5_000);
    assert!(recording.stats().total.write_errors > 0);
    disk.room.store(usize::MAX, Ordering::SeqCst);
    pushed += work(&recording, 1_000);
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.unwritten), (pushed, 0, 0), "{summary:?}");
    disk.check(&summary);
}

#[test]
fn or_a_closed_pipe() {
    alone!();
    let (reader, writer) = io::pipe().unwrap();
    let recording = Recording::start_with(config(), Stream::new(writer)).unwrap();
    let reading = std::thread::spawn(move || {
        io::Read::read_exact(&mut { reader }, &mut [0; 10_000]).unwrap();
    });
    let mut pushed = work(&recording, 5_000);
    reading.join().unwrap();
    while recording.stats().total.write_errors == 0 {
        pushed += work(&recording, 5_000);
    }
    let summary = recording.stop();
    assert!(summary.events < pushed && summary.lost > 0, "{summary:?}");
    assert!(summary.events + summary.lost <= pushed, "{summary:?}");
}

/// A destination that panics is as good as a full one.
#[test]
fn or_a_sink_that_panics() {
    alone!();
    struct Panics(AtomicBool);
    impl Write for Panics {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(!self.0.swap(true, Ordering::SeqCst), "on purpose");
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let sink = Stream::new(Panics(AtomicBool::new(false)));
    let recording = Recording::start_with(config(), sink).unwrap();
    work(&recording, 1_000);
    let summary = recording.stop();
    assert!(summary.failure.is_some(), "{summary:?}");
    // And the next recording is not in its way.
    let disk = Disk::with(usize::MAX);
    let recording = Recording::start_with(config(), disk.clone()).unwrap();
    let pushed = work(&recording, 100);
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost), (pushed, 0), "{summary:?}");
    disk.check(&summary);
}

/// A real one, where one can be mounted; plain and compressed.
#[test]
fn for_good_on_a_real_disk() {
    alone!();
    for output in ["t.pftrace", "t.pftrace.gz", "t.pftrace.zst"] {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(folder.path())
            .output();
        if !mount.is_ok_and(|output| output.status.success()) {
            eprintln!("cannot mount a tmpfs here: skipped");
            return;
        }
        let mut config = Config::to_file(folder.path().join(output));
        config.set("FLUSH", "10ms").unwrap();
        let recording = Recording::start(config).unwrap();
        let mut pushed = 0;
        while recording.stats().total.write_errors == 0 {
            pushed += work(&recording, 5_000);
        }
        let summary = recording.stop();
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder.path().join(output), copy.path().join(output)).unwrap();
        // Whoever looks at it just now may go on.
        let unmounted = Command::new("umount").arg("--lazy").arg(folder.path()).status();
        assert!(unmounted.unwrap().success());
        assert_eq!(summary.events + summary.lost, pushed, "{output}: {summary:?}");
        assert!(summary.events > 0 && summary.lost > 0, "{output}: {summary:?}");
        check(&copy.path().join(output), &summary);
    }
}
