//! A worker without a vendor.

use std::sync::atomic::AtomicBool;

use kymograph_protos::Kind;

use super::*;
use crate::device::names::Names;
use crate::device::notes::Notes;
use crate::device::reader::{self, Reader, Round};

const TIMEOUT: Duration = Duration::from_secs(60);
const LABELS: Labels = Labels {
    names: Names { shown: "Abacus", key: "abacus" },
    thread: "test",
    late: "the beads did not come to rest",
};

/// Counts nothing, round by round.
impl Reader for () {
    const NAP: Duration = Duration::from_millis(1);
    const FLUSH_EVERY: Duration = Duration::MAX;

    fn round(&mut self, _worker: &Worker, round: Round) {
        assert_eq!(round.due, round.asked, "time alone is no reason");
    }

    fn end(self, worker: &Worker) {
        assert!(worker.stopping());
    }
}

#[test]
fn it_flushes_and_ends_and_starts_again() {
    static WORKER: Worker = Worker::new(LABELS);
    let notes = Notes::new();
    for _ in 0..3 {
        WORKER.start(notes, || Ok(Some(())), reader::run);
        assert!(WORKER.is_running() && !WORKER.is_idle());
        WORKER.start(notes, || panic!("it runs"), reader::run::<()>);
        assert!(WORKER.flush(TIMEOUT) && WORKER.flush(TIMEOUT));
        assert!(WORKER.stop(TIMEOUT) && WORKER.flush(Duration::ZERO));
        assert!(WORKER.is_idle());
    }
    WORKER.kill();
    assert!(WORKER.is_dead() && !WORKER.begin(notes));
    assert_eq!(notes.others(Kind::Note), [""; 0]);
}

#[test]
fn what_cannot_begin_is_said_and_may_be_tried_again() {
    static WORKER: Worker = Worker::new(LABELS);
    let notes = Notes::new();
    WORKER.start(notes, || Err("a bead is missing".into()), reader::run::<()>);
    assert!(WORKER.is_idle() && !WORKER.is_dead());
    assert_eq!(notes.others(Kind::Note), ["Abacus is not recorded: a bead is missing"]);
    WORKER.start(notes, || Ok(None), reader::run::<()>);
    assert!(WORKER.is_idle() && !WORKER.is_dead());
    WORKER.start(notes, || panic!("in the middle"), reader::run::<()>);
    assert!(WORKER.is_dead());
    assert_eq!(notes.others(Kind::Note).len(), 2);
}

#[test]
fn a_thread_that_does_not_end_is_said_once_and_counted() {
    static WORKER: Worker = Worker::new(LABELS);
    static HELD: AtomicBool = AtomicBool::new(true);
    let notes = Notes::new();
    let hold = |(), _: &Worker| {
        wait(TIMEOUT, || !HELD.load(Ordering::Acquire));
    };
    WORKER.start(notes, || Ok(Some(())), hold);
    assert!(!WORKER.stop(Duration::ZERO));
    assert_eq!((*notes.lost.lock().unwrap(), notes.others(Kind::Note).len()), (0, 0));
    let moment = Duration::from_millis(1);
    assert!(!WORKER.stop(moment) && !WORKER.stop(moment));
    assert_eq!(*notes.lost.lock().unwrap(), 1);
    let said = "Abacus is not recorded: the beads did not come to rest";
    assert_eq!(notes.others(Kind::Note), [said]);
    HELD.store(false, Ordering::Release);
    assert!(WORKER.stop(TIMEOUT));
}
