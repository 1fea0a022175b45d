//! Iterations of a program.

use std::sync::Mutex;

use kymograph_protos::StrId;
use kymograph_protos::record::{Kind, Record};

use super::draft::Draft;
use super::range::unique;
use crate::control::lifecycle;
use crate::control::presence::broker;
use crate::intern::INTERNER;
use crate::recorder::steps;
use crate::{clock, recording};

/// Held while an iteration gives way to the next: programs have one thread that does this.
static TURN: Mutex<()> = Mutex::new(());

/// Says that an iteration of the program ends and the next begins. Traces by iterations
/// begin and end here, and iterations are ranges in every trace: `ProfilerStep#1` is what
/// comes after the first call.
///
/// Costs some nanoseconds while nothing is recorded. May be called from any thread.
pub fn step() {
    let number = steps::advance();
    if broker().is_none() {
        // As with a first event: a forked child, and a program under `kymo record`.
        lifecycle::start_if_due();
    }
    // In this order: an iteration's range is in the window that opens or closes with it.
    let _turn = TURN.try_lock();
    end_step();
    if let Some(broker) = broker() {
        broker.step(number);
    }
    begin_range(number);
}

/// How often [`step`] was called.
pub fn steps() -> u64 {
    steps::count()
}

/// Ends the range of the iteration that runs: its recording ends before the next begins.
pub(crate) fn end_step() {
    let id = steps::close();
    if id != 0 && recording::is_running() {
        Draft::new(Kind::RangeEnd, StrId::NONE).other(id).push();
    }
}

/// Begins the range of the iteration that runs, whose beginning was not recorded.
pub(crate) fn begin_step() {
    begin_range(steps());
}

fn begin_range(number: u64) {
    if !recording::is_running() {
        return;
    }
    let id = unique();
    let category = INTERNER.intern_static(StrId::NONE, StrId::NONE, "ProfilerStep");
    let name = format!("ProfilerStep#{number}");
    // By value: there are too many of them to be kept.
    let mut draft = Draft::from(Record {
        time: clock::ticks(),
        other: id,
        kind: Kind::RangeBegin as u8,
        ..Record::default()
    });
    draft.name(category, name.as_bytes());
    if draft.push() {
        steps::open(id);
    }
}
