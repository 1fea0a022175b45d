//! The wall between the program and the callbacks of annotation libraries, and what is counted
//! behind it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::session::{Session, session};
pub(crate) use crate::guard::guard;

static ARGS: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// What the annotation backends could not do. What the recorder refused is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls into Kymograph that panicked and returned a default value instead.
    pub panics: u64,
    /// Arguments left out: too many for one event, or a name or string that the recorder
    /// could not intern. The trace counts them as cut short.
    pub args: u64,
    /// Events left out: more domains open at once on a thread than are tracked, samples
    /// of counters or handles that were never registered, batches timed by a foreign clock. They
    /// are passed on to the recorder, so the trace states them as lost.
    pub events: u64,
}

/// What could not be recorded so far.
pub fn stats() -> Stats {
    Stats {
        panics: crate::guard::panics(),
        args: ARGS.load(Ordering::Relaxed),
        events: EVENTS.load(Ordering::Relaxed),
    }
}

/// Counts an argument that was left out.
#[cold]
pub(crate) fn arg_left_out() {
    ARGS.fetch_add(1, Ordering::Relaxed);
    session().into_iter().for_each(Session::cut_short);
}

/// Counts `n` events that were left out.
#[cold]
pub(crate) fn events_left_out(n: u64) {
    EVENTS.fetch_add(n, Ordering::Relaxed);
    if let (Some(session), 1..) = (session(), n) {
        session.lost(n);
    }
}
