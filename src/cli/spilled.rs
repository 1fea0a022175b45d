//! Memory for traces that are larger than the machine's: files instead.
//!
//! While this is on ([`begin`]), large blocks of memory, which are columns of events and tables, are
//! mapped one by one; beyond a budget they are mapped from files without a name, so that the kernel writes
//! what was not used lately to the disk, and reads it again when it is, as it does with swap. The price is
//! time. Without it, and for all smaller blocks, the system's allocator does everything.
//!
//! ```text
//! reserved addresses   | blocks in memory →            | blocks in files →              |
//!                      0                               HALF                        2 × HALF
//! ```
//! An address tells what a block is. Addresses are not used twice: when they run out, which takes
//! terabytes of blocks, the system's allocator has everything again.

use super::room;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CString;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks from this size on.
const LARGE: usize = 1 << 17;
const PAGE: usize = 1 << 12;
/// Addresses for blocks of either kind.
const HALF: usize = 1 << 42;
/// `f_type` of a file system that lies in memory.
const TMPFS: i64 = 0x0102_1994;

#[global_allocator]
static MEMORY: Spilled = Spilled {
    base: AtomicUsize::new(0),
    next: [AtomicUsize::new(0), AtomicUsize::new(0)],
    in_memory: AtomicUsize::new(0),
    budget: AtomicUsize::new(0),
    folder: OnceLock::new(),
};

/// See the module.
struct Spilled {
    /// Where the reserved addresses begin; 0 while this is off.
    base: AtomicUsize,
    /// How many addresses of each half are used.
    next: [AtomicUsize; 2],
    /// Bytes of blocks in memory, and how many there may be.
    in_memory: AtomicUsize,
    budget: AtomicUsize,
    /// Where files are made.
    folder: OnceLock<CString>,
}

/// Begins to put large blocks into files where those in memory would take more than an eighth of what is
/// left: what is smaller, and what is only read for a while, needs the rest. Once begun, it stays on. Without a folder on a disk, or addresses, nothing changes.
pub(super) fn begin() {
    let Some((left, _)) = room::memory() else { return };
    let named = std::env::var("TMPDIR").ok();
    let folders = named.iter().map(String::as_str).chain(["/var/tmp", "/tmp"]);
    let mut paths = folders.filter_map(|folder| CString::new(folder).ok());
    let Some(folder) = paths.find(is_on_disk) else { return };
    if MEMORY.folder.set(folder).is_err() {
        return;
    }
    MEMORY.budget.store(usize::try_from(left / 8).unwrap_or(usize::MAX), Ordering::Relaxed);
    // SAFETY: new addresses, which nothing can be read from or written to.
    let base = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(ptr::null_mut(), 2 * HALF, libc::PROT_NONE, flags, -1, 0)
    };
    if base != libc::MAP_FAILED {
        MEMORY.base.store(base as usize, Ordering::Release);
    }
}

/// Whether files without a name can be made there, and do not lie in memory themselves.
fn is_on_disk(folder: &CString) -> bool {
    // SAFETY: all zeros are a value of this struct of numbers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends with 0, and a struct to fill.
    let known = unsafe { libc::statfs(folder.as_ptr(), &mut about) } == 0;
    #[allow(clippy::unnecessary_cast, reason = "its type is not the same on all machines")]
    let disk = known && about.f_type as i64 != TMPFS;
    let file = if disk { open(folder) } else { -1 };
    if file >= 0 {
        // SAFETY: opened above.
        unsafe { libc::close(file) };
    }
    file >= 0
}

fn open(folder: &CString) -> i32 {
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a path that ends with 0.
    unsafe { libc::open(folder.as_ptr(), flags, 0o600) }
}

fn pages(size: usize) -> usize {
    size.next_multiple_of(PAGE)
}

impl Spilled {
    /// A block of zeros; null if there is none to be had.
    fn map(&self, layout: Layout) -> *mut u8 {
        let base = self.base.load(Ordering::Acquire);
        if base == 0 || layout.size() < LARGE || layout.align() > PAGE {
            return ptr::null_mut();
        }
        let length = pages(layout.size());
        let before = self.in_memory.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) <= self.budget.load(Ordering::Relaxed) {
            return self.place(base, 0, length, -1);
        }
        self.in_memory.fetch_sub(length, Ordering::Relaxed);
        let file = self.folder.get().map_or(-1, open);
        if file < 0 {
            return ptr::null_mut();
        }
        // SAFETY: opened above. Room is taken now, since a full disk would end the process later.
        let roomy = i64::try_from(length)
            .is_ok_and(|length| unsafe { libc::posix_fallocate(file, 0, length) } == 0);
        let block = if roomy { self.place(base, 1, length, file) } else { ptr::null_mut() };
        // SAFETY: opened above; a mapping lasts without it.
        unsafe { libc::close(file) };
        block
    }

    /// Maps memory, or a file, at the next addresses of a half.
    fn place(&self, base: usize, half: usize, length: usize, file: i32) -> *mut u8 {
        let at = self.next[half].fetch_add(length, Ordering::Relaxed);
        if at.saturating_add(length) > HALF {
            // So that it does not begin anew when there were even more.
            self.next[half].fetch_sub(length, Ordering::Relaxed);
            self.forget(half, length);
            return ptr::null_mut();
        }
        let address = (base + half * HALF + at) as *mut libc::c_void;
        let kind =
            if file < 0 { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS } else { libc::MAP_SHARED };
        // SAFETY: reserved addresses that no other block has.
        let block = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(address, length, access, kind | libc::MAP_FIXED, file, 0)
        };
        if block == libc::MAP_FAILED {
            self.forget(half, length);
            return ptr::null_mut();
        }
        block.cast()
    }

    fn forget(&self, half: usize, length: usize) {
        if half == 0 {
            self.in_memory.fetch_sub(length, Ordering::Relaxed);
        }
    }

    /// The half that a block lies in; none if it is the system's.
    fn half_of(&self, block: *mut u8) -> Option<usize> {
        let base = self.base.load(Ordering::Acquire);
        let at = (block as usize).checked_sub(base).filter(|_| base != 0)?;
        (at < 2 * HALF).then_some(at / HALF)
    }

    /// Moves a block to where another size of it belongs.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::realloc`].
    unsafe fn moved(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller says that this is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: of a size above 0, as the caller says.
        let to = unsafe { self.alloc(new) };
        if !to.is_null() {
            // SAFETY: two blocks, both as long as that; the first is not used any more.
            unsafe {
                ptr::copy_nonoverlapping(block, to, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        to
    }
}

// SAFETY: a block is either the system's, or lies at addresses of its own that no other block ever has.
unsafe impl GlobalAlloc for Spilled {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = self.map(layout);
        if block.is_null() {
            // SAFETY: the caller's layout.
            return unsafe { System.alloc(layout) };
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = self.map(layout);
        if block.is_null() {
            // SAFETY: the caller's layout.
            return unsafe { System.alloc_zeroed(layout) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(half) = self.half_of(block) else {
            // SAFETY: the caller's block, which is the system's.
            return unsafe { System.dealloc(block, layout) };
        };
        let length = pages(layout.size());
        // SAFETY: the addresses of this block, which stay reserved: nothing else may come to lie there.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let flags = flags | libc::MAP_FIXED;
            libc::mmap(block.cast(), length, libc::PROT_NONE, flags, -1, 0);
        }
        self.forget(half, length);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let own = self.half_of(block).is_some();
        if own && size >= LARGE && pages(size) == pages(layout.size()) {
            return block;
        }
        if own || size >= LARGE && self.base.load(Ordering::Relaxed) != 0 {
            // SAFETY: the caller's block and sizes.
            return unsafe { self.moved(block, layout, size) };
        }
        // SAFETY: the caller's block, which is the system's.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_beyond_the_budget_lie_in_files_and_keep_what_is_in_them() {
        begin();
        let base = MEMORY.base.load(Ordering::Relaxed);
        if base == 0 {
            println!("skipped: there is no disk for temporary files");
            return;
        }
        let budget = MEMORY.budget.swap(8 << 20, Ordering::Relaxed);
        let mut halves = [0; 2];
        let mut blocks: Vec<Vec<u64>> = Vec::new();
        for block in 0..8_u64 {
            let mut numbers: Vec<u64> = Vec::new();
            // Grows from the system's allocator through blocks in memory or in files.
            numbers.extend((0..400_000).map(|n| n * 8 + block));
            let half = MEMORY.half_of(numbers.as_mut_ptr().cast());
            halves[half.expect("a large block")] += 1;
            blocks.push(numbers);
        }
        assert!(halves[1] > 0, "some lie in files: {halves:?}");
        for (block, numbers) in (0..).zip(&mut blocks) {
            assert!((0..).zip(&*numbers).all(|(n, own)| *own == n * 8 + block));
            numbers.truncate(1_000);
            numbers.shrink_to_fit();
            assert!((0..).zip(&*numbers).all(|(n, own)| *own == n * 8 + block));
            assert_eq!(MEMORY.half_of(numbers.as_mut_ptr().cast()), None, "small again");
        }
        assert!(vec![0_u8; 3 << 20].iter().all(|byte| *byte == 0));
        MEMORY.budget.store(budget, Ordering::Relaxed);
    }
}
