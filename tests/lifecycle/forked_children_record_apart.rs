//! A forked child leaves its parent's trace alone and writes one of its own, whatever the
//! parent's other threads were doing when it was forked.

use harness::child;
use kymograph::sink::Memory;
use kymograph::{
    Category, Config, Recording, Scope, Track, instant, range, scope, set_process_name,
};
use oracle::Trace;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: Category = Category::new("child only");

/// Forks; the child runs `body` on its only thread and exits as a program does.
fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child does what C programs do after fork. glibc makes the allocator
    // usable; nothing else that is used here is guarded by locks of the parent's.
    match unsafe { libc::fork() } {
        0 => {
            // A deadlock ends by a signal, which `wait` reports.
            // SAFETY: no pointers.
            unsafe { libc::alarm(60) };
            // Nothing unwinds into the test harness, which is the parent's.
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            std::process::exit(i32::from(done.is_err()))
        }
        pid => pid,
    }
}

#[track_caller]
fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child did not end by itself");
}

fn own(folder: &Path, pid: i32) -> PathBuf {
    folder.join(format!("t.{pid}.pftrace"))
}

/// Runs a part, and returns its folder and the files in it.
#[track_caller]
fn files(part: &str) -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = child::command(module_path!(), part, "record", folder.path());
    let output = command.current_dir(folder.path()).process_group(0).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut files: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    (folder, files)
}

#[track_caller]
fn counts(path: &Path) -> String {
    let trace = Trace::open(path);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE dur = -1"), 0);
    assert_eq!(
        trace.one_i64("SELECT count(DISTINCT upid) FROM thread JOIN thread_track USING (utid)"),
        1
    );
    trace.table("SELECT name, count(*) AS n, count(DISTINCT track_id) AS threads FROM slice GROUP BY name ORDER BY name")
}

#[test]
fn with_their_children_and_threads() {
    if child::part().is_some() {
        let folder = child::folder();
        let recording = Recording::start(Config::to_file(folder.join("t.pftrace"))).unwrap();
        let before = scope!("parent before");
        let pid = fork(|| {
            // It belongs to the parent's trace, and ends in it.
            drop(before);
            // Before its first event, and in a category that the parent never used.
            set_process_name("the child");
            let track = Track::new("the child's track");
            drop(range!(track: &track, CHILD, "range"));
            (0..100).for_each(|_| drop(scope!("child")));
            std::thread::spawn(|| (0..50).for_each(|_| instant!("child"))).join().unwrap();
            let grandchild = fork(|| (0..7).for_each(|_| drop(scope!("grandchild"))));
            wait(grandchild);
            let again = fork(|| {
                // This one records nothing, its child does.
                wait(fork(|| drop(scope!("great-grandchild"))));
            });
            wait(again);
            drop(scope!("child after"));
        });
        let _after = scope!("parent after");
        wait(pid);
        drop(_after);
        let summary = recording.stop();
        assert_eq!((summary.events, summary.lost), (2, 0), "{summary:?}");
        std::fs::write(folder.join("child"), pid.to_string()).unwrap();
        return;
    }
    let (folder, files) = files("with_their_children_and_threads");
    assert_eq!(
        files.len(),
        5,
        "parent, child, grandchild, great-grandchild, and the child's pid: {files:?}"
    );
    let pid = std::fs::read_to_string(folder.path().join("child")).unwrap().parse().unwrap();
    assert_eq!(
        counts(&own(folder.path(), pid)),
        "name         n    threads\nchild        150  2\nchild after  1    1\nrange        1    1\n"
    );
    let trace = Trace::open(own(folder.path(), pid));
    assert_eq!(trace.strings("SELECT DISTINCT name FROM process WHERE pid != 0"), ["the child"]);
    assert_eq!(
        trace.strings(
            "SELECT t.name FROM slice s JOIN track t ON t.id = track_id WHERE s.name = 'range'"
        ),
        ["the child's track"]
    );
    assert_eq!(
        counts(&folder.path().join("t.pftrace")),
        "name           n  threads\nparent after   1  1\nparent before  1  1\n"
    );
    let mut others: Vec<String> = files
        .iter()
        .map(|name| folder.path().join(name))
        .filter(|path| path.extension().is_some() && *path != own(folder.path(), pid))
        .filter(|path| path.file_name().unwrap() != "t.pftrace")
        .map(|path| counts(&path))
        .collect();
    others.sort();
    assert_eq!(
        others,
        [
            "name              n  threads\ngreat-grandchild  1  1\n",
            "name        n  threads\ngrandchild  7  1\n",
        ]
    );
}

#[test]
fn or_stay_silent() {
    if child::part().is_some() {
        let folder = child::folder();
        let mut config = Config::to_file(folder.join("t.pftrace"));
        config.set("FORK", "silent").unwrap();
        let recording = Recording::start(config).unwrap();
        let _before = scope!("parent");
        let pid = fork(|| {
            (0..100).for_each(|_| drop(scope!("child")));
            drop(Scope::named(&kymograph::APP, "child"));
            assert!(!Recording::is_running());
            wait(fork(|| instant!("grandchild")));
        });
        wait(pid);
        drop(_before);
        assert_eq!(recording.stop().events, 1);
        return;
    }
    let (folder, files) = files("or_stay_silent");
    assert_eq!(files, ["t.pftrace"]);
    assert_eq!(counts(&folder.path().join("t.pftrace")), "name    n  threads\nparent  1  1\n");
}

/// The destination was the parent's choice: the child has none.
#[test]
fn not_when_the_sink_is_the_programs_own() {
    if child::part().is_some() {
        let memory = Memory::new();
        let recording = Recording::start_with(Config::default(), memory.clone()).unwrap();
        drop(scope!("parent"));
        wait(fork(|| {
            drop(scope!("child"));
            assert!(!Recording::is_running());
            // It may start one by itself.
            let config = Config::to_file(child::folder().join("own.pftrace"));
            let recording = Recording::start(config).unwrap();
            drop(scope!("child"));
            assert_eq!(recording.stop().events, 1);
        }));
        assert_eq!(recording.stop().events, 1);
        return;
    }
    assert_eq!(files("not_when_the_sink_is_the_programs_own").1, ["own.pftrace"]);
}

/// A child that lives on holds what it inherited, but nothing that is in the way.
#[test]
fn and_do_not_hold_the_parents_file() {
    if child::part().is_some() {
        let folder = child::folder();
        let start = || Recording::start(Config::to_file(folder.join("t.pftrace")));
        let recording = start().unwrap();
        // SAFETY: as in `fork`; this child sleeps until it is killed.
        let pid = match unsafe { libc::fork() } {
            0 => loop {
                std::thread::park();
            },
            pid => pid,
        };
        recording.stop();
        let second = start().map(Recording::stop);
        // SAFETY: a child that was not waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        second.unwrap();
        return;
    }
    assert_eq!(files("and_do_not_hold_the_parents_file").1, ["t.pftrace"]);
}

/// Two hundred children of a parent whose other threads record, intern and allocate at
/// full speed all the while.
#[test]
fn in_a_storm() {
    const CHILDREN: usize = 200;
    if child::part().is_some() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let folder = child::folder();
        let recording = Recording::start(Config::to_file(folder.join("t.pftrace"))).unwrap();
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                std::thread::spawn(move || {
                    let mut n = 0u64;
                    while !STOP.load(Ordering::Relaxed) {
                        let _scope = scope!("busy", n = n);
                        // Names of its own, until the interner has no room for more.
                        drop(Scope::named(&kymograph::APP, &format!("{thread} {n}")));
                        n += 1;
                        if n.is_multiple_of(64) {
                            std::thread::yield_now();
                        }
                    }
                    2 * n
                })
            })
            .collect();
        let mut children = std::collections::VecDeque::new();
        for _ in 0..CHILDREN {
            children.push_back(fork(|| {
                let thread = std::thread::spawn(|| (0..10).for_each(|_| instant!("thread")));
                (0..10).for_each(|_| drop(scope!("child")));
                let fresh = Scope::named(&kymograph::APP, &format!("new {}", std::process::id()));
                drop(fresh);
                thread.join().unwrap();
            }));
            if children.len() == 4 {
                wait(children.pop_front().unwrap());
            }
        }
        children.into_iter().for_each(wait);
        STOP.store(true, Ordering::Relaxed);
        let pushed: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        let summary = recording.stop();
        assert_eq!(summary.events + summary.lost, pushed, "{summary:?}");
        std::fs::write(folder.join("events"), summary.events.to_string()).unwrap();
        return;
    }
    let (folder, files) = files("in_a_storm");
    let traces: Vec<PathBuf> = files
        .iter()
        .filter(|f| f.starts_with("t.") && *f != "t.pftrace")
        .map(|f| folder.path().join(f))
        .collect();
    assert_eq!(traces.len(), CHILDREN);
    for (n, path) in traces.iter().enumerate() {
        if n % 40 == 0 {
            let pid = path.file_stem().unwrap().to_str().unwrap().replace("t.", "");
            assert_eq!(
                counts(path).split_whitespace().collect::<Vec<_>>().join(" "),
                format!("name n threads child 10 1 new {pid} 1 1 thread 10 1")
            );
        }
    }
    let trace = Trace::open(folder.path().join("t.pftrace"));
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice WHERE name IN ('child', 'thread')"), 0);
    let events: i64 =
        std::fs::read_to_string(folder.path().join("events")).unwrap().parse().unwrap();
    assert_eq!(
        trace.one_i64(
            "SELECT count(*) FROM slice WHERE dur >= 0 AND name NOT GLOB '* records lost'"
        ),
        events
    );
}
