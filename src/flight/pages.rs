//! Memory that is given back.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A number of bytes in pages of their own. What the allocator is given back it may keep;
/// these return to the system when they are dropped or cut.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    /// Bytes in use, and bytes mapped.
    used: usize,
    mapped: usize,
}

// SAFETY: plain memory to which nothing else points.
unsafe impl Send for Pages {}

/// What a mapping is a multiple of, at least, on every machine that we run on.
const PAGE: usize = 4096;

impl Pages {
    /// Zeros. Takes memory only where it is written to.
    pub(super) fn new(bytes: usize) -> io::Result<Pages> {
        let mapped = bytes.max(1).next_multiple_of(page());
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { start, used: bytes, mapped })
    }

    /// Keeps the first `bytes`, and gives the pages back that lie behind them.
    pub(super) fn cut(&mut self, bytes: usize) {
        self.used = bytes.min(self.used);
        let keep = self.used.max(1).next_multiple_of(page());
        if keep < self.mapped {
            // SAFETY: whole pages at the end of our mapping, which nothing refers to any more.
            let cut = unsafe {
                libc::munmap(self.start.as_ptr().add(keep).cast(), self.mapped - keep) == 0
            };
            if cut {
                self.mapped = keep;
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn mapped(&self) -> usize {
        self.mapped
    }
}

fn page() -> usize {
    // SAFETY: takes and returns numbers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE).max(PAGE)
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `used` bytes are mapped, initialised by the kernel, and ours.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.used) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.used) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our mapping; no reference outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_given_back_and_the_rest_stays() {
        let mut pages = Pages::new(10 * PAGE).unwrap();
        pages.fill(7);
        pages.cut(page() + 1);
        assert_eq!((pages.len(), pages.mapped()), (page() + 1, 2 * page()));
        assert!(pages.iter().all(|byte| *byte == 7));
    }
}
