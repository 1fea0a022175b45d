//! The loop of a source's thread, and how decoders keep pace with the pipeline.

use std::time::{Duration, Instant};

use kymograph_protos::ColdRecorder;

use super::thread::wait;
use super::worker::{Worker, moves};

/// What the thread of a source does, round by round.
pub(crate) trait Reader {
    /// The pause between two rounds.
    const NAP: Duration;
    /// How often the vendor is asked for buffers that are not full.
    const FLUSH_EVERY: Duration;

    /// Reads what there is. [`Round`] says whether the vendor is to be asked for more.
    fn round(&mut self, worker: &Worker, round: Round);

    /// The recording stops: reads the rest.
    fn end(self, worker: &Worker);
}

/// Why a round takes place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Round {
    /// A flush was asked for; it is answered after the round.
    pub(crate) asked: bool,
    /// It was, or [`Reader::FLUSH_EVERY`] has passed since the last round for which this held.
    pub(crate) due: bool,
}

/// Runs a reader until the recording stops.
pub(crate) fn run<R: Reader>(mut reader: R, worker: &Worker) {
    let mut flushed = Instant::now();
    while !worker.stopping() {
        let wanted = worker.wanted();
        let asked = wanted.is_some();
        let due = asked || flushed.elapsed() >= R::FLUSH_EVERY;
        if due {
            flushed = Instant::now();
        }
        reader.round(worker, Round { asked, due });
        if let Some(ticket) = wanted {
            worker.flushed(ticket);
        }
        std::thread::park_timeout(R::NAP);
    }
    reader.end(worker);
}

/// Waits while the pipeline is behind, rather than lose records: for `timeout`, and then for as
/// long as `go_on` says. Buffers that a vendor fills meanwhile are bounded, too.
pub(crate) fn keep_pace(recorder: &dyn ColdRecorder, timeout: Duration, go_on: impl Fn() -> bool) {
    moves();
    while !wait(timeout, || !recorder.backlogged()) && go_on() {}
}
