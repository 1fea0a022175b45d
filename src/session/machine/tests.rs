//! Every transition, and Kineto's behaviours by the names of its tests where it has one.

mod anything;

use super::*;
use crate::session::request::{Refusal, Start, Window};

const MS: u64 = 1_000_000;
/// What the wall shows when the other clock shows 0.
const EPOCH: u64 = 1_700_000_000_000_000_000;

fn at(ms: u64) -> Now {
    Now { boot: ms * MS, wall: EPOCH + ms * MS }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn time(warmup: u64, duration: u64) -> Window {
    Window::Time { start: Start::Now, warmup: ms(warmup), duration: ms(duration) }
}

fn at_time(start: u64, warmup: u64, duration: u64) -> Window {
    let start = Start::At(EPOCH + start * MS);
    Window::Time { start, warmup: ms(warmup), duration: ms(duration) }
}

fn iterations(start: u64, warmup: u64, count: u64) -> Window {
    Window::Iterations { start, roundup: 0, warmup, count, otherwise: None }
}

/// The program calls `step()` once more.
fn step(machine: &mut Machine, now: Now) -> Option<Action> {
    machine.step(now, machine.steps() + 1)
}

/// A machine whose program has called `step()` this often.
fn stepped(steps: u64) -> Machine {
    let mut machine = Machine::default();
    for _ in 0..steps {
        assert_eq!(step(&mut machine, at(0)), None);
    }
    machine
}

/// In the warm-up of a request, with the sources on.
fn warm(machine: &mut Machine, ms: u64, window: &Window) -> Ticket {
    let ticket = machine.submit(at(ms), window).unwrap();
    assert_eq!(machine.tick(at(ms)), Some(Action::Prepare(ticket)));
    assert_eq!(machine.phase(), Phase::Warmup);
    machine.ready(at(ms));
    ticket
}

/// With an open window.
fn collecting(machine: &mut Machine, ms: u64) -> Ticket {
    let ticket = warm(machine, ms, &time(0, 100));
    assert_eq!(machine.tick(at(ms)), Some(Action::Open { ticket, at: ms * MS }));
    ticket
}

/// The machine takes a request and serves it: nothing of the one before is left.
fn works(machine: &mut Machine, ms: u64) {
    assert_eq!((machine.phase(), machine.active()), (Phase::WaitForRequest, None));
    let ticket = collecting(machine, ms);
    assert_eq!(machine.tick(at(ms + 100)), Some(Action::Close { ticket, at: (ms + 100) * MS }));
    machine.finished();
    assert_eq!(machine.phase(), Phase::WaitForRequest);
}

#[test]
fn a_window_by_time_opens_after_its_warm_up_and_closes_after_its_duration() {
    let mut machine = Machine::default();
    assert_eq!(machine.due(), None);
    let ticket = machine.submit(at(1000), &time(50, 100)).unwrap();
    assert_eq!((machine.due(), machine.pending()), (Some(1000 * MS), Some(ticket)));
    assert_eq!(machine.tick(at(1000)), Some(Action::Prepare(ticket)));
    assert_eq!((machine.due(), machine.pending()), (None, None), "it waits for the sources");
    machine.ready(at(1003));
    assert_eq!(machine.due(), Some(1050 * MS));
    assert_eq!(machine.tick(at(1049)), None);
    // Late, but the window is exact.
    assert_eq!(machine.tick(at(1055)), Some(Action::Open { ticket, at: 1050 * MS }));
    assert_eq!((machine.due(), machine.phase()), (Some(1150 * MS), Phase::CollectTrace));
    assert_eq!(machine.progress(at(1075)), Some((25 * MS, 100 * MS)));
    assert_eq!(machine.tick(at(1149)), None);
    assert_eq!(machine.tick(at(1160)), Some(Action::Close { ticket, at: 1150 * MS }));
    assert_eq!((machine.due(), machine.phase()), (None, Phase::ProcessTrace));
    assert_eq!(machine.tick(at(1170)), None);
    machine.finished();
    works(&mut machine, 2000);
}

#[test]
fn sources_that_take_longer_than_the_warm_up_delay_the_window() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &time(10, 100)).unwrap();
    machine.tick(at(0));
    assert_eq!(machine.tick(at(15)), None);
    machine.ready(at(30));
    assert_eq!(machine.tick(at(31)), Some(Action::Open { ticket, at: 30 * MS }));
    assert_eq!(machine.due(), Some(130 * MS), "it is as long as was asked for");
}

#[test]
fn a_synchronised_window_ends_with_the_others_however_late_it_began() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(500, 0, 100)).unwrap();
    assert_eq!((machine.tick(at(0)), machine.due()), (None, Some(250 * MS)), "sources take time");
    assert_eq!(machine.tick(at(250)), Some(Action::Prepare(ticket)));
    machine.ready(at(520));
    assert_eq!(machine.tick(at(520)), Some(Action::Open { ticket, at: 520 * MS }));
    assert_eq!(machine.due(), Some(600 * MS));
}

#[test]
fn when_it_opens_is_known_before_it_opens() {
    let mut machine = Machine::default();
    machine.submit(at(0), &time(50, 100)).unwrap();
    machine.tick(at(0));
    assert_eq!(machine.opens(), None, "the sources may take longer");
    machine.ready(at(10));
    assert_eq!((machine.opens(), machine.closes()), (Some(50 * MS), None));
    machine.tick(at(50));
    assert_eq!((machine.opens(), machine.closes()), (None, Some(150 * MS)));
}

#[test]
fn a_synchronised_window_is_not_moved_by_a_clock_that_is_set_meanwhile() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(5000, 1000, 100)).unwrap();
    let set = |boot| Now { boot: boot * MS, wall: EPOCH - 86_400_000 * MS };
    assert_eq!(machine.tick(set(3999)), None);
    assert_eq!(machine.tick(set(4000)), Some(Action::Prepare(ticket)));
    machine.ready(set(4010));
    assert_eq!(machine.tick(set(5000)), Some(Action::Open { ticket, at: 5000 * MS }));
}

/// Kineto: AsyncActivityProfilerHandlerTest.ConfigureRejectsStartTimeInThePast.
#[test]
fn configure_rejects_start_time_in_the_past() {
    let mut machine = Machine::default();
    let refused = machine.submit(at(1000), &at_time(990, 0, 100));
    assert_eq!(refused, Err(Refusal::Past(ms(10))));
    let refused = machine.submit(at(1000), &at_time(1400, 500, 100));
    assert_eq!(refused, Err(Refusal::TooSoon(ms(400), ms(500))));
    machine.submit(at(1000), &at_time(1500, 500, 100)).unwrap();
}

#[test]
fn a_process_that_slept_past_its_start_says_so() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(1000, 500, 100)).unwrap();
    // Late for the warm-up only: that is shortened.
    let mut other = Machine::default();
    let same = other.submit(at(0), &at_time(1000, 500, 100)).unwrap();
    assert_eq!(other.tick(at(900)), Some(Action::Prepare(same)));
    // Late for the beginning of the window: there is the rest.
    let mut other = Machine::default();
    let same = other.submit(at(0), &at_time(1000, 500, 100)).unwrap();
    assert_eq!(other.tick(at(1050)), Some(Action::Prepare(same)));
    assert_eq!(machine.tick(at(1200)), Some(Action::Refuse(ticket, Refusal::Late(ms(200)))));
    works(&mut machine, 2000);
}

#[test]
fn a_synchronised_window_that_is_over_before_the_sources_are_on_is_given_up() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(0, 0, 100)).unwrap();
    machine.tick(at(0));
    machine.ready(at(100));
    assert_eq!(machine.tick(at(100)), Some(Action::Discard(ticket, Refusal::Late(ms(100)))));
}

#[test]
fn a_late_tick_moves_a_window_that_nobody_shares() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &time(10, 100)).unwrap();
    assert_eq!(machine.tick(at(500)), Some(Action::Prepare(ticket)));
    machine.ready(at(500));
    assert_eq!(machine.due(), Some(510 * MS));
}

/// Kineto: AsyncActivityProfilerHandlerTest, "(50,5,10), (0,0,2), (0,5,5) complete".
#[test]
fn iteration_traces_complete() {
    for (start, warmup, count) in [(50, 5, 10), (0, 0, 2), (0, 5, 5)] {
        let mut machine = stepped(3);
        let ticket = machine.submit(at(0), &iterations(start, warmup, count)).unwrap();
        let (mut prepared, mut opened, mut closed) = (None, None, None);
        let mut note = |action, machine: &mut Machine| match action {
            Some(Action::Prepare(_)) => {
                prepared = Some(machine.steps());
                machine.ready(at(0));
            }
            Some(Action::Open { .. }) => opened = Some(machine.steps()),
            Some(Action::Close { .. }) => closed = Some(machine.steps()),
            None => {}
            other => panic!("{other:?}"),
        };
        let action = machine.tick(at(0));
        note(action, &mut machine);
        for ms in 0..100 {
            let action = step(&mut machine, at(ms));
            note(action, &mut machine);
        }
        let first = start.max(3 + warmup.max(1));
        assert_eq!(prepared, Some(first - warmup.max(1)), "{start} {warmup}");
        assert_eq!((opened, closed), (Some(first), Some(first + count)), "{start} {warmup}");
        assert_eq!(machine.active(), Some(ticket));
        machine.finished();
        works(&mut machine, 1000);
    }
}

#[test]
fn a_window_by_iterations_opens_and_closes_where_step_is_called() {
    let mut machine = stepped(9);
    let ticket = machine.submit(at(0), &iterations(0, 0, 2)).unwrap();
    assert!(machine.awaits_step());
    assert_eq!(machine.tick(at(0)), Some(Action::Prepare(ticket)));
    machine.ready(at(1));
    assert_eq!(step(&mut machine, at(7)), Some(Action::Open { ticket, at: 7 * MS }));
    assert_eq!(machine.iterations(), Some((10, 12)));
    assert_eq!(step(&mut machine, at(8)), None);
    assert_eq!(machine.progress(at(8)), Some((1, 2)));
    assert_eq!(step(&mut machine, at(9)), Some(Action::Close { ticket, at: 9 * MS }));
    assert_eq!(step(&mut machine, at(10)), None, "ProcessTrace is not left by step()");
    assert!(!machine.awaits_step());
}

#[test]
fn an_iteration_that_has_passed_is_rounded_up() {
    let mut machine = stepped(9);
    let window =
        Window::Iterations { start: 8, roundup: 100, warmup: 5, count: 3, otherwise: None };
    let ticket = machine.submit(at(0), &window).unwrap();
    assert_eq!(machine.tick(at(0)), None);
    for _ in 10..95 {
        assert_eq!(step(&mut machine, at(1)), None);
    }
    assert_eq!(step(&mut machine, at(2)), Some(Action::Prepare(ticket)), "95");
    machine.ready(at(2));
    for _ in 96..100 {
        assert_eq!(step(&mut machine, at(3)), None);
    }
    assert_eq!(step(&mut machine, at(4)), Some(Action::Open { ticket, at: 4 * MS }));
    assert_eq!((machine.steps(), machine.iterations()), (100, Some((100, 103))));
}

#[test]
fn an_iteration_to_come_is_not_rounded() {
    let mut machine = stepped(1);
    let window =
        Window::Iterations { start: 8, roundup: 100, warmup: 1, count: 3, otherwise: None };
    machine.submit(at(0), &window).unwrap();
    for _ in 2..7 {
        assert_eq!(step(&mut machine, at(1)), None);
    }
    assert!(matches!(step(&mut machine, at(1)), Some(Action::Prepare(_))));
}

#[test]
fn sources_that_are_not_on_in_time_shift_a_window_by_whole_iterations() {
    let mut machine = stepped(1);
    let ticket = machine.submit(at(0), &iterations(0, 0, 2)).unwrap();
    machine.tick(at(0));
    assert_eq!(step(&mut machine, at(1)), None);
    assert_eq!(step(&mut machine, at(2)), None);
    machine.ready(at(3));
    assert_eq!(step(&mut machine, at(4)), Some(Action::Open { ticket, at: 4 * MS }));
    assert_eq!(machine.iterations(), Some((4, 6)));
}

#[test]
fn a_step_that_nobody_saw_takes_no_iteration_from_the_window() {
    let mut machine = stepped(1);
    let ticket = warm(&mut machine, 0, &iterations(0, 0, 7));
    // Called while the request was being handed in, and so only counted.
    machine.count_steps(2);
    assert_eq!(step(&mut machine, at(1)), Some(Action::Open { ticket, at: MS }));
    assert_eq!(machine.iterations(), Some((3, 10)));
}

/// Kineto: a timestamp trace ignores step() iterations, and vice versa.
#[test]
fn time_and_iterations_do_not_mix() {
    let mut machine = stepped(1);
    let ticket = collecting(&mut machine, 0);
    assert!(!machine.awaits_step());
    for _ in 0..100 {
        assert_eq!(step(&mut machine, at(50)), None);
    }
    assert_eq!(machine.tick(at(100)), Some(Action::Close { ticket, at: 100 * MS }));
    machine.finished();
    warm(&mut machine, 200, &iterations(0, 0, 1));
    assert_eq!((machine.tick(at(10_000)), machine.due()), (None, None));
    step(&mut machine, at(10_000));
    assert_eq!((machine.phase(), machine.tick(at(90_000))), (Phase::CollectTrace, None));
}

/// Kineto: AsyncActivityProfilerHandlerTest.IterationRequestWithoutStepIsRejected.
#[test]
fn iteration_request_without_step_is_rejected() {
    let mut machine = Machine::default();
    assert_eq!(machine.submit(at(0), &iterations(0, 0, 5)), Err(Refusal::NoSteps));
    works(&mut machine, 0);
}

/// Kineto: AsyncActivityProfilerHandlerTest.IterationRequestWithDurationFallsBackToTimestamp.
#[test]
fn iteration_request_with_duration_falls_back_to_timestamp() {
    let mut machine = Machine::default();
    let window = Window::Iterations {
        start: 0,
        roundup: 1,
        warmup: 3,
        count: 5,
        otherwise: Some((ms(500), ms(20))),
    };
    warm(&mut machine, 0, &window);
    assert_eq!(machine.due(), Some(20 * MS));
    assert!(matches!(machine.tick(at(20)), Some(Action::Open { .. })));
    assert_eq!(machine.due(), Some(520 * MS));
}

#[test]
fn a_request_for_nothing_is_refused() {
    let mut machine = stepped(1);
    assert_eq!(machine.submit(at(0), &time(5, 0)), Err(Refusal::Empty));
    assert_eq!(machine.submit(at(0), &iterations(5, 0, 0)), Err(Refusal::Empty));
}

/// Kineto: AsyncActivityProfilerHandlerTest.SecondRequestWhilePendingIsRejected.
#[test]
fn second_request_while_pending_is_rejected() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(500, 0, 100)).unwrap();
    assert_eq!(machine.tick(at(249)), None);
    assert_eq!(machine.submit(at(249), &time(0, 1)), Err(Refusal::Pending));
    assert_eq!(machine.tick(at(500)), Some(Action::Prepare(ticket)), "the first is unharmed");
}

/// Kineto: ActivityProfilerControllerTest, second async ignored; canAccept reflects active.
#[test]
fn a_request_while_one_is_served_is_rejected() {
    let mut machine = Machine::default();
    assert_eq!(machine.obstacle(), None);
    let ticket = warm(&mut machine, 0, &time(10, 100));
    assert_eq!(machine.submit(at(0), &time(0, 1)), Err(Refusal::Busy));
    machine.tick(at(10));
    assert_eq!(machine.submit(at(0), &time(0, 1)), Err(Refusal::Busy));
    machine.tick(at(110));
    assert_eq!(machine.phase(), Phase::ProcessTrace);
    assert_eq!(machine.submit(at(110), &time(0, 1)), Err(Refusal::Busy));
    assert_eq!(machine.active(), Some(ticket));
    machine.finished();
    works(&mut machine, 200);
}

/// Kineto: AsyncActivityProfilerHandlerTest.Cancel, in idle, Warmup, CollectTrace and
/// ProcessTrace: inactive afterwards, and a later run works.
#[test]
fn cancel_leaves_inactive_and_a_later_run_works() {
    let mut machine = Machine::default();
    assert_eq!(machine.cancel(Ticket(0), Refusal::Cancelled), None);
    works(&mut machine, 0);

    let ticket = machine.submit(at(0), &at_time(500, 0, 100)).unwrap();
    let refused = Action::Refuse(ticket, Refusal::Cancelled);
    assert_eq!(machine.cancel(ticket, Refusal::Cancelled), Some(refused));
    works(&mut machine, 1000);

    for phase in [Phase::Warmup, Phase::CollectTrace, Phase::ProcessTrace] {
        let ticket = warm(&mut machine, 2000, &time(0, 100));
        if phase != Phase::Warmup {
            machine.tick(at(2000));
        }
        if phase == Phase::ProcessTrace {
            machine.tick(at(2100));
        }
        assert_eq!(machine.phase(), phase);
        let discard = Action::Discard(ticket, Refusal::Cancelled);
        assert_eq!(machine.cancel(ticket, Refusal::Cancelled), Some(discard), "{phase:?}");
        assert_eq!(machine.phase(), Phase::Cancelling);
        assert_eq!(machine.cancel(ticket, Refusal::Cancelled), None, "once");
        assert_eq!(machine.submit(at(2100), &time(0, 1)), Err(Refusal::Busy));
        assert_eq!((machine.tick(at(9999)), machine.due()), (None, None));
        machine.finished();
        works(&mut machine, 10_000);
    }
}

#[test]
fn somebody_elses_ticket_cancels_nothing() {
    let mut machine = Machine::default();
    let old = collecting(&mut machine, 0);
    machine.tick(at(100));
    machine.finished();
    collecting(&mut machine, 200);
    assert_eq!(machine.cancel(old, Refusal::Cancelled), None);
    assert_eq!(machine.stop(at(201), old), None);
    assert_eq!(machine.phase(), Phase::CollectTrace);
}

#[test]
fn what_is_stopped_early_is_kept() {
    let mut machine = stepped(1);
    let ticket = collecting(&mut machine, 0);
    assert_eq!(machine.stop(at(30), ticket), Some(Action::Close { ticket, at: 30 * MS }));
    assert_eq!(machine.stop(at(31), ticket), None);
    machine.finished();

    let ticket = warm(&mut machine, 100, &iterations(0, 0, 50));
    step(&mut machine, at(110));
    assert_eq!(machine.stop(at(130), ticket), Some(Action::Close { ticket, at: 130 * MS }));
    machine.finished();

    let ticket = warm(&mut machine, 200, &time(50, 100));
    let nothing = Action::Discard(ticket, Refusal::Stopped);
    assert_eq!(machine.stop(at(210), ticket), Some(nothing));
    machine.finished();

    let ticket = machine.submit(at(300), &at_time(500, 0, 100)).unwrap();
    let nothing = Action::Refuse(ticket, Refusal::Stopped);
    assert_eq!(machine.stop(at(310), ticket), Some(nothing));
    works(&mut machine, 400);
}

/// Kineto: AsyncActivityProfilerHandlerTest.BufferSizeLimitDuringWarmup.
#[test]
fn buffer_size_limit_during_warmup_cancels_and_ends_a_collection() {
    let mut machine = Machine::default();
    assert_eq!(machine.exhausted(at(0)), None);
    let ticket = warm(&mut machine, 0, &time(50, 100));
    let discard = Action::Discard(ticket, Refusal::Exhausted);
    assert_eq!(machine.exhausted(at(1)), Some(discard));
    machine.finished();
    let ticket = collecting(&mut machine, 100);
    assert_eq!(machine.exhausted(at(130)), Some(Action::Close { ticket, at: 130 * MS }));
    machine.finished();
    works(&mut machine, 1000);
}

#[test]
fn a_recording_that_cannot_be_prepared_leaves_no_trace() {
    let mut machine = Machine::default();
    machine.submit(at(0), &time(0, 100)).unwrap();
    machine.tick(at(0));
    machine.finished();
    works(&mut machine, 1);
}

/// Kineto: ActivityProfilerControllerTest, prepareTrace clears pending async; async ignored
/// while sync active.
#[test]
fn prepare_trace_clears_pending_and_async_is_ignored_while_sync_is_active() {
    let mut machine = Machine::default();
    let ticket = machine.submit(at(0), &at_time(500, 0, 100)).unwrap();
    assert_eq!(machine.preempt(), Some(Action::Refuse(ticket, Refusal::Preempted)));
    assert_eq!(machine.preempt(), None);
    for phase in [Phase::Warmup, Phase::CollectTrace, Phase::ProcessTrace] {
        machine.program_is(Some(phase));
        assert_eq!(machine.submit(at(1), &time(0, 1)), Err(Refusal::ProgramRecords));
    }
    machine.program_is(None);
    works(&mut machine, 600);
}

/// Kineto: ActivityProfilerControllerTest, prepareTrace preempts active async.
#[test]
fn prepare_trace_preempts_active_async() {
    for collect in [false, true] {
        let mut machine = Machine::default();
        let ticket = if collect {
            collecting(&mut machine, 0)
        } else {
            warm(&mut machine, 0, &time(50, 100))
        };
        assert_eq!(machine.preempt(), Some(Action::Discard(ticket, Refusal::Preempted)));
        assert_eq!((machine.preempt(), machine.phase()), (None, Phase::Cancelling));
        machine.finished();
        assert_eq!(
            (machine.phase(), machine.program()),
            (Phase::WaitForRequest, Some(Phase::Warmup))
        );
        machine.program_is(None);
        works(&mut machine, 200);
    }
}

#[test]
fn a_trace_whose_window_is_closed_is_not_preempted() {
    let mut machine = Machine::default();
    collecting(&mut machine, 0);
    machine.tick(at(100));
    assert_eq!((machine.preempt(), machine.phase()), (None, Phase::ProcessTrace));
    machine.finished();
    assert_eq!(machine.phase(), Phase::WaitForRequest);
}

#[test]
fn enormous_numbers_do_no_harm() {
    let mut machine = stepped(1);
    let all = Window::Time {
        start: Start::At(u64::MAX),
        warmup: Duration::ZERO,
        duration: Duration::MAX,
    };
    let ticket = machine.submit(at(0), &all).unwrap();
    assert_eq!(machine.tick(at(1)), None);
    machine.cancel(ticket, Refusal::Cancelled);
    let all = Window::Time { start: Start::Now, warmup: Duration::MAX, duration: Duration::MAX };
    let ticket = machine.submit(at(0), &all).unwrap();
    machine.tick(at(1));
    machine.cancel(ticket, Refusal::Cancelled);
    machine.finished();
    for (start, roundup) in [(u64::MAX, u64::MAX), (0, u64::MAX)] {
        let window =
            Window::Iterations { start, roundup, warmup: 7, count: u64::MAX, otherwise: None };
        let ticket = machine.submit(at(0), &window).unwrap();
        step(&mut machine, at(2));
        machine.cancel(ticket, Refusal::Cancelled);
        machine.finished();
    }
    let window =
        Window::Iterations { start: 0, roundup: 0, warmup: u64::MAX, count: 1, otherwise: None };
    machine.submit(at(0), &window).unwrap();
    step(&mut machine, at(2));
}
