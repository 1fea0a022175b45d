//! However a process ends: what it recorded is in the file, or, where nobody can know of
//! the end, what was flushed; and the file is whole.

use harness::child;
use kymograph::{Config, Recording, instant, scope};
use oracle::Trace;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// Records a thousand scopes and flushes them, then a thousand more, and opens one.
fn record(flush: bool, output: &str) -> Recording {
    let mut config = Config::to_file(child::folder().join(output));
    // Only what is asked for: no flush in between blurs what is lost.
    config.set("FLUSH", "1s").unwrap();
    let recording = Recording::start(config).unwrap();
    (0..1000u32).for_each(|n| drop(scope!("early", n = n)));
    if flush {
        assert!(recording.flush(Duration::from_secs(10)));
    }
    (0..1000u32).for_each(|n| drop(scope!("late", n = n)));
    recording
}

/// Runs a part: how it ended, and its trace.
#[track_caller]
fn ended(part: &str, output: &str) -> (ExitStatus, tempfile::TempDir, Trace) {
    let folder = tempfile::tempdir().unwrap();
    let status = child::run(module_path!(), part, "record", folder.path());
    let trace = Trace::open(folder.path().join(output));
    trace.assert_clean();
    (status, folder, trace)
}

fn count(trace: &Trace, name: &str) -> i64 {
    trace.one_i64(&format!("SELECT count(*) FROM slice WHERE name = '{name}'"))
}

fn unclosed(trace: &Trace) -> Vec<String> {
    trace.strings("SELECT name FROM slice WHERE dur = -1 ORDER BY ts")
}

#[test]
fn by_return_from_main() {
    if child::part().is_some() {
        std::mem::forget(record(false, "t.pftrace.gz"));
        return;
    }
    let (status, _folder, trace) = ended("by_return_from_main", "t.pftrace.gz");
    assert!(status.success());
    assert_eq!((count(&trace, "early"), count(&trace, "late")), (1000, 1000));
    assert!(unclosed(&trace).is_empty());
}

#[test]
fn by_exit_from_another_thread() {
    if child::part().is_some() {
        let recording = record(false, "t.pftrace");
        let _open = scope!("open");
        // Others are in the middle of something, but fill no buffer before the end comes.
        for _ in 0..2 {
            std::thread::spawn(|| {
                loop {
                    let _busy = scope!("busy");
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
        }
        std::thread::spawn(|| {
            instant!("last");
            std::process::exit(7)
        });
        std::thread::park_timeout(Duration::from_secs(60));
        drop(recording);
        return;
    }
    let (status, _folder, trace) = ended("by_exit_from_another_thread", "t.pftrace");
    assert_eq!(status.code(), Some(7));
    assert_eq!((count(&trace, "early"), count(&trace, "late")), (1000, 1000));
    assert_eq!((count(&trace, "open"), count(&trace, "last")), (1, 1));
    let unclosed = unclosed(&trace);
    assert_eq!(unclosed.iter().filter(|name| *name != "busy").collect::<Vec<_>>(), ["open"]);
    assert!(unclosed.len() <= 3, "{unclosed:?}");
}

#[test]
fn by_the_end_of_its_last_thread() {
    if child::part().is_some() {
        std::mem::forget(record(false, "t.pftrace"));
        // SAFETY: in the child this thread is the main thread; it leaves without cleaning
        // up, as the end of `pthread_exit` does.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                drop(scope!("in the child"));
                std::thread::spawn(|| {
                    std::thread::sleep(Duration::from_millis(300));
                    drop(scope!("after main"));
                });
                libc::syscall(libc::SYS_exit, 0);
            }
            let mut status = -1;
            libc::waitpid(pid, &mut status, 0);
            assert_eq!(status, 0);
            std::fs::write(child::folder().join("pid"), pid.to_string()).unwrap();
        }
        return;
    }
    let (status, folder, _) = ended("by_the_end_of_its_last_thread", "t.pftrace");
    assert!(status.success());
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let trace = Trace::open(folder.path().join(format!("t.{pid}.pftrace")));
    trace.assert_clean();
    assert_eq!((count(&trace, "in the child"), count(&trace, "after main")), (1, 1));
}

#[test]
fn by_a_panic_that_unwinds() {
    if child::part().is_some() {
        let recording = record(false, "t.pftrace");
        let thread = std::thread::spawn(|| {
            let _outer = scope!("outer");
            let _inner = scope!("inner");
            instant!("before");
            panic!("on purpose");
        });
        assert!(thread.join().is_err());
        let summary = recording.stop();
        assert_eq!((summary.lost, summary.misnested, summary.unmatched_ends), (0, 0, 0));
        panic!("on purpose");
    }
    let (status, _folder, trace) = ended("by_a_panic_that_unwinds", "t.pftrace");
    assert_eq!(status.code(), Some(101));
    assert_eq!((count(&trace, "late"), count(&trace, "before")), (1000, 1));
    assert_eq!(
        trace.table(
            "SELECT s.name, p.name AS parent FROM slice s LEFT JOIN slice p ON p.id = s.parent_id
                     WHERE s.name IN ('outer', 'inner', 'before') AND s.dur >= 0 ORDER BY s.ts"
        ),
        "name    parent\nouter   NULL\ninner   outer\nbefore  inner\n"
    );
    assert!(unclosed(&trace).is_empty());
}

/// Nobody hears of these ends: what was flushed before is there.
#[track_caller]
fn up_to_the_last_flush(test: &str, as_expected: impl Fn(ExitStatus) -> bool, end: fn()) {
    let outputs = ["t.pftrace", "t.pftrace.gz", "t.pftrace.zst"];
    if let Some(output) = child::part() {
        let recording = record(true, &output);
        let _open = scope!("open");
        end();
        drop(recording);
        return;
    }
    for output in outputs {
        let folder = tempfile::tempdir().unwrap();
        let status = child::run(module_path!(), test, output, folder.path());
        assert!(as_expected(status), "{output}: {status:?}");
        let trace = Trace::open(folder.path().join(output));
        trace.assert_clean();
        assert_eq!(count(&trace, "early"), 1000, "{output}");
        // The next flush may have come in between.
        assert!([0, 1000].contains(&count(&trace, "late")), "{output}");
        assert!(Path::new(output).extension().is_some());
    }
}

#[test]
fn by_abort() {
    let aborted = |status: ExitStatus| status.signal() == Some(libc::SIGABRT);
    up_to_the_last_flush("by_abort", aborted, || std::process::abort());
}

#[test]
fn by_exit_without_handlers() {
    let code = |status: ExitStatus| status.code() == Some(3);
    // SAFETY: that nothing is cleaned up is the point.
    up_to_the_last_flush("by_exit_without_handlers", code, || unsafe { libc::_exit(3) });
}

#[test]
fn by_becoming_another_program() {
    up_to_the_last_flush(
        "by_becoming_another_program",
        |status| status.success(),
        || {
            let error = std::process::Command::new("true").exec();
            panic!("{error}");
        },
    );
}

#[test]
fn by_a_signal() {
    let killed = |status: ExitStatus| status.signal() == Some(libc::SIGTERM);
    // SAFETY: no pointers.
    up_to_the_last_flush("by_a_signal", killed, || unsafe {
        libc::kill(libc::getpid(), libc::SIGTERM);
        std::thread::park_timeout(Duration::from_secs(60));
    });
}
