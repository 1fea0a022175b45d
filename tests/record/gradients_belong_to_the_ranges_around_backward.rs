//! What the threads of autograd launch belongs to the range that is open on the thread which
//! waits for them: on devices, `backward` lasts as long as the kernels of its gradients.

use harness::child;
use kymograph::{Config, Recording, instant, recorder, scope};
use kymograph_protos::StrId;
use kymograph_protos::device::{DeviceSlot, Stage};
use kymograph_protos::record::{ArgType, Extra, Kind, NANOS, Record};
use oracle::Trace;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const MILLI: u64 = 1_000_000;

fn text(text: &str) -> StrId {
    recorder().intern(StrId::NONE, text.as_bytes())
}

/// The calling thread launches a kernel, which runs from `start` on for a millisecond.
fn launch(correlation: u64, name: &str, start: u64) {
    let site = recorder().intern(text("cuda_runtime"), b"cudaLaunchKernel");
    let (tag, arg) = (ArgType::Launch as u8, correlation);
    let time = recorder().now();
    let begin = Record { time, site, kind: Kind::Begin as u8, tag, arg, ..Record::default() };
    assert!(recorder().push(begin, &[]));
    let end = Record { time: recorder().now(), kind: Kind::End as u8, ..Record::default() };
    assert!(recorder().push(end, &[]));
    let slot = DeviceSlot { stage: Stage::Kernel as u8, ..DeviceSlot::default() };
    let work = Record {
        time: start,
        other: start + MILLI,
        arg: correlation,
        site: text(name),
        kind: Kind::Device as u8,
        tag: NANOS,
        ..Record::default()
    };
    assert!(recorder().push(work, &slot.extras()));
}

/// When the first kernel began.
const START: &str = "start";

/// A step on the main thread.
fn program() {
    record(step);
}

/// A step on a thread of its own, for which the main thread waits.
fn program_that_trains_apart() {
    record(|recording, start| {
        let _job = scope!("job");
        let trainer = std::thread::Builder::new().name("trainer".to_owned());
        std::thread::scope(|threads| {
            trainer.spawn_scoped(threads, || step(recording, start)).unwrap().join().unwrap();
        });
    });
}

fn record(work: impl FnOnce(&Recording, u64)) {
    let folder = child::folder();
    let recording = Recording::start(Config::to_file(folder.join("t.pftrace"))).unwrap();
    let gpu = Record { site: text("Testing GPU"), kind: Kind::Gpu as u8, ..Record::default() };
    assert!(recorder().push(gpu, &[]));
    let queue = Record { site: text("Stream 07"), kind: Kind::Queue as u8, ..Record::default() };
    assert!(recorder().push(queue, &[Extra::new(text("stream"), ArgType::U64, 7)]));
    let start = kymograph::clock::system(libc::CLOCK_BOOTTIME);
    std::fs::write(folder.join(START), start.to_string()).unwrap();
    work(&recording, start);
    assert_eq!(recording.stop().lost, 0);
}

fn step(recording: &Recording, start: u64) {
    let _step = scope!("step");
    {
        let _forward = scope!("forward");
        launch(1, "f", start);
    }
    {
        let _backward = scope!("backward");
        let autograd = std::thread::Builder::new().name("pt_autograd_0".to_owned());
        let barrier = Arc::new(Barrier::new(2));
        let known = Arc::clone(&barrier);
        let gradients = autograd.spawn(move || {
            instant!("here");
            // Its name is looked at while it runs.
            known.wait();
            known.wait();
            launch(2, "g", start + 2 * MILLI);
            let _reduce = scope!("all_reduce");
            launch(3, "h", start + 4 * MILLI);
        });
        barrier.wait();
        assert!(recording.flush(Duration::from_secs(60)));
        barrier.wait();
        gradients.unwrap().join().unwrap();
    }
    // Others launch for themselves.
    let other = std::thread::spawn(move || launch(4, "loader", start + 6 * MILLI));
    other.join().unwrap();
}

/// Tests run on other threads; the only one of a forked child is its main thread.
fn on_a_main_thread(program: fn()) {
    // SAFETY: this process has recorded nothing, and its other thread only waits for this one.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = std::panic::catch_unwind(program).is_ok();
        // SAFETY: ends the child without what the parent is to do at its end.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child and writes how it ended.
    assert_eq!((unsafe { libc::waitpid(child, &mut status, 0) }, status), (child, 0));
}

/// When the ranges began and how long they took on the device.
fn ranges(test: &str, part: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    assert!(child::run(module_path!(), test, part, folder.path()).success());
    let start = std::fs::read_to_string(folder.path().join(START)).unwrap();
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let ranges = format!(
        "SELECT s.name, (s.ts - {start}) / {MILLI} AS since, s.dur / {MILLI} AS took
         FROM gpu_slice s JOIN gpu_track t ON t.id = s.track_id
         WHERE t.name = 'Stream 007 · annotations' ORDER BY s.ts, s.dur DESC"
    );
    trace.table(&ranges)
}

const EXPECTED: &str = "\
    name        since  took\n\
    step        0      5\n\
    forward     0      1\n\
    backward    2      3\n\
    all_reduce  4      1\n";

#[test]
fn gradients_belong_to_the_ranges_around_backward() {
    if child::part().is_some() {
        return on_a_main_thread(program);
    }
    let test = "gradients_belong_to_the_ranges_around_backward";
    assert_eq!(ranges(test, "program"), EXPECTED);
}

/// The main thread has a range open as well, and launches nothing.
#[test]
fn also_on_a_thread_that_is_not_the_main_one() {
    if child::part().is_some() {
        return on_a_main_thread(program_that_trains_apart);
    }
    let test = "also_on_a_thread_that_is_not_the_main_one";
    assert_eq!(ranges(test, "program"), EXPECTED);
}
