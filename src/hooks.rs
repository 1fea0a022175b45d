//! What a floor has to tell one above it, or to ask of it.
//!
//! Modules import only from the floors below them (docs/ARCHITECTURE.md). Where the queues have to
//! start a recording, say, the floor of recordings registers a function here before that can
//! happen. As long as nothing is registered there is nothing to do.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::Receiver;

/// A function of a floor above.
pub(crate) struct Hook<F>(OnceLock<F>);

impl<F: Copy> Hook<F> {
    const fn new() -> Hook<F> {
        Hook(OnceLock::new())
    }

    /// Registers the function. The first one counts.
    pub fn register(&self, function: F) {
        let _ = self.0.set(function);
    }

    /// The function, if it is registered. Async-signal-safe.
    pub fn get(&self) -> Option<F> {
        self.0.get().copied()
    }
}

impl Hook<fn()> {
    /// Calls the function, if it is registered.
    pub fn call(&self) {
        if let Some(function) = self.get() {
            function();
        }
    }
}

/// A thread is about to record its first event. A forked child starts its own recording then.
pub(crate) static ON_FIRST_EVENT: Hook<fn()> = Hook::new();

/// The reader of the arena has closed it: this process records nothing from now on. Takes no lock
/// and allocates nothing.
pub(crate) static ON_CLOSED: Hook<fn()> = Hook::new();

/// The program does something that starts a recording where one is due: in a forked child, and in
/// a program under `kymo record`. Returns whether a recording runs now.
pub(crate) static START_IF_DUE: Hook<fn() -> bool> = Hook::new();

/// Decides about a category, by its name.
type Decide = fn(&[u8]) -> Option<bool>;

/// Whether a category is recorded, for the first question about it, which counts as
/// [`START_IF_DUE`] as well. `None`: nothing is recorded now, and the answer may change.
pub(crate) static DECIDE: Hook<Decide> = Hook::new();

/// A recording has begun that was requested from outside, or by a program through the C ABI.
pub(crate) static ON_REQUESTED: Hook<fn()> = Hook::new();

/// Starts the recording that the environment of an injected process asks for, once. Returns
/// whether there is one.
pub(crate) static START_INJECTED: Hook<fn() -> bool> = Hook::new();

/// What comes of a step of a snapshot: whether something was changed for it, or why it was not
/// done.
pub(crate) type Snapshot = Receiver<Result<bool, String>>;

/// What the program's main thread is to do for a snapshot of PyTorch's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Keep allocations from now on.
    Begin,
    /// Write it, and with `end` keep no more allocations.
    Take {
        /// Whether it was [`Step::Begin`] that had them kept.
        end: bool,
    },
}

type OrderSnapshot = fn(&Path, Step) -> Result<Snapshot, String>;

/// Has the program's main thread do a step of a snapshot. Does not wait for it.
pub(crate) static MEMORY_SNAPSHOT: Hook<OrderSnapshot> = Hook::new();
