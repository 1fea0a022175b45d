//! A child of `fork` is recorded from its first event on, whatever that is.

use harness::alone;
use kymograph::{Category, Config, Recording, scope, set_thread_name};
use oracle::Trace;

static NEW: Category = Category::new("only the child has it");

/// Runs `body` in a forked child, which then exits as programs do.
fn fork(body: impl FnOnce()) -> i32 {
    // SAFETY: the child uses nothing that another thread of the test may hold: all locks of
    // the library are dealt with in its fork handler, which is what is tested.
    match unsafe { libc::fork() } {
        0 => {
            body();
            // SAFETY: ends the process.
            unsafe { libc::exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: `status` is writable.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
            child
        }
    }
}

#[test]
fn a_category_a_name_or_a_recording_of_its_own() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace");
    let recording = Recording::start(Config::to_file(&path)).unwrap();
    drop(scope!("parent"));
    let slices = |pid: i32| {
        let trace = Trace::open(folder.path().join(format!("t.{pid}.pftrace")));
        trace.assert_clean();
        trace.strings("SELECT name FROM slice")
    };
    let new = fork(|| drop(scope!(NEW, "new")));
    assert_eq!(slices(new), ["new"]);

    let named = fork(|| {
        set_thread_name("a name comes first");
        drop(scope!("named"));
    });
    assert_eq!(slices(named), ["named"]);

    let own = folder.path().join("own.pftrace");
    fork(|| {
        let recording = Recording::start(Config::to_file(&own)).unwrap();
        drop(scope!("own"));
        assert_eq!(recording.stop().events, 1);
    });
    assert_eq!(Trace::open(&own).strings("SELECT name FROM slice"), ["own"]);

    assert_eq!(recording.stop().events, 1);
    assert_eq!(Trace::open(&path).strings("SELECT name FROM slice"), ["parent"]);
}
