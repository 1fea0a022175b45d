//! What the parts of a recording in `kymo` tell each other: its engines, the sinks, the
//! collector and the command line.
//!
//! It is plain memory of `kymo`. No recorded process maps it, so that none can damage it, or
//! be harmed by another one that does.

mod gpus;
mod notes;
mod observed;
mod processes;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kymograph_protos::packet::Snapshot;

use crate::capture::Rule;
use crate::clock;
use notes::Notes;
pub use observed::{LeftOut, MAX_PATTERNS, Patterns};
pub use processes::Process;
use processes::Processes;

/// What the recording as a whole is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Record.
    Recording = 0,
    /// Write what you have, then stop.
    Closing = 1,
    /// Over: the output takes nothing more.
    Closed = 2,
}

/// Sums over all processes, also those that are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Events in the output.
    pub events: u64,
    /// Events that could not be recorded.
    pub lost: u64,
    /// Bytes of packets, before compression.
    pub bytes: u64,
    /// Batches that could not be written.
    pub write_errors: u64,
    /// Threads that recorded something.
    pub threads: u32,
    /// Processes that recorded something.
    pub processes: u32,
}

/// The state of a recording, or of one of its numbered files. Any thread, at any time.
#[derive(Debug)]
pub struct Page {
    state: AtomicU32,
    /// When recording ends, in nanoseconds of `CLOCK_BOOTTIME`; 0: when [`Page::set_state`] says so.
    deadline: AtomicU64,
    /// When the trace begins, in nanoseconds of `CLOCK_BOOTTIME`; 0: with the recording.
    opens: AtomicU64,
    /// By which ranges the trace is opened and closed, if it is.
    capture: OnceLock<Rule>,
    windows: AtomicU64,
    committed: AtomicU64,
    /// Of the beginning.
    clocks: Snapshot,
    events: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    write_errors: AtomicU64,
    threads: AtomicU32,
    sequence: AtomicU32,
    files: AtomicU32,
    asked: AtomicU64,
    patterns: [AtomicU64; 2],
    observed: AtomicU64,
    processes: Mutex<Processes>,
    notes: Mutex<Notes>,
    /// Identities of devices, by their numbers in the recording.
    gpus: Mutex<Vec<u64>>,
    /// Held by who appends to the file.
    appending: Mutex<()>,
    numbered: Mutex<BTreeMap<u32, Arc<Page>>>,
}

impl Default for Page {
    fn default() -> Page {
        Page::new()
    }
}

impl Page {
    /// The state of a recording that begins now.
    pub fn new() -> Page {
        Page {
            state: AtomicU32::new(State::Recording as u32),
            deadline: AtomicU64::new(0),
            opens: AtomicU64::new(0),
            capture: OnceLock::new(),
            windows: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            clocks: clock::snapshot(),
            events: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            write_errors: AtomicU64::new(0),
            threads: AtomicU32::new(0),
            sequence: AtomicU32::new(1),
            files: AtomicU32::new(0),
            asked: AtomicU64::new(0),
            patterns: Default::default(),
            observed: AtomicU64::new(0),
            processes: Mutex::default(),
            notes: Mutex::default(),
            gpus: Mutex::default(),
            appending: Mutex::default(),
            numbered: Mutex::default(),
        }
    }

    /// What to do now. A passed deadline counts as [`State::Closing`].
    pub fn state(&self) -> State {
        match self.state.load(Acquire) {
            0 => match self.deadline.load(Relaxed) {
                0 => State::Recording,
                deadline if clock::system(libc::CLOCK_BOOTTIME) < deadline => State::Recording,
                _ => State::Closing,
            },
            1 => State::Closing,
            _ => State::Closed,
        }
    }

    /// Tells everybody. Never goes back.
    pub fn set_state(&self, state: State) {
        self.state.fetch_max(state as u32, AcqRel);
    }

    /// Lets recording end after `duration`.
    pub fn set_duration(&self, duration: Duration) {
        let deadline = clock::system(libc::CLOCK_BOOTTIME) + duration.as_nanos() as u64;
        self.deadline.store(deadline.max(1), Relaxed);
    }

    /// Leaves out of the trace what happens within `delay` from now.
    pub fn set_delay(&self, delay: Duration) {
        let opens = clock::system(libc::CLOCK_BOOTTIME) + delay.as_nanos() as u64;
        self.opens.store(opens, Relaxed);
    }

    /// When the trace begins, in nanoseconds of `CLOCK_BOOTTIME`; 0: with the recording.
    pub fn opens(&self) -> u64 {
        self.opens.load(Relaxed)
    }

    /// Leaves out of the trace what is in none of these ranges of its process.
    pub fn set_capture(&self, rule: Rule) {
        let _ = self.capture.set(rule);
    }

    /// By which ranges of its process the trace is opened and closed, if it is.
    pub fn capture(&self) -> Option<&Rule> {
        self.capture.get()
    }

    pub(crate) fn add_windows(&self, count: u64) {
        self.windows.fetch_add(count, Relaxed);
    }

    /// How often such a range has opened it, in all processes.
    pub fn windows(&self) -> u64 {
        self.windows.load(Relaxed)
    }

    /// Excludes others who append to the file.
    pub(crate) fn append(&self) -> MutexGuard<'_, ()> {
        self.appending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of whole batches in the output.
    pub fn committed(&self) -> u64 {
        self.committed.load(Acquire)
    }

    /// The system's clocks when the recording began: what all who write to its file say of
    /// them.
    pub fn clocks(&self) -> Snapshot {
        self.clocks
    }

    /// Sets [`Page::committed`]. The caller holds [`Page::append`].
    pub(crate) fn commit(&self, length: u64) {
        self.committed.store(length, Release);
    }

    pub(crate) fn count_write_error(&self) {
        self.write_errors.fetch_add(1, Relaxed);
    }

    /// Perfetto sequence ids of the caller's own: `count` from the returned one on. The first
    /// ever is 1, as ids below 128 are the shortest to write.
    pub fn take_sequences(&self, count: u32) -> u32 {
        self.sequence.fetch_add(count, Relaxed)
    }

    /// Adds to the totals what a batch brought that is now in the output, or got lost.
    pub fn add(&self, events: u64, lost: u64, bytes: u64) {
        self.events.fetch_add(events, Relaxed);
        self.lost.fetch_add(lost, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Numbered files that were begun so far: dumps, or parts of the trace.
    pub fn files(&self) -> u32 {
        self.files.load(Acquire)
    }

    /// Has everybody begin the next numbered file, for a dump that was asked for at this
    /// time (nanoseconds of `CLOCK_BOOTTIME`). Returns its number, from 1.
    pub fn next_file(&self, asked: u64) -> u32 {
        // Before the number: a reader that sees the new number reads the time next.
        self.asked.store(asked, Relaxed);
        self.files.fetch_add(1, AcqRel) + 1
    }

    /// When the newest dump was asked for.
    pub fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// The newest numbered file, after everybody was made to go on from file `number`. Of
    /// several who find it full one makes the step.
    pub fn file_after(&self, number: u32) -> u32 {
        let next = self.files.compare_exchange(number, number + 1, AcqRel, Acquire);
        next.map_or_else(|newest| newest, |number| number + 1)
    }

    /// The state of a numbered file, if it was made.
    pub fn numbered(&self, number: u32) -> Option<Arc<Page>> {
        let numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        numbered.get(&number).cloned()
    }

    /// As [`Page::numbered`], which `make` makes if it is not there.
    pub(crate) fn numbered_or<E>(
        &self,
        number: u32,
        make: impl FnOnce() -> Result<(), E>,
    ) -> Result<Arc<Page>, E> {
        let mut numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = numbered.get(&number) {
            return Ok(page.clone());
        }
        make()?;
        Ok(numbered.entry(number).or_default().clone())
    }

    /// Counts threads that recorded something for the first time.
    pub fn add_threads(&self, count: u32) {
        self.threads.fetch_add(count, Relaxed);
    }

    /// Sums so far. Each is right; together they may be of slightly different moments.
    pub fn totals(&self) -> Totals {
        Totals {
            events: self.events.load(Relaxed),
            lost: self.lost.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            write_errors: self.write_errors.load(Relaxed),
            threads: self.threads.load(Relaxed),
            processes: self.processes().seen(),
        }
    }
}
