//! Work that was submitted, and of which there is no record yet: records are written when it
//! is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::seam::{Nanos, Work, realtime};

/// By its end, and in the order in which it was submitted.
static IN_FLIGHT: Mutex<BTreeMap<(Nanos, u64), Work>> = Mutex::new(BTreeMap::new());

pub(crate) fn add(work: &Work) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let key = (work.end, NUMBER.fetch_add(1, Ordering::Relaxed));
    IN_FLIGHT.lock().unwrap_or_else(PoisonError::into_inner).insert(key, *work);
}

/// Takes out all work that is over, and with `forced` also what is not, for `write` to write
/// records of. It is told whether the work is over.
pub(crate) fn finish(forced: bool, mut write: impl FnMut(Work, bool)) {
    // A flush must not pass by work that another thread is writing the records of.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut in_flight = IN_FLIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    let later = in_flight.split_off(&(realtime(), 0));
    let over = std::mem::take(&mut *in_flight);
    let unfinished = if forced { later } else { std::mem::replace(&mut *in_flight, later) };
    drop(in_flight);
    over.into_values().for_each(|work| write(work, true));
    unfinished.into_values().for_each(|work| write(work, false));
}
