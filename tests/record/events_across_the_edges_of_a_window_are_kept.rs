//! A recording that is prepared has its sources on before its window opens. What crosses
//! the edges of the window is in the trace with its own times, and says so; what lies
//! outside is not, in whatever order it is drained.

use harness::alone;
use std::time::Duration;

use kymograph::{Category, Config, Recording, instant, range, scope};
use kymograph_protos::StrId;
use kymograph_protos::record::{Kind, NANOS, Record};
use oracle::Trace;

static OTHER: Category = Category::new("other");

fn prepared() -> (tempfile::TempDir, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::to_file(folder.path().join("t.pftrace"));
    (folder, Recording::prepare(config).unwrap())
}

fn flush(recording: &Recording) {
    assert!(recording.flush(Duration::from_secs(60)));
}

fn trace(folder: &tempfile::TempDir) -> Trace {
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    trace
}

/// Slices by name, with what they say of edges.
const SLICES: &str = "
    SELECT s.name, IIF(s.dur = -1, 'open', 'ended') AS dur,
        COALESCE(EXTRACT_ARG(s.arg_set_id, 'debug.straddles'), '-') AS straddles
    FROM slice s ORDER BY s.name";

#[test]
fn slices_that_began_before_it_opened() {
    alone!();
    for drained in [false, true] {
        let (folder, recording) = prepared();
        {
            let _before = scope!("before");
        }
        {
            let _outer = scope!("outer");
            {
                let _inner = scope!("inner");
                let _ended = scope!("ended before");
            }
            let _leaf = scope!("leaf across");
            if drained {
                flush(&recording);
            }
            recording.open();
        }
        {
            let _inside = scope!("inside");
        }
        recording.stop();
        assert_eq!(
            trace(&folder).table(SLICES),
            "name         dur    straddles\n\
             inside       ended  -\n\
             leaf across  ended  start\n\
             outer        ended  start\n",
            "drained before it opened: {drained}"
        );
    }
}

#[test]
fn their_times_are_their_own() {
    alone!();
    let (folder, recording) = prepared();
    let outer = scope!("outer");
    std::thread::sleep(Duration::from_millis(20));
    recording.open();
    {
        let _inner = scope!("inner");
    }
    drop(outer);
    recording.stop();
    let trace = trace(&folder);
    let opened = trace.one_i64(
        "SELECT int_value FROM metadata WHERE name GLOB '*kymograph.[0-9]*.window.opened'",
    );
    let earlier = trace.one_i64("SELECT ts FROM slice WHERE name = 'outer'") - opened;
    assert!(earlier <= -20_000_000, "{earlier}");
    assert_eq!(trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'inner' AND depth = 1"), 1);
}

#[test]
fn slices_that_have_not_ended_when_it_is_over() {
    alone!();
    let (folder, recording) = prepared();
    let _outer = scope!("outer");
    let _other = range!(OTHER, "other");
    recording.open();
    let _inner = scope!("inner");
    recording.stop();
    assert_eq!(
        trace(&folder).table(SLICES),
        "name   dur   straddles\n\
         inner  open  -\n\
         other  open  start\n\
         outer  open  start\n"
    );
}

#[test]
fn ranges_that_have_not_ended_when_no_thread_wrote_anything() {
    alone!();
    let (folder, recording) = prepared();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    // The first that is emptied has nothing for the trace.
    let other = std::thread::spawn(move || {
        instant!("before");
        ready.send(()).unwrap();
        wait.recv().unwrap_err();
    });
    is_ready.recv().unwrap();
    let _range = range!("range");
    recording.open();
    recording.stop();
    drop(done);
    other.join().unwrap();
    assert_eq!(trace(&folder).table(SLICES), "name   dur   straddles\nrange  open  start\n");
}

#[test]
fn ranges_across_threads() {
    alone!();
    for drained in [false, true] {
        let (folder, recording) = prepared();
        let across = range!("across");
        let early = range!("early");
        if drained {
            flush(&recording);
        }
        std::thread::spawn(move || drop(early)).join().unwrap();
        recording.open();
        let inside = range!("inside");
        std::thread::spawn(move || drop((across, inside))).join().unwrap();
        recording.stop();
        assert_eq!(
            trace(&folder).table(SLICES),
            "name    dur    straddles\n\
             across  ended  start\n\
             inside  ended  -\n"
        );
    }
}

#[test]
fn moments_and_counters_are_in_it_or_not() {
    alone!();
    let (folder, recording) = prepared();
    instant!("before");
    recording.open();
    instant!("inside");
    recording.stop();
    assert_eq!(trace(&folder).strings("SELECT name FROM slice"), ["inside"]);
}

#[test]
fn work_of_devices_counts_by_its_own_times() {
    alone!();
    let (folder, recording) = prepared();
    let recorder = kymograph::recorder();
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    };
    let work = |name: &str, from: u64, to: u64| {
        let site = recorder.intern(StrId::NONE, name.as_bytes());
        let kind = Kind::Scope as u8;
        let record = Record { time: from, other: to, site, kind, tag: NANOS, ..Record::default() };
        assert!(recorder.push(record, &[]));
    };
    let before = now();
    std::thread::sleep(Duration::from_millis(2));
    recording.open();
    std::thread::sleep(Duration::from_millis(2));
    let after = now();
    // Buffers of devices come late.
    work("1 before", before - 1000, before);
    work("2 across", before, after);
    work("3 inside", after + 1000, after + 2000);
    recording.stop();
    assert_eq!(
        trace(&folder).table(SLICES),
        "name      dur    straddles\n\
         2 across  ended  start\n\
         3 inside  ended  -\n"
    );
}

#[test]
fn a_window_that_never_opens_leaves_an_empty_trace() {
    alone!();
    let (folder, recording) = prepared();
    {
        let _outer = scope!("outer");
        let _inner = range!("inner");
    }
    let _open = scope!("open");
    assert_eq!(recording.stop().events, 0);
    assert_eq!(trace(&folder).one_i64("SELECT COUNT(*) FROM slice"), 0);
}

#[test]
fn a_pause_leaves_out_what_begins_in_it() {
    alone!();
    let (folder, recording) = prepared();
    recording.open();
    let across = scope!("1 across");
    recording.pause();
    {
        let _paused = scope!("paused");
    }
    drop(across);
    recording.resume();
    {
        let _resumed = scope!("2 resumed");
    }
    recording.pause();
    recording.pause();
    recording.resume();
    recording.resume();
    {
        let _resumed = scope!("3 resumed");
    }
    recording.stop();
    assert_eq!(
        trace(&folder).table(SLICES),
        "name       dur    straddles\n\
         1 across   ended  -\n\
         2 resumed  ended  -\n\
         3 resumed  ended  -\n"
    );
}
