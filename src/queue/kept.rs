//! An arena in a file, which keeps what was read: from it `kymo recover` makes the trace of a
//! program that was killed, from its beginning.
//!
//! ```text
//!      ┌────────┬─────────┬───────┬─────────────────────────────────────┬────────┐
//!      │ header │ members │ lanes │ chunks: what was read, what was not │ metadata  │
//!      └────────┴─────────┴───────┴─────────────────────────────────────┴────────┘
//! ```
//! The engine of the process reads its queues as always. Chunks that it has read stay where
//! they are, in the order of their lane, and new ones are taken; so do the lanes of threads
//! that ended. When the file is full they are given back after all: from then on it has only
//! what the engine has not read, and says so.
//!
//! The file has its blocks before it is mapped: a push must not be what finds a disk full.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kymograph_protos::packet::Snapshot;

use super::arena::{Arena, HEADER, START, check_file_size_limit, length};
use super::lane::{ACTIVE, FREE, KEPT, Lane, RETIRED};
use super::pool::{Pool, SEGMENT_CHUNKS, chunks_for};

/// Bytes for metadata at the end of the file.
const METADATA_BYTES: usize = 64 << 10;
/// Comparisons of clocks that are remembered.
const MOMENTS: usize = 96;
/// What is kept.
const ALL: u32 = 1;
const UNREAD: u32 = 2;

/// One moment on all clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// In ticks.
    pub ticks: u64,
    /// The system's clocks.
    pub clocks: Snapshot,
}

/// What an arena keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// Nothing: what was read is gone.
    Nothing,
    /// Everything that was recorded.
    All,
    /// There was more than it has room for: what was read is gone.
    Unread,
}

/// An edge of what belongs to the recording that is not known yet.
pub const NEVER: u64 = u64::MAX;

/// In the header: what is kept, and how the clocks compared, as the file may be read on
/// another machine.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Keeping {
    what: AtomicU32,
    moments: AtomicU32,
    /// When the recording opens and closes: each in ticks, and in nanoseconds of
    /// `CLOCK_BOOTTIME` where it was said so, which counts then.
    edges: [[AtomicU64; 2]; 2],
    /// Ticks, boot time, monotonic and real time: fewer moments of long ago than of now.
    clocks: [[AtomicU64; 4]; MOMENTS],
}

impl Arena {
    /// Makes one in a file, for so many bytes of records that wait to be read and as many that
    /// were read. `metadata` are what [`Arena::load`] returns.
    ///
    /// # Errors
    /// The file is there, cannot be made, or there is no room for it.
    pub fn create_in_file(
        path: &Path,
        (waiting, read): (usize, usize),
        metadata: &[u8],
    ) -> io::Result<Arena> {
        let (limit, chunks) = sizes(waiting, read);
        let arena_bytes = length(chunks);
        let mut options = File::options();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path)?;
        let prepare = || {
            reserve(&file, arena_bytes + METADATA_BYTES)?;
            if metadata.len() + 8 > METADATA_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            file.write_all_at(&(metadata.len() as u64).to_le_bytes(), arena_bytes as u64)?;
            file.write_all_at(metadata, arena_bytes as u64 + 8)?;
            let arena = Arena::map(Some(&file), arena_bytes, chunks)?;
            arena.begin(chunks, limit);
            arena.say_edge(0, 0, NEVER);
            arena.say_edge(1, NEVER, NEVER);
            arena.keeping().what.store(ALL, Ordering::Release);
            Ok(arena)
        };
        prepare().inspect_err(|_| _ = std::fs::remove_file(path))
    }

    /// Makes one in memory, for so many bytes of records that wait to be read and as many that
    /// were read, and returns the file by which others map it.
    ///
    /// # Errors
    /// As [`Arena::create`].
    pub fn create_to_keep((waiting, read): (usize, usize)) -> io::Result<(Arena, OwnedFd)> {
        let (limit, chunks) = sizes(waiting, read);
        let (arena, file) = Arena::create_with(limit, chunks)?;
        arena.keeping().what.store(ALL, Ordering::Release);
        Ok((arena, file))
    }

    /// The process: says when the recording opens (0) or closes (1), in ticks, or else in
    /// nanoseconds.
    pub fn say_edge(&self, edge: usize, ticks: u64, nanos: u64) {
        let [to_ticks, to_nanos] = &self.keeping().edges[edge];
        to_ticks.store(ticks, Ordering::Relaxed);
        to_nanos.store(nanos, Ordering::Release);
    }

    /// Whoever recovers: when it opened and closed, as it was said.
    pub fn edges(&self) -> [[u64; 2]; 2] {
        let load = |word: &AtomicU64| word.load(Ordering::Acquire);
        self.keeping().edges.each_ref().map(|edge| edge.each_ref().map(load))
    }

    /// Reads one from a file, into memory of its own: nothing that happens to the file later
    /// changes it. Returns also the metadata.
    ///
    /// # Errors
    /// It is no such file, or damaged so that it cannot be one.
    pub fn load(file: &File) -> io::Result<(Arena, Vec<u8>)> {
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let mut start = [0; START];
        let found = file.read_exact_at(&mut start, 0);
        found.map_err(|_| wrong("it is too short for a recording"))?;
        let chunks = Arena::chunks_said(&start).map_err(|why| match why.kind() {
            io::ErrorKind::Unsupported => wrong("it was written by another release of kymograph"),
            _ => wrong("it is no recording that `kymo recover` knows"),
        })?;
        let bytes = length(chunks);
        let found = file.metadata()?.len();
        if found != (bytes + METADATA_BYTES) as u64 {
            return Err(wrong("it is cut short, or something was appended to it"));
        }
        let mut arena = Arena::map(None, bytes, chunks)?;
        file.read_exact_at(&mut arena.bytes()[..HEADER], 0)?;
        let used = arena.used();
        read_parts(file, &mut arena.bytes()[..used])?;
        let mut count = [0; 8];
        file.read_exact_at(&mut count, bytes as u64)?;
        let count = (u64::from_le_bytes(count) as usize).min(METADATA_BYTES - 8);
        let mut metadata = vec![0; count];
        file.read_exact_at(&mut metadata, bytes as u64 + 8)?;
        Ok((arena, metadata))
    }

    /// What is kept.
    pub fn kept(&self) -> Kept {
        match self.keeping().what.load(Ordering::Acquire) {
            ALL => Kept::All,
            UNREAD => Kept::Unread,
            _ => Kept::Nothing,
        }
    }

    /// The engine: how the clocks compare now. Used by one thread.
    pub fn note_moment(&self, moment: Moment) {
        if self.kept() == Kept::Nothing {
            return;
        }
        let Keeping { moments, clocks, .. } = self.keeping();
        let mut count = (moments.load(Ordering::Relaxed) as usize).min(MOMENTS);
        if count == MOMENTS {
            // Every other one goes. Whoever is killed meanwhile leaves some twice.
            for at in 0..MOMENTS / 2 {
                for (to, from) in clocks[at].iter().zip(&clocks[at * 2]) {
                    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
                }
            }
            count = MOMENTS / 2;
            moments.store(count as u32, Ordering::Release);
        }
        let Snapshot { boottime, monotonic, realtime } = moment.clocks;
        for (to, value) in clocks[count].iter().zip([moment.ticks, boottime, monotonic, realtime]) {
            to.store(value, Ordering::Relaxed);
        }
        moments.store(count as u32 + 1, Ordering::Release);
    }

    /// Whoever recovers: it is an arena like any other.
    pub fn forget_keeping(&self) {
        self.keeping().what.store(0, Ordering::Release);
    }

    /// How the clocks compared, oldest first.
    pub fn moments(&self) -> Vec<Moment> {
        let Keeping { moments, clocks, .. } = self.keeping();
        let count = (moments.load(Ordering::Acquire) as usize).min(MOMENTS);
        let mut found: Vec<Moment> = clocks[..count]
            .iter()
            .map(|moment| {
                let [ticks, boottime, monotonic, realtime] =
                    [0, 1, 2, 3].map(|at: usize| moment[at].load(Ordering::Relaxed));
                Moment { ticks, clocks: Snapshot { boottime, monotonic, realtime } }
            })
            .collect();
        found.sort_by_key(|moment| moment.ticks);
        // A clock that does not go on compares with nothing.
        found.dedup_by(|next, before| {
            next.ticks <= before.ticks || next.clocks.boottime <= before.clocks.boottime
        });
        found
    }
}

impl Pool {
    /// The engine: whether what was read is kept; gives it back once there is no more room.
    pub(crate) fn look_after_kept(&self) {
        let Some(arena) = super::arena().filter(|arena| arena.kept() == Kept::All) else { return };
        if self.chunks_used() + 2 * arena.limit() < arena.chunks() {
            return;
        }
        // First: a process that is killed in between has not everything any more.
        arena.keeping().what.store(UNREAD, Ordering::Release);
        self.forget_kept();
    }

    /// The process, before it records once more: everything is kept from here on.
    pub(crate) fn keep_again(&self) {
        let Some(arena) = super::arena().filter(|arena| arena.kept() != Kept::All) else { return };
        for index in 0..self.lanes_used() {
            if let Some(lane) = self.lane(index) {
                lane.begin.store(lane.first.load(Ordering::Acquire), Ordering::Relaxed);
            }
        }
        arena.keeping().moments.store(0, Ordering::Relaxed);
        arena.keeping().what.store(ALL, Ordering::Release);
    }

    /// The engine: everything is written, and nothing is kept any more.
    pub(crate) fn end_keeping(&self) {
        if let Some(arena) = super::arena() {
            let all = arena.kept() == Kept::All;
            arena.keeping().what.store(0, Ordering::Release);
            if all {
                self.forget_kept();
            }
        }
    }

    /// Gives back all that was read.
    fn forget_kept(&self) {
        for index in 0..self.lanes_used() {
            let Some(lane) = self.lane(index) else { continue };
            let end = lane.first.load(Ordering::Acquire);
            let mut next = lane.begin.swap(end, Ordering::Relaxed);
            let state = lane.state.load(Ordering::Acquire);
            if !matches!(state, ACTIVE | RETIRED | KEPT) {
                continue;
            }
            while let Some(chunk) = self.chunk(next.wrapping_sub(1)).filter(|_| next != end) {
                let this = next - 1;
                next = chunk.next.load(Ordering::Acquire);
                self.give_back(this);
            }
            if state == KEPT {
                self.give_lane(index);
            }
        }
    }

    /// Whoever recovers: everything that was kept is to be read once more.
    pub fn rewind(&self) {
        for index in 0..self.lanes_used() {
            let Some(lane) = self.lane(index) else { continue };
            lane.index.store(index, Ordering::Relaxed);
            for reported in &lane.reported {
                reported.store(0, Ordering::Relaxed);
            }
            if lane.state.load(Ordering::Acquire) == FREE {
                continue;
            }
            lane.first.store(lane.begin.load(Ordering::Relaxed), Ordering::Relaxed);
            lane.read.store(0, Ordering::Relaxed);
            if lane.state.load(Ordering::Acquire) == KEPT {
                lane.state.store(RETIRED, Ordering::Release);
            }
        }
    }
}

impl Lane {
    /// Everything of its thread was read, and is kept.
    pub(super) fn keep(&self) {
        self.state.store(KEPT, Ordering::Release);
    }
}

/// How many chunks may wait to be read, and how many there are in all.
fn sizes(waiting: usize, read: usize) -> (u32, u32) {
    let limit = chunks_for(waiting);
    let chunks = (chunks_for(read) + 2 * limit).next_multiple_of(SEGMENT_CHUNKS);
    (limit, chunks.min(chunks_for(usize::MAX)))
}

/// Gives a file its blocks.
fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    check_file_size_limit(bytes)?;
    // Not posix_fallocate, which writes zeros where the file system cannot do it.
    // SAFETY: no pointers.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads the parts of a file that are there; the rest is zeros, as in the memory.
fn read_parts(file: &File, memory: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < memory.len() {
        let start = match seek(file, at, libc::SEEK_DATA) {
            Ok(start) => start,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            // Where the file system knows of no holes: all of it.
            Err(_) => at,
        };
        let end = seek(file, start, libc::SEEK_HOLE).unwrap_or(memory.len()).min(memory.len());
        if start >= end {
            break;
        }
        file.read_exact_at(&mut memory[start..end], start as u64)?;
        at = end;
    }
    Ok(())
}

fn seek(file: &File, at: usize, what: libc::c_int) -> io::Result<usize> {
    // SAFETY: no pointers.
    match unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, what) } {
        -1 => Err(io::Error::last_os_error()),
        found => Ok(found as usize),
    }
}
