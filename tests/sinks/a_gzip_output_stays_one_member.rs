//! However often it is flushed, by however many processes, and whoever dies meanwhile: a
//! `.gz` is one gzip member. trace_processor reads neither a hundred nor half a one.

use harness::alone;
use kymograph::control::Page;
use kymograph::{Config, Recording, instant, sink};
use oracle::Trace;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the one member holds, and how many bytes follow it.
fn unpack(path: &Path) -> (Vec<u8>, usize) {
    let file = std::fs::read(path).unwrap();
    let mut decoder = flate2::bufread::GzDecoder::new(&file[..]);
    let mut content = Vec::new();
    decoder.read_to_end(&mut content).unwrap();
    (content, decoder.into_inner().len())
}

#[test]
fn of_a_recording_with_many_flushes() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace.gz");
    let mut config = Config::default();
    config.set("OUTPUT", &path).unwrap();
    let recording = Recording::start(config).unwrap();
    for n in 0..300 {
        instant!("tick", n = n);
        assert!(recording.flush(Duration::from_secs(10)));
        assert!(n % 50 != 0 || unpack(&path).1 == 0);
    }
    assert_eq!(recording.stop().events, 300);
    assert_eq!(unpack(&path).1, 0);
    let trace = Trace::open(&path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name = 'tick'"), 300);
}

/// A batch that can tell whether it is whole: its length, then one byte again and again.
fn batch(size: usize) -> Vec<u8> {
    let mut batch = (size as u32).to_le_bytes().to_vec();
    batch.resize(size, size as u8);
    batch
}

#[test]
fn of_many_writers_of_which_some_do_not_finish() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace.gz");
    std::fs::write(&path, b"").unwrap();
    let page = Arc::new(Page::new());
    let mut config = Config::default();
    config.set("OUTPUT", &path).unwrap();
    let write = |number: usize| {
        let mut sink = sink::open_shared(&config, page.clone()).unwrap();
        let mut size = 5 + number * 7;
        for _ in 0..20 {
            size = size * 1_103 % 30_011 + 5;
            sink.write(&batch(size)).unwrap();
        }
    };
    for round in 0..20 {
        std::thread::scope(|scope| {
            (0..3).for_each(|number| _ = scope.spawn(move || write(round + number)));
        });
        // What a write leaves that the disk had no room for.
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(&batch(100 * round)).unwrap();
    }
    let length = sink::seal(&config, page.clone(), &batch(9)).unwrap();
    assert_eq!(length, path.metadata().unwrap().len());
    let (content, rest) = unpack(&path);
    assert_eq!(rest, 0);
    let (mut at, mut batches) = (0, 0);
    while at < content.len() {
        let size = u32::from_le_bytes(content[at..at + 4].try_into().unwrap()) as usize;
        assert!(content[at..at + size] == batch(size), "torn at {at}");
        at += size;
        batches += 1;
    }
    assert_eq!(batches, 20 * 3 * 20 + 1);
}

#[test]
fn when_the_disk_is_full() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace.gz");
    let mut config = Config::default();
    config.set("OUTPUT", &path).unwrap();
    let mut sink = sink::open(&config).unwrap();
    let noise: Vec<u8> = (0..40_000u64).map(|n| ((n * n * 2_654_435_761) >> 13) as u8).collect();
    sink.write(&noise).unwrap();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and fills the struct. The limit is the process's, in which no other
    // test runs now.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    let small = libc::rlimit { rlim_cur: path.metadata().unwrap().len() + 5000, ..limit };
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &small) };
    let failed = sink.write(&noise);
    // SAFETY: as above.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
    assert!(failed.is_err());
    assert!(unpack(&path) == (noise.clone(), 0));
    sink.write(b"again").unwrap();
    assert!(unpack(&path) == ([&noise[..], b"again"].concat(), 0));
}
