use kymograph_protos::StrId;

use super::super::tests::{SECOND, begin, gradient_step, settle, spans, step_of, worked_steps};
use super::*;

/// A thread that waits for gradients need not be the main one: whoever has a range open then.
#[test]
fn work_for_a_thread_that_is_not_the_main_one() {
    for gradients_first in [true, false] {
        let (mut spans, mut line) = (spans(), 0);
        spans.gradients_of(0);
        let mut steps = |spans: &mut Spans, gradients: bool| match gradients {
            true => (1..4).for_each(|step| gradient_step(spans, step, 0)),
            false => (1..4).for_each(|step| step_of(spans, &mut line, step, false)),
        };
        steps(&mut spans, gradients_first);
        steps(&mut spans, !gradients_first);
        let expected = worked_steps(&mut spans, 1..4);
        assert_eq!(settle(&mut spans, 9 * SECOND, false), expected);
        assert_eq!((spans.unfollowed, spans.ambiguous), (0, 0));
    }
}

/// A thread that trains: its line, and the queue that it uses.
struct Trainer {
    line: u32,
    queue: u32,
}

impl Trainer {
    fn on(queue: u32) -> Trainer {
        Trainer { line: 0, queue }
    }

    /// A range, with a launch in it.
    fn range(&mut self, spans: &mut Spans, name: u32, (since, until): (u64, u64), launch: u64) {
        assert!(spans.begin(&mut self.line, StrId(name), None, StrId::NONE, (since, false)));
        self.launch(spans, launch, since + 1, false);
        spans.end(self.line, StrId::NONE, until);
    }

    fn launch(&self, spans: &mut Spans, launch: u64, time: u64, gradients: bool) {
        let line = if gradients { 0 } else { self.line };
        spans.launch(line, launch, (time, gradients), 0);
        spans.work(launch, self.queue, (launch * 10, launch * 10 + 5), 0);
    }
}

/// Several threads train at once: each on a queue of its own.
#[test]
fn trainers_are_told_apart_by_their_queues() {
    let mut spans = spans();
    let (mut one, mut two) = (Trainer::on(5), Trainer::on(6));
    spans.gradients_of(0);
    one.range(&mut spans, 1, (10, 50), 10);
    two.range(&mut spans, 2, (20, 60), 20);
    two.launch(&mut spans, 21, 30, true);
    one.launch(&mut spans, 11, 31, true);
    two.launch(&mut spans, 22, 32, true);
    // That of a collective runs where neither launches.
    Trainer::on(9).launch(&mut spans, 30, 33, true);
    let expected = ["+1 100 q5", "-1 115 q5", "+2 200 q6", "-2 225 q6"];
    assert_eq!(settle(&mut spans, 9 * SECOND, false), expected);
    assert_eq!((spans.unfollowed, spans.ambiguous), (0, 1));
}

/// The main thread has made the model, and waits for the one that trains it.
#[test]
fn the_last_one_to_launch_calls_for_gradients() {
    let mut spans = spans();
    let (mut main, mut trainer) = (Trainer::on(5), Trainer::on(5));
    spans.gradients_of(0);
    assert!(spans.begin(&mut main.line, StrId(1), None, StrId::NONE, (0, true)));
    main.launch(&mut spans, 1, 1, false);
    for step in 1..4 {
        let at = step * 100;
        trainer.range(&mut spans, 2, (at, at + 50), step * 10);
        trainer.launch(&mut spans, step * 10 + 1, at + 10, true);
        trainer.launch(&mut spans, step * 10 + 2, at + 20, true);
    }
    // That of a collective runs on a queue of its own.
    Trainer::on(9).launch(&mut spans, 33, 330, true);
    spans.end(main.line, StrId::NONE, 1000);
    let expected = [
        "+1 10 q5",
        "-1 15 q5",
        "+2 100 q5",
        "-2 125 q5",
        "+2 200 q5",
        "-2 225 q5",
        "+2 300 q5",
        "+2 330 q9",
        "-2 325 q5",
        "-2 335 q9",
    ];
    assert_eq!(settle(&mut spans, 9 * SECOND, false), expected);
    assert_eq!((spans.unfollowed, spans.ambiguous), (0, 0));
}

/// Of two threads with one queue, one that launches all the time does not wait.
#[test]
fn what_may_be_for_several_is_shown_for_none() {
    let mut spans = spans();
    let (mut one, mut two) = (Trainer::on(5), Trainer::on(5));
    spans.gradients_of(0);
    one.range(&mut spans, 1, (10, 90), 1);
    one.launch(&mut spans, 2, 20, true);
    assert!(spans.begin(&mut two.line, StrId(2), None, StrId::NONE, (30, false)));
    two.launch(&mut spans, 3, 31, false);
    one.launch(&mut spans, 4, 40, true);
    two.launch(&mut spans, 5, 41, false);
    // From here on both may wait.
    one.launch(&mut spans, 6, 50, true);
    one.launch(&mut spans, 7, 60, true);
    spans.end(two.line, StrId::NONE, 95);
    let expected = ["+1 10 q5", "+2 30 q5", "-1 45 q5", "-2 55 q5"];
    let mut settled = settle(&mut spans, 9 * SECOND, false);
    settled.sort_by_key(|edge| edge[3..5].trim().parse::<u64>().unwrap());
    assert_eq!(settled, expected);
    assert_eq!((spans.unfollowed, spans.ambiguous), (0, 2));
}

/// A thread that only has ranges does not train, if others launch that have none.
#[test]
fn a_thread_that_launches_nothing_does_not_wait_for_gradients() {
    let (mut spans, mut server) = (spans(), 0);
    assert!(spans.begin(&mut server, StrId(1), None, StrId::NONE, (10, true)));
    spans.launch(0, 1, (20, false), 0);
    spans.launch(0, 2, (30, true), 0);
    spans.end(server, StrId::NONE, 40);
    (1..3).for_each(|launch| spans.work(launch, 7, (launch * 10, launch * 10 + 5), 0));
    assert!(settle(&mut spans, 9 * SECOND, false).is_empty());
    assert_eq!((spans.unfollowed, spans.ambiguous, spans.active), (0, 1, false));
}

/// While it is not known where a launch ran, all wait that it may be for.
#[test]
fn lines_wait_for_what_tells_trainers_apart() {
    let mut spans = spans();
    let (mut one, mut two) = (Trainer::on(5), Trainer::on(6));
    spans.gradients_of(0);
    one.range(&mut spans, 1, (10, 50), 10);
    two.range(&mut spans, 2, (20, 60), 20);
    spans.launch(0, 11, (30, true), 0);
    assert_eq!(settle(&mut spans, 2 * SECOND, false), ["+1 100 q5", "+2 200 q6"]);
    spans.work(11, 5, (110, 115), 2 * SECOND);
    assert_eq!(settle(&mut spans, 4 * SECOND, false), ["-1 115 q5", "-2 205 q6"]);
}

/// However many launches there are of which nothing is known.
#[test]
fn launches_for_others_are_bounded() {
    let (mut spans, mut one, mut two) = (spans(), 0, 0);
    for line in [&mut one, &mut two] {
        begin(&mut spans, line, 1);
    }
    let launches = MAX_WAITING as u64 * 3;
    for launch in 0..launches {
        spans.launch(0, launch, (launch, true), 0);
        if launch % 1000 == 0 {
            settle(&mut spans, 0, false);
        }
    }
    assert!(spans.waiting.len() <= MAX_WAITING);
    settle(&mut spans, 0, true);
    assert!(spans.waiting.is_empty() && spans.gradients.is_empty());
    assert_eq!(spans.ambiguous, launches);
}
