//! An arena: the memory of a pool that outlives the process that fills it.
//!
//! ```text
//! byte 0        4096      266240         …                       16 KiB aligned
//!      ┌────────┬─────────┬──────────────┬──────────────────────┬──────────────────┐
//!      │ header │ members │ lanes        │ (room)               │ chunks           │
//!      └────────┴─────────┴──────────────┴──────────────────────┴──────────────────┘
//! ```
//! It lies in a `memfd` that the recorded process makes, seals against shrinking, maps, and
//! hands to `kymo`, which maps it as well. The kernel keeps the memory for as long as either
//! has it mapped: what a push has stored is there when the process is dead. Pages are only
//! taken when they are touched.
//!
//! A **member** is a process that records into the arena: the one that made it, and children
//! forked from that, which inherit the mapping and need nothing but a free entry: no lock,
//! no memory, no system call that a `vfork`ed or privilege-dropped child could not make.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kymograph_backends::flushes::Flushes;

use super::chunk::Chunk;
use super::kept::Keeping;
use super::lane::Lane;
use super::pool::{Counters, SEGMENT_CHUNKS, chunks_for};

const MAGIC: u64 = u64::from_le_bytes(*b"kymarena");
/// Raised with every change of the layout or of what a field means.
const VERSION: u32 = 3;
pub(super) const HEADER: usize = 4096;
/// Bytes of the header that say what it is.
pub(super) const START: usize = 16;
/// Memory of this process alone.
const PRIVATE: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// Processes that may record into one arena at a time.
pub const MEMBERS: usize = 4096;

/// The beginning of an arena.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    chunks: AtomicU32,
    limit: AtomicU32,
    /// Not 0: what is recorded from now on is not read.
    closing: AtomicU32,
    /// The highest number that a member has had.
    members: AtomicU32,
    /// Patterns of `CATEGORIES` that something was called by: bit n is the n-th.
    matched: AtomicU64,
    /// What was left out, by its bits.
    left_out: AtomicU64,
    counters: Counters,
    /// What sources are asked for.
    flushes: Flushes,
    keeping: Keeping,
}

const _: () = assert!(size_of::<Header>() <= HEADER);

/// How a member's life goes. Zero, so that fresh memory is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Life {
    /// Nobody's.
    Free = 0,
    /// It is being entered.
    Entering = 1,
    /// It records, or its death has not been noticed.
    Records = 2,
    /// It said that it ends.
    Ends = 3,
    /// It was about to become another program.
    Becomes = 4,
}

impl Life {
    fn of(n: u32) -> Life {
        match n {
            1 => Life::Entering,
            2 => Life::Records,
            3 => Life::Ends,
            4 => Life::Becomes,
            _ => Life::Free,
        }
    }
}

/// A process that records into the arena.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Member {
    life: AtomicU32,
    /// As the process itself sees it.
    pid: AtomicU32,
    /// The member that it was forked from, as its index + 1; 0: none.
    parent: AtomicU32,
    /// How many names it had when it was forked: they are its parent's.
    names: AtomicU32,
    /// When it began to record, in ticks and in nanoseconds of `CLOCK_BOOTTIME`.
    ticks: AtomicU64,
    nanos: AtomicU64,
    /// Ticks when it said that it ends.
    ended: AtomicU64,
    /// How often it has asked that everything be written, and the newest of these that was.
    flushes: AtomicU32,
    flushed: AtomicU32,
    /// Events that were written, and events that were lost, as of the last flush.
    events: AtomicU64,
    lost: AtomicU64,
}

const _: () = assert!(size_of::<Member>() == 64);
const _: () = assert!(offset_of!(Member, flushes) == 40);
const LANES: usize = HEADER + MEMBERS * size_of::<Member>();

/// What a member says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// How its life goes.
    pub life: Life,
    /// Its pid, as it sees it itself.
    pub pid: u32,
    /// The member that it was forked from, from 1.
    pub parent: Option<u32>,
    /// How many names it took over from that.
    pub names: u32,
    /// When it began to record: ticks, and nanoseconds of `CLOCK_BOOTTIME`.
    pub began: (u64, u64),
    /// When it said that it ends, in ticks.
    pub ended: u64,
}

/// An arena, mapped. Never unmapped by the process that records: threads may be in it.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    chunks: u32,
}

// SAFETY: memory that lives as long as the `Arena`, accessed through atomics.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Makes one for so many bytes of records, and returns the file by which others map it.
    ///
    /// # Errors
    /// The system has no `memfd`, or no address space for it.
    pub fn create(bytes: usize) -> io::Result<(Arena, OwnedFd)> {
        let limit = chunks_for(bytes);
        Arena::create_with(limit, limit.next_multiple_of(SEGMENT_CHUNKS))
    }

    /// As [`Arena::create`], for so many chunks, of which so many may be in use at a time.
    pub(super) fn create_with(limit: u32, chunks: u32) -> io::Result<(Arena, OwnedFd)> {
        let length = length(chunks);
        check_file_size_limit(length)?;
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a C string; the descriptor is new and ours.
        let file = unsafe {
            let fd = libc::memfd_create(c"kymograph".as_ptr(), flags);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let file = File::from(file);
        file.set_len(length as u64)?;
        seal(&file)?;
        let arena = Arena::map(Some(&file), length, chunks)?;
        arena.begin(chunks, limit);
        Ok((arena, file.into()))
    }

    /// Writes the header.
    pub(super) fn begin(&self, chunks: u32, limit: u32) {
        let header = self.header();
        header.chunks.store(chunks, Ordering::Relaxed);
        header.limit.store(limit, Ordering::Relaxed);
        header.version.store(VERSION, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    /// How many chunks an arena has that begins so, if it is one.
    pub(super) fn chunks_said(start: &[u8; START]) -> io::Result<u32> {
        let number = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|byte| start[at + byte]));
        if start[..8] != MAGIC.to_ne_bytes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if number(offset_of!(Header, version)) != VERSION {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let chunks = number(offset_of!(Header, chunks));
        if chunks == 0 || chunks % SEGMENT_CHUNKS != 0 || chunks > chunks_for(usize::MAX) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(chunks)
    }

    /// Maps an arena that another process made.
    ///
    /// # Errors
    /// It is no arena, of another release, or could be cut short while it is mapped.
    pub fn open(file: OwnedFd) -> io::Result<Arena> {
        let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let file = File::from(file);
        // SAFETY: no pointers.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(wrong("it may be cut short while it is read"));
        }
        let bytes = file.metadata()?.len();
        let header = usize::try_from(bytes).ok().filter(|bytes| *bytes >= length(SEGMENT_CHUNKS));
        let bytes = header.ok_or_else(|| wrong("it is too short"))?;
        let mut arena = Arena::map(Some(&file), bytes, SEGMENT_CHUNKS)?;
        let header = arena.header();
        if header.magic.load(Ordering::Acquire) != MAGIC
            || header.version.load(Ordering::Relaxed) != VERSION
        {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let chunks = header.chunks.load(Ordering::Relaxed);
        if chunks == 0 || chunks % SEGMENT_CHUNKS != 0 || length(chunks) != bytes {
            return Err(wrong("it contradicts itself"));
        }
        arena.chunks = chunks;
        Ok(arena)
    }

    /// Maps a file, which is as long, or memory of this process alone.
    pub(super) fn map(file: Option<&File>, bytes: usize, chunks: u32) -> io::Result<Arena> {
        let sharing = if file.is_some() { libc::MAP_SHARED } else { PRIVATE };
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that
        // exists.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                sharing | libc::MAP_NORESERVE,
                file.map_or(-1, AsRawFd::as_raw_fd),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above. A core dump is to hold the program and not the recording.
        unsafe { libc::madvise(memory, bytes, libc::MADV_DONTDUMP) };
        let base = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Arena { base, bytes, chunks })
    }

    pub(super) fn keeping(&self) -> &Keeping {
        &self.header().keeping
    }

    /// Its memory, before it is shared.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped, and this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.bytes) }
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header of atomics, for which all bits are valid.
        unsafe { self.base.cast().as_ref() }
    }

    fn at<T>(&self, offset: usize) -> *mut T {
        debug_assert!(offset + size_of::<T>() <= self.bytes);
        // SAFETY: within the mapping, as the layout is drawn.
        unsafe { self.base.as_ptr().add(offset).cast() }
    }

    /// Chunks that there is address space for, and as many lanes.
    pub(super) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Chunks that may be in use.
    pub(super) fn limit(&self) -> u32 {
        self.header().limit.load(Ordering::Relaxed)
    }

    pub(super) fn counters(&self) -> *mut Counters {
        (&raw const self.header().counters).cast_mut()
    }

    /// Bytes up to the last chunk that was handed out.
    pub(super) fn used(&self) -> usize {
        let chunks = self.header().counters.fresh_chunks().min(self.chunks);
        first_chunk(self.chunks) + chunks as usize * size_of::<Chunk>()
    }

    pub(super) fn lane(&self, index: usize) -> *mut Lane {
        self.at(LANES + index * size_of::<Lane>())
    }

    pub(super) fn chunk(&self, index: usize) -> *mut Chunk {
        self.at(first_chunk(self.chunks) + index * size_of::<Chunk>())
    }

    /// The member with this number, from 1.
    fn member(&self, number: u32) -> Option<&Member> {
        let index = number.checked_sub(1).filter(|index| (*index as usize) < MEMBERS)? as usize;
        // SAFETY: members are atomics, for which all bits are valid.
        Some(unsafe { &*self.at::<Member>(HEADER + index * size_of::<Member>()) })
    }

    /// Enters a process; returns its number, from 1, or `None` if there is no room for it.
    /// Takes no lock and allocates nothing.
    pub(super) fn enter(
        &self,
        pid: u32,
        parent: u32,
        names: u32,
        began: (u64, u64),
    ) -> Option<u32> {
        let free = Life::Free as u32;
        let number = (1..=MEMBERS as u32).find(|number| {
            self.member(*number).is_some_and(|member| {
                let entering = Life::Entering as u32;
                member.life.load(Ordering::Relaxed) == free
                    && member
                        .life
                        .compare_exchange(free, entering, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
            })
        })?;
        self.header().members.fetch_max(number, Ordering::AcqRel);
        let member = self.member(number)?;
        member.pid.store(pid, Ordering::Relaxed);
        member.parent.store(parent, Ordering::Relaxed);
        member.names.store(names, Ordering::Relaxed);
        member.ticks.store(began.0, Ordering::Relaxed);
        member.nanos.store(began.1, Ordering::Relaxed);
        member.ended.store(0, Ordering::Relaxed);
        member.flushes.store(0, Ordering::Relaxed);
        member.flushed.store(0, Ordering::Relaxed);
        member.events.store(0, Ordering::Relaxed);
        member.lost.store(0, Ordering::Relaxed);
        member.life.store(Life::Records as u32, Ordering::Release);
        Some(number)
    }

    /// The highest number that a member has had so far.
    pub fn highest(&self) -> u32 {
        self.header().members.load(Ordering::Acquire).min(MEMBERS as u32)
    }

    /// What the member with this number says of itself, from 1.
    pub fn about(&self, number: u32) -> Option<About> {
        let member = self.member(number)?;
        let life = Life::of(member.life.load(Ordering::Acquire));
        let load = |word: &AtomicU32| word.load(Ordering::Relaxed);
        Some(About {
            life,
            pid: load(&member.pid),
            parent: Some(load(&member.parent)).filter(|parent| *parent != 0),
            names: load(&member.names),
            began: (member.ticks.load(Ordering::Relaxed), member.nanos.load(Ordering::Relaxed)),
            ended: member.ended.load(Ordering::Relaxed),
        })
    }

    /// The member with this number ends, or does not after all (`Life::Records`).
    pub(super) fn live(&self, number: u32, life: Life, ticks: u64) {
        if let Some(member) = self.member(number) {
            member.ended.store(ticks, Ordering::Relaxed);
            member.life.store(life as u32, Ordering::Release);
        }
    }

    /// The process: asks that everything it has recorded be written. Returns the number of the
    /// ticket, for [`Arena::is_flushed`].
    pub(super) fn ask_flush(&self, number: u32) -> u32 {
        self.member(number).map_or(0, |member| member.flushes.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// The process: whether that was done.
    pub(super) fn is_flushed(&self, number: u32, ticket: u32) -> bool {
        let done = |member: &Member| member.flushed.load(Ordering::Acquire).wrapping_sub(ticket);
        self.member(number).is_none_or(|member| (done(member) as i32) >= 0)
    }

    /// The process: events that were written, and lost, as of the last flush.
    pub(super) fn written(&self, number: u32) -> (u64, u64) {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        self.member(number).map_or((0, 0), |member| (load(&member.events), load(&member.lost)))
    }

    /// Whoever reads: the newest flush that was requested, if it was not done.
    pub fn wanted_flush(&self, number: u32) -> Option<u32> {
        let member = self.member(number)?;
        let ticket = member.flushes.load(Ordering::Acquire);
        (member.flushed.load(Ordering::Relaxed) != ticket).then_some(ticket)
    }

    /// Whoever reads: so much was written, and lost, so far.
    pub fn flushed(&self, number: u32, ticket: u32, written: (u64, u64)) {
        if let Some(member) = self.member(number) {
            member.events.store(written.0, Ordering::Relaxed);
            member.lost.store(written.1, Ordering::Relaxed);
            member.flushed.store(ticket, Ordering::Release);
        }
    }

    /// The process: something is called as these patterns of `CATEGORIES` say.
    pub fn matched(&self, bits: u64) {
        set(&self.header().matched, bits);
    }

    /// The process: what these bits stand for is left out.
    pub fn leave_out(&self, bits: u64) {
        set(&self.header().left_out, bits);
    }

    /// Whoever reads: what was matched, and what was left out.
    pub fn observed(&self) -> (u64, u64) {
        let header = self.header();
        (header.matched.load(Ordering::Relaxed), header.left_out.load(Ordering::Relaxed))
    }

    /// Flushes that the reader asks the sources of the processes for.
    pub fn flushes(&self) -> &Flushes {
        &self.header().flushes
    }

    /// Whoever reads: everything of this member was read, and its process is gone.
    pub fn release(&self, number: u32) {
        self.live(number, Life::Free, 0);
    }

    /// Whoever reads: nothing that is recorded from now on will be read.
    pub fn close(&self) {
        self.header().closing.store(1, Ordering::Release);
    }

    /// Whether nothing that is recorded from now on will be read.
    pub fn is_closing(&self) -> bool {
        self.header().closing.load(Ordering::Acquire) != 0
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; what borrows from it ends sooner.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Sets bits without writing to memory that others read, unless it must be.
fn set(word: &AtomicU64, bits: u64) {
    if bits & !word.load(Ordering::Relaxed) != 0 {
        word.fetch_or(bits, Ordering::Relaxed);
    }
}

/// Where chunks begin.
fn first_chunk(chunks: u32) -> usize {
    (LANES + chunks as usize * size_of::<Lane>()).next_multiple_of(size_of::<Chunk>())
}

/// Bytes of an arena.
pub(super) fn length(chunks: u32) -> usize {
    first_chunk(chunks) + chunks as usize * size_of::<Chunk>()
}

/// The file can no longer be cut short, which would kill every process that maps it (SIGBUS).
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: no pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A file that the program may not have would bring it a SIGXFSZ.
pub(super) fn check_file_size_limit(length: usize) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < length as u64 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}
