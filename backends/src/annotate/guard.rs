//! The wall between the program and us, and what is counted behind it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use super::session::session;

static PANICS: AtomicU64 = AtomicU64::new(0);
static ARGS: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);

/// What the annotation backends could not do. What the recorder refused is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Callbacks that panicked and returned a default value instead.
    pub panics: u64,
    /// Arguments left out: too many for one event, or a name or string that the recorder
    /// could not intern.
    pub args: u64,
    /// Events left out: more domains open at once on a thread than are tracked, samples
    /// of counters or handles that nobody registered, batches timed by a foreign clock. The
    /// recorder is told of these: the trace says that they are lost.
    pub events: u64,
}

/// What could not be recorded so far.
pub fn stats() -> Stats {
    Stats {
        panics: PANICS.load(Ordering::Relaxed),
        args: ARGS.load(Ordering::Relaxed),
        events: EVENTS.load(Ordering::Relaxed),
    }
}

/// Counts an argument that was left out.
#[cold]
pub(crate) fn arg_left_out() {
    ARGS.fetch_add(1, Ordering::Relaxed);
}

/// Counts `n` events that were left out.
#[cold]
pub(crate) fn events_left_out(n: u64) {
    EVENTS.fetch_add(n, Ordering::Relaxed);
    if let (Some(session), 1..) = (session(), n) {
        session.lost(n);
    }
}

/// Runs the body of a callback. A panic must not unwind into C: it is counted and the
/// program gets `default`.
#[inline(always)]
pub(crate) fn guard<R>(default: R, body: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => value,
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // Dropping it could panic again.
            std::mem::forget(payload);
            default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_default_and_is_counted() {
        let before = stats().panics;
        assert_eq!(guard(-1, || 7), 7);
        assert_eq!(guard(-1, || std::panic::resume_unwind(Box::new(()))), -1);
        assert_eq!(stats().panics, before + 1);
    }
}
