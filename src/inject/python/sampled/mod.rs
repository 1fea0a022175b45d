//! Stacks of a Python program at a rate, on request: instants with the stack, in a row under each
//! thread's.
//!
//! ```text
//!  memory   reads memory of this process that may be gone
//!  layout   where the interpreter has what, by version
//!  stack    threads and their stacks, read without the interpreter's lock
//!  check    whether a stack that is known comes out right
//!  thread   takes samples
//! ```
//! **The lock is not taken.** A thread that waits for it makes the program's threads give it up,
//! and gets it only between two steps of Python code, so never inside a long call of a library.
//! Instead a thread of ours copies what it needs through the kernel, which refuses an address that
//! is not there any more instead of ending the process. What it finds is used if it is the same
//! when read twice and consists of code objects. The program's threads do not notice.
//!
//! The thread takes at most a hundredth of one processor's time: where a sample takes longer than
//! that leaves, there are fewer of them.

mod check;
mod layout;
mod memory;
mod stack;
mod thread;

use std::sync::atomic::{AtomicU32, Ordering};

use super::Object;
use super::calls::state;

/// Samples per second; 0: none.
static HERTZ: AtomicU32 = AtomicU32::new(0);
/// The process in which a thread takes samples.
static RUNS_IN: AtomicU32 = AtomicU32::new(0);

/// Samples are wanted at this rate; 0: none. To be called before `main`, or with the
/// interpreter's lock.
pub(super) fn want(hertz: u32) {
    HERTZ.store(hertz, Ordering::Release);
}

fn wanted() -> u32 {
    HERTZ.load(Ordering::Relaxed)
}

/// Takes samples from now on, if they are wanted and the interpreter is one that is known.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn start() {
    let process = std::process::id();
    if wanted() == 0 || RUNS_IN.load(Ordering::Relaxed) == process || !crate::inject::start() {
        return;
    }
    RUNS_IN.store(process, Ordering::Relaxed);
    // SAFETY: the caller's promise.
    match unsafe { check::reader() } {
        Ok(reader) => {
            let version = reader.version();
            if thread::spawn(reader) {
                state(&format!("sampled {} times a second (as {version})", wanted()));
            } else {
                state("not sampled: the system refuses another thread");
            }
        }
        Err(why) => state(&format!("not sampled: {why}")),
    }
}

/// Something happens in an interpreter: the child of a fork has no thread of ours until this.
///
/// # Safety
/// The interpreter's lock is held.
pub(super) unsafe fn go_on_after_fork() {
    let last = RUNS_IN.load(Ordering::Relaxed);
    if last != 0 && wanted() != 0 && last != std::process::id() {
        // SAFETY: the caller's promise.
        unsafe { start() };
    }
}
