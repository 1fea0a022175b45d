//! A push that was left by `siglongjmp` out of a signal handler: noticed by the next one.
//!
//! A push puts a mark on the stack and remembers where. A signal handler that interrupts it
//! runs farther down, or on another stack, and finds the mark. A push from about the same
//! place, or one that finds the stack there used for something else, knows that the first will
//! never go on, and puts in order what it left. Until then events are counted as if they were
//! inside.

use std::ptr;
use std::sync::atomic::Ordering;

use super::chunk::Chunk;
use super::lane::Lane;
use super::producer::{NO_LEAF, Producer, State, is_none};

/// What lies on the stack during a push.
pub(super) const MARK: usize = 0x6b79_6d6f;
/// How far up a frame is certainly on the same stack: other ones that lie above are larger, and
/// in use at their upper ends.
const ABOVE: usize = 4 << 10;
/// How far down a frame is certainly not that of a handler, for which the kernel puts the
/// registers on the stack: 1.7 KiB at least.
const BELOW: usize = 1 << 10;
/// How far apart two frames of one stack may be. What is farther away may be the stack of a
/// coroutine, which may not even be there any more.
const STACK: usize = 8 << 20;

/// Whether the push with a mark at `there` was left, as seen by one with a mark at `here`.
pub(super) fn was_left(there: usize, here: usize) -> bool {
    (there.saturating_sub(BELOW)..there.saturating_add(ABOVE)).contains(&here)
        || there.abs_diff(here) < STACK && read(there) != MARK
}

/// What lies on the stack of this thread at this address, be it in use or not.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn read(address: usize) -> usize {
    let value;
    // SAFETY: the stack is mapped where it was in use, and reading changes nothing. Not by
    // Rust's own means, since what lies there may be no object.
    unsafe {
        std::arch::asm!(
            "mov {}, [{}]", out(reg) value, in(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    value
}

/// As above.
#[cfg(all(target_arch = "aarch64", not(miri)))]
fn read(address: usize) -> usize {
    let value;
    // SAFETY: as above.
    unsafe {
        std::arch::asm!(
            "ldr {}, [{}]", out(reg) value, in(reg) address,
            options(nostack, readonly, preserves_flags)
        );
    }
    value
}

/// Where that is not possible, it is always taken for being inside.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn read(_: usize) -> usize {
    MARK
}

impl Producer {
    /// Puts in order what a push left. Its event is lost.
    #[cold]
    pub(super) fn clear_up(&self) {
        if self.state.get() != State::Ready {
            return;
        }
        // SAFETY: `Ready` means `lane` points to a lane of the pool.
        let lane = unsafe { &*self.lane.get() };
        Lane::count(&lane.dropped, 1);
        self.lost.set(self.lost.get() + 1);
        self.leaf.set(NO_LEAF);
        if self.moving.get() {
            // Between two chunks: the thread goes on as another one would.
            self.moving.set(false);
            self.state.set(State::New);
            self.chunk.set(ptr::null());
            return lane.retire();
        }
        let chunk = self.chunk.get();
        if is_none(chunk) {
            return;
        }
        // SAFETY: a chunk of the pool, which are never freed.
        let chunk: &Chunk = unsafe { &*chunk };
        // What is published was written, also if its place was not counted yet; what was
        // counted is whole.
        self.pos.set(self.pos.get().max(chunk.committed()));
        chunk.show_leaf(0);
        chunk.publish(self.pos.get());
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }
}
