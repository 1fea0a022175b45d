//! How much memory a function has at most: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    /// Bytes that this thread has, and the most that it had. Memory that another thread
    /// frees stays on the account; nothing here uses threads.
    static ACCOUNT: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn book(bytes: isize) {
    // After the thread's end nobody asks.
    let _ = ACCOUNT.try_with(|account| {
        let (now, most) = account.get();
        account.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: all memory is the system allocator's; this only counts, without allocating.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(layout.size() as isize);
        // SAFETY: the caller's contract is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        book(layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        book(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        book(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// What `run` returns, and how many bytes it had at most, beyond those before it.
pub fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let (before, _) = ACCOUNT.get();
    ACCOUNT.set((before, before));
    let value = run();
    let (_, most) = ACCOUNT.get();
    (value, (most - before).max(0) as usize)
}
