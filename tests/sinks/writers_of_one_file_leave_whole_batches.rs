//! Eight writers append to one output; the file stays a row of whole batches.

use harness::alone;
use kymograph::control::{Page, State};
use kymograph::sink::{SharedFile, Sink};
use std::path::Path;
use std::sync::Arc;

const WRITERS: u8 = 8;
const BATCHES: usize = 200;

/// A batch that can tell whether it is whole: length, writer, then that writer's byte.
fn batch(writer: u8, size: usize) -> Vec<u8> {
    let mut batch = (size as u32).to_le_bytes().to_vec();
    batch.resize(size, writer);
    batch
}

/// How many batches there are, and how many bytes follow the last whole one.
fn read(file: &[u8]) -> (usize, usize) {
    let (mut at, mut batches) = (0, 0);
    while file.len() - at >= 4 {
        let size = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        assert!((4..=1 << 20).contains(&size), "at {at} begins no batch");
        if at + size > file.len() {
            break;
        }
        let body = &file[at + 4..at + size];
        // All bytes the same, as one comparison.
        assert!(body.is_empty() || body[1..] == body[..body.len() - 1], "torn at {at}");
        at += size;
        batches += 1;
    }
    (batches, file.len() - at)
}

fn length(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn many_writers_leave_whole_batches() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let page = Arc::new(Page::new());
    let write = |number: u8| {
        let mut sink = SharedFile::open(&output, page.clone()).unwrap();
        let mut size = 5 + usize::from(number) * 7;
        for _ in 0..BATCHES {
            size = size * 1_103 % 30_011 + 5;
            sink.write(&batch(number, size)).unwrap();
        }
    };
    std::thread::scope(|scope| {
        (0..WRITERS).for_each(|number| _ = scope.spawn(move || write(number)));
        while page.committed() == 0 {
            std::thread::yield_now();
        }
        // What is committed is whole at every moment.
        let committed = page.committed() as usize;
        assert_eq!(read(&std::fs::read(&output).unwrap()[..committed]).1, 0);
    });

    let mut config = kymograph::Config::default();
    config.set("OUTPUT", &output).unwrap();
    kymograph::sink::seal(&config, page.clone(), &batch(255, 9)).unwrap();
    let (batches, rest) = read(&std::fs::read(&output).unwrap());
    assert_eq!((batches, rest), (usize::from(WRITERS) * BATCHES + 1, 0));

    // Over is over.
    assert_eq!(page.state(), State::Closed);
    let mut late = SharedFile::open(&output, page.clone()).unwrap();
    assert!(late.write(b"late").is_err());
    assert_eq!(length(&output), page.committed());
}

#[test]
fn what_a_failed_write_left_is_cut_off_and_a_cut_file_is_left_alone() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let mut sink = SharedFile::open(&output, Arc::new(Page::new())).unwrap();
    sink.write(b"one ").unwrap();
    let mut torn = std::fs::read(&output).unwrap();
    torn.extend_from_slice(b"a batch that its writer could not fin");
    std::fs::write(&output, &torn).unwrap();
    sink.write(b"two").unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), b"one two");
    // Somebody emptied it: appending would leave a hole of zeros in front.
    std::fs::write(&output, b"").unwrap();
    assert!(sink.write(b"three").is_err());
    assert_eq!(std::fs::read(&output).unwrap(), b"");
}
