//! Eight processes append to one output and are killed at random; the file stays a row of
//! whole batches, and nobody waits for the dead.

use kymograph::control::{Page, Place, State};
use kymograph::sink::{SharedFile, Sink};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WRITERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Forks a process that appends until it is killed or told to stop.
fn writer(number: u8, output: &Path, page: &Path) -> i32 {
    // SAFETY: the child uses nothing that another thread of this test could hold, apart
    // from the allocator, which glibc makes safe to use after fork.
    match unsafe { libc::fork() } {
        0 => {
            let code = append(number, output, page);
            // SAFETY: ends the child without running the test harness's exit code.
            unsafe { libc::_exit(code) }
        }
        pid => pid,
    }
}

fn append(number: u8, output: &Path, page: &Path) -> i32 {
    let Ok(page) = Page::open(page).map(Arc::new) else {
        return 1;
    };
    let process = page.register();
    let Ok(mut sink) = SharedFile::open(output, page.clone()) else {
        return 2;
    };
    let mut size = 5 + usize::from(number) * 7;
    while page.state() == State::Recording {
        size = size * 1_103 % 30_011 + 5;
        match sink.write(&batch(number, size)) {
            Ok(()) => page.add(1, 0, size as u64),
            Err(_) if page.state() != State::Recording => break,
            Err(_) => return 3,
        }
    }
    drop(process);
    0
}

fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    unsafe { libc::waitpid(pid, &mut status, 0) };
    status
}

#[test]
fn killed_writers_leave_whole_batches() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let place = Place::create().unwrap();
    let page = place.page();
    let start = |number| writer(number, &output, page.path());
    let mut writers: Vec<i32> = (0..WRITERS as u8).map(start).collect();
    let mut seed = 42_u32;
    let mut killed = 0;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) || killed <= 50 {
        assert!(begin.elapsed() < PATIENCE, "only {killed} were killed");
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        std::thread::sleep(Duration::from_micros(u64::from(seed >> 20)));
        let victim = seed as usize >> 8 & (WRITERS - 1);
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(writers[victim], libc::SIGKILL) };
        assert!(libc::WIFSIGNALED(wait(writers[victim])), "a writer failed");
        killed += 1;
        writers[victim] = start(victim as u8);
        // What is committed is whole at every moment.
        if killed % 64 == 0 && length(&output) < 20 << 20 {
            let committed = page.committed() as usize;
            assert_eq!(read(&std::fs::read(&output).unwrap()[..committed]).1, 0);
        }
    }
    page.set_state(State::Closing);
    for pid in writers {
        assert_eq!(wait(pid), 0);
    }
    assert!(page.recording().is_empty());

    let mut config = kymograph::Config::default();
    config.set("OUTPUT", &output).unwrap();
    kymograph::sink::seal(&config, page.clone(), &batch(255, 9)).unwrap();
    let (batches, rest) = read(&std::fs::read(&output).unwrap());
    assert_eq!(rest, 0);
    // A batch may have been committed whose writer died before it counted it.
    let events = page.totals().events as usize;
    assert!((events + 1..=events + 1 + killed).contains(&batches), "{events} {batches}");
    let processes = page.totals().processes as usize;
    // Some were killed before they had registered.
    assert!((WRITERS..=WRITERS + killed).contains(&processes));

    // Over is over.
    let mut late = SharedFile::open(&output, page.clone()).unwrap();
    assert!(late.write(b"late").is_err());
    assert_eq!(length(&output), page.committed());
}

fn length(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

#[test]
fn a_stopped_process_that_holds_the_lock_is_not_waited_for_forever() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let place = Place::create().unwrap();
    let mut sink = SharedFile::open(&output, place.page().clone()).unwrap();
    // An open file description of its own, as another process would have.
    let holder = std::fs::File::open(place.page().path()).unwrap();
    // SAFETY: no pointers.
    unsafe { libc::flock(holder.as_raw_fd(), libc::LOCK_EX) };
    let begin = Instant::now();
    assert!(sink.write(b"batch").is_err());
    let waited = begin.elapsed();
    assert!(waited > Duration::from_secs(1) && waited < Duration::from_secs(30), "{waited:?}");
    // Not by closing it: children that other tests fork meanwhile have it open as well.
    // SAFETY: no pointers.
    unsafe { libc::flock(holder.as_raw_fd(), libc::LOCK_UN) };
    sink.write(b"batch").unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), b"batch");
    assert_eq!(place.page().totals().write_errors, 1);
}

#[test]
fn a_forked_child_appends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let place = Place::create().unwrap();
    let mut sink = SharedFile::open(&output, place.page().clone()).unwrap();
    sink.write(b"parent ").unwrap();
    // SAFETY: as in `writer`.
    let pid = match unsafe { libc::fork() } {
        0 => {
            let written = sink.write(b"child ").is_ok();
            // SAFETY: as in `writer`.
            unsafe { libc::_exit(i32::from(!written)) }
        }
        pid => pid,
    };
    assert_eq!(wait(pid), 0);
    sink.write(b"parent").unwrap();
    assert_eq!(std::fs::read(&output).unwrap(), b"parent child parent");
}

#[test]
fn what_a_dead_writer_left_is_cut_off_and_a_cut_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("t.pftrace");
    std::fs::write(&output, b"").unwrap();
    let place = Place::create().unwrap();
    let mut sink = SharedFile::open(&output, place.page().clone()).unwrap();
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
