//! `ALSO` in a program that records by itself: every place gets the whole trace; one that
//! fails is given up and told of, and the others go on.

use harness::alone;
use kymograph::{Config, Recording, scope};
use oracle::Trace;
use std::time::Duration;

#[test]
fn one_that_is_full_does_not_disturb_the_others() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::to_file(folder.path().join("t.pftrace"));
    let copy = folder.path().join("copy.pftrace");
    config.set("ALSO", format!("/dev/full,{}", copy.display())).unwrap();
    let recording = Recording::start(config).unwrap();
    for n in 0..1000 {
        drop(scope!("step", n = n));
    }
    assert!(recording.flush(Duration::from_secs(60)));
    drop(scope!("last"));
    let summary = recording.stop();
    assert_eq!((summary.events, summary.lost, summary.write_errors), (1001, 0, 1));
    assert!(summary.failure.unwrap().starts_with("/dev/full: "));
    let path = folder.path().join("t.pftrace");
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&copy).unwrap());
    let trace = Trace::open(copy);
    trace.assert_clean();
    assert_eq!(trace.one_i64("SELECT count(*) FROM slice"), 1001);
}
