//! The thread of a source, and what others ask of it.
//!
//! ```text
//! idle ──begin──► starting ──run──► running ──stop──► (the thread ends) ──► idle
//!                                       any ──fork, failure──► dead
//! ```
//! A static per source. Whoever asks waits without a lock: it may be in a signal handler,
//! or in the middle of the end of the process.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use super::thread::{wait, without_signals};
use crate::annotate::guarded;

const IDLE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
/// A forked child, or a process in which we failed: the vendor must not be touched.
const DEAD: u8 = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Worker {
    state: AtomicU8,
    /// Whose `state` it is: the child of a `vfork` sees its parent's memory.
    pid: AtomicU32,
    stop: AtomicBool,
    wanted: AtomicU64,
    done: AtomicU64,
    /// Held for a few instructions; who must not wait does not.
    thread: Mutex<Option<Thread>>,
}

impl Worker {
    pub(crate) const fn new() -> Worker {
        Worker {
            state: AtomicU8::new(IDLE),
            pid: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            done: AtomicU64::new(0),
            thread: Mutex::new(None),
        }
    }

    /// Whether the caller may start it: it is idle. Must be followed by [`Worker::run`] or
    /// [`Worker::cancel`].
    pub(crate) fn begin(&self) -> bool {
        let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
        let free = self.state.compare_exchange(IDLE, STARTING, order, failed).is_ok();
        if free {
            self.pid.store(std::process::id(), Ordering::Relaxed);
        }
        free
    }

    pub(crate) fn cancel(&self) {
        self.state.store(IDLE, Ordering::Release);
    }

    /// Never again in this process. Takes no lock: it may be a forked child.
    pub(crate) fn kill(&self) {
        self.state.store(DEAD, Ordering::Release);
    }

    /// Whether [`Worker::kill`] was called: locks may be held by threads that are no more.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.load(Ordering::Acquire) == DEAD
    }

    /// Starts the thread. Returns whether there is one.
    pub(crate) fn run(
        &'static self,
        name: &str,
        body: impl FnOnce(&Worker) + Send + 'static,
    ) -> bool {
        self.stop.store(false, Ordering::Release);
        self.done.store(self.wanted.load(Ordering::Acquire), Ordering::Release);
        // Sooner than the thread: it ends by going back to idle.
        self.state.store(RUNNING, Ordering::Release);
        let body = move || {
            let next = guarded(DEAD, || {
                body(self);
                IDLE
            });
            let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
            let _ = self.state.compare_exchange(RUNNING, next, order, failed);
        };
        let builder = std::thread::Builder::new().name(name.into()).stack_size(2 << 20);
        match without_signals(|| builder.spawn(body)) {
            Ok(handle) => {
                let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
                *thread = Some(handle.thread().clone());
                true
            }
            Err(_) => {
                self.kill();
                false
            }
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Ordering::Acquire) == RUNNING
            && self.pid.load(Ordering::Relaxed) == std::process::id()
    }

    /// Lets the thread push what is finished. Returns whether it did within `patience`.
    pub(crate) fn flush(&self, patience: Duration) -> bool {
        if !self.is_running() {
            return true;
        }
        let ticket = self.wanted.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake();
        wait(patience, || self.done.load(Ordering::Acquire) >= ticket || !self.is_running())
    }

    /// Ends the thread. Returns whether it has ended within `patience`.
    pub(crate) fn stop(&self, patience: Duration) -> bool {
        if !self.is_running() {
            return true;
        }
        self.stop.store(true, Ordering::Release);
        self.wake();
        wait(patience, || !self.is_running())
    }

    fn wake(&self) {
        // May run in a signal handler that interrupted a holder: then it wakes up by itself.
        if let Ok(thread) = self.thread.try_lock()
            && let Some(thread) = &*thread
        {
            thread.unpark();
        }
    }

    /// In the thread: whether it shall end.
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// In the thread: the flush that is wanted, if one is. To be answered with
    /// [`Worker::flushed`].
    pub(crate) fn wanted(&self) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Acquire);
        (wanted > self.done.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// In the thread: what was wanted is done.
    pub(crate) fn flushed(&self, ticket: u64) {
        self.done.store(ticket, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_flushes_and_ends_and_starts_again() {
        static WORKER: Worker = Worker::new();
        const PATIENCE: Duration = Duration::from_secs(60);
        for _ in 0..3 {
            assert!(WORKER.begin() && !WORKER.begin());
            assert!(WORKER.run("test", |worker| {
                while !worker.stopping() {
                    if let Some(ticket) = worker.wanted() {
                        worker.flushed(ticket);
                    }
                    std::thread::park_timeout(Duration::from_millis(1));
                }
            }));
            assert!(WORKER.flush(PATIENCE) && WORKER.flush(PATIENCE));
            assert!(WORKER.stop(PATIENCE) && WORKER.flush(Duration::ZERO));
        }
        WORKER.kill();
        assert!(WORKER.is_dead() && !WORKER.begin());
    }
}
