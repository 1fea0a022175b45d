//! Threads that come to a place for the first time at the same moment, while others make
//! up names: every event has its category, its name and the names of its arguments.

use harness::alone;
use kymograph::{APP, Category, Config, Recording, Scope, scope};
use oracle::Trace;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

static MEETING: Category = Category::new("meeting");

const THREADS: usize = 4;

macro_rules! sites {
    ($barrier:expr, $($name:literal)*) => {
        $(
            $barrier.wait();
            drop(scope!(MEETING, $name, first = 1, second = "two", third = 3.0));
        )*
    };
}

#[test]
fn threads_may_meet_at_a_call_site() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(Config::to_file(folder.path().join("t.pftrace"))).unwrap();
    let barrier = Barrier::new(THREADS);
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..2 {
            let done = &done;
            threads.spawn(move || {
                for n in 0.. {
                    drop(Scope::named(&APP, &format!("{thread} {n} {}", "x".repeat(2000))));
                    if n > 5000 || done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let meeting: Vec<_> = (0..THREADS)
            .map(|_| {
                threads.spawn(|| {
                    sites!(barrier, "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p"
                        "q" "r" "s" "t" "u" "v" "w" "x" "y" "z");
                })
            })
            .collect();
        meeting.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(recording.stop().lost, 0);
    let trace = Trace::open(folder.path().join("t.pftrace"));
    trace.assert_clean();
    let named = "SELECT count(*) FROM slice WHERE category = 'meeting' AND name BETWEEN 'a' AND 'z'
                 AND extract_arg(arg_set_id, 'debug.first') = 1
                 AND extract_arg(arg_set_id, 'debug.second') = 'two'
                 AND extract_arg(arg_set_id, 'debug.third') = 3.0";
    assert_eq!(trace.one_i64(named), 26 * THREADS as i64);
}
