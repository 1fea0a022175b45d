//! The control page: 64 KiB that `kymo record` and all processes that it records map.
//!
//! Nothing depends on anybody being alive: every field is one atomic that is right by
//! itself, and whoever dies leaves at worst a slot that others see to be dead.
//!
//! ```text
//! byte     0         8        12       16      20       24        32        40       64
//!          ┌─────────┬────────┬────────┬───────┬────────┬─────────┬─────────┬────────┐
//! identity │ magic   │version │refused │state  │owner   │deadline │committed│ clocks │
//!          └─────────┴────────┴────────┴───────┴────────┴─────────┴─────────┴────────┘
//!          64      72      80      88      96        100         104        108      112
//!          ┌───────┬───────┬───────┬───────┬─────────┬───────────┬──────────┬────────┐
//! totals   │events │lost   │bytes  │write  │threads  │processes  │sequence  │serial  │
//!          │       │       │       │errors │         │           │          │        │
//!          └───────┴───────┴───────┴───────┴─────────┴───────────┴──────────┴────────┘
//!          112      116      120      128                  144      152        160
//!          ┌────────┬────────┬────────┬────────────────────┬────────┬──────────┐
//!          │unsaid  │files   │asked   │patterns            │observed│zero      │
//!          └────────┴────────┴────────┴────────────────────┴────────┴──────────┘
//!          160                  176                                           60928
//!          ┌────────┬───┬───────┬──────────────────────────────────────────────────┐
//! slots    │pid     │use│serial │ … 3798 of 16 bytes                               │
//!          └────────┴───┴───────┴──────────────────────────────────────────────────┘
//!          60928                                                              61440
//!          ┌───────────────────────────────────────────────────────────────────────┐
//! gpus     │ 64 identities of 8 bytes                                              │
//!          └───────────────────────────────────────────────────────────────────────┘
//!          61440  61444  61448                                                65536
//!          ┌──────┬──────┬─────────────────────────────────────────────────────────┐
//! notes    │state │times │ text … 8 of 512 bytes                                   │
//!          └──────┴──────┴─────────────────────────────────────────────────────────┘
//! ```
//!
//! `magic`, `version` and `refused` stay where they are in every version, so that a
//! library of another release can say that it refused.

use super::notes::{NOTES, Note};
use super::slots::Slot;
use super::{mapped, place};
use crate::clock;
use crate::error::Error;
use kymograph_protos::packet::Snapshot;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

const MAGIC: u64 = u64::from_le_bytes(*b"kymopage");
/// Raised with every change of the layout or of what a field means.
const VERSION: u32 = 5;
const BYTES: usize = 64 * 1024;
pub(super) const GPUS: usize = 64;
const SLOTS: usize = (BYTES - 160 - GPUS * 8 - NOTES * size_of::<Note>()) / 16;

#[repr(C)]
pub(super) struct Layout {
    magic: AtomicU64,
    version: AtomicU32,
    refused: AtomicU32,
    state: AtomicU32,
    owner: AtomicU32,
    deadline: AtomicU64,
    committed: AtomicU64,
    /// Of the page's beginning: boot time, monotonic and real time.
    clocks: [AtomicU64; 3],
    events: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    write_errors: AtomicU64,
    threads: AtomicU32,
    pub(super) processes: AtomicU32,
    sequence: AtomicU32,
    pub(super) serial: AtomicU32,
    pub(super) unsaid: AtomicU32,
    files: AtomicU32,
    asked: AtomicU64,
    pub(super) patterns: [AtomicU64; 2],
    pub(super) observed: AtomicU64,
    zero: u64,
    pub(super) slots: [Slot; SLOTS],
    /// Of devices, by their numbers in the recording; 0: none yet.
    pub(super) gpus: [AtomicU64; GPUS],
    pub(super) notes: [Note; NOTES],
}

const _: () = assert!(size_of::<Layout>() == BYTES && align_of::<Layout>() == 8);
const _: () = assert!(std::mem::offset_of!(Layout, refused) == 12);
const _: () = assert!(std::mem::offset_of!(Layout, committed) == 32);
const _: () = assert!(std::mem::offset_of!(Layout, events) == 64);
const _: () = assert!(std::mem::offset_of!(Layout, threads) == 96);
const _: () = assert!(std::mem::offset_of!(Layout, asked) == 120);
const _: () = assert!(std::mem::offset_of!(Layout, slots) == 160);
const _: () = assert!(std::mem::offset_of!(Layout, gpus) == 60_928);
const _: () = assert!(std::mem::offset_of!(Layout, notes) == 61_440);

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
    /// Processes whose library is of another release than this page.
    pub refused: u32,
}

/// The control page, mapped. Any thread, at any time; nothing blocks.
#[derive(Debug)]
pub struct Page {
    layout: NonNull<Layout>,
    path: PathBuf,
}

// SAFETY: the mapping is process-wide memory that lives as long as the `Page`, and every
// field that is accessed after creation is atomic.
unsafe impl Send for Page {}
// SAFETY: as above: `&Page` gives access to atomics only.
unsafe impl Sync for Page {}

impl Page {
    /// Makes a page at `path`, which must not exist yet. Whoever finds it there finds it
    /// whole.
    ///
    /// # Errors
    /// It cannot be created, or there is no room for it.
    pub fn create(path: &Path) -> Result<Page, Error> {
        let failed = failure(path);
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}.draft", std::process::id()));
        let page = Page::draft(draft.as_ref(), path);
        let page = page.and_then(|page| {
            std::fs::hard_link(&draft, path).map_err(&failed)?;
            Ok(page)
        });
        let _ = std::fs::remove_file(&draft);
        page
    }

    /// Makes the page that is going to lie at `path`.
    fn draft(draft: &Path, path: &Path) -> Result<Page, Error> {
        let failed = failure(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(draft).map_err(&failed)?;
        // Memory of a full tmpfs would be missed later, as a SIGBUS.
        // SAFETY: no pointers.
        let error = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, BYTES as libc::off_t) };
        if error != 0 {
            return Err(failed(io::Error::from_raw_os_error(error)));
        }
        let page = Page::map(&file, path).map_err(&failed)?;
        let layout = page.layout();
        layout.owner.store(std::process::id(), Relaxed);
        layout.sequence.store(1, Relaxed);
        let clocks = clock::snapshot();
        let clocks = [clocks.boottime, clocks.monotonic, clocks.realtime];
        layout.clocks.iter().zip(clocks).for_each(|(clock, time)| clock.store(time, Relaxed));
        layout.version.store(VERSION, Relaxed);
        // Last: who finds the magic finds the rest.
        layout.magic.store(MAGIC, Release);
        Ok(page)
    }

    /// Maps the page at `path`.
    ///
    /// # Errors
    /// It is not there, is no control page, belongs to somebody else, or is of another
    /// version (which the page then knows: see [`Totals::refused`]).
    pub fn open(path: &Path) -> Result<Page, Error> {
        Page::open_as(path, true)
    }

    /// As [`Page::open`], by somebody who takes no part: a page of another version does not
    /// count that as a refusal.
    pub(super) fn look(path: &Path) -> Result<Page, Error> {
        Page::open_as(path, false)
    }

    fn open_as(path: &Path, takes_part: bool) -> Result<Page, Error> {
        let failed = failure(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(libc::O_NOFOLLOW);
        let denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        let file = options.open(path).inspect_err(|error| {
            if takes_part && denied(error) {
                place::tell_left_out(path);
            }
        });
        let file = file.map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        // SAFETY: no arguments, cannot fail.
        let me = unsafe { libc::geteuid() };
        let trusted = metadata.uid() == me || metadata.uid() == 0 || me == 0;
        if !metadata.is_file() || metadata.len() != BYTES as u64 || !trusted {
            return Err(Error::ControlVersion {
                path: path.to_owned(),
                found: 0,
                expected: VERSION,
            });
        }
        let page = Page::map(&file, path).map_err(&failed)?;
        let layout = page.layout();
        let found = match layout.magic.load(Acquire) {
            MAGIC => layout.version.load(Relaxed),
            _ => 0,
        };
        if found != VERSION {
            if found != 0 && takes_part {
                layout.refused.fetch_add(1, Relaxed);
            }
            return Err(Error::ControlVersion { path: path.to_owned(), found, expected: VERSION });
        }
        Ok(page)
    }

    fn map(file: &std::fs::File, path: &Path) -> io::Result<Page> {
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that was
        // checked to be `BYTES` long, touches nothing that exists.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let layout = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let page = Page { layout, path: std::path::absolute(path)? };
        mapped::enter(page.layout.as_ptr() as usize, BYTES);
        Ok(page)
    }

    pub(super) fn layout(&self) -> &Layout {
        // SAFETY: points to `BYTES` mapped bytes until drop; pages are aligned; every bit
        // pattern is a valid `Layout`; others change it only through atomics.
        unsafe { self.layout.as_ref() }
    }

    /// The page's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What to do now. A passed deadline counts as [`State::Closing`].
    pub fn state(&self) -> State {
        match self.layout().state.load(Acquire) {
            0 => match self.layout().deadline.load(Relaxed) {
                0 => State::Recording,
                deadline if boottime() < deadline => State::Recording,
                _ => State::Closing,
            },
            1 => State::Closing,
            _ => State::Closed,
        }
    }

    /// Tells everybody. Never goes back.
    pub fn set_state(&self, state: State) {
        self.layout().state.fetch_max(state as u32, AcqRel);
    }

    /// Lets recording end after `duration`, whether or not `kymo` is alive then.
    pub fn set_duration(&self, duration: std::time::Duration) {
        let deadline = boottime() + duration.as_nanos() as u64;
        self.layout().deadline.store(deadline.max(1), Relaxed);
    }

    /// Bytes of whole batches in the output. Only right while its lock is held.
    pub fn committed(&self) -> u64 {
        self.layout().committed.load(Acquire)
    }

    /// The system's clocks when the page was made: what all who write to its file say of
    /// them.
    pub fn clocks(&self) -> Snapshot {
        let [boottime, monotonic, realtime] =
            [0, 1, 2].map(|at: usize| self.layout().clocks[at].load(Relaxed));
        Snapshot { boottime, monotonic, realtime }
    }

    /// Sets [`Page::committed`]. The caller holds the output's lock.
    pub(crate) fn commit(&self, length: u64) {
        self.layout().committed.store(length, Release);
    }

    pub(crate) fn count_write_error(&self) {
        self.layout().write_errors.fetch_add(1, Relaxed);
    }

    /// Perfetto sequence ids that no other process has: `count` from the returned one on.
    /// The first ever is 1, as ids below 128 are the shortest to write.
    pub fn take_sequences(&self, count: u32) -> u32 {
        self.layout().sequence.fetch_add(count, Relaxed)
    }

    /// Adds to the totals what a batch brought that is now in the output, or got lost.
    pub fn add(&self, events: u64, lost: u64, bytes: u64) {
        let layout = self.layout();
        layout.events.fetch_add(events, Relaxed);
        layout.lost.fetch_add(lost, Relaxed);
        layout.bytes.fetch_add(bytes, Relaxed);
    }

    /// Numbered files that were begun so far: dumps, or parts of the trace.
    pub fn files(&self) -> u32 {
        self.layout().files.load(Acquire)
    }

    /// Has everybody begin the next numbered file, for a dump that was asked for at this
    /// time (nanoseconds of `CLOCK_BOOTTIME`). Returns its number, from 1.
    pub fn next_file(&self, asked: u64) -> u32 {
        // Sooner than the number: who sees that one looks for the time.
        self.layout().asked.store(asked, Relaxed);
        self.layout().files.fetch_add(1, AcqRel) + 1
    }

    /// When the newest dump was asked for.
    pub fn asked(&self) -> u64 {
        self.layout().asked.load(Relaxed)
    }

    /// The newest numbered file, after everybody was made to go on from file `number`. Of
    /// several who find it full one makes the step.
    pub fn file_after(&self, number: u32) -> u32 {
        let files = &self.layout().files;
        files.compare_exchange(number, number + 1, AcqRel, Acquire).map_or_else(|n| n, |n| n + 1)
    }

    /// Counts threads that recorded something for the first time.
    pub fn add_threads(&self, count: u32) {
        self.layout().threads.fetch_add(count, Relaxed);
    }

    /// Sums so far. Each is right; together they may be of slightly different moments.
    pub fn totals(&self) -> Totals {
        let layout = self.layout();
        Totals {
            events: layout.events.load(Relaxed),
            lost: layout.lost.load(Relaxed),
            bytes: layout.bytes.load(Relaxed),
            write_errors: layout.write_errors.load(Relaxed),
            threads: layout.threads.load(Relaxed),
            processes: layout.processes.load(Relaxed),
            refused: layout.refused.load(Relaxed),
        }
    }

    /// Whether nobody has cut the page's file short or written over what never changes, as
    /// far as the `kymo` that made it can tell. If somebody has, nothing in it counts.
    pub fn is_intact(&self) -> bool {
        let layout = self.layout();
        let same = layout.magic.load(Acquire) == MAGIC
            && layout.version.load(Relaxed) == VERSION
            && layout.owner.load(Relaxed) == std::process::id();
        // Looked at last: reading finds it out.
        same && !mapped::was_truncated()
    }

    /// The pid of the `kymo` that made the page.
    pub fn owner(&self) -> u32 {
        self.layout().owner.load(Relaxed)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        mapped::leave(self.layout.as_ptr() as usize);
        // SAFETY: mapped by `map` with this length; no reference outlives `self`.
        unsafe { libc::munmap(self.layout.as_ptr().cast(), BYTES) };
    }
}

fn failure(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Control { path: path.to_owned(), source }
}

/// Nanoseconds on the clock that all processes share and that goes on while the machine
/// sleeps.
fn boottime() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
