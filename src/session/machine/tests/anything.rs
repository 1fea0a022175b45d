//! Whatever comes in whatever order, each request ends exactly once.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Event {
    Submit(Window),
    Pass(u64),
    Ready,
    Step,
    Stop,
    Cancel,
    Exhausted,
    Preempt,
    Release,
    Finished,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..50u64, 0..50u64).prop_map(|(w, d)| Event::Submit(time(w, d))),
        (0..500u64, 0..50u64, 0..50u64).prop_map(|(s, w, d)| Event::Submit(at_time(s, w, d))),
        (0..20u64, 0..5u64, 0..5u64, 0..20u64).prop_map(|(start, warmup, count, roundup)| {
            Event::Submit(Window::Iterations { start, roundup, warmup, count, otherwise: None })
        }),
        (0..40u64).prop_map(Event::Pass),
        Just(Event::Ready),
        Just(Event::Step),
        Just(Event::Stop),
        Just(Event::Cancel),
        Just(Event::Exhausted),
        Just(Event::Preempt),
        Just(Event::Release),
        Just(Event::Finished),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 512 }))]

    /// Whatever happens: each accepted request gets exactly one end, a window closes
    /// after it opens, and nothing that is due has passed when `tick` has nothing to do.
    #[test]
    fn every_request_ends_once(events in prop::collection::vec(event(), 0..120)) {
        let mut machine = Machine::default();
        let (mut now, mut ended, mut opened) = (0, Vec::new(), None);
        for event in events {
            let mut actions = Vec::new();
            match event {
                Event::Submit(window) => drop(machine.submit(at(now), &window)),
                Event::Pass(time) => now += time,
                Event::Ready => machine.ready(at(now)),
                Event::Step => actions.extend(step(&mut machine, at(now))),
                Event::Stop | Event::Cancel => {
                    let ticket = machine.pending().or(machine.active());
                    actions.extend(ticket.and_then(|ticket| match event {
                        Event::Stop => machine.stop(at(now), ticket),
                        _ => machine.cancel(ticket, Refusal::Cancelled),
                    }));
                }
                Event::Exhausted => actions.extend(machine.exhausted(at(now))),
                Event::Preempt => while let Some(action) = machine.preempt() {
                    actions.push(action);
                },
                Event::Release => machine.program_is(None),
                Event::Finished => if matches!(
                    machine.phase(),
                    Phase::ProcessTrace | Phase::Cancelling
                ) {
                    machine.finished();
                },
            }
            while let Some(action) = machine.tick(at(now)) {
                actions.push(action);
            }
            prop_assert!(machine.due().is_none_or(|due| due > now * MS));
            for action in actions {
                match action {
                    Action::Prepare(_) => opened = None,
                    Action::Open { at, .. } => opened = Some(at),
                    Action::Close { at, ticket } => {
                        prop_assert!(opened.is_some_and(|opened| opened <= at));
                        ended.push(ticket);
                    }
                    Action::Discard(ticket, _) => {
                        // A trace that was closed may be discarded while it is written.
                        ended.retain(|t| *t != ticket);
                        ended.push(ticket);
                    }
                    Action::Refuse(ticket, _) => ended.push(ticket),
                }
            }
        }
        let mut once = ended.clone();
        once.sort_by_key(|ticket| ticket.0);
        once.dedup();
        prop_assert_eq!(once.len(), ended.len());
        let open = [machine.pending(), machine.active()].into_iter().flatten();
        let open = open.filter(|ticket| !ended.contains(ticket)).count() as u64;
        prop_assert_eq!(ended.len() as u64 + open, machine.tickets);
    }
}
