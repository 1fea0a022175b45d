//! The thread of a source, and what others ask of it.
//!
//! ```text
//! idle ──begin──► starting ──run──► running ──stop──► (the thread ends) ──► idle
//!                                       any ──fork, failure──► dead
//! ```
//! A static per source. Whoever asks waits without a lock: it may be in a signal handler,
//! or in the middle of the end of the process.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use kymograph_protos::ColdRecorder;

use super::error::Result;
use super::names::Names;
use super::remark;
use super::thread::{wait, wait_while_it_moves};
use crate::annotate::guarded;
use crate::flushes::{self, Flushes};
use crate::guard::without_signals;

const IDLE: u8 = 0;
const STARTING: u8 = 1;
const RUNNING: u8 = 2;
/// A forked child, or a process in which we failed: the vendor must not be touched.
const DEAD: u8 = 3;

/// Changes with every batch of records that a source has decoded, and whenever a vendor has
/// done what it was asked for.
static MOVED: AtomicU32 = AtomicU32::new(0);

/// A source has made progress: a wait for its end goes on.
pub(crate) fn moves() {
    MOVED.fetch_add(1, Ordering::Relaxed);
}

/// What is said of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    pub(crate) names: Names,
    /// The name of its thread: 15 bytes at most.
    pub(crate) thread: &'static str,
    /// Why something is missing when the thread has not ended in time.
    pub(crate) late: &'static str,
}

/// See the module.
pub(crate) struct Worker {
    labels: Labels,
    state: AtomicU8,
    /// Whose `state` it is: the child of a `vfork` sees its parent's memory.
    pid: AtomicU32,
    stop: AtomicBool,
    wanted: AtomicU64,
    done: AtomicU64,
    /// The last flush that another process has asked for, as the thread has seen and answered
    /// it.
    seen: AtomicU64,
    answered: AtomicU64,
    /// Held for a few instructions; callers that must not block do not wait for it.
    thread: Mutex<Option<Thread>>,
    /// The pipeline, for callers without a session.
    recorder: OnceLock<&'static dyn ColdRecorder>,
    /// Whether it was said that a stop took too long.
    said: AtomicBool,
    armed: Once,
}

impl Worker {
    pub(crate) const fn new(labels: Labels) -> Worker {
        assert!(labels.thread.len() <= 15, "the kernel would cut it");
        Worker {
            labels,
            state: AtomicU8::new(IDLE),
            pid: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            done: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            thread: Mutex::new(None),
            recorder: OnceLock::new(),
            said: AtomicBool::new(false),
            armed: Once::new(),
        }
    }

    /// Starts a recording unless one runs: `begin` sets the vendor up on this thread, and
    /// `run` goes on with what it made on one of ours. It makes nothing if there is nothing
    /// to record at the moment.
    pub(crate) fn start<S: Send + 'static>(
        &'static self,
        recorder: &'static dyn ColdRecorder,
        begin: impl FnOnce() -> Result<Option<S>>,
        run: fn(S, &Worker),
    ) {
        if !self.begin(recorder) {
            return;
        }
        match guarded(None, || Some(begin())) {
            Some(Ok(Some(session))) => {
                self.run(move |worker| run(session, worker));
            }
            Some(Ok(None)) => self.cancel(),
            Some(Err(why)) => {
                self.not_recorded(&why.to_string());
                self.cancel();
            }
            // How far it came is unknown.
            None => {
                self.not_recorded("Kymograph failed while it was set up; please report that");
                self.kill();
            }
        }
    }

    /// Whether the caller may start it: it is idle. Must be followed by [`Worker::run`] or
    /// [`Worker::cancel`].
    pub(crate) fn begin(&self, recorder: &'static dyn ColdRecorder) -> bool {
        if flushes::asked().is_some_and(Flushes::is_stopped) {
            return false;
        }
        let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
        let free = self.state.compare_exchange(IDLE, STARTING, order, failed).is_ok();
        if free {
            self.pid.store(std::process::id(), Ordering::Relaxed);
            self.said.store(false, Ordering::Relaxed);
            let _ = self.recorder.set(recorder);
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

    /// Starts the thread. Returns whether there is one; if not, that was said.
    pub(crate) fn run(&'static self, body: impl FnOnce(&Worker) + Send + 'static) -> bool {
        self.stop.store(false, Ordering::Release);
        self.done.store(self.wanted.load(Ordering::Acquire), Ordering::Release);
        // Sooner than the thread: it ends by going back to idle.
        self.state.store(RUNNING, Ordering::Release);
        let body = move || {
            let asked = flushes::asked();
            asked.into_iter().for_each(Flushes::source_starts);
            let next = guarded(DEAD, || {
                body(self);
                IDLE
            });
            asked.into_iter().for_each(Flushes::source_ends);
            let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
            let _ = self.state.compare_exchange(RUNNING, next, order, failed);
        };
        let name = self.labels.thread.into();
        let builder = std::thread::Builder::new().name(name).stack_size(2 << 20);
        match without_signals(|| builder.spawn(body)) {
            Ok(handle) => {
                let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
                *thread = Some(handle.thread().clone());
                true
            }
            // Buffers are bounded: a vendor drops, and counts, what is not read.
            Err(error) => {
                self.kill();
                self.not_recorded(&format!(
                    "the thread that reads it could not be started ({error})"
                ));
                false
            }
        }
    }

    /// The pipeline, once it was recorded to.
    pub(crate) fn recorder(&self) -> Option<&'static dyn ColdRecorder> {
        self.recorder.get().copied()
    }

    /// Says why something of the source is missing.
    pub(crate) fn not_recorded(&self, why: &str) {
        if let Some(recorder) = self.recorder() {
            remark::not_recorded(recorder, self.labels.names, why);
        }
    }

    /// Arms, once, what must happen when the process forks and when it ends. A handler for
    /// the end runs before those that were registered sooner: before the vendor's, if its
    /// library is there.
    pub(crate) fn watch_process(
        &self,
        in_child: unsafe extern "C" fn(),
        at_exit: Option<extern "C" fn()>,
    ) {
        self.armed.call_once(|| {
            // SAFETY: functions of the right types that never unwind, in a library that is
            // never unloaded.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
                at_exit.into_iter().for_each(|at_exit| {
                    libc::atexit(at_exit);
                });
            }
        });
    }

    /// Whether nothing is recorded, nor about to be.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Acquire) != STARTING && !self.is_running()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.load(Ordering::Acquire) == RUNNING
            && self.pid.load(Ordering::Relaxed) == std::process::id()
    }

    /// Lets the thread push what is finished. Returns whether it did within `timeout`.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        if !self.is_running() {
            return true;
        }
        let ticket = self.wanted.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake();
        wait(timeout, || self.done.load(Ordering::Acquire) >= ticket || !self.is_running())
    }

    /// Ends the thread. Returns whether it has ended within `timeout`, or later if it was at
    /// work all the time; if not, that is said, once.
    pub(crate) fn stop(&self, timeout: Duration) -> bool {
        if !self.is_running() {
            return true;
        }
        self.stop.store(true, Ordering::Release);
        self.wake();
        let moved = || MOVED.load(Ordering::Relaxed);
        let done = wait_while_it_moves(timeout, moved, || !self.is_running());
        if !done && !timeout.is_zero() && !self.said.swap(true, Ordering::Relaxed) {
            // How much is missing is unknown.
            self.recorder().into_iter().for_each(|recorder| recorder.lost(1));
            self.not_recorded(self.labels.late);
        }
        done
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
        let asked = flushes::asked();
        asked.into_iter().for_each(Flushes::look_for_reader);
        self.stop.load(Ordering::Acquire) || asked.is_some_and(Flushes::is_stopped)
    }

    /// In the thread: the flush that is wanted, if one is. To be answered with
    /// [`Worker::flushed`].
    pub(crate) fn wanted(&self) -> Option<u64> {
        let wanted = self.wanted.load(Ordering::Acquire);
        let seen = flushes::asked().map_or(0, Flushes::round);
        self.seen.store(seen, Ordering::Relaxed);
        let elsewhere = seen > self.answered.load(Ordering::Relaxed);
        (elsewhere || wanted > self.done.load(Ordering::Relaxed)).then_some(wanted)
    }

    /// In the thread: what was wanted is done.
    pub(crate) fn flushed(&self, ticket: u64) {
        self.done.store(ticket, Ordering::Release);
        let seen = self.seen.load(Ordering::Relaxed);
        if self.answered.swap(seen, Ordering::Relaxed) < seen
            && let Some(asked) = flushes::asked()
        {
            asked.answer(seen);
        }
    }
}

#[cfg(test)]
mod tests;
