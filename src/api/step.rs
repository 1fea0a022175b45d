//! Iterations of a program.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kymograph_protos::StrId;
use kymograph_protos::record::{Kind, Record};

use super::draft::Draft;
use super::range::unique;
use crate::intern::INTERNER;
use crate::recording::{self, Recording};
use crate::{clock, control};

/// How often [`step`] was called: the number of the iteration that runs.
static STEPS: AtomicU64 = AtomicU64::new(0);
/// The range of the iteration that runs, 0 if it was not recorded from its beginning.
static OPEN: AtomicU64 = AtomicU64::new(0);
/// Held while an iteration gives way to the next: programs have one thread that does this.
static TURN: Mutex<()> = Mutex::new(());

/// Says that an iteration of the program ends and the next begins. Traces by iterations
/// begin and end here, and iterations are ranges in every trace: `ProfilerStep#1` is what
/// comes after the first call.
///
/// Costs some nanoseconds while nothing is recorded. May be called from any thread.
pub fn step() {
    let number = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    if control::desk().is_none() {
        // As with a first event: a forked child, and a program under `kymo record`.
        recording::is_wanted();
    }
    // In this order: an iteration's range is in the window that opens or closes with it.
    let _turn = TURN.try_lock();
    end_step();
    if let Some(desk) = control::desk() {
        desk.step(number);
    }
    begin_range(number);
}

/// How often [`step`] was called.
pub fn steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// Ends the range of the iteration that runs: its recording ends before the next begins.
pub(crate) fn end_step() {
    let id = OPEN.swap(0, Ordering::Relaxed);
    if id != 0 && Recording::is_running() {
        Draft::new(Kind::RangeEnd, StrId::NONE).other(id).push();
    }
}

/// The recording of the iteration that runs is over: its range does not end in another one.
pub(crate) fn forget_step() {
    OPEN.store(0, Ordering::Relaxed);
}

/// Begins the range of the iteration that runs, whose beginning was not recorded.
pub(crate) fn begin_step() {
    begin_range(steps());
}

fn begin_range(number: u64) {
    if !Recording::is_running() {
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
        OPEN.store(id, Ordering::Relaxed);
    }
}
