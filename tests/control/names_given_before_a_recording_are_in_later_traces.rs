//! A program names its threads once, when it starts them: each trace that somebody asks for
//! later shows those names.

use control::{Place, TIMEOUT, open};
use harness::{alone, control};
use kymograph::{Config, scope};
use oracle::Trace;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

static STOP: AtomicBool = AtomicBool::new(false);

/// Ends the thread also when the test fails.
struct StopIt;

impl Drop for StopIt {
    fn drop(&mut self) {
        STOP.store(true, Ordering::Relaxed);
    }
}

/// A trace in which the worker worked: in a window in which it was not let run, it has
/// rightly nothing.
fn trace_of_work(place: &Place, name: &str) -> Trace {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let said = place.run(&["trigger", "--duration", "1s", "-o", name]);
        assert!(said.good, "{said:?}");
        let trace = open(&place.path(name));
        if trace.one_i64("SELECT COUNT(*) FROM slice WHERE name = 'work'") > 0 {
            return trace;
        }
        assert!(Instant::now() < deadline, "no work in any window");
    }
}

#[test]
fn each_trace_has_them() {
    alone!();
    let place = Place::new();
    let mut config = Config::default();
    config.set("SOCKETS", place.sockets()).unwrap();
    kymograph::control::arm(config).unwrap();
    kymograph::set_process_name("trainer");
    let stop = StopIt;
    let worker = std::thread::spawn(|| {
        kymograph::set_thread_name("loader of batches, with a name that the system would cut");
        while !STOP.load(Ordering::Relaxed) {
            drop(scope!("work"));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    for name in ["first.pftrace", "second.pftrace"] {
        let trace = trace_of_work(&place, name);
        let names = "SELECT DISTINCT process.name || ': ' || thread.name FROM slice \
                     JOIN thread_track ON thread_track.id = track_id JOIN thread USING (utid) \
                     JOIN process USING (upid)";
        let expected = "trainer: loader of batches, with a name that the system would cut";
        assert_eq!(trace.strings(names), [expected]);
    }
    drop(stop);
    worker.join().unwrap();
}
