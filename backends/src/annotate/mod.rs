//! Annotation libraries: what programs say about themselves through NVTX, ITT and ROCTX.
//!
//! Both are header-only (or a static part) inside each shared object of the program. On
//! its first call such a copy looks for a tool, hands it a table of function pointers and
//! lives with what it finds there. So one process initialises us many times, from several
//! threads at once, and a handle that one copy got is used through another: everything
//! here is process-global, is found by index and not by pointer, and is never freed.
//!
//! ```text
//!  nvtx/  ──┐  callback: guard → session → thread stack → Recorder
//!  itt/   ──┘
//!  guard     no panic crosses into the program
//!  session   the recorder, the pause switch, the names of arguments
//!  memory    allocations that may fail, locks without signal handlers
//!  args      the arguments of one event, on the stack
//!  text      C and wide strings → bytes, bounded
//!  table     append-only, lock-free: handles and names
//!  thread    per-thread push/pop stacks by category
//! ```
//!
//! # Rules of the house
//! * A push that the recorder refused must not be popped, one that it took must be:
//!   [`thread`] remembers which, per category, as the recorder matches them by category.
//! * Names are interned if the recorder can, else they travel by value; the record's
//!   `site` is then the *category* (a pop has nothing else to match by).
//! * Nothing allocates on the way of a plain push and pop, and nothing locks. Elsewhere
//!   memory may be exhausted, which costs an event or a handle and nothing else.

mod args;
mod guard;
pub mod itt;
pub(crate) mod memory;
pub mod nvtx;
pub mod roctx;
mod session;
mod table;
mod text;
mod thread;

pub(crate) use guard::guard as guarded;
pub use guard::{Stats, stats};
pub(crate) use nvtx::of_process;
pub(crate) use table::mix;
