//! The times in the trace are those of `CLOCK_BOOTTIME`, within a microsecond.

use harness::alone;
use kymograph::{Config, Recording, instant};
use oracle::Trace;
use std::time::Duration;

fn boottime() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

const BURSTS: usize = 20;
const EVENTS: usize = 50;

#[test]
fn the_clock_agrees_with_boottime() {
    alone!();
    for clock in ["auto", "boottime"] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::to_file(folder.path().join("t.pftrace"));
        config.set("CLOCK", clock).unwrap();
        let recording = Recording::start(config).unwrap();
        let mut brackets = Vec::new();
        for _ in 0..BURSTS {
            for _ in 0..EVENTS {
                let before = boottime();
                instant!("now");
                brackets.push((before, boottime()));
            }
            std::thread::sleep(Duration::from_millis(60));
        }
        recording.stop();
        let trace = Trace::open(folder.path().join("t.pftrace"));
        trace.assert_clean();
        let rows = trace.rows("SELECT ts FROM slice WHERE name = 'now' ORDER BY id");
        assert_eq!(rows.len(), brackets.len());
        let outside: Vec<i64> = rows
            .iter()
            .zip(&brackets)
            .map(|(row, (before, after))| {
                let ts = row[0].as_i64().unwrap();
                (before - ts).max(ts - after).max(0)
            })
            .collect();
        // Of a burst the best: others were interrupted between reading the two clocks.
        let best: Vec<i64> =
            outside.chunks(EVENTS).map(|burst| *burst.iter().min().unwrap()).collect();
        println!("{clock}: ns outside of their bracket, per burst: {best:?}");
        assert!(best.iter().all(|ns| *ns <= 1000), "{clock}: {best:?}");
    }
}
