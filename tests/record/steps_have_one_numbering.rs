//! Steps that the program's own profiler marks are the only ones that are shown; and the last
//! of ours ends with its last work.

use harness::alone;
use kymograph::__private::PIPELINE;
use kymograph::{Config, Recording, scope, step};
use kymograph_protos::Recorder;
use kymograph_protos::record::{Kind, Record, StrId};
use oracle::Trace;
use std::time::Duration;

const STEPS: &str = "SELECT t.name AS row, s.name, s.dur >= 0 AS ended FROM slice s
                     JOIN track t ON t.id = s.track_id
                     WHERE s.name GLOB 'ProfilerStep#*' ORDER BY s.ts";

fn work() {
    let _work = scope!("work");
    std::thread::sleep(Duration::from_millis(2));
}

fn mark(kind: Kind, name: &[u8]) {
    let domain = PIPELINE.intern(StrId::NONE, b"domain");
    let site = if name.is_empty() { domain } else { PIPELINE.intern(domain, name) };
    let head = Record { time: PIPELINE.now(), site, kind: kind as u8, ..Record::default() };
    assert!(PIPELINE.push(head, &[]));
}

fn record(folder: &tempfile::TempDir, name: &str, what: impl FnOnce()) -> Trace {
    let path = folder.path().join(name);
    let mut config = Config::default();
    config.set("OUTPUT", &path).unwrap();
    let recording = Recording::start(config).unwrap();
    what();
    std::thread::sleep(Duration::from_millis(30));
    let summary = recording.stop();
    assert_eq!((summary.lost, summary.unmatched_ends), (0, 0));
    let trace = Trace::open(&path);
    trace.assert_clean();
    trace
}

#[test]
fn there_is_one_numbering_of_steps() {
    alone!();
    let folder = tempfile::tempdir().unwrap();
    let ours = record(&folder, "ours.pftrace", || {
        (0..3).for_each(|_| {
            step();
            work();
        });
    });
    assert_eq!(
        ours.table(STEPS),
        "row    name            ended\nSteps  ProfilerStep#1  1\nSteps  ProfilerStep#2  1\n\
         Steps  ProfilerStep#3  1\n"
    );
    let last = "SELECT s.ts + s.dur = w.ts + w.dur FROM slice s, slice w
                WHERE s.name = 'ProfilerStep#3' AND w.name = 'work' ORDER BY w.ts DESC LIMIT 1";
    assert_eq!(ours.one_i64(last), 1, "with the last work");

    let theirs = record(&folder, "theirs.pftrace", || {
        step();
        mark(Kind::Push, b"ProfilerStep#0");
        work();
        step();
        mark(Kind::Pop, b"");
        mark(Kind::Push, b"ProfilerStep#1");
        work();
        step();
        mark(Kind::Pop, b"");
    });
    assert_eq!(
        theirs.table(STEPS),
        "row   name            ended\nNULL  ProfilerStep#0  1\nNULL  ProfilerStep#1  1\n"
    );
}
