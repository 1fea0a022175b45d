use super::*;

pub(super) const SECOND: u64 = 1_000_000_000;

pub(super) fn spans() -> Spans {
    Spans::new(StrId(99))
}

pub(super) fn begin(spans: &mut Spans, line: &mut u32, name: u32) {
    assert!(spans.begin(line, StrId(name), None, StrId::NONE, (0, false)));
}

fn number(name: Name<'_>) -> u32 {
    let Name::Id(StrId(name)) = name else { panic!("no bytes here") };
    name
}

fn known(all: bool) -> Known {
    if all { Known::All } else { Known::UntilNow }
}

/// What is written on tracks: `+name time queue` and `-name time queue`.
pub(super) fn settle(spans: &mut Spans, now: u64, all: bool) -> Vec<String> {
    let mut written = Vec::new();
    spans.settle(now, known(all), |told| {
        let Told::Edge(edge) = told else { return };
        let sign = if edge.begins { '+' } else { '-' };
        written.push(format!("{sign}{} {} q{}", number(edge.name), edge.time, edge.queue));
    });
    written
}

/// What is written beside queues: `name since-until queue`.
fn wholes(spans: &mut Spans, now: u64, all: bool) -> Vec<String> {
    let mut written = Vec::new();
    spans.settle(now, known(all), |told| {
        let Told::Whole(whole) = told else { return };
        let Whole { since, until, queue, .. } = whole;
        written.push(format!("{} {since}-{until} q{queue}", number(whole.name())));
    });
    written
}

#[test]
fn ranges_nest_on_each_queue_as_they_do_on_their_thread() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    begin(&mut spans, &mut line, 2);
    spans.launch(line, 10, (0, false), 0);
    spans.launch(line, 11, (0, false), 0);
    spans.end(line, StrId::NONE, 0);
    begin(&mut spans, &mut line, 3);
    spans.launch(line, 12, (0, false), 0);
    spans.end(line, StrId::NONE, 0);
    spans.end(line, StrId::NONE, 0);
    for (launch, queue, start, end) in [(10, 7, 100, 200), (11, 8, 150, 400), (12, 7, 300, 350)] {
        spans.work(launch, queue, (start, end), 0);
    }
    assert!(settle(&mut spans, SECOND / 2, false).is_empty());
    let expected = [
        "+1 100 q7",
        "+2 100 q7",
        "+1 150 q8",
        "+2 150 q8",
        "-2 200 q7",
        "-2 400 q8",
        "+3 300 q7",
        "-3 350 q7",
        "-1 350 q7",
        "-1 400 q8",
    ];
    assert_eq!(settle(&mut spans, SECOND, false), expected);
    assert_eq!((spans.waiting.len(), spans.active), (0, false));
}

/// A range that lasts as long as the program is there from its first activity on.
#[test]
fn the_outermost_need_not_end() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    for n in 1..=1000 {
        begin(&mut spans, &mut line, 2);
        spans.launch(line, n, (0, false), n * SECOND);
        spans.work(n, 7, (n * 10, n * 10 + 5), n * SECOND);
        spans.end(line, StrId::NONE, 0);
        let written = settle(&mut spans, (n + 1) * SECOND, false);
        assert_eq!(written.len(), if n == 1 { 3 } else { 2 });
        assert!(spans.waiting.is_empty() && spans.lines[line as usize - 1].steps.is_empty());
    }
    assert_eq!(settle(&mut spans, 0, true), ["-1 10005 q7"]);
}

#[test]
fn work_may_be_read_before_its_launch_and_of_graphs_in_parts() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    spans.work(10, 7, (100, 200), 0);
    assert!(settle(&mut spans, SECOND / 2, false).is_empty());
    spans.work(10, 7, (50, 80), SECOND / 2);
    spans.launch(line, 10, (0, false), SECOND / 2);
    spans.work(10, 7, (300, 310), SECOND);
    spans.end(line, StrId::NONE, 0);
    assert!(settle(&mut spans, SECOND * 3 / 2, false).is_empty(), "more may come");
    assert_eq!(settle(&mut spans, SECOND * 2, false), ["+1 50 q7", "-1 310 q7"]);
}

/// Queues of devices are read first: of a short program, all that they have.
#[test]
fn work_may_be_read_before_there_are_ranges() {
    let (mut spans, mut line) = (spans(), 0);
    for n in 0..3 {
        spans.work(n, 7, (n * 100, n * 100 + 50), 0);
    }
    for n in 0..3 {
        begin(&mut spans, &mut line, 1);
        spans.launch(line, n, (0, false), 0);
        spans.end(line, StrId::NONE, 0);
    }
    let expected = ["+1 0 q7", "-1 50 q7", "+1 100 q7", "-1 150 q7", "+1 200 q7", "-1 250 q7"];
    assert_eq!(settle(&mut spans, 0, true), expected);
    assert_eq!(spans.without_work, 0);
    // What nobody asks for is forgotten.
    spans.work(9, 7, (1, 2), SECOND);
    (2..4).for_each(|second| drop(settle(&mut spans, second * SECOND, false)));
    assert_eq!(spans.early.len(), 0);
}

#[test]
fn a_launch_without_work_holds_the_others_up_only_for_a_while() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    spans.launch(line, 10, (0, false), 0);
    assert!(settle(&mut spans, 1000 * SECOND, false).is_empty(), "it may still run");
    spans.launch(line, 11, (0, false), 0);
    spans.work(11, 7, (1, 2), 0);
    assert_eq!(settle(&mut spans, 10 * SECOND, false), ["+1 1 q7"]);
    assert_eq!(spans.without_work, 1);
}

#[test]
fn what_overlaps_on_a_queue_is_moved_and_counted() {
    let (mut spans, mut line) = (spans(), 0);
    for (n, times) in [(1, (10, 20)), (2, (15, 30))] {
        begin(&mut spans, &mut line, n);
        spans.launch(line, n.into(), (0, false), 0);
        spans.work(n.into(), 7, times, 0);
        spans.end(line, StrId::NONE, 0);
    }
    let expected = ["+1 10 q7", "-1 20 q7", "+2 20 q7", "-2 30 q7"];
    assert_eq!(settle(&mut spans, 0, true), expected);
    assert_eq!(spans.moved, 1);
}

#[test]
fn ranges_that_cross_have_tracks_of_their_own() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    assert!(spans.begin(&mut line, StrId(2), None, StrId(5), (0, false)));
    spans.launch(line, 1, (0, false), 0);
    spans.end(line, StrId::NONE, 0);
    spans.launch(line, 2, (0, false), 0);
    spans.end(line, StrId(5), 0);
    spans.work(1, 7, (10, 20), 0);
    spans.work(2, 7, (20, 30), 0);
    let mut sides = Vec::new();
    spans.settle(0, Known::All, |told| {
        if let Told::Edge(edge) = told {
            sides.push((edge.begins, edge.side.0, edge.time));
        }
    });
    let expected = [(true, 0, 10), (true, 5, 10), (false, 0, 20), (false, 5, 30)];
    assert_eq!(sides, expected);
}

#[test]
fn memory_is_bounded() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    let launches = MAX_WAITING as u64 * 3;
    for n in 0..launches {
        spans.work(launches + n, 7, (1, 2), 0);
        spans.launch(line, n, (0, false), 0);
    }
    assert!(spans.early.len() <= early::MAX && spans.waiting.len() <= MAX_WAITING * 2);
    settle(&mut spans, 0, false);
    assert!(spans.waiting.len() <= MAX_WAITING);
    settle(&mut spans, 0, true);
    assert!(spans.unfollowed >= MAX_WAITING as u64);
    assert_eq!(spans.without_work + spans.unfollowed, launches);
}

#[test]
fn nothing_where_it_is_not_wanted_and_without_ranges() {
    let (mut spans, mut line) = (Spans::new(StrId::NONE), 0);
    assert!(!spans.begin(&mut line, StrId(1), None, StrId::NONE, (0, false)));
    let mut spans = Spans::new(StrId(1));
    spans.launch(0, 1, (0, false), 0);
    assert!(spans.waiting.is_empty());
}

/// Where a file may begin in the middle: what is open there begins anew, as it began.
#[test]
fn open_ranges_are_said_anew() {
    let (mut spans, mut line) = (spans(), 0);
    for name in [1, 2] {
        begin(&mut spans, &mut line, name);
    }
    spans.launch(line, 1, (0, false), 0);
    spans.work(1, 7, (10, 20), 0);
    assert_eq!(settle(&mut spans, SECOND, false), ["+1 10 q7", "+2 10 q7"]);
    spans.expire();
    let mut written = Vec::new();
    spans.restate(|edge| written.push((edge.begins, edge.time, edge.is_new_track)));
    assert_eq!(written, [(true, 10, true), (true, 10, false)]);
    assert_eq!(settle(&mut spans, 0, true), ["-2 20 q7", "-1 20 q7"]);
}

#[test]
fn threads_that_come_and_go_leave_nothing_behind() {
    let mut spans = spans();
    let none = StrId::NONE;
    let begin = |spans: &mut Spans, line: &mut u32, name| {
        assert!(spans.begin(line, StrId(name), None, none, (10, false)));
    };
    for thread in 0..1000 {
        let mut line = 0;
        for _ in 0..3 {
            begin(&mut spans, &mut line, 1);
            begin(&mut spans, &mut line, 2);
            spans.end(line, none, 20);
            spans.end(line, none, 20);
        }
        // Some end inside a range, which has to be gone over.
        if thread % 100 == 0 {
            begin(&mut spans, &mut line, 3);
        }
        spans.thread_ended(line);
    }
    assert_eq!(spans.lines.len(), 11, "also while nobody settles anything");
    settle(&mut spans, SECOND, false);
    assert_eq!((spans.lines.len(), spans.free.len()), (11, 11));
}

/// What threads launch that compute gradients belongs to the ranges of the main thread,
/// whichever queue is read first.
#[test]
fn work_for_another_thread() {
    let (mut spans, mut main, mut other) = (spans(), 0, 0);
    spans.gradients_of(0);
    let none = StrId::NONE;
    let begin = |spans: &mut Spans, line: &mut u32, name, time, is_main| {
        assert!(spans.begin(line, StrId(name), None, none, (time, is_main)));
    };
    begin(&mut spans, &mut main, 1, 10, true);
    begin(&mut spans, &mut main, 2, 20, true);
    spans.end(main, none, 30);
    begin(&mut spans, &mut main, 3, 40, true);
    spans.end(main, none, 50);
    // What the main thread did in the meantime was read before.
    begin(&mut spans, &mut other, 4, 41, false);
    spans.launch(other, 7, (42, true), 50);
    spans.end(other, none, 43);
    spans.launch(0, 8, (44, true), 50);
    spans.end(main, none, 60);
    spans.work(7, 5, (100, 200), 60);
    spans.work(8, 5, (200, 300), 60);
    let written = settle(&mut spans, 2 * SECOND, false);
    let main = ["+1 100 q5", "+3 100 q5", "-3 300 q5", "-1 300 q5"];
    let other = ["+4 100 q5", "-4 200 q5"];
    assert_eq!(written, [&main[..], &other[..]].concat());
}

/// What begins at one time is shown in the order of the file: what lies around comes first.
#[test]
fn wholes_come_after_what_lies_around_them() {
    let (mut spans, mut line) = (spans(), 0);
    let mut launch = 0;
    let mut worked = |spans: &mut Spans, line, times| {
        launch += 1;
        spans.launch(line, launch, (0, false), 0);
        spans.work(launch, 7, times, 0);
    };
    begin(&mut spans, &mut line, 1);
    for n in 0..3 {
        begin(&mut spans, &mut line, 2);
        begin(&mut spans, &mut line, 3);
        worked(&mut spans, line, (n * 100 + 10, n * 100 + 20));
        spans.end(line, StrId::NONE, 0);
        begin(&mut spans, &mut line, 4);
        worked(&mut spans, line, (n * 100 + 30, n * 100 + 40));
        spans.end(line, StrId::NONE, 0);
        spans.end(line, StrId::NONE, 0);
    }
    // The first step began with the range around them all, which is open.
    let settled = wholes(&mut spans, SECOND, false);
    let later = ["2 110-140 q7", "3 110-120 q7", "4 130-140 q7", "2 210-240 q7", "3 210-220 q7"];
    assert_eq!(settled, [&["4 30-40 q7"], &later[..], &["4 230-240 q7"]].concat());
    assert!(spans.active);
    spans.end(line, StrId::NONE, 0);
    let rest = ["1 10-240 q7", "2 10-40 q7", "3 10-20 q7"];
    assert_eq!(wholes(&mut spans, SECOND, false), rest);
    assert!(spans.ended.is_empty() && !spans.active);
}

/// Also around those of threads that compute gradients, which are gone over first.
#[test]
fn wholes_wait_for_the_main_thread() {
    let (mut spans, mut main, mut other) = (spans(), 0, 0);
    let none = StrId::NONE;
    assert!(spans.begin(&mut other, StrId(2), None, none, (41, false)));
    assert!(spans.begin(&mut main, StrId(1), None, none, (40, true)));
    spans.launch(other, 7, (42, true), 50);
    spans.end(other, none, 43);
    spans.end(main, none, 60);
    spans.work(7, 5, (100, 200), 60);
    assert!(wholes(&mut spans, SECOND / 2, false).is_empty());
    assert_eq!(wholes(&mut spans, 2 * SECOND, false), ["1 100-200 q5", "2 100-200 q5"]);
}

/// And when so many wait that they no longer do.
#[test]
fn wholes_have_a_bound() {
    let (mut spans, mut line) = (spans(), 0);
    begin(&mut spans, &mut line, 1);
    for n in 0..20_000 {
        begin(&mut spans, &mut line, 2);
        spans.launch(line, n, (0, false), 0);
        // No time passes.
        spans.work(n, 7, (10, 10), 0);
        spans.end(line, StrId::NONE, 0);
    }
    assert_eq!(wholes(&mut spans, SECOND, false).len(), 20_000);
    assert!(spans.ended.is_empty());
}

/// Steps of a training, whose gradients another thread computes: a forward and a backward range
/// of the main thread each, with a launch of its own in the forward range.
fn main_step(spans: &mut Spans, main: &mut u32, step: u64) {
    step_of(spans, main, step, true);
}

/// The same of any thread.
pub(super) fn step_of(spans: &mut Spans, line: &mut u32, step: u64, is_main: bool) {
    let (none, at) = (StrId::NONE, step * 100);
    assert!(spans.begin(line, StrId(1), None, none, (at, is_main)));
    spans.launch(*line, step * 2, (at + 10, false), 0);
    spans.end(*line, none, at + 20);
    assert!(spans.begin(line, StrId(2), None, none, (at + 30, is_main)));
    spans.end(*line, none, at + 50);
}

/// The launch of the other thread, in the backward range.
pub(super) fn gradient_step(spans: &mut Spans, step: u64, now: u64) {
    spans.launch(0, step * 2 + 1, (step * 100 + 40, true), now);
}

/// What a queue did for these steps, and what is shown of it.
pub(super) fn worked_steps(spans: &mut Spans, steps: std::ops::Range<u64>) -> Vec<String> {
    let mut expected = Vec::new();
    for (launch, name) in steps.flat_map(|step| [(step * 2, 1), (step * 2 + 1, 2)]) {
        let (start, end) = (launch * 10, launch * 10 + 5);
        spans.work(launch, 7, (start, end), 0);
        expected.extend([format!("+{name} {start} q7"), format!("-{name} {end} q7")]);
    }
    expected
}

/// The queue of the thread that computes gradients is read far ahead of the main thread's.
#[test]
fn work_for_another_thread_that_is_read_later() {
    let (mut spans, mut main) = (spans(), 0);
    (1..5).for_each(|step| gradient_step(&mut spans, step, 0));
    (1..3).for_each(|step| main_step(&mut spans, &mut main, step));
    (5..9).for_each(|step| gradient_step(&mut spans, step, 0));
    (3..9).for_each(|step| main_step(&mut spans, &mut main, step));
    let expected = worked_steps(&mut spans, 1..9);
    assert_eq!(settle(&mut spans, 0, true), expected);
    assert_eq!((spans.without_work, spans.unfollowed, spans.moved), (0, 0, 0));
}

/// Also when it takes a while until the rest is read.
#[test]
fn the_main_thread_waits_for_queues_that_are_not_read_up() {
    for gradients_first in [true, false] {
        let (mut spans, mut main) = (spans(), 0);
        spans.gradients_of(0);
        let mut first = |spans: &mut Spans, first: bool| {
            let mut step = |step| match first == gradients_first {
                true => gradient_step(spans, step, 0),
                false => main_step(spans, &mut main, step),
            };
            (1..9).for_each(&mut step);
        };
        first(&mut spans, true);
        let expected = worked_steps(&mut spans, 1..9);
        spans.settle(9 * SECOND, Known::Part, |told| panic!("{told:?} is too soon"));
        first(&mut spans, false);
        assert_eq!(settle(&mut spans, 9 * SECOND, false), expected);
        assert_eq!((spans.without_work, spans.unfollowed, spans.moved), (0, 0, 0));
    }
}

/// A launch may be read after the ranges around it, and others, were gone over.
#[test]
fn launches_that_are_read_too_late_are_counted_and_not_shown_elsewhere() {
    let (mut spans, mut main) = (spans(), 0);
    spans.gradients_of(0);
    let none = StrId::NONE;
    assert!(spans.begin(&mut main, StrId(3), None, none, (0, true)));
    main_step(&mut spans, &mut main, 1);
    assert!(spans.begin(&mut main, StrId(4), None, none, (200, true)));
    let _ = worked_steps(&mut spans, 1..2);
    assert_eq!(settle(&mut spans, 9 * SECOND, false), ["+3 20 q7", "+1 20 q7", "-1 25 q7"]);
    gradient_step(&mut spans, 1, 9 * SECOND);
    spans.work(3, 7, (30, 35), 9 * SECOND);
    assert_eq!(settle(&mut spans, 9 * SECOND, true), ["-3 35 q7"]);
    assert_eq!((spans.without_work, spans.unfollowed), (0, 1));
}

#[test]
fn ranges_that_are_too_deep_are_counted() {
    let (mut spans, mut line) = (spans(), 0);
    (0..DEEPEST).for_each(|_| begin(&mut spans, &mut line, 1));
    assert!(!spans.begin(&mut line, StrId(2), None, StrId::NONE, (0, false)));
    assert_eq!(spans.too_deep, 1);
}

/// What is launched for others is for nobody who has no range open then.
#[test]
fn the_line_of_a_thread_that_ended_is_given_to_others() {
    let (mut spans, mut main, mut other) = (spans(), 0, 0);
    let none = StrId::NONE;
    assert!(spans.begin(&mut main, StrId(1), None, none, (0, true)));
    spans.end(main, none, 10);
    settle(&mut spans, 2 * SECOND, false);
    spans.thread_ended(main);
    assert!(spans.begin(&mut other, StrId(2), None, none, (20, false)));
    assert_eq!(main, other);
    spans.launch(0, 7, (15, true), 0);
    spans.work(7, 5, (100, 200), 0);
    assert!(settle(&mut spans, 0, true).is_empty());
}
