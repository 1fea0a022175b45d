//! Long work on a thread of its own, while the interpreter stays responsive: other threads of
//! the program run, Ctrl-C raises `KeyboardInterrupt`, and progress can be shown.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::Error;

/// How often signals are looked at and progress is told.
const BEAT: Duration = Duration::from_millis(50);

/// What the work and who waits for it tell each other.
#[derive(Debug, Default)]
pub struct Course {
    /// Bytes that were read.
    pub done: AtomicU64,
    /// How many there are; 0 if that is not known.
    pub total: AtomicU64,
    /// Nobody waits any more.
    pub given_up: AtomicBool,
}

/// Does `work` elsewhere and waits for it. `tick` is called with the bytes that were read and how
/// many there are, some twenty times a second. If it or a signal handler raises, the work is told to give up, and
/// what it has is dropped when it does.
///
/// # Errors
///
/// What a signal handler or `tick` raises; [`Error`] if there is no thread to be had, or the
/// work panics.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    course: &Arc<Course>,
    tick: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().name("kymograph-load".into());
    thread
        .spawn(move || drop(sender.send(catch_unwind(AssertUnwindSafe(work)))))
        .map_err(|error| Error::new_err(format!("cannot start a thread: {error}")))?;
    loop {
        let (back, given) = py.detach(move || {
            let given = receiver.recv_timeout(BEAT);
            (receiver, given)
        });
        receiver = back;
        match given {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new_err("Kymograph failed on this trace: please report it"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let told = tick.map_or(Ok(()), |tick| {
                    let read = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
                    tick.call1((read(&course.done), read(&course.total))).map(drop)
                });
                if let Err(error) = py.check_signals().and(told) {
                    course.given_up.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }
}
